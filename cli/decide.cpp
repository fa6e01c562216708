#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/out_of_memory.hpp"
#include "cli/commands.hpp"
#include "cli/decision_options.hpp"
#include "cli/line_reader.hpp"
#include "cli/table.hpp"
#include "decision/model.hpp"
#include "decision/response.hpp"

namespace assay::cli {
namespace {

struct DecideFlags {
  DecisionModelFlags model;
  std::string request = "-";
  std::optional<std::string> state_cache;
  bool json = false;
  bool table = false;
  bool jsonl = false;
  bool raw = false;
};

/// What a stream of requests keeps unless told otherwise: a few long states of the 4B model.
constexpr std::size_t kStreamCacheBytes = std::size_t{256} << 20;

constexpr std::string_view kBlank = " \t";

/// `place` is empty, or "line 3: ".
void warn(const decision::Request& request, std::string_view place = {}) {
  for (const std::string& warning : request.warnings) log().warn("{}{}", place, warning);
}

/// The answer in words: the probability of yes, the option, or the mean level.
std::vector<std::string> table_row(const decision::QuestionDecision& question) {
  constexpr std::size_t kColumns = 48;
  const double largest = question.probabilities[question.answer.mode];
  std::vector<std::string> row = {fit(question.id, kColumns), std::string(to_string(question.type))};
  switch (question.type) {
    case decision::QuestionType::noul:
      row.insert(row.end(), {question.answer.mode == 1 ? "yes" : "no",
                             fmt::format("{:.2f}", question.answer.value), ""});
      break;
    case decision::QuestionType::choice:
      row.insert(row.end(),
                 {fit(question.keys[question.answer.mode], kColumns), fmt::format("{:.2f}", largest),
                  fmt::format("{:.2f}", question.answer.confidence)});
      break;
    case decision::QuestionType::score:
      row.insert(row.end(),
                 {fmt::format("{:.2f} of {}: {}", question.answer.value, question.keys.size() - 1,
                              fit(question.options[question.answer.mode], kColumns)),
                  fmt::format("{:.2f}", largest), fmt::format("{:.2f}", question.answer.confidence)});
      break;
  }
  return row;
}

std::string decision_table(const decision::Decision& decision) {
  std::vector<std::vector<std::string>> rows = {{"question", "type", "answer", "p", "confidence"}};
  for (const auto& question : decision.questions) rows.push_back(table_row(question));
  return format_table(rows) + fmt::format("{}, {:.1f} ms{}\n", counted(decision.input_tokens, "token"),
                                          decision.milliseconds,
                                          decision.state_from_cache ? ", state from the cache" : "");
}

std::string format_decision(const decision::Decision& decision, const DecideFlags& flags) {
  return flags.table ? decision_table(decision) : decision::response_json(decision, flags.raw) + "\n";
}

std::string error_json(std::size_t line, const Error& error) {
  const nlohmann::ordered_json body = {
      {"error", {{"line", line}, {"kind", to_string(error.kind())}, {"message", error.what()}}}};
  return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Error out_of_memory() {
  return Error(ErrorKind::limit_exceeded,
               {"request", "out of memory", "memory for the request and its states",
                "shorten or split the request, or ask fewer questions at once"});
}

/// Answers the lines of a stream one by one. A line whose request cannot be answered gets an error in its
/// place, and the next one its answer.
class StreamAnswerer {
 public:
  StreamAnswerer(decision::DecisionModel& model, const DecideFlags& flags) : model_(model), flags_(flags) {}

  void answer(LineReader::Status status, const std::string& text, std::size_t line) {
    ++requests_;
    std::string output;
    try {
      output = answered(status, text, line);
    } catch (const OutOfMemory&) {
      output = refused(line, out_of_memory());
    } catch (const Error& error) {
      output = refused(line, error);
    } catch (const std::bad_alloc&) {
      output = refused(line, out_of_memory());
    }
    print(flags_.table && requests_ > 1 ? "\n" + output : output);
  }

  std::size_t requests() const { return requests_; }
  std::size_t errors() const { return errors_; }

 private:
  std::string answered(LineReader::Status status, const std::string& text, std::size_t line) {
    const std::size_t limit = decision::JsonLimits{}.bytes;
    if (status == LineReader::Status::no_memory) throw std::bad_alloc();
    if (status == LineReader::Status::too_long) {
      throw Error(ErrorKind::limit_exceeded, {"request", fmt::format("a line of more than {} bytes", limit),
                                              fmt::format("at most {}", limit), "split the request"});
    }
    const decision::Request request = decision::parse_request(text);
    warn(request, fmt::format("line {}: ", line));
    const std::string answer = format_decision(model_.decide(request), flags_);
    return flags_.table ? fmt::format("line {}\n{}", line, answer) : answer;
  }

  std::string refused(std::size_t line, const Error& error) {
    ++errors_;
    return flags_.table ? fmt::format("line {}: {}\n", line, error.what()) : error_json(line, error);
  }

  decision::DecisionModel& model_;
  const DecideFlags& flags_;
  std::size_t requests_ = 0;
  std::size_t errors_ = 0;
};

void decide_stream(decision::DecisionModel& model, LineReader& reader, const DecideFlags& flags) {
  StreamAnswerer answerer(model, flags);
  bool over_several_lines = false;
  for (std::size_t line = 1;; ++line) {
    std::string text;  // not kept from a long line to the next
    const auto status = reader.next(text, decision::JsonLimits{}.bytes);
    if (status == LineReader::Status::end) break;
    const std::size_t start = text.find_first_not_of(kBlank);
    if (start == std::string::npos && status == LineReader::Status::line) continue;
    if (answerer.requests() == 0) over_several_lines = text.find_last_not_of(kBlank) == start;
    answerer.answer(status, text, line);
  }
  if (answerer.errors() == 0) return;
  log().error(
      "{}: {} of {} got an error in place of an answer{}", reader.name(), answerer.errors(),
      counted(answerer.requests(), "request"),
      over_several_lines ? "; this looks like one request over several lines: leave --jsonl out" : "");
  throw CLI::RuntimeError(1);
}

void decide(const DecideFlags& flags) {
  const std::size_t default_cache = flags.jsonl ? kStreamCacheBytes : 0;
  const std::size_t cache =
      flags.state_cache ? parse_bytes(*flags.state_cache, "--state-cache") : default_cache;
  LineReader reader(flags.request);
  if (flags.jsonl) {
    const auto model = flags.model.load(cache);
    decide_stream(*model, reader, flags);
    return;
  }
  // Read before the model is loaded: a bad request is reported at once.
  const decision::Request request = decision::parse_request(reader.rest(decision::JsonLimits{}.bytes));
  warn(request);
  const auto model = flags.model.load(cache);
  print(format_decision(model->decide(request), flags));
}

}  // namespace

void add_decide(CLI::App& app) {
  auto flags = std::make_shared<DecideFlags>();
  CLI::App* command = app.add_subcommand("decide", "Answer System One requests");
  flags->model.add_to(*command, false);
  command->add_option("--request", flags->request, "File with a request, or - for standard input")
      ->capture_default_str();
  command->add_option("--state-cache", flags->state_cache,
                      "Bytes of states to keep (512M, 2G); default 256M with --jsonl, else 0");
  command->add_flag("--jsonl", flags->jsonl,
                    "One request a line; answers follow in order, each when it is ready");
  auto* json = command->add_flag("--json", flags->json, "Print the response as JSON (the default)");
  auto* table = command->add_flag("--table", flags->table, "Print a table");
  auto* raw = command->add_flag("--raw", flags->raw, "Add unrounded logits and probabilities to the JSON");
  table->excludes(json);
  table->excludes(raw);
  command->callback([flags] { decide(*flags); });
}

}  // namespace assay::cli
