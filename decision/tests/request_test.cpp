#include "decision/request.hpp"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decision/tests/expect_error.hpp"

namespace assay::decision {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A request about nothing with one question of these fields.
std::string with_question(const std::string& fields) {
  return fmt::format(R"({{"state":"","questions":{{"q":{{{}}}}}}})", fields);
}
Question question(const std::string& fields) {
  return parse_request(with_question(fields)).questions.front();
}

TEST(Request, KeepsTheOrderOfQuestionsAndOptions) {
  const Request request = parse_request(R"({"questions":{
      "z":{"type":"choice","instructions":"pick","criteria":{"y":"why","b":null,"a":""}},
      "a":{"type":"score","instructions":"rate","criteria":["low",{"level":2},3.5]},
      "":{"type":"noul","instructions":["is","it"]}},"state":{"k":[1]},"model":"m"})");
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.state, "k:\n  - 1");
  ASSERT_EQ(request.questions.size(), 3u);
  EXPECT_EQ(request.questions[0].id, "z");
  EXPECT_THAT(request.questions[0].options, ElementsAre("y: why", "b", "a"));
  EXPECT_THAT(request.questions[0].keys, ElementsAre("y", "b", "a"));
  EXPECT_THAT(request.questions[1].options, ElementsAre("low", "level: 2", "3.5"));
  EXPECT_THAT(request.questions[1].keys, ElementsAre("0", "1", "2"));
  EXPECT_EQ(request.questions[2].instructions, "- is\n- it");
  EXPECT_THAT(request.questions[2].options, ElementsAre("no", "yes"));
  EXPECT_THAT(request.warnings, IsEmpty());
}

TEST(Request, NoulCriteriaDescribeNoAndYes) {
  const std::string base = R"("type":"noul","instructions":"?")";
  EXPECT_THAT(question(base + R"(,"criteria":{"true":"it is","false":"it is not"})").options,
              ElementsAre("no: it is not", "yes: it is"));
  EXPECT_THAT(question(base + R"(,"criteria":{"true":"it is"})").options, ElementsAre("no", "yes: it is"));
  EXPECT_THAT(question(base + R"(,"criteria":{})").options, ElementsAre("no", "yes"));
  EXPECT_THAT(question(base + R"(,"criteria":null)").options, ElementsAre("no", "yes"));
}

TEST(Request, ModelDefaultsAndStateMayBeAnything) {
  EXPECT_EQ(parse_request(with_question(R"("type":"noul","instructions":null)")).model, "kev-latest");
  for (const char* state : {"null", "1", "true", "\"\"", "[]", "{}"}) {
    EXPECT_NO_THROW(parse_request(
        fmt::format(R"({{"state":{},"questions":{{"q":{{"type":"noul","instructions":""}}}}}})", state)));
  }
}

struct BadRequest {
  std::string json;
  std::string place;
};

TEST(Request, EveryWrongShapeIsRefusedByItsField) {
  const std::vector<BadRequest> cases = {
      {"[]", "request: an array"},
      {"{}", "request.state: missing"},
      {R"({"state":1})", "request.questions: missing"},
      {R"({"state":1,"questions":{}})", "request.questions: no questions"},
      {R"({"state":1,"questions":[]})", "request.questions: an array"},
      {R"({"state":1,"questions":null})", "request.questions: null"},
      {R"({"state":1,"model":7,"questions":{"q":{}}})", "request.model: a number"},
      {R"({"state":1,"model":null,"questions":{"q":{}}})", "request.model: null"},
      {R"({"state":1,"questions":{"q":"why"}})", "request.questions.q: a string"},
      {with_question(""), "request.questions.q.type: missing"},
      {with_question(R"("type":"bool","instructions":"")"), "request.questions.q.type: \"bool\""},
      {with_question(R"("type":"Noul","instructions":"")"), "request.questions.q.type: \"Noul\""},
      {with_question(R"("type":1,"instructions":"")"), "request.questions.q.type: a number"},
      {with_question(R"("type":"noul")"), "request.questions.q.instructions: missing"},
      {with_question(R"("type":"noul","instructions":"","criteria":["no","yes"])"),
       "request.questions.q.criteria: an array"},
      {with_question(R"("type":"noul","instructions":"","criteria":{"yes":"y"})"),
       "request.questions.q.criteria.yes"},
      {with_question(R"("type":"noul","instructions":"","critera":{"true":"y"})"),
       "request.questions.q.critera"},
      {with_question(R"("type":"choice","instructions":"")"), "request.questions.q.criteria: missing"},
      {with_question(R"("type":"choice","instructions":"","criteria":null)"),
       "request.questions.q.criteria: null"},
      {with_question(R"("type":"choice","instructions":"","criteria":["a","b"])"),
       "request.questions.q.criteria: an array"},
      {with_question(R"("type":"choice","instructions":"","criteria":{})"),
       "request.questions.q.criteria: 0 options"},
      {with_question(R"("type":"score","instructions":"","criteria":{"0":"a"})"),
       "request.questions.q.criteria: an object"},
      {with_question(R"("type":"score","instructions":"","criteria":["one"])"),
       "request.questions.q.criteria: 1 level;"},
  };
  for (const BadRequest& c : cases) {
    expect_error(ErrorKind::invalid_argument, {c.place}, [&] { parse_request(c.json); });
  }
}

std::string list(std::size_t count, const std::string& item, bool named) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += fmt::format("{}{}{}", i == 0 ? "" : ",", named ? fmt::format("\"o{}\":", i) : "", item);
  }
  return text;
}

TEST(Request, OptionsAndLevelsUpTo255) {
  const auto choice = [](std::size_t count) {
    return with_question(R"("type":"choice","instructions":"","criteria":{)" + list(count, "null", true) +
                         "}");
  };
  const auto score = [](std::size_t count) {
    return with_question(R"("type":"score","instructions":"","criteria":[)" + list(count, "\"l\"", false) +
                         "]");
  };
  EXPECT_EQ(parse_request(choice(1)).questions[0].options.size(), 1u);
  EXPECT_EQ(parse_request(choice(255)).questions[0].options.size(), 255u);
  EXPECT_EQ(parse_request(score(255)).questions[0].options.size(), 255u);
  expect_error(ErrorKind::invalid_argument,
               {"request.questions.q.criteria", "256 options", "1 to 255", "leave out 1"},
               [&] { parse_request(choice(256)); });
  expect_error(ErrorKind::invalid_argument, {"300 levels", "2 to 255", "leave out 45"},
               [&] { parse_request(score(300)); });
}

TEST(Request, UnknownFieldsBesideTheStateAreWarnedOfAndImagesRefused) {
  const Request request =
      parse_request(R"({"id":7,"state":"","questions":{"q":{"type":"noul","instructions":""}}})");
  EXPECT_THAT(request.warnings, ElementsAre(HasSubstr("request.id: an unknown field")));
  expect_error(ErrorKind::unsupported, {"request.assets", "images"}, [] {
    parse_request(R"({"assets":{},"state":"","questions":{"q":{"type":"noul","instructions":""}}})");
  });
}

TEST(Request, RepeatedMembersCountOnceAsInPythonAndAreWarnedOf) {
  const Request request = parse_request(
      R"({"state":"","questions":{"q":{"type":"choice","instructions":"","criteria":{"a":"1","b":null,"a":"2"}}}})");
  EXPECT_THAT(request.questions[0].options, ElementsAre("a: 2", "b"));
  EXPECT_THAT(request.warnings,
              ElementsAre(HasSubstr("request.questions.q.criteria.a: given more than once")));
}

}  // namespace
}  // namespace assay::decision
