#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace assay::cli {

/// The names of a JSON document's members, those inside other values left out; nothing where the text is not
/// JSON. The document itself, which may be a vocabulary of many megabytes, is not kept.
std::optional<std::set<std::string, std::less<>>> top_level_names(std::string_view json);

}  // namespace assay::cli
