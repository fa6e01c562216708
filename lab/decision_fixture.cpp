#include "lab/decision_fixture.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/sha256.hpp"
#include "base/utf8.hpp"
#include "decision/json_value.hpp"

namespace assay::lab {
namespace {

using decision::JsonValue;

constexpr std::size_t kMostBytes = std::size_t{64} << 20;
/// How far a recorded probability may lie from the softmax of its logits: a tenth of the exact path's bar,
/// and far more than the decimals that the oracle leaves out.
constexpr double kRounding = 1e-5;

[[noreturn]] void malformed(std::string where, std::string found, std::string expected) {
  throw Error(ErrorKind::malformed, {std::move(where), std::move(found), std::move(expected),
                                     "make the fixture again with its oracle script"});
}

const JsonValue::Object& object_with(const JsonValue& value, const std::string& where,
                                     std::initializer_list<std::string_view> fields,
                                     std::string_view optional = {}) {
  const auto* object = value.object();
  const auto expected = fmt::format("an object with {}", fmt::join(fields.begin(), fields.end(), ", "));
  if (object == nullptr) malformed(where, std::string(value.kind()), expected);
  for (const auto& [name, item] : *object) {
    if (name != optional && std::find(fields.begin(), fields.end(), name) == fields.end()) {
      malformed(decision::field_path(where, name), "an unknown field", expected);
    }
  }
  for (const std::string_view field : fields) {
    if (value.find(field) == nullptr) malformed(decision::field_path(where, field), "missing", expected);
  }
  return *object;
}

const JsonValue::Array& array(const JsonValue& value, const std::string& where) {
  const auto* items = value.array();
  if (items == nullptr) malformed(where, std::string(value.kind()), "an array");
  return *items;
}

const std::string& string(const JsonValue& value, const std::string& where) {
  const auto* text = value.string();
  if (text == nullptr) malformed(where, std::string(value.kind()), "a string");
  return *text;
}

template <class T>
T number(const JsonValue& value, const std::string& where) {
  const auto* number = value.number();
  if (number == nullptr) malformed(where, std::string(value.kind()), "a number");
  T result{};
  const char* end = number->text.data() + number->text.size();
  const auto [stop, status] = std::from_chars(number->text.data(), end, result);
  if (status != std::errc{} || stop != end) malformed(where, number->text, "a number of the field's type");
  return result;
}

template <class T>
std::vector<T> numbers(const JsonValue& value, const std::string& where) {
  std::vector<T> result;
  for (const JsonValue& item : array(value, where)) {
    result.push_back(number<T>(item, decision::field_path(where, result.size())));
  }
  return result;
}

/// Option ends rise and each lies before the row's last token, the decide token.
void check_option_ends(const FixtureRow& row, const std::string& where) {
  std::size_t least = 1;
  for (const std::size_t end : row.option_ends) {
    if (end < least || end + 1 >= row.branch_ids.size()) {
      malformed(where + ".option_ends", fmt::format("[{}]", fmt::join(row.option_ends, ", ")),
                fmt::format("rising places inside {} tokens", row.branch_ids.size()));
    }
    least = end + 1;
  }
}

/// The probabilities are those of the logits, which the oracle recorded after the temperature.
void check_probabilities(const FixtureRow& row, const std::string& where) {
  const double sum = std::accumulate(row.probabilities.begin(), row.probabilities.end(), 0.0);
  const auto count = static_cast<double>(row.probabilities.size());
  if (std::fabs(sum - 1) > count * kRounding) {
    malformed(where + ".probabilities", fmt::format("a sum of {:.6f}", sum), "1");
  }
  const double largest = *std::max_element(row.logits.begin(), row.logits.end());
  double total = 0;
  for (const double logit : row.logits) total += std::exp(logit - largest);
  for (std::size_t i = 0; i < row.logits.size(); ++i) {
    const double expected = std::exp(row.logits[i] - largest) / total;
    if (std::fabs(row.probabilities[i] - expected) <= kRounding) continue;
    malformed(decision::field_path(where + ".probabilities", i), fmt::format("{:.6f}", row.probabilities[i]),
              fmt::format("{:.6f}, the softmax of the row's logits", expected));
  }
}

FixtureRow read_row(const JsonValue& value, const decision::Question& question, const std::string& where) {
  object_with(value, where,
              {"question", "type", "state_ids", "branch_ids", "option_ends", "logits", "probabilities"});
  FixtureRow row;
  row.question = string(*value.find("question"), where + ".question");
  if (row.question != question.id) malformed(where + ".question", row.question, question.id);
  const std::string& type = string(*value.find("type"), where + ".type");
  if (type != to_string(question.type))
    malformed(where + ".type", type, std::string(to_string(question.type)));
  row.branch_ids = numbers<std::int32_t>(*value.find("branch_ids"), where + ".branch_ids");
  row.option_ends = numbers<std::size_t>(*value.find("option_ends"), where + ".option_ends");
  row.logits = numbers<double>(*value.find("logits"), where + ".logits");
  row.probabilities = numbers<double>(*value.find("probabilities"), where + ".probabilities");
  const std::size_t options = question.options.size();
  if (row.option_ends.size() != options || row.logits.size() != options ||
      row.probabilities.size() != options) {
    malformed(where,
              fmt::format("{} option ends, {} logits, {} probabilities", row.option_ends.size(),
                          row.logits.size(), row.probabilities.size()),
              fmt::format("{} of each, as the question has options", options));
  }
  check_option_ends(row, where);
  check_probabilities(row, where);
  return row;
}

FixtureRecord read_record(const JsonValue& value, const std::string& where) {
  object_with(value, where, {"id", "request", "rows"});
  FixtureRecord record;
  record.id = string(*value.find("id"), where + ".id");
  record.request = decision::read_request(*value.find("request"), where + ".request");
  // What a caller is warned of, a recorded request does not have.
  if (const auto& warnings = record.request.warnings; !warnings.empty()) {
    malformed("", warnings.front(), "a request that is read whole");
  }
  const auto& rows = array(*value.find("rows"), where + ".rows");
  if (rows.size() != record.request.questions.size()) {
    malformed(where + ".rows", counted(rows.size(), "row"),
              fmt::format("{}, one a question", record.request.questions.size()));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string place = decision::field_path(where + ".rows", i);
    record.rows.push_back(read_row(rows[i], record.request.questions[i], place));
    const JsonValue& state = *rows[i].find("state_ids");
    if (i == 0) {
      record.state_ids = numbers<std::int32_t>(state, place + ".state_ids");
    } else if (!state.is_null()) {
      malformed(place + ".state_ids", std::string(state.kind()),
                "null: a record's rows share the first one's state");
    }
  }
  return record;
}

CheckpointFacts read_facts(const JsonValue& value, const std::string& where) {
  object_with(value, where, {"family", "layers", "hidden_size", "vocabulary", "head_sha256"});
  return {.family = string(*value.find("family"), where + ".family"),
          .layers = number<std::uint64_t>(*value.find("layers"), where + ".layers"),
          .hidden_size = number<std::uint64_t>(*value.find("hidden_size"), where + ".hidden_size"),
          .vocabulary = number<std::uint64_t>(*value.find("vocabulary"), where + ".vocabulary"),
          .head_sha256 = string(*value.find("head_sha256"), where + ".head_sha256")};
}

}  // namespace

std::size_t DecisionFixture::rows() const {
  std::size_t total = 0;
  for (const FixtureRecord& record : records) total += record.rows.size();
  return total;
}

DecisionFixture parse_decision_fixture(std::string_view json, const std::string& file) {
  decision::JsonLimits limits;
  limits.bytes = kMostBytes;
  limits.values = std::numeric_limits<std::size_t>::max();
  limits.depth += 3;  // a request's own nesting starts below records, record and request
  const auto document = decision::parse_json(json, file, limits);
  if (!document.duplicates.empty()) malformed(document.duplicates.front(), "given more than once", "once");
  object_with(document.root, file, {"model", "temperature", "records"}, "checkpoint");
  DecisionFixture fixture;
  fixture.file = file;
  fixture.sha256 = sha256_hex(std::as_bytes(std::span(json)));
  fixture.model = string(*document.root.find("model"), file + ".model");
  fixture.temperature = number<double>(*document.root.find("temperature"), file + ".temperature");
  if (const JsonValue* facts = document.root.find("checkpoint")) {
    fixture.checkpoint = read_facts(*facts, file + ".checkpoint");
  }
  const auto& records = array(*document.root.find("records"), file + ".records");
  if (records.empty()) malformed(file + ".records", "no records", "one or more");
  std::set<std::string> ids;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::string where = decision::field_path(file + ".records", i);
    fixture.records.push_back(read_record(records[i], where));
    const std::string& id = fixture.records.back().id;
    if (!ids.insert(id).second)
      malformed(where + ".id", in_quotes(id) + " a second time", "each record once");
  }
  return fixture;
}

DecisionFixture read_decision_fixture(const std::filesystem::path& path) {
  return parse_decision_fixture(read_text_file(path, kMostBytes), path.filename().string());
}

}  // namespace assay::lab
