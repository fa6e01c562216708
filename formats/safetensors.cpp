#include "formats/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/path.hpp"
#include "formats/json.hpp"
#include "formats/row_conversion.hpp"

namespace assay::formats {
namespace {

constexpr std::size_t kLengthBytes = 8;
// The reference implementation's MAX_HEADER_SIZE.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::size_t kMaxTensorRank = 16;
constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

struct StoredTensor {
  TensorInfo info;
  std::uint64_t begin = 0;  ///< within the data section
  std::uint64_t end = 0;
};

/// One file: its bytes, and what its header says of them.
struct File {
  std::optional<MappedFile> mapping;  ///< empty for bytes that the caller owns
  std::span<const std::byte> data;    ///< the data section
  std::map<std::string, StoredTensor, std::less<>> tensors;
};

std::optional<DType> supported_type(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, DType>, 10> kTypes = {{
      {"F64", DType::f64},
      {"F32", DType::f32},
      {"F16", DType::f16},
      {"BF16", DType::bf16},
      {"I64", DType::i64},
      {"I32", DType::i32},
      {"I16", DType::i16},
      {"I8", DType::i8},
      {"U8", DType::u8},
      {"BOOL", DType::boolean},
  }};
  for (const auto& [key, type] : kTypes) {
    if (key == name) return type;
  }
  return std::nullopt;
}

bool is_other_safetensors_type(std::string_view name) {
  static constexpr std::array<std::string_view, 11> kOthers = {
      "F4", "F6_E2M3", "F6_E3M2", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "U16", "U32", "U64", "C64"};
  return std::ranges::find(kOthers, name) != kOthers.end();
}

/// Reads a header's JSON as it streams by: {"name": {"dtype": …, "shape": […], "data_offsets": [b, e]}, …,
/// "__metadata__": {"key": "text"}}. No document is built, so memory stays in proportion to the header.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(const std::string& origin, std::map<std::string, StoredTensor, std::less<>>& tensors)
      : origin_(origin), tensors_(tensors) {}

  bool start_object(std::size_t) override {
    switch (state_) {
      case State::document:
        state_ = State::names;
        return true;
      case State::tensor_value:
        return begin_tensor();
      case State::metadata_value:
        state_ = State::metadata;
        return true;
      default:
        fail("an object where none belongs");
    }
  }

  bool key(std::string& text) override {
    switch (state_) {
      case State::names:
        return begin_name(text);
      case State::metadata:
        state_ = State::metadata_text;
        return true;
      case State::fields:
        return begin_field(text);
      default:
        fail("a key where none belongs");
    }
  }

  bool end_object() override {
    switch (state_) {
      case State::fields:
        return end_tensor();
      case State::metadata:
        state_ = State::names;
        return true;
      default:
        state_ = State::done;
        return true;
    }
  }

  bool string(std::string& text) override {
    if (state_ == State::metadata_text) {
      state_ = State::metadata;
      return true;
    }
    if (state_ != State::dtype) fail("text where none belongs");
    current_.info.type = read_type(text);
    state_ = State::fields;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ == State::shape_value) {
      state_ = State::shape;
    } else if (state_ == State::offsets_value) {
      state_ = State::offsets;
    } else {
      fail("a list where none belongs");
    }
    return true;
  }

  bool end_array() override {
    if (state_ == State::offsets && offsets_.size() != 2) fail("data_offsets without a begin and an end");
    state_ = State::fields;
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (state_ == State::shape) {
      if (current_.info.shape.size() == kMaxTensorRank) fail("a shape of more than 16 dimensions");
      current_.info.shape.push_back(value);
    } else if (state_ == State::offsets) {
      if (offsets_.size() == 2) fail("data_offsets of more than two numbers");
      offsets_.push_back(value);
    } else {
      fail("a number where none belongs");
    }
    return true;
  }

  bool null() override { fail("null where a value belongs"); }
  bool boolean(bool) override { fail("true or false where none belongs"); }
  bool number_integer(std::int64_t) override { fail("a negative number"); }
  bool number_float(double, const std::string&) override {
    fail("a number that is not whole or does not fit 64 bits");
  }
  bool binary(nlohmann::json::binary_t&) override { fail("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail("the header is not JSON at its byte " + std::to_string(position));
  }

 private:
  enum class State {
    document,
    names,
    tensor_value,
    fields,
    dtype,
    shape_value,
    shape,
    offsets_value,
    offsets,
    metadata_value,
    metadata,
    metadata_text,
    done
  };

  [[noreturn]] void fail(const std::string& found, ErrorKind kind = ErrorKind::malformed) const {
    const std::string where =
        current_.info.name.empty() ? origin_ : origin_ + ": tensor '" + current_.info.name + "'";
    throw Error(kind, {.where = where, .found = found, .expected = "a safetensors header"});
  }

  bool begin_name(const std::string& name) {
    if (name == "__metadata__") {
      if (std::exchange(metadata_seen_, true)) fail("'__metadata__' twice");
      state_ = State::metadata_value;
      return true;
    }
    current_ = {};
    current_.info.name = name;
    current_.info.origin = origin_;
    state_ = State::tensor_value;
    return true;
  }

  bool begin_tensor() {
    fields_seen_ = 0;
    offsets_.clear();
    state_ = State::fields;
    return true;
  }

  bool begin_field(const std::string& field) {
    static constexpr std::array<std::pair<std::string_view, State>, 3> kFields = {
        {{"dtype", State::dtype}, {"shape", State::shape_value}, {"data_offsets", State::offsets_value}}};
    for (std::size_t i = 0; i < kFields.size(); ++i) {
      if (field != kFields[i].first) continue;
      if ((fields_seen_ >> i & 1u) != 0) fail("'" + field + "' twice");
      fields_seen_ |= 1u << i;
      state_ = kFields[i].second;
      return true;
    }
    fail("the unknown field '" + field.substr(0, 40) + "'");
  }

  DType read_type(const std::string& text) const {
    if (const auto type = supported_type(text)) return *type;
    const std::string found = "element type '" + text.substr(0, 40) + "'";
    if (is_other_safetensors_type(text)) fail(found + ", which is not supported yet", ErrorKind::unsupported);
    fail(found + ", which safetensors does not know");
  }

  bool end_tensor() {
    if (fields_seen_ != 7u) fail("not all of dtype, shape and data_offsets");
    current_.begin = offsets_[0];
    current_.end = offsets_[1];
    const std::string name = current_.info.name;
    if (!tensors_.emplace(name, current_).second) fail("the name occurs twice");
    current_.info.name.clear();
    state_ = State::names;
    return true;
  }

  const std::string& origin_;
  std::map<std::string, StoredTensor, std::less<>>& tensors_;
  State state_ = State::document;
  StoredTensor current_;
  std::vector<std::uint64_t> offsets_;
  unsigned fields_seen_ = 0;
  bool metadata_seen_ = false;
};

[[noreturn]] void fail_tensor(const TensorInfo& info, std::string found, std::string expected) {
  throw Error(ErrorKind::malformed, {.where = info.origin + ": tensor '" + info.name + "'",
                                     .found = std::move(found),
                                     .expected = std::move(expected),
                                     .advice = "the file is truncated or damaged; fetch it again"});
}

std::string range_text(const StoredTensor& tensor) {
  return "bytes " + std::to_string(tensor.begin) + " to " + std::to_string(tensor.end);
}

std::uint64_t size_by_shape(const TensorInfo& info) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : info.shape) {
    if (extent != 0 && count > std::numeric_limits<std::uint64_t>::max() / extent) {
      fail_tensor(info, "shape " + describe_shape(info.shape), "a product that fits 64 bits");
    }
    count *= extent;
  }
  const std::uint64_t bytes = element_bytes(info.type);
  if (count > std::numeric_limits<std::uint64_t>::max() / bytes) {
    fail_tensor(info, "shape " + describe_shape(info.shape), "a size that fits 64 bits");
  }
  return count * bytes;
}

void check_extent(const StoredTensor& tensor, std::size_t data_size) {
  const TensorInfo& info = tensor.info;
  if (tensor.begin > tensor.end || tensor.end > data_size) {
    fail_tensor(info, range_text(tensor),
                "a range within the file's " + std::to_string(data_size) + " data bytes");
  }
  const std::uint64_t expected = size_by_shape(info);
  if (tensor.end - tensor.begin != expected) {
    fail_tensor(info, range_text(tensor),
                std::to_string(expected) + " bytes by its type " + std::string(to_string(info.type)) +
                    " and shape " + describe_shape(info.shape));
  }
}

/// The data section is the tensors end to end: no two share a byte, and no byte belongs to none.
void check_cover(const File& file, const std::string& origin) {
  std::vector<const StoredTensor*> order;
  order.reserve(file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) order.push_back(&tensor);
  std::ranges::sort(order, [](const StoredTensor* a, const StoredTensor* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  std::uint64_t covered = 0;
  for (const StoredTensor* tensor : order) {
    if (tensor->begin < covered)
      fail_tensor(tensor->info, range_text(*tensor) + " overlap another tensor", "own bytes");
    if (tensor->begin > covered) {
      fail_tensor(tensor->info, range_text(*tensor),
                  "to begin at " + std::to_string(covered) + ", without a hole");
    }
    covered = tensor->end;
  }
  if (covered == file.data.size()) return;
  throw Error(ErrorKind::malformed, {.where = origin,
                                     .found = std::to_string(file.data.size()) + " data bytes",
                                     .expected = std::to_string(covered) + " by its header"});
}

/// The header's text; sets `data` to what follows it.
std::string_view split_header(std::span<const std::byte> bytes, const std::string& origin,
                              std::span<const std::byte>& data) {
  const auto fail = [&](std::string found, std::string expected) {
    throw Error(ErrorKind::malformed, {.where = origin,
                                       .found = std::move(found),
                                       .expected = std::move(expected),
                                       .advice = "the file is not safetensors, or is truncated"});
  };
  if (bytes.size() < kLengthBytes)
    fail(std::to_string(bytes.size()) + " bytes", "at least 8, the header's length");
  std::uint64_t length = 0;
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMaxHeaderBytes)
    fail("a header of " + std::to_string(length) + " bytes", "at most 100 000 000");
  if (length > bytes.size() - kLengthBytes) {
    fail("a header of " + std::to_string(length) + " bytes",
         "one within the file's " + std::to_string(bytes.size()));
  }
  const std::span<const std::byte> header = bytes.subspan(kLengthBytes, length);
  if (header.empty() || header[0] != std::byte{'{'})
    fail("a header that does not start with '{'", "a JSON object");
  data = bytes.subspan(kLengthBytes + length);
  return {reinterpret_cast<const char*>(header.data()), header.size()};
}

File read_file(std::span<const std::byte> bytes, const std::string& origin) {
  File file;
  const std::string_view header = split_header(bytes, origin, file.data);
  HeaderReader reader(origin, file.tensors);
  nlohmann::json::sax_parse(header, &reader);
  for (const auto& [name, tensor] : file.tensors) check_extent(tensor, file.data.size());
  check_cover(file, origin);
  return file;
}

File map_file(const std::filesystem::path& path) {
  MappedFile mapping = MappedFile::open(path);
  File file = read_file(mapping.bytes(), path.string());
  file.mapping = std::move(mapping);
  return file;
}

class SafetensorsSource final : public TensorSource {
 public:
  explicit SafetensorsSource(File file) {
    files_.push_back(std::move(file));
    for (const auto& [name, tensor] : files_[0].tensors) tensors_.emplace(name, Place{&files_[0], &tensor});
  }

  /// Each of `weight_map`'s tensors from the file that it names.
  SafetensorsSource(std::map<std::string, File> files, const std::map<std::string, std::string>& weight_map,
                    const std::string& index) {
    std::map<std::string, const File*> by_name;
    files_.reserve(files.size());
    for (auto& [name, file] : files) by_name[name] = &files_.emplace_back(std::move(file));
    for (const auto& [tensor, file_name] : weight_map) {
      const File& file = *by_name.at(file_name);
      const auto found = file.tensors.find(tensor);
      if (found == file.tensors.end()) {
        throw Error(ErrorKind::missing,
                    {.where = index + ": tensor '" + tensor + "'",
                     .found = "not in " + file_name,
                     .expected = "every listed tensor in its shard",
                     .advice = "index and shards are of different downloads; fetch both again"});
      }
      tensors_.emplace(tensor, Place{&file, &found->second});
    }
  }

  const TensorInfo* find(std::string_view name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second.tensor->info;
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    all.reserve(tensors_.size());
    for (const auto& [name, place] : tensors_) all.push_back(name);
    return all;
  }

  void read_rows(std::string_view name, std::uint64_t first, std::uint64_t count,
                 std::span<float> out) const override {
    const TensorInfo& info = require(*this, name);
    const RowRange range = check_rows(info, first, count, out.size());
    const std::byte* data = stored_bytes(name).data() + range.first_element * element_bytes(info.type);
    convert_finite(info, range.first_element, data, out);
  }

  std::span<const std::byte> stored_bytes(std::string_view name) const override {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return {};
    const StoredTensor& tensor = *found->second.tensor;
    return found->second.file->data.subspan(tensor.begin, tensor.end - tensor.begin);
  }

  void release(std::string_view name) const override {
    const auto found = tensors_.find(name);
    if (found == tensors_.end() || !found->second.file->mapping) return;
    found->second.file->mapping->release(stored_bytes(name));
  }

 private:
  struct Place {
    const File* file;
    const StoredTensor* tensor;
  };
  std::vector<File> files_;
  std::map<std::string, Place, std::less<>> tensors_;
};

/// Shards lie beside their index: a name that leads elsewhere could make any file of the machine's part of a
/// checkpoint.
void check_shard_name(const std::string& name, const std::string& origin) {
  const bool plain = !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
                     name.find('\\') == std::string::npos && name.find('\0') == std::string::npos;
  if (plain) return;
  throw Error(ErrorKind::malformed, {.where = origin + ": weight_map",
                                     .found = "the shard '" + name.substr(0, 80) + "'",
                                     .expected = "plain file names beside the index"});
}

std::map<std::string, std::string> read_weight_map(const std::filesystem::path& index) {
  const std::string origin = index.string();
  const nlohmann::json document = parse_json(read_text_file(index, kMaxJsonFileBytes), origin);
  const auto entries = JsonFields(document, origin).object("weight_map");
  if (!entries) {
    throw Error(ErrorKind::malformed,
                {.where = origin, .found = "no weight_map", .expected = "tensor to shard names"});
  }
  std::map<std::string, std::string> weight_map;
  for (const auto& [tensor, file] : entries->json().items()) {
    const std::string name = entries->string(tensor).value_or("");
    check_shard_name(name, origin);
    weight_map[tensor] = name;
  }
  return weight_map;
}

std::shared_ptr<const TensorSource> open_sharded(const std::filesystem::path& index) {
  const std::map<std::string, std::string> weight_map = read_weight_map(index);
  std::map<std::string, File> files;
  for (const auto& [tensor, name] : weight_map) {
    if (files.contains(name)) continue;
    try {
      files.emplace(name, map_file(index.parent_path() / name));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::missing) throw;
      throw Error(ErrorKind::missing, {.where = index.string(),
                                       .found = "the shard " + name + " is not there",
                                       .advice = "finish the download of " + index.parent_path().string()});
    }
  }
  return std::make_shared<SafetensorsSource>(std::move(files), weight_map, index.string());
}

}  // namespace

bool has_safetensors(const std::filesystem::path& directory) {
  return path_exists(directory / kSingleFile) || path_exists(directory / kIndexFile);
}

std::shared_ptr<const TensorSource> open_safetensors(const std::filesystem::path& file_or_directory,
                                                     std::string_view stem) {
  if (!is_directory_path(file_or_directory)) {
    return std::make_shared<SafetensorsSource>(map_file(file_or_directory));
  }
  const std::string single = std::string(stem) + ".safetensors";
  if (path_exists(file_or_directory / single)) {
    return std::make_shared<SafetensorsSource>(map_file(file_or_directory / single));
  }
  const std::string index = single + ".index.json";
  if (path_exists(file_or_directory / index)) return open_sharded(file_or_directory / index);
  throw Error(
      ErrorKind::missing,
      {.where = file_or_directory.string(), .found = "no weights", .expected = single + " or " + index});
}

std::shared_ptr<const TensorSource> parse_safetensors(std::span<const std::byte> bytes,
                                                      const std::string& origin) {
  return std::make_shared<SafetensorsSource>(read_file(bytes, origin));
}

}  // namespace assay::formats
