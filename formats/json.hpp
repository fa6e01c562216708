#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::formats {

/// Longest JSON side file (configuration, adapter configuration, shard index) that is read, in bytes.
inline constexpr std::size_t kMaxJsonFileBytes = std::size_t{16} << 20;

/// Parses one JSON document. Throws Error(malformed) naming `origin` for a syntax error (with its byte
/// offset), a key that occurs twice in an object, or nesting deeper than 64.
nlohmann::json parse_json(std::string_view text, const std::string& origin);

/// The keys of the object at `field` of a document's top level, in the document's order, which the parsed
/// value does not keep. Empty when there is no such object. `text` has passed parse_json.
std::vector<std::string> key_order(std::string_view text, std::string_view field);

/// Typed access to the fields of one JSON object, so that a wrong type is an error that names file and field.
class JsonFields {
 public:
  /// `object` must outlive this. Throws Error(malformed) when it is not an object. `path` names it in
  /// messages, empty for the document itself.
  JsonFields(const nlohmann::json& object, std::string origin, std::string path = {});

  bool has(std::string_view key) const;  ///< present and not null
  std::optional<std::uint64_t> unsigned_integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> string(std::string_view key) const;
  std::optional<JsonFields> object(std::string_view key) const;
  const nlohmann::json* array(std::string_view key) const;

  const nlohmann::json& json() const noexcept { return object_; }
  /// "config.json: text_config.hidden_size"
  std::string where(std::string_view key) const;

 private:
  const nlohmann::json* present(std::string_view key) const;
  [[noreturn]] void wrong_type(std::string_view key, const nlohmann::json& value, const char* expected) const;

  const nlohmann::json& object_;
  std::string origin_;
  std::string path_;
};

/// The value as JSON text, cut to a length that suits a message.
std::string excerpt(const nlohmann::json& value);

}  // namespace assay::formats
