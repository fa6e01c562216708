#include "decision/response.hpp"

#include <cmath>

namespace assay::decision {
namespace {

void write_probabilities(JsonWriter& json, const QuestionDecision& question) {
  json.key("probabilities");
  json.begin_object();
  for (std::size_t i = 0; i < question.keys.size(); ++i) {
    json.key(question.keys[i]);
    json.value(round_to_hundredths(question.probabilities[i]));
  }
  json.end_object();
}

void write_confidence(JsonWriter& json, const Answer& answer) {
  json.key("confidence");
  json.value(round_to_hundredths(answer.confidence));
}

void write_choice(JsonWriter& json, const QuestionDecision& question) {
  json.key("choice");
  json.value(std::string_view(question.keys[question.answer.mode]));
  write_confidence(json, question.answer);
  write_probabilities(json, question);
}

void write_score(JsonWriter& json, const QuestionDecision& question) {
  json.key("score");
  json.value(round_to_hundredths(question.answer.value));
  json.key("legend");
  json.begin_object();
  for (std::size_t i = 0; i < question.keys.size(); ++i) {
    json.key(question.keys[i]);
    json.value(std::string_view(question.options[i]));
  }
  json.end_object();
  write_probabilities(json, question);
  write_confidence(json, question.answer);
}

void write_answer(JsonWriter& json, const QuestionDecision& question) {
  json.begin_object();
  json.key("type");
  json.value(to_string(question.type));
  switch (question.type) {
    case QuestionType::noul:
      json.key("noul");
      json.value(round_to_hundredths(question.answer.value));
      break;
    case QuestionType::choice:
      write_choice(json, question);
      break;
    case QuestionType::score:
      write_score(json, question);
      break;
  }
  json.end_object();
}

void write_raw(JsonWriter& json, const Decision& decision) {
  json.begin_object();
  for (const QuestionDecision& question : decision.questions) {
    json.key(question.id);
    json.begin_object();
    json.key("logits");
    json.begin_array();
    for (const float logit : question.logits) json.value(logit);
    json.end_array();
    json.key("probabilities");
    json.begin_array();
    for (const double probability : question.probabilities) json.value(probability);
    json.end_array();
    json.end_object();
  }
  json.end_object();
}

}  // namespace

std::string answers_json(const Decision& decision, JsonStyle style) {
  JsonWriter json(style);
  json.begin_object();
  for (const QuestionDecision& question : decision.questions) {
    json.key(question.id);
    write_answer(json, question);
  }
  json.end_object();
  return json.take();
}

std::string response_json(const Decision& decision, bool raw) {
  JsonWriter json(JsonStyle::compact);
  json.begin_object();
  json.key("model");
  json.value(std::string_view(decision.model));
  json.key("answers");
  json.splice(answers_json(decision));
  json.key("usage");
  json.begin_object();
  json.key("input_tokens");
  json.value(decision.input_tokens);
  json.key("output_tokens");
  json.value(decision.output_tokens);
  json.end_object();
  json.key("latency_ms");
  json.value(std::round(decision.milliseconds * 10) / 10);
  if (raw) {
    json.key("raw");
    write_raw(json, decision);
  }
  json.end_object();
  return json.take();
}

}  // namespace assay::decision
