#include "lab/evaluation.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/utf8.hpp"
#include "decision/json_value.hpp"

namespace assay::lab {
namespace {

using decision::JsonValue;
using decision::QuestionType;

constexpr std::size_t kMostSuiteBytes = std::size_t{64} << 20;
constexpr double kScoreTolerance = 0.25;

[[noreturn]] void bad_suite(std::string where, std::string found, std::string expected) {
  throw Error(ErrorKind::malformed,
              {.where = std::move(where), .found = std::move(found), .expected = std::move(expected)});
}

const JsonValue& suite_field(const JsonValue& record, std::string_view name, const std::string& where) {
  const JsonValue* value = record.find(name);
  if (value == nullptr) bad_suite(decision::field_path(where, name), "missing", "id, request and expected");
  return *value;
}

std::string suite_string(const JsonValue& value, const std::string& where) {
  if (value.string() == nullptr) bad_suite(where, std::string(value.kind()), "a string");
  return *value.string();
}

Expected expected_option(const JsonValue& value, const decision::Question& question,
                         const std::string& where) {
  const std::string name = suite_string(value, where);
  const auto found = std::find(question.keys.begin(), question.keys.end(), name);
  if (found == question.keys.end()) bad_suite(where, in_quotes(name), "one of the question's options");
  return {.option = static_cast<std::size_t>(found - question.keys.begin())};
}

Expected expected_level(const JsonValue& value, const decision::Question& question,
                        const std::string& where) {
  if (value.number() == nullptr) bad_suite(where, std::string(value.kind()), "a level's number, or null");
  const std::string& text = value.number()->text;
  Expected expected;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), expected.level);
  const auto top = static_cast<double>(question.options.size() - 1);
  if (status != std::errc{} || end != text.data() + text.size() || !(expected.level >= 0) ||
      expected.level > top) {
    bad_suite(where, text, fmt::format("0 to {}", top));
  }
  return expected;
}

Expected read_expected(const JsonValue& value, const decision::Question& question, const std::string& where) {
  if (value.is_null()) return {.answerable = false};
  switch (question.type) {
    case QuestionType::noul:
      if (value.boolean() == nullptr) bad_suite(where, std::string(value.kind()), "true, false or null");
      return {.option = *value.boolean() ? std::size_t{1} : std::size_t{0}};
    case QuestionType::choice:
      return expected_option(value, question, where);
    case QuestionType::score:
      break;
  }
  return expected_level(value, question, where);
}

void check_suite_fields(const JsonValue& value, const std::string& where) {
  if (value.object() == nullptr) bad_suite(where, std::string(value.kind()), "an object");
  for (const auto& [name, item] : *value.object()) {
    if (name != "id" && name != "family" && name != "request" && name != "expected") {
      bad_suite(decision::field_path(where, name), "an unknown field", "id, family, request and expected");
    }
  }
}

SuiteRecord read_suite_record(std::string_view line, const std::string& where) {
  const auto document = decision::parse_json(line, where);
  if (!document.duplicates.empty()) bad_suite(document.duplicates.front(), "given more than once", "once");
  check_suite_fields(document.root, where);
  SuiteRecord record;
  record.id = suite_string(suite_field(document.root, "id", where), where + ".id");
  if (const JsonValue* family = document.root.find("family")) {
    record.family = suite_string(*family, where + ".family");
  }
  record.request = decision::read_request(suite_field(document.root, "request", where), where + ".request");
  const JsonValue& answers = suite_field(document.root, "expected", where);
  if (answers.object() == nullptr || answers.object()->size() != record.request.questions.size()) {
    bad_suite(where + ".expected", "not one answer a question", "an answer for each question");
  }
  for (const decision::Question& question : record.request.questions) {
    const std::string place = decision::field_path(where + ".expected", question.id);
    record.expected.push_back(
        read_expected(suite_field(answers, question.id, where + ".expected"), question, place));
  }
  return record;
}

/// The counts as a list, the most frequent first, equals by name.
std::vector<Confusion> ordered(const std::map<std::pair<std::string, std::string>, std::size_t>& counts) {
  std::vector<Confusion> list;
  for (const auto& [names, count] : counts) list.push_back({names.first, names.second, count});
  std::stable_sort(list.begin(), list.end(),
                   [](const Confusion& a, const Confusion& b) { return a.count > b.count; });
  return list;
}

nlohmann::ordered_json share_json(const Share& share) {
  return {{"right", share.right}, {"asked", share.asked}, {"share", share.share()}};
}

nlohmann::ordered_json confusions_json(const std::vector<Confusion>& confusions) {
  auto list = nlohmann::ordered_json::array();
  for (const Confusion& confusion : confusions) {
    list.push_back(
        {{"expected", confusion.expected}, {"answered", confusion.answered}, {"count", confusion.count}});
  }
  return list;
}

std::string share_text(std::string_view name, const Share& share) {
  return fmt::format("{:<22}{:.3f}  ({} of {})\n", name, share.share(), share.right, share.asked);
}

}  // namespace

std::vector<SuiteRecord> parse_suite(std::string_view text, const std::string& file) {
  std::vector<SuiteRecord> records;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    records.push_back(read_suite_record(line, fmt::format("{}: line {}", file, number)));
  }
  if (records.empty()) bad_suite(file, "no questions", "one record a line");
  return records;
}

std::vector<SuiteRecord> read_suite(const std::filesystem::path& path) {
  return parse_suite(read_text_file(path, kMostSuiteBytes), path.filename().string());
}

Share Evaluation::all() const {
  return {noul.right + choice.right + score.right, noul.asked + choice.asked + score.asked};
}

void Evaluator::add(const SuiteRecord& record, const decision::Decision& decision) {
  if (decision.questions.size() != record.expected.size()) {
    throw Error(ErrorKind::invalid_argument, {.where = record.id,
                                              .found = counted(decision.questions.size(), "answer"),
                                              .expected = counted(record.expected.size(), "answer")});
  }
  ++totals_.records;
  Share& family = totals_.families[record.family];
  for (std::size_t i = 0; i < record.expected.size(); ++i) {
    add_question(decision.questions[i], record.expected[i], family);
  }
}

void Evaluator::add_question(const decision::QuestionDecision& question, const Expected& expected,
                             Share& family) {
  const double largest = question.probabilities.at(question.answer.mode);
  if (!std::isfinite(largest)) {
    throw Error(ErrorKind::non_finite, {.where = question.id, .found = "a probability that is no number"});
  }
  const auto options = static_cast<double>(question.probabilities.size());
  if (!expected.answerable) {
    ++totals_.unanswerable;
    excess_ += largest - 1 / options;
    return;
  }
  bool right = question.answer.mode == expected.option;
  Share* type = &totals_.choice;
  if (question.type == QuestionType::score) {
    const double error = std::fabs(question.answer.value - expected.level) / (options - 1);
    score_error_ += error;
    right = error <= kScoreTolerance;
    type = &totals_.score;
  } else {
    const auto bin = static_cast<std::size_t>(largest * static_cast<double>(kBins));
    bins_[std::min(bin, kBins - 1)].confidence += largest;
    bins_[std::min(bin, kBins - 1)].right += right ? 1 : 0;
    if (question.type == QuestionType::noul) type = &totals_.noul;
    auto& confusions = question.type == QuestionType::noul ? nouls_ : choices_;
    const auto& names = question.type == QuestionType::noul ? question.options : question.keys;
    const auto short_name = [&](std::size_t option) {
      if (question.type == QuestionType::noul) return std::string(option == 1 ? "yes" : "no");
      return names[option];
    };
    if (!right) ++confusions[{short_name(expected.option), short_name(question.answer.mode)}];
  }
  for (Share* share : {type, &family}) {
    ++share->asked;
    share->right += right ? 1 : 0;
  }
}

Evaluation Evaluator::result() const {
  Evaluation result = totals_;
  const auto mean = [](double sum, std::size_t count) {
    return count == 0 ? 0.0 : sum / static_cast<double>(count);
  };
  result.score_error = mean(score_error_, totals_.score.asked);
  result.unanswerable_excess = mean(excess_, totals_.unanswerable);
  double gap = 0;
  for (const Bin& bin : bins_) gap += std::fabs(bin.confidence - bin.right);
  result.calibration = mean(gap, totals_.noul.asked + totals_.choice.asked);
  result.noul_confusions = ordered(nouls_);
  result.choice_confusions = ordered(choices_);
  return result;
}

nlohmann::ordered_json to_json(const Evaluation& evaluation) {
  nlohmann::ordered_json families;
  for (const auto& [name, share] : evaluation.families) families[name] = share_json(share);
  return {{"records", evaluation.records},
          {"noul", share_json(evaluation.noul)},
          {"choice", share_json(evaluation.choice)},
          {"score", share_json(evaluation.score)},
          {"score_error", evaluation.score_error},
          {"all", share_json(evaluation.all())},
          {"calibration_error", evaluation.calibration},
          {"unanswerable", {{"asked", evaluation.unanswerable}, {"excess", evaluation.unanswerable_excess}}},
          {"families", families},
          {"noul_confusions", confusions_json(evaluation.noul_confusions)},
          {"choice_confusions", confusions_json(evaluation.choice_confusions)}};
}

std::string to_text(const Evaluation& evaluation, std::size_t confusions) {
  std::string text = share_text("noul", evaluation.noul) + share_text("choice", evaluation.choice) +
                     share_text("score within 1/4", evaluation.score) +
                     fmt::format("{:<22}{:.3f} of the range\n", "mean score error", evaluation.score_error) +
                     share_text("all types", evaluation.all()) +
                     fmt::format("{:<22}{:.3f}\n", "calibration error", evaluation.calibration);
  if (evaluation.unanswerable > 0) {
    text += fmt::format("{:<22}{:.3f} above even, of {}\n", "state cannot tell",
                        evaluation.unanswerable_excess, counted(evaluation.unanswerable, "question"));
  }
  if (evaluation.families.size() > 1) {
    for (const auto& [name, share] : evaluation.families) text += share_text("  " + printable(name), share);
  }
  const auto list = [&](std::string_view title, const std::vector<Confusion>& all) {
    if (!all.empty() && confusions > 0) text += fmt::format("{}\n", title);
    for (std::size_t i = 0; i < std::min(confusions, all.size()); ++i) {
      text += fmt::format("  {:>3}  {} -> {}\n", all[i].count, printable(all[i].expected),
                          printable(all[i].answered));
    }
  };
  list("noul: expected -> answered", evaluation.noul_confusions);
  list("choice: expected -> answered", evaluation.choice_confusions);
  return text;
}

}  // namespace assay::lab
