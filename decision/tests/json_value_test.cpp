#include "decision/json_value.hpp"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "decision/tests/expect_error.hpp"

namespace assay::decision {
namespace {

JsonDocument parse(const std::string& text) {
  return parse_json(text, "request");
}
std::string number(const std::string& text) {
  return parse(text).root.number()->text;
}

TEST(JsonValue, KeepsMembersInOrder) {
  const auto document = parse(R"({"z":1,"a":{"y":[true,null]},"m":"x"})");
  const auto& members = *document.root.object();
  ASSERT_EQ(members.size(), 3u);
  EXPECT_EQ(members[0].first, "z");
  EXPECT_EQ(members[1].first, "a");
  EXPECT_EQ(members[2].first, "m");
  EXPECT_EQ(members[1].second.find("y")->array()->size(), 2u);
  EXPECT_EQ(document.root.find("absent"), nullptr);
}

TEST(JsonValue, RepeatedMemberKeepsItsFirstPlaceAndLastValueAndIsReported) {
  const auto document = parse(R"({"a":1,"b":{"c":1,"c":2},"a":3,"a":4})");
  const auto& members = *document.root.object();
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].first, "a");
  EXPECT_EQ(members[0].second.number()->text, "4");
  EXPECT_EQ(members[1].second.object()->size(), 1u);
  EXPECT_EQ(document.duplicates, (std::vector<std::string>{"request.b.c", "request.a"}));
}

TEST(JsonValue, IntegersOfAnySizeKeepTheirDigits) {
  EXPECT_EQ(number("-0"), "0");
  EXPECT_EQ(number("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(number("18446744073709551616"), "18446744073709551616");
  EXPECT_EQ(number("-170141183460469231731687303715884105728"), "-170141183460469231731687303715884105728");
  const std::string long_integer = "-" + std::string(4300, '9');
  EXPECT_EQ(number(long_integer), long_integer);
  expect_error(ErrorKind::limit_exceeded, {"[0]", "4301 digits", "at most 4300"},
               [] { parse("[" + std::string(4301, '9') + "]"); });
  expect_error(ErrorKind::non_finite, {"request"}, [] { parse(std::string(6000, '9')); });
}

TEST(JsonValue, FloatsPrintAsPythonReprDoes) {
  EXPECT_EQ(number("1.0"), "1.0");
  EXPECT_EQ(number("-0.0"), "-0.0");
  EXPECT_EQ(number("1e16"), "1e+16");
  EXPECT_EQ(number("1e15"), "1000000000000000.0");
  EXPECT_EQ(number("0.0001"), "0.0001");
  EXPECT_EQ(number("0.00001"), "1e-05");
  EXPECT_EQ(number("1e-400"), "0.0");
  EXPECT_EQ(number("-1e-400"), "-0.0");
  EXPECT_EQ(python_repr(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
  EXPECT_EQ(python_repr(std::numeric_limits<double>::denorm_min()), "5e-324");
}

TEST(JsonValue, NumbersPastADoubleAreRefused) {
  expect_error(ErrorKind::non_finite, {"request.a[1]", "1e309"}, [] { parse(R"({"a":[1,1e309]})"); });
  expect_error(ErrorKind::non_finite, {"request.a"}, [] { parse(R"({"a":-1e99999})"); });
}

TEST(JsonValue, WhatIsNoJsonIsRefusedWhereItStands) {
  for (const char* text : {"NaN", "Infinity", "-Infinity",  "nan",    "01",     "1.",    "+1",       ".5",
                           "'a'", "[1,]",     "{\"a\":1,}", "tru",    "",       " ",     "{",        "[1",
                           "\"a", "1 2",      "{1:2}",      "/*c*/1", "\"\t\"", "[1 2]", "{\"a\" 1}"}) {
    expect_error(ErrorKind::invalid_argument, {"request", "not JSON at byte"}, [&] { parse(text); });
  }
  expect_error(ErrorKind::invalid_argument, {"request.questions.q1.criteria[1]"},
               [] { parse(R"({"state":"","questions":{"q1":{"type":"score","criteria":["a",NaN]}}})"); });
}

TEST(JsonValue, HalfASurrogatePairIsRefusedAndAWholeOneIsACharacter) {
  EXPECT_EQ(*parse(R"("\ud83d\ude00")").root.string(), "😀");
  for (const char* text :
       {R"({"s":"\ud83d"})", R"({"s":"\ude00"})", R"({"s":"\ud83dx"})", R"({"s":"\ud83d\ud83d"})"}) {
    expect_error(ErrorKind::invalid_argument, {"request.s", "surrogate"}, [&] { parse(text); });
  }
}

TEST(JsonValue, BytesThatAreNoUtf8AreRefused) {
  for (const char* bytes : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"}) {
    expect_error(ErrorKind::invalid_argument, {"request.s"},
                 [&] { parse(std::string("{\"s\":\"") + bytes + "\"}"); });
  }
}

TEST(JsonValue, NestingIsLimitedWithoutRecursion) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse(nested(64)));
  expect_error(ErrorKind::limit_exceeded, {"64"}, [&] { parse(nested(65)); });
  expect_error(ErrorKind::limit_exceeded, {"64"}, [&] { parse(std::string(1u << 20, '[')); });
}

TEST(JsonValue, ANulEndsNothingInSilence) {
  for (const char* text : {"{}", "[1,2]", "\"s\"", "{\"a\":1}"}) {
    const std::string whole = text;
    for (std::size_t at = 0; at <= whole.size(); ++at) {
      std::string cut = whole;
      cut.insert(at, std::string("\0junk", 5));
      expect_error(ErrorKind::invalid_argument, {"NUL", "byte " + std::to_string(at + 1)},
                   [&] { parse(cut); });
    }
  }
}

TEST(JsonValue, SizeAndValueCountAreLimited) {
  const JsonLimits limits{.bytes = 16, .values = 4};
  EXPECT_NO_THROW(parse_json("[1,2,3]", "request", limits));
  expect_error(ErrorKind::limit_exceeded, {"request[3]", "at most 4"},
               [&] { parse_json("[1,2,3,4]", "request", limits); });
  expect_error(ErrorKind::limit_exceeded, {"17 bytes", "at most 16", "by 1 byte"},
               [&] { parse_json("[1              ]", "request", limits); });
}

TEST(JsonValue, PathsInMessagesAreShortAndPrintable) {
  EXPECT_EQ(field_path("a", "b"), "a.b");
  EXPECT_EQ(field_path("a", std::size_t{3}), "a[3]");
  EXPECT_EQ(field_path("a", "\x1b[2J\n"), "a.\\x1b[2J\\x0a");
  EXPECT_EQ(field_path("a", std::string(63, 'x') + "é" + "tail"), "a." + std::string(63, 'x') + "…");
}

}  // namespace
}  // namespace assay::decision
