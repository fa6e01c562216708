#include "text/control_tokens.hpp"

#include <algorithm>

namespace assay::text {
namespace {

bool name_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/// Length of the "<|name|>" that `text` starts with, or 0.
std::size_t control_token(std::string_view text) {
  if (!text.starts_with("<|")) return 0;
  std::size_t end = 2;
  while (end < text.size() && name_character(text[end])) ++end;
  return end > 2 && text.substr(end).starts_with("|>") ? end + 2 : 0;
}

}  // namespace

std::string without_control_tokens(std::string_view text) {
  constexpr std::string_view kBrokenBar = "\xc2\xa6";
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t token = control_token(text);
    if (token == 0) {
      // Up to where the next one may start.
      const std::size_t plain = std::min(text.find('<', 1), text.size());
      result += text.substr(0, plain);
      text.remove_prefix(plain);
      continue;
    }
    result.append("<").append(kBrokenBar).append(text.substr(2, token - 4)).append(kBrokenBar).append(">");
    text.remove_prefix(token);
  }
  return result;
}

}  // namespace assay::text
