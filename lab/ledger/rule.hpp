#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace assay::lab {

/// What the frozen rule makes of the receipts.
enum class Evidence { positive, negative, inconclusive };
enum class Outcome { holds, refuted, open };

std::string_view to_string(Evidence evidence);
std::string_view to_string(Outcome outcome);

/// `"window": {…}` of a rule: every selected pair of every window that counts must be this much faster.
struct WindowClause {
  std::optional<std::string> item;       ///< only pairs on this item; all where absent
  std::optional<std::string> baseline;   ///< only pairs with this baseline form
  std::optional<std::string> candidate;  ///< only pairs with this candidate form
  double min_ratio = 0;                  ///< baseline time / candidate time that the claim needs
  double refuted_below = 0;              ///< an interval wholly below this refutes the claim; ≤ min_ratio
  bool interval_excludes_1 = false;      ///< the interval must lie above 1
  bool clean = false;                    ///< contended windows do not count
};

/// One of `"values": […]`: a number in every receipt of a kind must lie inside bounds.
struct ValueClause {
  std::string kind;     ///< of receipt
  std::string pointer;  ///< JSON pointer into the receipt
  std::optional<double> at_least;
  std::optional<double> at_most;
};

/// The decision rule, data that is frozen with the gates and the window plan:
///
///     {"schema": "assay.rule/1",
///      "gates": "all pass",
///      "window": {"item", "baseline", "candidate", "min_ratio": 1.05, "refuted_below": 1.05,
///                 "interval_excludes_1": true, "clean": true},
///      "values": [{"kind": "footprint", "pointer": "/result/…", "at_most": 1e9}]}
///
/// Every clause may be absent, but one must be there.
struct Rule {
  bool gates_pass = false;
  std::optional<WindowClause> window;
  std::vector<ValueClause> values;
};

/// Reads a rule that met the schema. Throws Error(invalid_argument) naming `where` for a refuted_below above
/// min_ratio, for bounds that no number meets and for a pointer that is none.
Rule read_rule(const nlohmann::ordered_json& json, const std::string& where);

/// Reads a rule that a person wrote and checks it against the schema, so that what is wrong with it is said
/// of its file. Throws as read_rule, Error(malformed) naming file and field, Error(missing | io).
nlohmann::ordered_json read_rule_file(const std::filesystem::path& file);

/// A gate's verdict, as its receipt has it.
struct GateFinding {
  std::string gate_sha256;
  std::string name;  ///< of the gate, for the reader
  bool pass = false;
  std::string forms;  ///< that it judged, "op=name …"
};

/// Two forms on one item inside one window.
struct PairFinding {
  std::string item;
  std::string baseline;
  std::string candidate;
  double ratio = 0;  ///< baseline's median time / candidate's: above 1 the candidate is faster
  double lower = 0;  ///< of the ratio's interval
  double upper = 0;
  bool faster = false;  ///< the window's own verdict: enough wins, and every process alone agrees
  std::string doubt;    ///< why the window itself does not trust it ("suspicious" …); empty where it does
};

struct WindowFinding {
  std::string plan_sha256;
  bool clean = false;
  std::vector<PairFinding> pairs;
  std::map<std::string, std::string> forms;  ///< what each form of the plan ran, "op=name …" of every op
};

/// A number that a value clause asked one receipt for; nothing where it holds none.
struct ValueFinding {
  std::size_t clause = 0;  ///< index into Rule::values
  std::optional<double> value;
};

/// What the receipts say, out of their formats.
struct Findings {
  std::vector<GateFinding> gates;
  std::vector<WindowFinding> windows;
  std::vector<ValueFinding> values;
};

/// Whether a window clause is about this pair.
bool selects(const WindowClause& clause, const PairFinding& pair);

struct ClauseOutcome {
  std::string clause;  ///< "gates", "window", "values[0]"
  Outcome outcome = Outcome::open;
  std::string because;
};

struct Judgement {
  Evidence evidence = Evidence::inconclusive;
  std::vector<ClauseOutcome> clauses;
};

/// Applies the rule; total, and a function of its arguments alone.
///
/// - gates: refuted where any receipt says FAIL; open where one of `gate_sha256s` (the frozen ones) has no
///   receipt, or, with a window clause, none on the forms that a selected pair's candidate ran; else holds.
/// - window: over the selected pairs of every window that counts: refuted where any pair's interval lies
///   wholly below refuted_below; holds where every ratio reaches min_ratio and, if asked, every interval
///   lies above 1 and the window itself calls every candidate faster, and no pair is in doubt; else open.
///   Open where no window counts, or one lacks the pairs.
/// - values: refuted where a number is out of bounds; open where no receipt has it, or one does not; else
///   holds.
///
/// Positive where all clauses hold, negative where one is refuted, else inconclusive. More receipts can only
/// be added, and all of them count, so a good window cannot be picked out of bad ones.
Judgement judge(const Rule& rule, const std::vector<std::string>& gate_sha256s, const Findings& findings);

}  // namespace assay::lab
