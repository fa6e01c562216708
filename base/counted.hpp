#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay {

/// "1 token", "2 tokens": a number and its noun in messages. `noun` takes an s in the plural.
inline std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace assay
