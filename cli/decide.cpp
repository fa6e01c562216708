#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/log.hpp"
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
  std::string state_cache;
  bool json = false;
  bool table = false;
  bool jsonl = false;
  bool raw = false;
};

/// What a stream of requests keeps unless told otherwise: a few long states of the 4B model.
constexpr std::size_t kStreamCacheBytes = std::size_t{256} << 20;

void warn(const decision::Request& request) {
  for (const std::string& warning : request.warnings) log().warn("{}", warning);
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
  return format_table(rows) + fmt::format("{} tokens, {:.1f} ms{}\n", decision.input_tokens,
                                          decision.milliseconds,
                                          decision.state_from_cache ? ", state from the cache" : "");
}

std::string format_decision(const decision::Decision& decision, const DecideFlags& flags) {
  return flags.table ? decision_table(decision) : decision::response_json(decision, flags.raw) + "\n";
}

std::string error_line(std::size_t line, const Error& error) {
  const nlohmann::ordered_json body = {
      {"error", {{"line", line}, {"kind", to_string(error.kind())}, {"message", error.what()}}}};
  // A message may quote the bytes that were wrong.
  return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// Answers one line; false where it got an error in place of its answer.
bool answer_line(decision::DecisionModel& model, LineReader::Status status, const std::string& text,
                 std::size_t number, const DecideFlags& flags) {
  try {
    if (status == LineReader::Status::too_long) {
      const std::size_t limit = decision::JsonLimits{}.bytes;
      throw Error(ErrorKind::limit_exceeded, {"request", fmt::format("a line of more than {} bytes", limit),
                                              fmt::format("at most {}", limit), "split the request"});
    }
    const decision::Request request = decision::parse_request(text);
    warn(request);
    print(format_decision(model.decide(request), flags));
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::io) throw;
    print(error_line(number, error));
    return false;
  }
}

void decide_stream(decision::DecisionModel& model, LineReader& reader, const DecideFlags& flags) {
  std::string line;
  std::size_t bad = 0;
  for (std::size_t number = 1;; ++number) {
    const auto status = reader.next(line, decision::JsonLimits{}.bytes);
    if (status == LineReader::Status::end) break;
    if (line.find_first_not_of(" \t") == std::string::npos && status == LineReader::Status::line) continue;
    if (!answer_line(model, status, line, number, flags)) ++bad;
  }
  if (bad > 0) {
    log().error("{}: {} of the requests got an error in place of an answer", reader.name(), bad);
    throw CLI::RuntimeError(1);
  }
}

void decide(const DecideFlags& flags) {
  const std::size_t default_cache = flags.jsonl ? kStreamCacheBytes : 0;
  const std::size_t cache =
      flags.state_cache.empty() ? default_cache : parse_bytes(flags.state_cache, "--state-cache");
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
  flags->model.add_to(*command);
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
