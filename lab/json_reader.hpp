#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace assay::lab {

class JsonReader;

/// One JSON value with the file and place that it stands at, such as "plan.json: items[2].form".
class JsonPlace {
 public:
  JsonPlace(std::shared_ptr<const nlohmann::json> value, std::string file, std::string path);

  const nlohmann::json& value() const noexcept { return *value_; }
  std::string where() const;

  /// The value as a T: bool, std::string, double (finite), std::uint64_t, std::int64_t (whole numbers in
  /// range), nlohmann::json (anything), JsonReader (an object), std::vector<T> (a list),
  /// std::map<std::string, T> (an object with fields of any name). Throws Error(malformed) naming file and
  /// place for another type; null is no value of any but nlohmann::json.
  template <class T>
  T as() const;

  JsonPlace field(const std::string& name) const;
  JsonPlace item(std::size_t index) const;

 private:
  template <class T>
  struct Converter;

  [[noreturn]] void refuse(std::string expected) const;
  bool boolean() const;
  std::string string() const;
  double number() const;
  std::uint64_t unsigned_integer() const;
  std::int64_t integer() const;
  void require_list() const;
  void require_object() const;

  std::shared_ptr<const nlohmann::json> value_;
  std::string file_;
  std::string path_;
};

/// Reads one JSON object that a person wrote, field by field. What was not asked for by the time of `finish`
/// is an error, so that a misspelt field is never a silent default. Keeps its document alive.
class JsonReader {
 public:
  /// Throws Error(malformed) where the value is no object.
  explicit JsonReader(JsonPlace object);

  /// Throws Error(malformed) naming file and field where it is absent or not a T (see JsonPlace::as).
  template <class T>
  T required(const std::string& name) {
    return required_place(name).as<T>();
  }

  /// Nothing where the field is absent; a field that is null is not absent.
  template <class T>
  std::optional<T> optional(const std::string& name) {
    known_.insert(name);
    if (!has(name)) return std::nullopt;
    return required_place(name).as<T>();
  }

  /// Whether the field is there; not yet a reading of it.
  bool has(const std::string& name) const;

  /// Throws Error(malformed) naming the first field that nobody asked for, and those that there are.
  void finish() const;

  /// "gate.json: thresholds.max_abs", for errors about a value that is of the right type but wrong.
  std::string where(const std::string& name) const;
  std::string where() const { return object_.where(); }

 private:
  JsonPlace required_place(const std::string& name);

  JsonPlace object_;
  std::set<std::string> known_;
};

/// A file's object with the SHA-256 of the file's bytes.
struct JsonFile {
  std::string name;  ///< as given
  std::string sha256;
  JsonReader root;
};

/// Reads a JSON file whose root is an object. Throws Error(missing | io), Error(malformed) naming file and
/// byte, also for a key that occurs twice, Error(limit_exceeded) past `limit` bytes.
JsonFile read_json_file(const std::filesystem::path& path, std::size_t limit = std::size_t{16} << 20);

/// The same from text already read; `name` stands in errors.
JsonFile parse_json_text(std::string_view text, const std::string& name);

template <>
struct JsonPlace::Converter<bool> {
  static bool convert(const JsonPlace& place) { return place.boolean(); }
};
template <>
struct JsonPlace::Converter<std::string> {
  static std::string convert(const JsonPlace& place) { return place.string(); }
};
template <>
struct JsonPlace::Converter<double> {
  static double convert(const JsonPlace& place) { return place.number(); }
};
template <>
struct JsonPlace::Converter<std::uint64_t> {
  static std::uint64_t convert(const JsonPlace& place) { return place.unsigned_integer(); }
};
template <>
struct JsonPlace::Converter<std::int64_t> {
  static std::int64_t convert(const JsonPlace& place) { return place.integer(); }
};
template <>
struct JsonPlace::Converter<nlohmann::json> {
  static nlohmann::json convert(const JsonPlace& place) { return place.value(); }
};
template <>
struct JsonPlace::Converter<JsonReader> {
  static JsonReader convert(const JsonPlace& place) { return JsonReader(place); }
};
template <class T>
struct JsonPlace::Converter<std::vector<T>> {
  static std::vector<T> convert(const JsonPlace& place) {
    place.require_list();
    std::vector<T> items;
    for (std::size_t i = 0; i < place.value().size(); ++i) items.push_back(place.item(i).as<T>());
    return items;
  }
};
template <class T>
struct JsonPlace::Converter<std::map<std::string, T>> {
  static std::map<std::string, T> convert(const JsonPlace& place) {
    place.require_object();
    std::map<std::string, T> fields;
    for (const auto& [name, value] : place.value().items())
      fields.emplace(name, place.field(name).template as<T>());
    return fields;
  }
};

template <class T>
T JsonPlace::as() const {
  return Converter<T>::convert(*this);
}

}  // namespace assay::lab
