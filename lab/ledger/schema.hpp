#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace assay::lab {

/// A JSON Schema (draft 2020-12) of the keywords that ledger/schema uses: type, enum, const, pattern,
/// minimum, exclusiveMinimum, required, properties, additionalProperties (true or false), minProperties,
/// items, minItems, $ref within the document, allOf, anyOf, not, if/then/else; title, description, $schema,
/// $defs say nothing about a value. `pattern` is matched by PCRE2, its $ at the very end only.
class JsonSchema {
 public:
  /// Throws Error(unsupported) for a keyword that this does not know, so that no part of a schema goes
  /// unenforced; Error(malformed) for text that is no JSON object or a reference that leads nowhere.
  explicit JsonSchema(std::string_view text);

  /// Throws Error(malformed) naming `file` and the field, with what is there and what the schema wants.
  void check(const nlohmann::ordered_json& value, const std::string& file) const;

  /// The same for a value that is to meet one of the schema's definitions, such as "rule".
  void check_definition(const std::string& name, const nlohmann::ordered_json& value,
                        const std::string& file) const;

 private:
  nlohmann::ordered_json root_;
};

/// Parses text a person or program wrote: Error(malformed) naming `file` for no JSON, for a key that occurs
/// twice in one object and for values nested deeper than 64.
nlohmann::ordered_json parse_json_strictly(std::string_view text, const std::string& file);

/// The document as a file's text, indented by one space. Throws Error(malformed) naming `file` for text in it
/// that is no UTF-8.
std::string to_json_text(const nlohmann::ordered_json& value, const std::string& file);

/// The schema of an experiment, ledger/schema/experiment.schema.json as this program was built with.
std::string_view experiment_schema_text();
const JsonSchema& experiment_schema();

}  // namespace assay::lab
