#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "formats/backbone_tensors.hpp"
#include "formats/hf_config.hpp"

/// Reads the input as a config.json; what is accepted must also have a list of tensors whose sizes fit.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace assay;
  try {
    const formats::ModelConfig config =
        formats::parse_hf_config({reinterpret_cast<const char*>(data), size}, "config.json");
    for (const formats::BackboneTensor& tensor : formats::backbone_tensors(config)) {
      std::uint64_t elements = 1;
      for (const std::uint64_t extent : tensor.shape) {
        if (extent == 0 || __builtin_mul_overflow(elements, extent, &elements)) __builtin_trap();
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
