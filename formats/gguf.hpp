#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.hpp"
#include "formats/model_config.hpp"
#include "formats/tensor_source.hpp"

namespace assay::formats {

/// Types of metadata values, numbered as in the file (ggml-org/ggml, docs/gguf.md).
enum class GgufValueType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};

std::string_view to_string(GgufValueType type);

/// A metadata value where it lies in the file: its extent has been checked, its bytes are not copied.
struct GgufValue {
  GgufValueType type = GgufValueType::u8;
  std::span<const std::byte> payload;              ///< a number's, a string's or all elements' bytes
  GgufValueType element_type = GgufValueType::u8;  ///< of an array
  std::uint64_t count = 0;                         ///< elements of an array
};

/// For people: `u32 24`, `string "qwen35"`, `array of 248320 string`.
std::string describe(const GgufValue& value);

/// A tensor type of ggml (ggml-org/llama.cpp, ggml/include/ggml.h and gguf-py/gguf/constants.py).
struct GgmlType {
  std::uint32_t id;
  std::string_view name;  ///< "Q8_0", as the community writes it
  std::uint32_t block;    ///< elements a block; 0 where the type is withdrawn and its size unknown
  std::uint32_t block_bytes;
  std::optional<DType> readable;  ///< what this project reads it as; none: not yet
};

struct GgufTensor {
  std::string name;  ///< as in the file: "blk.0.attn_norm.weight"
  const GgmlType* type = nullptr;
  std::vector<std::uint64_t> shape;  ///< outermost first (the file has it innermost first)
  std::span<const std::byte> bytes;
};

/// A GGUF file, version 2 or 3, little-endian, mapped. Every count, length, offset and extent is checked
/// against the file when it is opened; nothing is allocated in proportion to a number that the file merely
/// claims. Copies share the mapping.
class GgufFile {
 public:
  /// Throws Error(missing | io), Error(malformed) naming file and field, Error(unsupported) for another
  /// version or byte order and for tensor types that ggml has withdrawn or not named here.
  static GgufFile open(const std::filesystem::path& path);
  /// The same from memory that outlives the object and all made from it; `origin` names it in messages.
  static GgufFile parse(std::span<const std::byte> bytes, const std::string& origin);

  const std::string& origin() const;
  std::uint32_t version() const;
  const std::map<std::string, GgufValue, std::less<>>& metadata() const;
  const std::map<std::string, GgufTensor, std::less<>>& tensors() const;

  /// Typed look-ups. `find_*` give none for an absent key, the others throw Error(missing); each throws
  /// Error(mismatch) naming file and key where the value has another type (an integer key accepts every
  /// integer type that holds its value without a sign).
  std::optional<std::uint64_t> find_integer(std::string_view key) const;
  std::uint64_t integer(std::string_view key) const;
  std::optional<float> find_number(std::string_view key) const;
  float number(std::string_view key) const;
  std::optional<std::string_view> find_string(std::string_view key) const;
  std::string_view string(std::string_view key) const;
  std::vector<std::string_view> strings(std::string_view key) const;
  /// An array of integers or booleans.
  std::vector<std::int64_t> integers(std::string_view key) const;

  /// Gives a tensor's pages back to the kernel (nothing to do for memory that is not mapped).
  void release(const GgufTensor& tensor) const;

  struct Contents;

 private:
  explicit GgufFile(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}
  std::shared_ptr<const Contents> contents_;
};

/// True when the file starts with GGUF's magic. Throws Error(missing | io).
bool is_gguf(const std::filesystem::path& path);

/// The backbone's configuration from a file of architecture `qwen35` or `qwen3`. Throws Error(unsupported)
/// for another architecture, a scaled rotary embedding or a split file, Error(missing | mismatch) naming
/// file and key.
ModelConfig gguf_model_config(const GgufFile& file);

/// The backbone's tensors with the names, shapes, order and values of the checkpoint that llama.cpp's
/// converter read ("layers.0.self_attn.q_proj.weight"), its changes undone (see gguf.cpp for each). The
/// decision head keeps its names ("cls.output.weight", "cls.output.bias"). The output matrix and the
/// multi-token-prediction layers are hidden. Values are exact but for
///  - norms of Qwen3.5, stored as fl(1 + w): given back as w', with fl(1 + w') bit-equal to what is stored;
///  - A_log, stored as a = fl(-exp(A_log)): given back as the fp32 nearest to log(-a). That is A_log itself,
///  or
///    a neighbour whose exponential, correctly rounded, is the same -a.
/// Throws Error(unsupported) naming the first tensor of a type not readable yet, or one whose meaning is
/// unknown (ignoring it could change answers), Error(mismatch) for a shape that contradicts the metadata.
std::shared_ptr<const TensorSource> gguf_tensors(const GgufFile& file);

/// What a byte-level BPE tokenizer is made of, as GGUF has it.
struct GgufTokenizer {
  /// llama.cpp's token types (include/llama.h, llama_token_type).
  enum class TokenType : std::int32_t { normal = 1, unknown, control, user_defined, unused, byte };

  std::string pre;                                          ///< pre-tokenizer's name: "qwen2", "qwen35"
  std::string split_pattern;                                ///< what that name stands for in tokenizer.json
  std::vector<std::string> tokens;                          ///< by id; byte-level text for normal ones
  std::vector<TokenType> types;                             ///< as many
  std::vector<std::pair<std::string, std::string>> merges;  ///< best first
};

/// Throws Error(unsupported) for a tokenizer that is not byte-level BPE or a pre-tokenizer other than
/// Qwen's, Error(missing | mismatch | malformed) naming file and key.
GgufTokenizer gguf_tokenizer(const GgufFile& file);

}  // namespace assay::formats
