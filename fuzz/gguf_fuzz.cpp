#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "formats/gguf.hpp"

namespace {

using namespace assay;

/// Reads every tensor in two parts; a source's tensors are never larger than the file.
void read_tensors(const formats::TensorSource& source) {
  for (const std::string& name : source.names()) {
    const formats::TensorInfo& info = *source.find(name);
    const std::uint64_t rows = info.shape.empty() ? 1 : info.shape[0];
    const std::uint64_t width = formats::element_count(info) / rows;
    const std::uint64_t first = rows / 2;
    std::vector<float> values(std::max(first, rows - first) * width);
    source.read_rows(name, 0, first, std::span(values).first(first * width));
    source.read_rows(name, first, rows - first, std::span(values).first((rows - first) * width));
  }
}

template <class Action>
void attempt(const Action& action) {
  try {
    action();
  } catch (const Error&) {
    // Refusing the file is an answer too.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attempt([&] {
    const auto file = formats::GgufFile::parse(std::as_bytes(std::span(data, size)), "input");
    for (const auto& [key, value] : file.metadata()) formats::describe(value);
    attempt([&] { read_tensors(*formats::gguf_tensors(file)); });
    attempt([&] { formats::gguf_tokenizer(file); });
  });
  return 0;
}
