#pragma once

#include <string>
#include <string_view>

#include "decision/json_value.hpp"

namespace assay::decision {

/// JSON as the labelled lines that the model reads (jaredpalmer/kev, kev/api.py, `render`): a string as it
/// is, numbers and booleans as Python's `str`, null as nothing; an array as lines "- item", an object as
/// lines "name: value", a nested value on the lines below its name, two spaces a level. An item's leading
/// white space goes, by Python's idea of white space (str.lstrip). Lines inside strings are not indented.
std::string flat_text(const JsonValue& value);

/// "name: description", or the name alone where the description is null or "" (kev/api.py, `option_text`).
std::string labelled(std::string_view name, const JsonValue* description);

}  // namespace assay::decision
