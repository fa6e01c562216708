#pragma once

#include <gtest/gtest.h>
#include <zip.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/tests/temporary_directory.hpp"

/// Files in the making, for tests: everything in them can be set wrong.
namespace assay::formats::test {

using assay::TemporaryDirectory;

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

inline std::string bf16(const std::vector<float>& values) {
  std::vector<std::uint16_t> bits;
  for (const float value : values) bits.push_back(float_to_bf16(value));
  return raw(bits);
}

inline std::string f16(const std::vector<float>& values) {
  std::vector<std::uint16_t> bits;
  for (const float value : values) bits.push_back(float_to_f16(value));
  return raw(bits);
}

struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::string data;
};

inline std::string safetensors_of(std::string_view header, std::string_view data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length).append(header).append(data);
}

inline std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets +
         "}";
}

inline std::string safetensors(const std::vector<Tensor>& tensors) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  std::string data;
  for (const Tensor& tensor : tensors) {
    std::string shape;
    for (const std::uint64_t extent : tensor.shape)
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    const std::string begin = std::to_string(data.size());
    data += tensor.data;
    header += "," + entry(tensor.name, tensor.dtype, "[" + shape + "]",
                          "[" + begin + "," + std::to_string(data.size()) + "]");
  }
  return safetensors_of(header + "}", data);
}

/// A pickle, operation by operation.
class Pickle {
 public:
  Pickle& op(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  Pickle& text(std::string_view value) {
    const auto size = static_cast<std::uint32_t>(value.size());
    return op("X").op({reinterpret_cast<const char*>(&size), 4}).op(value);
  }
  Pickle& integer(std::int64_t value) {
    return op(std::string_view("\x8a\x08", 2)).op({reinterpret_cast<const char*>(&value), 8});
  }
  Pickle& number(double value) {
    const auto bits = __builtin_bswap64(std::bit_cast<std::uint64_t>(value));
    return op("G").op({reinterpret_cast<const char*>(&bits), 8});
  }
  Pickle& global(const std::string& module, const std::string& name) {
    return op("c" + module + "\n" + name + "\n");
  }
  Pickle& numbers(const std::vector<std::int64_t>& values) {
    op("(");
    for (const std::int64_t value : values) integer(value);
    return op("t");
  }
  /// torch's _rebuild_tensor_v2 on a storage by persistent id.
  Pickle& tensor(const std::string& type, const std::string& key, std::int64_t stored, std::int64_t offset,
                 const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
    global("torch._utils", "_rebuild_tensor_v2")
        .op("((")
        .text("storage")
        .global("torch", type)
        .text(key)
        .text("cpu");
    integer(stored).op("tQ").integer(offset).numbers(shape).numbers(strides).op("\x89");
    return global("collections", "OrderedDict").op(")RtR");
  }
  std::string done() const { return std::string("\x80\x02", 2) + bytes_ + "."; }

 private:
  std::string bytes_;
};

/// A zip archive of these entries, stored unless `compressed`.
inline std::string zip_of(const std::vector<std::pair<std::string, std::string>>& entries,
                          bool compressed = false) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
  zip_source_keep(target);
  zip_t* archive = zip_open_from_source(target, ZIP_TRUNCATE, &error);
  for (const auto& [name, contents] : entries) {
    zip_source_t* source = zip_source_buffer(archive, contents.data(), contents.size(), 0);
    const zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
    zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                             compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  }
  EXPECT_EQ(zip_close(archive), 0);
  zip_source_open(target);
  zip_source_seek(target, 0, SEEK_END);
  std::string bytes(static_cast<std::size_t>(zip_source_tell(target)), '\0');
  zip_source_seek(target, 0, SEEK_SET);
  EXPECT_EQ(zip_source_read(target, bytes.data(), bytes.size()), static_cast<zip_int64_t>(bytes.size()));
  zip_source_close(target);
  zip_source_free(target);
  return bytes;
}

/// The Error that `action` throws; the test fails when it throws none.
template <class Action>
Error error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::internal, {.where = "", .found = "nothing was thrown"});
}

}  // namespace assay::formats::test
