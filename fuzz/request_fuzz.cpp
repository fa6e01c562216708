// Bytes from a caller: whatever they are, a request or an Error; and what was accepted keeps its promises.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "decision/request.hpp"
#include "text/control_tokens.hpp"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void check_request(const assay::decision::Request& request) {
  check(!request.questions.empty());
  for (const auto& question : request.questions) {
    check(!question.options.empty() && question.options.size() <= assay::decision::kMostOptions);
    check(question.keys.size() == question.options.size());
    check(assay::text::without_control_tokens(question.instructions).find("<|fim_suffix|>") ==
          std::string::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    check_request(assay::decision::parse_request({reinterpret_cast<const char*>(data), size}));
  } catch (const assay::Error& error) {
    check(*error.what() != '\0');
  }
  return 0;
}
