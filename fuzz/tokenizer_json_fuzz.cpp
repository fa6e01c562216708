// A tokenizer.json from anywhere: whatever it holds, a tokenizer or an Error; and a tokenizer that loads
// takes any text back and forth.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "text/tokenizer.hpp"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void use(const assay::text::Tokenizer& tokenizer) {
  const auto ids =
      tokenizer.encode("Don't  panic:\r\n 42 na\u00efve e\u0301 \u4e16\u754c <|im_start|>\t!!\n\n");
  for (const auto id : ids) check(id >= 0 && static_cast<std::size_t>(id) < tokenizer.id_limit());
  check(!tokenizer.decode(ids).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    use(assay::text::Tokenizer::from_json({reinterpret_cast<const char*>(data), size}, "fuzz"));
  } catch (const assay::Error& error) {
    check(*error.what() != '\0');
  }
  return 0;
}
