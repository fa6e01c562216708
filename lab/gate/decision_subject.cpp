#include "lab/gate/decision_subject.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/sha256.hpp"

namespace assay::lab {
namespace {

/// Where two id sequences part, or nothing.
template <class T>
std::string difference(std::string_view what, const std::vector<T>& oracle, const std::vector<T>& found) {
  const auto [a, b] = std::mismatch(oracle.begin(), oracle.end(), found.begin(), found.end());
  if (a == oracle.end() && b == found.end()) return {};
  const auto show = [](auto place, auto end) {
    return place == end ? std::string("the end") : fmt::format("{}", *place);
  };
  return fmt::format("{}: {} at {}, the oracle has {}", what, show(b, found.end()), a - oracle.begin(),
                     show(a, oracle.end()));
}

std::string token_difference(const FixtureRecord& record, const FixtureRow& row,
                             const decision::RequestRows& rows, std::size_t question) {
  for (const auto& part :
       {difference("state ids", record.state_ids, rows.state),
        difference("question ids", row.branch_ids, rows.questions[question].tokens),
        difference("option ends", row.option_ends, rows.questions[question].option_ends)}) {
    if (!part.empty()) return part;
  }
  return {};
}

/// As the oracle states them in a fixture.
CheckpointFacts facts_of(const decision::DecisionModel& model) {
  std::vector<float> biases = model.head().q_bias;
  biases.insert(biases.end(), model.head().k_bias.begin(), model.head().k_bias.end());
  const formats::ModelConfig& config = model.config();
  return {.family = config.family == formats::Family::qwen3_5 ? "qwen3_5" : "qwen3",
          .layers = config.layers.size(),
          .hidden_size = config.hidden_size,
          .vocabulary = config.vocabulary_size,
          .head_sha256 = sha256_hex(std::as_bytes(std::span(biases)))};
}

std::string describe(const CheckpointFacts& facts) {
  return fmt::format("{}, {}, hidden size {}, vocabulary {}, head {}", facts.family,
                     counted(facts.layers, "layer"), facts.hidden_size, facts.vocabulary,
                     facts.head_sha256.substr(0, 12));
}

void check_same_model(const decision::DecisionModel& model, const DecisionFixture& fixture) {
  const auto refuse = [&](std::string where, std::string found, std::string expected) {
    throw Error(ErrorKind::mismatch,
                {fmt::format("{}: {}", fixture.file, where), std::move(found), std::move(expected),
                 "use the fixture that was made with this checkpoint"});
  };
  const CheckpointFacts facts = facts_of(model);
  if (fixture.checkpoint && *fixture.checkpoint != facts) {
    refuse("checkpoint", describe(*fixture.checkpoint), "the model's " + describe(facts));
  }
  if (static_cast<float>(fixture.temperature) != model.head().temperature) {
    refuse("temperature", fmt::format("{}", fixture.temperature),
           fmt::format("the checkpoint's {}", model.head().temperature));
  }
  const auto outside = [&](std::int32_t id) {
    return id < 0 || static_cast<std::size_t>(id) >= model.config().vocabulary_size;
  };
  for (const FixtureRecord& record : fixture.records) {
    bool bad = std::any_of(record.state_ids.begin(), record.state_ids.end(), outside);
    for (const FixtureRow& row : record.rows) {
      bad = bad || std::any_of(row.branch_ids.begin(), row.branch_ids.end(), outside);
    }
    if (bad) {
      refuse(record.id, "token ids outside the vocabulary",
             fmt::format("ids below {}", model.config().vocabulary_size));
    }
  }
}

decision::Request with_negated_instructions(const FixtureRecord& record) {
  decision::Request request = record.request;
  for (decision::Question& question : request.questions) {
    question.instructions = "Give the opposite of the right answer: " + question.instructions;
  }
  return request;
}

/// The record with the state of the next one (around the end) that has another.
decision::Request with_swapped_state(const DecisionFixture& fixture, std::size_t index) {
  decision::Request request = fixture.records[index].request;
  for (std::size_t step = 1; step < fixture.records.size(); ++step) {
    const auto& other = fixture.records[(index + step) % fixture.records.size()].request.state;
    if (other != request.state) {
      request.state = other;
      return request;
    }
  }
  throw Error(ErrorKind::invalid_argument, {fixture.file, "one state in all records", "two states or more",
                                            "the red arm that swaps states needs a fixture with several"});
}

}  // namespace

DecisionSubject::DecisionSubject(decision::DecisionModel& model, const DecisionFixture& fixture)
    : model_(model), fixture_(fixture) {
  check_same_model(model, fixture);
}

nlohmann::ordered_json DecisionSubject::describe() const {
  return {{"type", "decision"},
          {"model_identity", model_.identity()},
          {"forms", ops::describe(model_.selection())},
          {"precision", ops::to_string(model_.precision())},
          {"fixture", fixture_.file},
          {"fixture_sha256", fixture_.sha256}};
}

std::size_t DecisionSubject::cases() const {
  return fixture_.records.size();
}

std::string DecisionSubject::case_name(std::size_t index) const {
  return fixture_.records[index].id;
}

Answer DecisionSubject::expected(std::size_t index) {
  Answer answer;
  for (const FixtureRow& row : fixture_.records[index].rows) {
    answer.arrays.push_back(
        {.name = row.question, .shape = {row.probabilities.size()}, .values = row.probabilities});
  }
  return answer;
}

Answer DecisionSubject::run(std::size_t index) {
  return answer(index, fixture_.records[index].request, true);
}

std::optional<Answer> DecisionSubject::run_changed(std::size_t index, std::string_view arm) {
  decision::Request request;
  if (arm == input_arm::kNegatedInstructions) {
    request = with_negated_instructions(fixture_.records[index]);
  } else if (arm == input_arm::kSwappedStates) {
    request = with_swapped_state(fixture_, index);
  } else {
    throw Error(ErrorKind::unsupported, {.where = "red arm " + std::string(arm),
                                         .found = "nothing that a decision model can be run with",
                                         .expected = "negated_instructions or swapped_states"});
  }
  try {
    return answer(index, request, false);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::limit_exceeded) throw;
    return std::nullopt;
  }
}

Error DecisionSubject::in_record(const Error& error, std::size_t index) const {
  Error::Parts parts = error.parts();
  parts.where = fmt::format("{}: {}: {}", fixture_.file, fixture_.records[index].id, parts.where);
  return Error(error.kind(), std::move(parts));
}

Answer DecisionSubject::answer(std::size_t index, const decision::Request& request, bool compare_tokens) {
  const FixtureRecord& record = fixture_.records[index];
  std::optional<decision::Decision> decision;
  try {
    decision = model_.decide(request);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::non_finite) throw in_record(error, index);
  }
  Answer answer = expected(index);
  std::optional<decision::RequestRows> tokens;
  if (compare_tokens) tokens = model_.rows(request);
  for (std::size_t i = 0; i < record.rows.size(); ++i) {
    const std::vector<double> none(record.rows[i].probabilities.size(), std::nan(""));
    answer.arrays[i].values = decision ? decision->questions[i].probabilities : none;
    if (tokens) answer.arrays[i].input_difference = token_difference(record, record.rows[i], *tokens, i);
  }
  return answer;
}

}  // namespace assay::lab
