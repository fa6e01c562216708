#include "decision/flat_text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace assay::decision {
namespace {

/// Bytes of the white space character that `text` starts with, 0 where it starts with none. The set is that
/// of CPython's _PyUnicode_IsWhitespace (Objects/unicodetype_db.h): bidirectional type WS, B or S, or
/// category Zs.
std::size_t leading_space(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return (first >= 0x09 && first <= 0x0d) || (first >= 0x1c && first <= 0x20) ? 1 : 0;
  if (first == 0xc2) return byte(1) == 0x85 || byte(1) == 0xa0 ? 2 : 0;
  if (first < 0xe1 || first > 0xe3) return 0;
  const unsigned code = ((first & 0x0fu) << 12) | ((byte(1) & 0x3fu) << 6) | (byte(2) & 0x3fu);
  const bool space = code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
                     code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
  return space ? 3 : 0;
}

/// Appends lines; while an item's text has not begun, leading white space is dropped instead of written,
/// which is str.lstrip without a copy of the item.
class LineWriter {
 public:
  std::string take() { return std::move(text_); }

  void value(const JsonValue& value, std::size_t depth) {
    if (const auto* members = value.object()) {
      object(*members, depth);
    } else if (const auto* items = value.array()) {
      array(*items, depth);
    } else if (const auto* string = value.string()) {
      write(*string);
    } else if (const auto* number = value.number()) {
      write(number->text);
    } else if (const auto* boolean = value.boolean()) {
      write(*boolean ? "True" : "False");
    }
  }

 private:
  void object(const JsonValue::Object& members, std::size_t depth) {
    bool first = true;
    for (const auto& [name, item] : members) {
      if (!first) write("\n");
      first = false;
      indent(depth);
      write(name);
      const bool nested = item.object() != nullptr || item.array() != nullptr;
      write(nested ? ":\n" : ": ");
      value(item, nested ? depth + 1 : 0);
    }
  }

  void array(const JsonValue::Array& items, std::size_t depth) {
    bool first = true;
    for (const JsonValue& item : items) {
      if (!first) write("\n");
      first = false;
      indent(depth);
      write("- ");
      strip_ = true;
      value(item, depth + 1);
      strip_ = false;
    }
  }

  void indent(std::size_t depth) {
    if (!strip_) text_.append(2 * depth, ' ');
  }

  void write(std::string_view piece) {
    if (strip_) {
      for (std::size_t space = leading_space(piece); space > 0; space = leading_space(piece)) {
        piece.remove_prefix(space);
      }
      if (!piece.empty()) strip_ = false;
    }
    text_.append(piece);
  }

  std::string text_;
  bool strip_ = false;
};

}  // namespace

std::string flat_text(const JsonValue& value) {
  LineWriter writer;
  writer.value(value, 0);
  return writer.take();
}

std::string labelled(std::string_view name, const JsonValue* description) {
  const bool none = description == nullptr || description->is_null() ||
                    (description->string() != nullptr && description->string()->empty());
  std::string text(name);
  return none ? text : text + ": " + flat_text(*description);
}

}  // namespace assay::decision
