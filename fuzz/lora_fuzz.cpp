#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "formats/lora.hpp"
#include "formats/safetensors.hpp"

namespace {

/// A base with two matrices for adapters to match: [4, 3] zeros in F32.
constexpr std::string_view kHeader =
    R"({"a.weight":{"dtype":"F32","shape":[4,3],"data_offsets":[0,48]},"layers.0.b.weight":{"dtype":"F32","shape":[4,3],"data_offsets":[48,96]}})";

std::vector<std::byte> base_file() {
  std::vector<std::byte> file(8 + kHeader.size() + 96);
  file[0] = std::byte{kHeader.size()};
  std::ranges::copy(std::as_bytes(std::span(kHeader)), file.begin() + 8);
  return file;
}

}  // namespace

/// The input is an adapter_config.json, a zero byte, and an adapter's safetensors file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace assay;
  static_assert(kHeader.size() < 256);
  static const std::vector<std::byte> base = base_file();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::span<const std::byte> adapter =
      std::as_bytes(std::span(data, size)).subspan(std::min(end + 1, size));
  try {
    formats::LoraConfig config = formats::parse_lora_config(input.substr(0, end), "adapter_config.json");
    const auto merged =
        formats::merge_lora(formats::parse_safetensors(base, "base.safetensors"), std::move(config),
                            formats::parse_safetensors(adapter, "adapter.safetensors"), "adapter");
    for (const std::string& name : merged->names()) {
      formats::read_tensor(*merged, name, formats::require(*merged, name).shape);
    }
  } catch (const Error&) {
  }
  return 0;
}
