#include "lab/ledger/schema.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/tests/expect_error.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

void accept(const char* schema, const char* value) {
  EXPECT_NO_THROW(JsonSchema(schema).check(Json::parse(value), "file")) << schema << " and " << value;
}

void refuse(const char* schema, const char* value, const char* message) {
  expect_error(ErrorKind::malformed, message, [&] { JsonSchema(schema).check(Json::parse(value), "file"); });
}

TEST(JsonSchema, EveryKeywordIsEnforced) {
  accept(R"({"type": "object"})", "{}");
  refuse(R"({"type": "object"})", "[]", "type object");
  refuse(R"({"type": "number"})", "\"1\"", "type number");
  refuse(R"({"type": "boolean"})", "0", "type boolean");
  refuse(R"({"type": "string"})", "null", "type string");
  refuse(R"({"type": "array"})", "{}", "type array");
  refuse(R"({"const": 1})", "2", "expected 1");
  refuse(R"({"enum": ["a", "b"]})", "\"c\"", "one of");
  accept(R"({"pattern": "^a+$"})", "\"aa\"");
  refuse(R"({"pattern": "^a+$"})", "\"aa\\n\"", "matches");
  refuse(R"({"minimum": 2})", "1", "at least 2");
  accept(R"({"minimum": 2})", "2");
  refuse(R"({"exclusiveMinimum": 2})", "2", "more than 2");
  refuse(R"({"required": ["a"]})", "{}", "no field 'a'");
  refuse(R"({"properties": {"a": {"type": "string"}}})", R"({"a": 1})", "file, a");
  refuse(R"({"properties": {}, "additionalProperties": false})", R"({"b": 1})", "unknown field 'b'");
  accept(R"({"properties": {}, "additionalProperties": true})", R"({"b": 1})");
  refuse(R"({"minProperties": 1})", "{}", "at least 1 fields");
  refuse(R"({"items": {"type": "string"}})", R"(["a", 1])", "[1]");
  refuse(R"({"minItems": 1})", "[]", "at least 1 items");
  refuse(R"({"allOf": [{"minimum": 1}, {"minimum": 3}]})", "2", "at least 3");
  refuse(R"({"anyOf": [{"const": 1}, {"const": 2}]})", "3", "expected 2");
  accept(R"({"anyOf": [{"const": 1}, {"const": 2}]})", "1");
  refuse(R"({"not": {"const": 1}})", "1", "does not meet");
  refuse(R"({"if": {"minimum": 5}, "then": {"const": 7}, "else": {"const": 1}})", "6", "expected 7");
  refuse(R"({"if": {"minimum": 5}, "then": {"const": 7}, "else": {"const": 1}})", "2", "expected 1");
  refuse(R"({"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}})", "2", "expected 1");
}

TEST(JsonSchema, WhatItWouldNotEnforceIsRefused) {
  expect_error(ErrorKind::unsupported, "maxLength", [] { JsonSchema(R"({"maxLength": 3})"); });
  expect_error(ErrorKind::unsupported, "maximum",
               [] { JsonSchema(R"({"properties": {"a": {"items": {"maximum": 3}}}})"); });
  expect_error(ErrorKind::malformed, "$ref", [] { JsonSchema(R"({"$ref": "#/$defs/a"})"); });
  expect_error(ErrorKind::malformed, "schema", [] { JsonSchema("[]"); });
}

TEST(JsonText, AKeyTwiceAndNestingWithoutEndAreRefused) {
  expect_error(ErrorKind::malformed, "\"a\" twice", [] { parse_json_strictly(R"({"a": 1, "a": 2})", "f"); });
  EXPECT_NO_THROW(parse_json_strictly(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})", "f"));
  expect_error(ErrorKind::malformed, "too deeply",
               [] { parse_json_strictly(std::string(100000, '['), "f"); });
  expect_error(ErrorKind::malformed, "f", [] { parse_json_strictly("{", "f"); });
  expect_error(ErrorKind::malformed, "f", [] { parse_json_strictly("{\"a\": \"\xff\"}", "f"); });
  expect_error(ErrorKind::malformed, "UTF-8", [] { to_json_text({{"a", "\xff"}}, "f"); });
}

TEST(ExperimentSchema, IsWithinWhatIsEnforced) {
  EXPECT_NO_THROW(experiment_schema());
}

}  // namespace
}  // namespace assay::lab
