#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "formats/pickle.hpp"
#include "formats/torch_zip.hpp"

namespace {

using assay::formats::TorchValue;

void read_tensors(const TorchValue& value) {
  if (const auto* tensor = value.tensor()) {
    try {
      tensor->to_floats();
    } catch (const assay::Error&) {
    }
  }
  if (const auto* list = value.list()) {
    for (const TorchValue& item : *list) read_tensors(item);
  }
  if (const auto* dict = value.dict()) {
    for (const auto& item : dict->items) read_tensors(item.value);
  }
}

}  // namespace

/// Opens an input that begins as a zip archive as a torch file, and any other as a bare pickle whose storages
/// are all there, so that the pickle machine is reached without a checksum in the way.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace assay;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const formats::StorageLoader load = [](const std::string&, std::uint64_t count) {
    constexpr std::uint64_t kLargest = 1 << 16;
    if (count > kLargest)
      throw Error(ErrorKind::limit_exceeded, {.where = "fuzz", .found = "a large storage"});
    return std::make_shared<const std::vector<std::byte>>(count);
  };
  try {
    const bool archive = size > 1 && data[0] == 'P' && data[1] == 'K';
    read_tensors(archive ? formats::parse_torch_file(bytes, "fuzz.pt")
                         : formats::unpickle(bytes, "fuzz.pkl", load));
  } catch (const Error&) {
  }
  return 0;
}
