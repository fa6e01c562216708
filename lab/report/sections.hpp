#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/report/admission.hpp"
#include "ops/selection.hpp"

/// Parts of the report's document, shared by its sources.
namespace assay::lab {

/// What gates say of forms, by the latest receipt of each gate on the same run.
class GateBook {
 public:
  /// `gates` are entries, oldest first.
  explicit GateBook(const nlohmann::ordered_json& gates);

  /// Of a run with all these forms: "FAIL" where a gate of such a run or of one of its forms failed; "PASS"
  /// where a gate of exactly such a run passed; "ops passed" where each op's form passed its own; else "no
  /// gate".
  std::string of_run(const std::string& forms, const std::string& precision) const;

  /// Of one form by itself: its latest op gate; null without one.
  const nlohmann::ordered_json* of_form(const std::string& op, const std::string& form,
                                        const std::string& precision) const;

  /// The run gates, latest each, whose forms include this one.
  std::vector<const nlohmann::ordered_json*> runs_with(const std::string& op, const std::string& form,
                                                       const std::string& precision) const;

  bool latest(const nlohmann::ordered_json& gate) const;

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  static Key key_of(const nlohmann::ordered_json& gate);

  std::map<Key, const nlohmann::ordered_json*> latest_;
};

/// Entries of a kind.
nlohmann::ordered_json entries_of(const Admission& admission, ReceiptKind kind);

/// The forms of the device that receipts were made on, of this machine without any.
std::vector<ops::FormListing> forms_of_device(const nlohmann::ordered_json& machine);

/// Per precision and op the form of the default order.
nlohmann::ordered_json default_forms(const std::vector<ops::FormListing>& listings);

/// "op=form" of every form that is not the default one; "default forms" where all are.
std::string label_of(const std::string& forms, const std::string& precision,
                     const nlohmann::ordered_json& defaults);

/// Fills in a window's forms[].gates and "fastest".
void judge_forms(nlohmann::ordered_json& window, const GateBook& book);

/// The pair of two forms on an item, turned so that `candidate` is the candidate.
std::optional<nlohmann::ordered_json> facing(const nlohmann::ordered_json& window, const std::string& item,
                                             const std::string& baseline, const std::string& candidate);

/// The report's "forms".
nlohmann::ordered_json forms_section(const Admission& admission, const KnownGates& gates,
                                     const GateBook& book, const std::vector<ops::FormListing>& listings);

/// The report's "ledger" and "selection"; null without them. Appends what is refused and what was read.
nlohmann::ordered_json ledger_section(const std::filesystem::path& folder, const Admission& admission,
                                      nlohmann::ordered_json& refused, nlohmann::ordered_json& sources);
nlohmann::ordered_json selection_section(const std::filesystem::path& file, const std::string& device,
                                         const nlohmann::ordered_json& forms, nlohmann::ordered_json& refused,
                                         nlohmann::ordered_json& sources);

/// {"file", "bytes", "sha256", "kind"} of a file that was read.
nlohmann::ordered_json source_of(const std::filesystem::path& file, const std::string& kind);

/// The report's "summary", once everything else stands.
nlohmann::ordered_json summary_of(const nlohmann::ordered_json& report);

}  // namespace assay::lab
