#include "formats/gguf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/utf8.hpp"

// The container's layout: ggml-org/ggml, docs/gguf.md; the limits of names and dimensions also
// ggml-org/llama.cpp, ggml/include/ggml.h (GGML_MAX_DIMS, GGML_MAX_NAME).

namespace assay::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read from the file as they lie");

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint32_t kOldestVersion = 2;
constexpr std::uint32_t kNewestVersion = 3;
constexpr std::uint32_t kDefaultAlignment = 32;
constexpr std::uint64_t kLongestKey = 65535;
constexpr std::uint64_t kLongestTensorName = 64;
constexpr std::uint32_t kMostDimensions = 4;
constexpr int kDeepestArray = 4;

// What the shortest entry takes, so that a count can be refused before anything is made for it: a metadata
// pair is a key length, one byte of key, a type and one byte of value; a tensor a name length, one byte of
// name, a dimension count, a type and an offset.
constexpr std::uint64_t kShortestPair = 8 + 1 + 4 + 1;
constexpr std::uint64_t kShortestTensor = 8 + 1 + 4 + 4 + 8;

// Block sizes: ggml-org/llama.cpp, gguf-py/gguf/constants.py (GGML_QUANT_SIZES) and ggml/src/ggml-common.h.
constexpr std::array kGgmlTypes = {
    GgmlType{0, "F32", 1, 4, DType::f32},
    GgmlType{1, "F16", 1, 2, DType::f16},
    GgmlType{2, "Q4_0", 32, 18, {}},
    GgmlType{3, "Q4_1", 32, 20, {}},
    GgmlType{4, "Q4_2", 0, 0, {}},
    GgmlType{5, "Q4_3", 0, 0, {}},
    GgmlType{6, "Q5_0", 32, 22, {}},
    GgmlType{7, "Q5_1", 32, 24, {}},
    GgmlType{8, "Q8_0", 32, 34, DType::q8_0},
    GgmlType{9, "Q8_1", 32, 36, {}},
    GgmlType{10, "Q2_K", 256, 84, {}},
    GgmlType{11, "Q3_K", 256, 110, {}},
    GgmlType{12, "Q4_K", 256, 144, {}},
    GgmlType{13, "Q5_K", 256, 176, {}},
    GgmlType{14, "Q6_K", 256, 210, {}},
    GgmlType{15, "Q8_K", 256, 292, {}},
    GgmlType{16, "IQ2_XXS", 256, 66, {}},
    GgmlType{17, "IQ2_XS", 256, 74, {}},
    GgmlType{18, "IQ3_XXS", 256, 98, {}},
    GgmlType{19, "IQ1_S", 256, 50, {}},
    GgmlType{20, "IQ4_NL", 32, 18, {}},
    GgmlType{21, "IQ3_S", 256, 110, {}},
    GgmlType{22, "IQ2_S", 256, 82, {}},
    GgmlType{23, "IQ4_XS", 256, 136, {}},
    GgmlType{24, "I8", 1, 1, {}},
    GgmlType{25, "I16", 1, 2, {}},
    GgmlType{26, "I32", 1, 4, {}},
    GgmlType{27, "I64", 1, 8, {}},
    GgmlType{28, "F64", 1, 8, {}},
    GgmlType{29, "IQ1_M", 256, 56, {}},
    GgmlType{30, "BF16", 1, 2, DType::bf16},
    GgmlType{31, "Q4_0_4_4", 0, 0, {}},
    GgmlType{32, "Q4_0_4_8", 0, 0, {}},
    GgmlType{33, "Q4_0_8_8", 0, 0, {}},
    GgmlType{34, "TQ1_0", 256, 54, {}},
    GgmlType{35, "TQ2_0", 256, 66, {}},
    GgmlType{36, "IQ4_NL_4_4", 0, 0, {}},
    GgmlType{37, "IQ4_NL_4_8", 0, 0, {}},
    GgmlType{38, "IQ4_NL_8_8", 0, 0, {}},
    GgmlType{39, "MXFP4", 32, 17, {}},
    GgmlType{40, "NVFP4", 64, 36, {}},
    GgmlType{41, "Q1_0", 128, 18, {}},
};

[[noreturn]] void malformed(const std::string& where, std::string found, std::string expected = {}) {
  throw Error(ErrorKind::malformed, {where, std::move(found), std::move(expected),
                                     "the file is damaged or cut short; download or convert it again"});
}

std::string at(const std::string& origin, std::string_view field) {
  return fmt::format("{}: {}", origin, field);
}

/// Bytes of a number of that type; 0 for strings and arrays.
std::uint64_t number_bytes(GgufValueType type) {
  switch (type) {
    case GgufValueType::u8:
    case GgufValueType::i8:
    case GgufValueType::boolean:
      return 1;
    case GgufValueType::u16:
    case GgufValueType::i16:
      return 2;
    case GgufValueType::u32:
    case GgufValueType::i32:
    case GgufValueType::f32:
      return 4;
    case GgufValueType::u64:
    case GgufValueType::i64:
    case GgufValueType::f64:
      return 8;
    case GgufValueType::string:
    case GgufValueType::array:
      break;
  }
  return 0;
}

template <class T>
T load(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Walks the header; no step leaves the file.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& origin) : bytes_(bytes), origin_(origin) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t remaining() const { return bytes_.size() - position_; }

  std::span<const std::byte> take(std::uint64_t count, std::string_view field) {
    if (count > remaining()) {
      malformed(at(origin_, field), fmt::format("{} bytes at offset {}, past the end of the file ({} bytes)",
                                                count, position_, bytes_.size()));
    }
    const auto part = bytes_.subspan(position_, count);
    position_ += count;
    return part;
  }

  template <class T>
  T number(std::string_view field) {
    return load<T>(take(sizeof(T), field).data());
  }

  std::string_view text(std::string_view field,
                        std::uint64_t longest = std::numeric_limits<std::uint64_t>::max()) {
    const auto length = number<std::uint64_t>(field);
    if (length > longest) {
      malformed(at(origin_, field), fmt::format("a text of {} bytes", length),
                fmt::format("at most {}", longest));
    }
    return as_text(take(length, field));
  }

  GgufValueType value_type(std::string_view field) {
    const auto type = number<std::uint32_t>(field);
    if (type > static_cast<std::uint32_t>(GgufValueType::f64)) {
      malformed(at(origin_, field), fmt::format("value type {}", type), "0 to 12");
    }
    return static_cast<GgufValueType>(type);
  }

  GgufValue value(std::string_view field) {
    GgufValue value;
    value.type = value_type(field);
    if (value.type == GgufValueType::array) {
      array(value, field, 1);
    } else if (value.type == GgufValueType::string) {
      value.payload = std::as_bytes(std::span<const char>(text(field)));
    } else {
      value.payload = take(number_bytes(value.type), field);
      if (value.type == GgufValueType::boolean) check_booleans(value.payload, field);
    }
    return value;
  }

 private:
  void array(GgufValue& value, std::string_view field, int depth) {
    if (depth > kDeepestArray) {
      malformed(at(origin_, field), fmt::format("arrays nested deeper than {}", kDeepestArray));
    }
    value.element_type = value_type(field);
    value.count = number<std::uint64_t>(field);
    const std::uint64_t width = number_bytes(value.element_type);
    // A string costs at least its length, an array its element type and count.
    const std::uint64_t least = width != 0 ? width : value.element_type == GgufValueType::string ? 8 : 12;
    if (value.count > remaining() / least) {
      malformed(at(origin_, field),
                fmt::format("an array of {} values with {} bytes left", value.count, remaining()));
    }
    const std::uint64_t begin = position_;
    if (width != 0) {
      const auto elements = take(value.count * width, field);
      if (value.element_type == GgufValueType::boolean) check_booleans(elements, field);
    } else {
      for (std::uint64_t i = 0; i < value.count; ++i) {
        GgufValue inner;
        value.element_type == GgufValueType::string ? void(text(field)) : array(inner, field, depth + 1);
      }
    }
    value.payload = bytes_.subspan(begin, position_ - begin);
  }

  void check_booleans(std::span<const std::byte> values, std::string_view field) const {
    for (const std::byte value : values) {
      if (value > std::byte{1})
        malformed(at(origin_, field), fmt::format("a boolean of {}", std::to_integer<int>(value)), "0 or 1");
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& origin_;
  std::uint64_t position_ = 0;
};

struct Header {
  std::uint32_t version = 0;
  std::uint64_t tensors = 0;
  std::uint64_t pairs = 0;
};

Header read_header(Reader& reader, const std::string& origin) {
  if (as_text(reader.take(kMagic.size(), "magic")) != kMagic)
    malformed(at(origin, "magic"), "another file type", "GGUF");
  Header header;
  header.version = reader.number<std::uint32_t>("version");
  const std::uint32_t swapped = __builtin_bswap32(header.version);
  if (swapped >= 1 && swapped <= kNewestVersion) {
    throw Error(ErrorKind::unsupported, {at(origin, "version"), "a big-endian file", "little-endian",
                                         "convert it with llama.cpp's gguf_convert_endian.py"});
  }
  if (header.version < kOldestVersion || header.version > kNewestVersion) {
    throw Error(ErrorKind::unsupported,
                {at(origin, "version"), fmt::format("GGUF version {}", header.version),
                 fmt::format("version {} or {}", kOldestVersion, kNewestVersion), "convert the model again"});
  }
  header.tensors = reader.number<std::uint64_t>("tensor count");
  header.pairs = reader.number<std::uint64_t>("metadata count");
  if (header.pairs > reader.remaining() / kShortestPair) {
    malformed(at(origin, "metadata count"),
              fmt::format("{} pairs with {} bytes left", header.pairs, reader.remaining()));
  }
  if (header.tensors > reader.remaining() / kShortestTensor) {
    malformed(at(origin, "tensor count"),
              fmt::format("{} tensors with {} bytes left", header.tensors, reader.remaining()));
  }
  return header;
}

const GgmlType& ggml_type(std::uint32_t id, const std::string& where) {
  if (id >= kGgmlTypes.size()) {
    throw Error(ErrorKind::unsupported,
                {where, fmt::format("tensor type {}", id), "a type of ggml known here",
                 "the file is newer than this program, or damaged"});
  }
  const GgmlType& type = kGgmlTypes[id];
  if (type.block == 0) {
    throw Error(ErrorKind::unsupported, {where, fmt::format("type {}, which ggml has withdrawn", type.name),
                                         "F32, F16, BF16 or Q8_0", "convert the model again"});
  }
  return type;
}

/// Bytes of a tensor, or an error where its shape overflows or does not fit the type's blocks.
std::uint64_t tensor_bytes(const GgufTensor& tensor, const std::string& where) {
  std::uint64_t elements = 1;
  for (const std::uint64_t size : tensor.shape) {
    if (size == 0) malformed(where, fmt::format("the empty shape {}", describe_shape(tensor.shape)));
    if (__builtin_mul_overflow(elements, size, &elements)) {
      malformed(where, fmt::format("the absurd shape {}", describe_shape(tensor.shape)));
    }
  }
  const std::uint64_t innermost = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (innermost % tensor.type->block != 0) {
    malformed(where, fmt::format("rows of {} {} elements", innermost, tensor.type->name),
              fmt::format("a multiple of {}", tensor.type->block));
  }
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements / tensor.type->block, std::uint64_t{tensor.type->block_bytes},
                             &bytes)) {
    malformed(where, fmt::format("the absurd shape {}", describe_shape(tensor.shape)));
  }
  return bytes;
}

struct PlacedTensor {
  GgufTensor tensor;
  std::uint64_t offset = 0;  ///< from the start of the data
  std::uint64_t size = 0;
};

PlacedTensor read_tensor_info(Reader& reader, const std::string& origin, std::uint64_t alignment) {
  PlacedTensor placed;
  placed.tensor.name = reader.text("tensor name", kLongestTensorName);
  if (placed.tensor.name.empty()) malformed(at(origin, "tensor name"), "an empty name");
  const std::string where = at(origin, fmt::format("tensor {}", placed.tensor.name));
  const auto dimensions = reader.number<std::uint32_t>(where);
  if (dimensions > kMostDimensions) {
    malformed(where, fmt::format("{} dimensions", dimensions), fmt::format("at most {}", kMostDimensions));
  }
  placed.tensor.shape.resize(dimensions);
  // Innermost first in the file.
  std::generate(placed.tensor.shape.rbegin(), placed.tensor.shape.rend(),
                [&] { return reader.number<std::uint64_t>(where); });
  placed.tensor.type = &ggml_type(reader.number<std::uint32_t>(where), where);
  placed.offset = reader.number<std::uint64_t>(where);
  if (placed.offset % alignment != 0) {
    malformed(where, fmt::format("the offset {}", placed.offset), fmt::format("a multiple of {}", alignment));
  }
  placed.size = tensor_bytes(placed.tensor, where);
  return placed;
}

/// The bytes of every tensor lie in the data, and no two share any.
void place(std::vector<PlacedTensor>& placed, std::span<const std::byte> data, const std::string& origin) {
  std::sort(placed.begin(), placed.end(),
            [](const PlacedTensor& a, const PlacedTensor& b) { return a.offset < b.offset; });
  std::uint64_t end = 0;
  const PlacedTensor* before = nullptr;
  for (PlacedTensor& next : placed) {
    const std::string where = at(origin, fmt::format("tensor {}", next.tensor.name));
    if (next.offset > data.size() || next.size > data.size() - next.offset) {
      malformed(where, fmt::format("{} bytes at offset {} of {} bytes of data", next.size, next.offset,
                                   data.size()));
    }
    if (next.offset < end) {
      malformed(where, fmt::format("bytes shared with tensor {}", before->tensor.name));
    }
    next.tensor.bytes = data.subspan(next.offset, next.size);
    end = next.offset + next.size;
    before = &next;
  }
}

std::int64_t signed_element(GgufValueType type, const std::byte* data) {
  switch (type) {
    case GgufValueType::u8:
    case GgufValueType::boolean:
      return load<std::uint8_t>(data);
    case GgufValueType::i8:
      return load<std::int8_t>(data);
    case GgufValueType::u16:
      return load<std::uint16_t>(data);
    case GgufValueType::i16:
      return load<std::int16_t>(data);
    case GgufValueType::u32:
      return load<std::uint32_t>(data);
    case GgufValueType::i32:
      return load<std::int32_t>(data);
    default:
      return load<std::int64_t>(data);
  }
}

bool is_integer(GgufValueType type) {
  return number_bytes(type) != 0 && type != GgufValueType::f32 && type != GgufValueType::f64 &&
         type != GgufValueType::boolean;
}

}  // namespace

std::string_view to_string(GgufValueType type) {
  constexpr std::array<std::string_view, 13> kNames = {
      "u8", "i8", "u16", "i16", "u32", "i32", "f32", "boolean", "string", "array", "u64", "i64", "f64"};
  const auto index = static_cast<std::size_t>(type);
  return index < kNames.size() ? kNames[index] : "?";
}

std::string describe(const GgufValue& value) {
  switch (value.type) {
    case GgufValueType::array:
      return fmt::format("array of {} {}", value.count, to_string(value.element_type));
    case GgufValueType::string:
      return "string " + in_quotes(as_text(value.payload));
    case GgufValueType::boolean:
      return value.payload[0] == std::byte{1} ? "boolean true" : "boolean false";
    case GgufValueType::f32:
      return fmt::format("f32 {}", load<float>(value.payload.data()));
    case GgufValueType::f64:
      return fmt::format("f64 {}", load<double>(value.payload.data()));
    case GgufValueType::u64:
      return fmt::format("u64 {}", load<std::uint64_t>(value.payload.data()));
    default:
      return fmt::format("{} {}", to_string(value.type), signed_element(value.type, value.payload.data()));
  }
}

struct GgufFile::Contents {
  std::optional<MappedFile> mapping;
  std::string origin;
  std::uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::map<std::string, GgufTensor, std::less<>> tensors;

  void read(std::span<const std::byte> bytes);

 private:
  void read_metadata(Reader& reader, std::uint64_t count);
  std::uint64_t alignment() const;
};

void GgufFile::Contents::read(std::span<const std::byte> bytes) {
  Reader reader(bytes, origin);
  const Header header = read_header(reader, origin);
  version = header.version;
  read_metadata(reader, header.pairs);
  const std::uint64_t aligned_to = alignment();
  std::vector<PlacedTensor> placed;
  for (std::uint64_t i = 0; i < header.tensors; ++i)
    placed.push_back(read_tensor_info(reader, origin, aligned_to));
  const std::uint64_t padding = (aligned_to - reader.position() % aligned_to) % aligned_to;
  if (!placed.empty()) reader.take(padding, "padding before the data");
  place(placed, bytes.subspan(reader.position()), origin);
  for (PlacedTensor& next : placed) {
    const std::string name = next.tensor.name;
    if (!tensors.emplace(name, std::move(next.tensor)).second) {
      malformed(at(origin, fmt::format("tensor {}", name)), "the same name twice");
    }
  }
}

void GgufFile::Contents::read_metadata(Reader& reader, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string key(reader.text("metadata key", kLongestKey));
    if (key.empty()) malformed(at(origin, "metadata key"), "an empty key");
    if (!metadata.emplace(key, reader.value(key)).second) malformed(at(origin, key), "the same key twice");
  }
}

std::uint64_t GgufFile::Contents::alignment() const {
  constexpr std::string_view kKey = "general.alignment";
  const auto found = metadata.find(kKey);
  if (found == metadata.end()) return kDefaultAlignment;
  if (found->second.type != GgufValueType::u32) {
    malformed(at(origin, kKey), describe(found->second), "a u32");
  }
  const auto value = load<std::uint32_t>(found->second.payload.data());
  if (!std::has_single_bit(value)) malformed(at(origin, kKey), fmt::format("{}", value), "a power of two");
  return value;
}

GgufFile GgufFile::open(const std::filesystem::path& path) {
  auto contents = std::make_shared<Contents>();
  contents->mapping = MappedFile::open(path);
  contents->origin = path.string();
  contents->read(contents->mapping->bytes());
  return GgufFile(std::move(contents));
}

GgufFile GgufFile::parse(std::span<const std::byte> bytes, const std::string& origin) {
  auto contents = std::make_shared<Contents>();
  contents->origin = origin;
  contents->read(bytes);
  return GgufFile(std::move(contents));
}

const std::string& GgufFile::origin() const {
  return contents_->origin;
}
std::uint32_t GgufFile::version() const {
  return contents_->version;
}
const std::map<std::string, GgufValue, std::less<>>& GgufFile::metadata() const {
  return contents_->metadata;
}
const std::map<std::string, GgufTensor, std::less<>>& GgufFile::tensors() const {
  return contents_->tensors;
}

void GgufFile::release(const GgufTensor& tensor) const {
  if (contents_->mapping) contents_->mapping->release(tensor.bytes);
}

namespace {

const GgufValue* find_value(const GgufFile& file, std::string_view key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? nullptr : &found->second;
}

[[noreturn]] void wrong_type(const GgufFile& file, std::string_view key, const GgufValue& value,
                             std::string expected) {
  throw Error(ErrorKind::mismatch, {at(file.origin(), key), describe(value), std::move(expected)});
}

template <class T>
T required(const GgufFile& file, std::string_view key, const std::optional<T>& value) {
  if (!value) {
    throw Error(ErrorKind::missing,
                {at(file.origin(), key), "no such key", "metadata that llama.cpp's converter writes",
                 "convert the model again with a current converter"});
  }
  return *value;
}

const GgufValue& required_array(const GgufFile& file, std::string_view key) {
  const GgufValue* value = find_value(file, key);
  required(file, key, value != nullptr ? std::optional<bool>(true) : std::nullopt);
  if (value->type != GgufValueType::array) wrong_type(file, key, *value, "an array");
  return *value;
}

}  // namespace

std::optional<std::uint64_t> GgufFile::find_integer(std::string_view key) const {
  const GgufValue* value = find_value(*this, key);
  if (value == nullptr) return std::nullopt;
  if (!is_integer(value->type)) wrong_type(*this, key, *value, "an integer");
  if (value->type == GgufValueType::u64) return load<std::uint64_t>(value->payload.data());
  const std::int64_t number = signed_element(value->type, value->payload.data());
  if (number < 0) wrong_type(*this, key, *value, "an integer that is not negative");
  return static_cast<std::uint64_t>(number);
}

std::optional<float> GgufFile::find_number(std::string_view key) const {
  const GgufValue* value = find_value(*this, key);
  if (value == nullptr) return std::nullopt;
  float number = 0;
  if (value->type == GgufValueType::f32) {
    number = load<float>(value->payload.data());
  } else if (value->type == GgufValueType::f64) {
    const auto wide = load<double>(value->payload.data());
    constexpr double kLargest = std::numeric_limits<float>::max();
    number = std::abs(wide) <= kLargest ? static_cast<float>(wide) : std::numeric_limits<float>::infinity();
  } else {
    wrong_type(*this, key, *value, "a floating-point number");
  }
  if (!std::isfinite(number)) {
    throw Error(ErrorKind::non_finite, {at(origin(), key), describe(*value), "a finite number"});
  }
  return number;
}

std::optional<std::string_view> GgufFile::find_string(std::string_view key) const {
  const GgufValue* value = find_value(*this, key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufValueType::string) wrong_type(*this, key, *value, "a string");
  return as_text(value->payload);
}

std::uint64_t GgufFile::integer(std::string_view key) const {
  return required(*this, key, find_integer(key));
}
float GgufFile::number(std::string_view key) const {
  return required(*this, key, find_number(key));
}
std::string_view GgufFile::string(std::string_view key) const {
  return required(*this, key, find_string(key));
}

std::vector<std::string_view> GgufFile::strings(std::string_view key) const {
  const GgufValue& value = required_array(*this, key);
  if (value.element_type != GgufValueType::string) wrong_type(*this, key, value, "an array of strings");
  Reader reader(value.payload, origin());
  std::vector<std::string_view> texts(value.count);
  for (std::string_view& text : texts) text = reader.text(key);
  return texts;
}

std::vector<std::int64_t> GgufFile::integers(std::string_view key) const {
  const GgufValue& value = required_array(*this, key);
  const GgufValueType type = value.element_type;
  if (!is_integer(type) && type != GgufValueType::boolean)
    wrong_type(*this, key, value, "an array of integers");
  const std::uint64_t width = number_bytes(type);
  std::vector<std::int64_t> numbers(value.count);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = signed_element(type, value.payload.data() + i * width);
  return numbers;
}

bool is_gguf(const std::filesystem::path& path) {
  return as_text(MappedFile::open(path).bytes()).starts_with(kMagic);
}

}  // namespace assay::formats
