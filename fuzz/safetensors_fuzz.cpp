#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "formats/canonical_names.hpp"
#include "formats/safetensors.hpp"

/// Opens the input as a safetensors file and reads every tensor, once by its own and once by its canonical
/// name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace assay;
  try {
    const auto source = formats::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz.safetensors");
    for (const auto& tensors : {source, formats::canonical_names(source)}) {
      for (const std::string& name : tensors->names()) {
        const formats::TensorInfo& info = formats::require(*tensors, name);
        try {
          formats::read_tensor(*tensors, name, info.shape);
        } catch (const Error&) {
        }
        tensors->release(name);
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
