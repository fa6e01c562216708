#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.hpp"

namespace assay::formats {

/// A tensor of a torch file: a view of a storage that several tensors may share. The view lies within the
/// storage.
struct TorchTensor {
  DType type = DType::f32;
  std::vector<std::uint64_t> shape;    ///< outermost first
  std::vector<std::uint64_t> strides;  ///< in elements, as many as `shape`
  std::uint64_t offset = 0;            ///< of the first element, in elements
  std::shared_ptr<const std::vector<std::byte>> storage;
  std::string origin;  ///< file and storage, for messages

  std::uint64_t elements() const;
  /// Row-major fp32 copy. Throws Error(non_finite) naming origin and element; Error(unsupported) for
  /// integers.
  std::vector<float> to_floats() const;
};

/// What a torch file may hold here: plain data.
class TorchValue {
 public:
  struct Item;
  struct None {};
  using List = std::vector<TorchValue>;
  struct Dict {
    std::vector<Item> items;  ///< in the file's order, no key twice
  };

  TorchValue() = default;
  template <class T>
  explicit TorchValue(T value) : value_(std::move(value)) {}

  bool is_none() const { return std::holds_alternative<None>(value_); }
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&value_); }
  const double* number() const { return std::get_if<double>(&value_); }
  const std::string* string() const { return std::get_if<std::string>(&value_); }
  const List* list() const { return std::get_if<List>(&value_); }  ///< a list or a tuple
  const Dict* dict() const { return std::get_if<Dict>(&value_); }
  const TorchTensor* tensor() const { return std::get_if<TorchTensor>(&value_); }

  /// The value of a dict's string key; null when this is no dict or has no such key.
  const TorchValue* find(std::string_view key) const;
  /// "a string", "a tensor", … for messages.
  const char* kind() const;

 private:
  std::variant<None, bool, std::int64_t, double, std::string, List, Dict, TorchTensor> value_;
};

struct TorchValue::Item {
  TorchValue key;
  TorchValue value;
};

/// Reads what torch.save wrote: a zip archive with a pickle (data.pkl) and the storages that it names.
///
/// The unpickler builds dicts, lists, tuples, scalars, strings and tensors, and nothing else: a pickle that
/// names any other class or function is refused by that name, because unpickling it would run code. Archives
/// by torch ≥ 1.6, little-endian. Entries are stored, as torch writes them; compressed ones are accepted up
/// to 64 MiB in all.
///
/// Throws Error(missing | io) for the file, Error(malformed) for damage, cycles and absurd counts,
/// Error(unsupported) for code, legacy files and types that are not tensors of numbers.
TorchValue read_torch_file(const std::filesystem::path& path);

/// The same for the file's bytes. `origin` names them in messages.
TorchValue parse_torch_file(std::span<const std::byte> bytes, const std::string& origin);

}  // namespace assay::formats
