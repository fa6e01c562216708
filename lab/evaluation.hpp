#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "decision/decision.hpp"
#include "decision/request.hpp"

namespace assay::lab {

/// The answer that a question of a suite should get.
struct Expected {
  std::size_t option = 0;  ///< noul: 0 for no, 1 for yes; choice: the option's place
  double level = 0;        ///< score: the mean level
  bool answerable = true;  ///< false where the state cannot tell, and an even answer is the right one
};

struct SuiteRecord {
  std::string id;
  std::string family;  ///< of questions; empty where the suite has none
  decision::Request request;
  std::vector<Expected> expected;  ///< one a question, in the request's order
};

/// Reads a suite: one JSON object a line, {"id", "family" (may be absent), "request": {"state", "questions"},
/// "expected": {question → true or false, an option's name, a level's number, or null}}. Empty lines are
/// passed over. Throws Error(missing | io) for the file, Error(malformed | invalid_argument) naming file,
/// line and field for what it holds.
std::vector<SuiteRecord> read_suite(const std::filesystem::path& path);

/// The same from text already read; `file` starts the places in messages.
std::vector<SuiteRecord> parse_suite(std::string_view text, const std::string& file);

/// Right answers among those asked.
struct Share {
  std::size_t right = 0;
  std::size_t asked = 0;
  double share() const { return asked == 0 ? 0.0 : static_cast<double>(right) / static_cast<double>(asked); }
};

struct Confusion {
  std::string expected;
  std::string answered;
  std::size_t count = 0;
};

/// What a model's answers to a suite are worth.
struct Evaluation {
  std::size_t records = 0;
  Share noul;
  Share choice;
  Share score;             ///< mean level within a quarter of the range of the expected one
  double score_error = 0;  ///< mean |level − expected| as a share of the range
  double calibration =
      0;  ///< expected calibration error of noul and choice, 15 bins of the largest probability
  std::size_t unanswerable = 0;
  double unanswerable_excess = 0;  ///< mean of the largest probability less 1/K, where the state cannot tell
  std::map<std::string, Share> families;  ///< all types together
  std::vector<Confusion> noul_confusions;
  std::vector<Confusion> choice_confusions;  ///< the most frequent first

  /// All types together.
  Share all() const;
};

/// Adds answers one request at a time. Throws Error(invalid_argument) where a decision does not belong to the
/// record, Error(non_finite) for a probability that is no number.
class Evaluator {
 public:
  void add(const SuiteRecord& record, const decision::Decision& decision);
  Evaluation result() const;

 private:
  void add_question(const decision::QuestionDecision& question, const Expected& expected, Share& family);

  static constexpr std::size_t kBins = 15;
  struct Bin {
    double confidence = 0;
    double right = 0;
  };
  Evaluation totals_;
  double score_error_ = 0;
  double excess_ = 0;
  Bin bins_[kBins];
  std::map<std::pair<std::string, std::string>, std::size_t> nouls_;
  std::map<std::pair<std::string, std::string>, std::size_t> choices_;
};

nlohmann::ordered_json to_json(const Evaluation& evaluation);

/// For people: a line a figure, the families, and the `confusions` most frequent confusions of choices.
std::string to_text(const Evaluation& evaluation, std::size_t confusions);

}  // namespace assay::lab
