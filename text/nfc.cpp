#include "text/nfc.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <vector>

#include "base/error.hpp"
#include "text/unicode.hpp"

namespace assay::text {
namespace {

// Code points since Unicode 9.0 (up to 17.0) that a newer table would reorder, decompose or compose.
constexpr CodePointRange kInertRanges[] = {
    {0x7fd, 0x7fd},     {0x897, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},     {0xc3c, 0xc3c},
    {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},   {0x1abf, 0x1add},   {0x1ae0, 0x1aeb},
    {0x1df6, 0x1dfa},   {0xa82c, 0xa82c},   {0x105c9, 0x105c9}, {0x105d2, 0x105d2}, {0x105da, 0x105da},
    {0x105e4, 0x105e4}, {0x10d24, 0x10d27}, {0x10d69, 0x10d6d}, {0x10eab, 0x10eac}, {0x10efa, 0x10efb},
    {0x10efd, 0x10eff}, {0x10f46, 0x10f50}, {0x10f82, 0x10f85}, {0x11070, 0x11070}, {0x1133b, 0x1133b},
    {0x11382, 0x11385}, {0x1138b, 0x1138b}, {0x1138e, 0x1138e}, {0x11390, 0x11391}, {0x113b8, 0x113b8},
    {0x113bb, 0x113bb}, {0x113c2, 0x113c2}, {0x113c5, 0x113c5}, {0x113c7, 0x113c9}, {0x113ce, 0x113d0},
    {0x1145e, 0x1145e}, {0x11839, 0x1183a}, {0x11930, 0x11930}, {0x11935, 0x11935}, {0x11938, 0x11938},
    {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0}, {0x11a34, 0x11a34}, {0x11a47, 0x11a47},
    {0x11a99, 0x11a99}, {0x11d42, 0x11d42}, {0x11d44, 0x11d45}, {0x11d97, 0x11d97}, {0x11f41, 0x11f42},
    {0x1611e, 0x16129}, {0x1612f, 0x1612f}, {0x16d63, 0x16d63}, {0x16d67, 0x16d6a}, {0x16ff0, 0x16ff1},
    {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef},
    {0x1e5ee, 0x1e5ef}, {0x1e6e3, 0x1e6e3}, {0x1e6e6, 0x1e6e6}, {0x1e6ee, 0x1e6ef}, {0x1e6f5, 0x1e6f5}};

bool is_inert(char32_t c) {
  const auto after =
      std::upper_bound(std::begin(kInertRanges), std::end(kInertRanges), c,
                       [](char32_t value, CodePointRange range) { return value < range.first; });
  return after != std::begin(kInertRanges) && c <= std::prev(after)->last;
}

// Code points below U+0300 are starters that never join what stands before them; U+0300 starts with byte
// 0xCC.
bool may_change(char byte) {
  return static_cast<unsigned char>(byte) >= 0xcc;
}

bool is_settled_start(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return value < 0x80 || (value >= 0xc0 && value < 0xcc);
}

int combining_class(utf8proc_int32_t c) {
  return utf8proc_get_property(c)->combining_class;
}

// utf8proc's own ordering takes time quadratic in the length of a run of marks.
void order_marks(std::vector<utf8proc_int32_t>& code_points) {
  auto at = code_points.begin();
  while (at != code_points.end()) {
    const auto first = std::find_if(at, code_points.end(), [](auto c) { return combining_class(c) != 0; });
    at = std::find_if(first, code_points.end(), [](auto c) { return combining_class(c) == 0; });
    std::stable_sort(first, at, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
  }
}

void append_composed(std::vector<utf8proc_int32_t>& code_points, std::string& out) {
  order_marks(code_points);
  const auto count =
      utf8proc_normalize_utf32(code_points.data(), std::ssize(code_points),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (count == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (count < 0) throw Error(ErrorKind::internal, {.where = "NFC", .found = utf8proc_errmsg(count)});
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    append_utf8(static_cast<char32_t>(code_points[static_cast<std::size_t>(i)]), out);
  }
  code_points.clear();
}

void append_decomposed(char32_t c, std::vector<utf8proc_int32_t>& code_points) {
  // A canonical decomposition has at most four code points (UAX 15, section on stabilised strings'
  // expansion).
  utf8proc_int32_t parts[8];
  int boundary = UTF8PROC_BOUNDCLASS_START;
  const auto count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), parts, std::ssize(parts),
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE), &boundary);
  if (count < 0 || count > std::ssize(parts)) {
    throw Error(ErrorKind::internal,
                {.where = "NFC",
                 .found = fmt::format("no decomposition of U+{:04X}", static_cast<std::uint32_t>(c))});
  }
  code_points.insert(code_points.end(), parts, parts + count);
}

void append_nfc(std::string_view run, std::string& out) {
  std::vector<utf8proc_int32_t> code_points;
  code_points.reserve(run.size());
  for (std::size_t at = 0; at < run.size();) {
    const auto [c, bytes] = decode_utf8(run, at);
    if (is_inert(c)) {
      append_composed(code_points, out);
      out.append(run.substr(at, bytes));
    } else {
      append_decomposed(c, code_points);
    }
    at += bytes;
  }
  append_composed(code_points, out);
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& buffer) {
  auto first = std::find_if(text.begin(), text.end(), may_change);
  if (first == text.end()) return text;
  buffer.clear();
  buffer.reserve(text.size());
  std::size_t done = 0;
  while (first != text.end()) {
    auto at = static_cast<std::size_t>(first - text.begin());
    if (at > done) at = previous_code_point(text, at);
    const auto end =
        static_cast<std::size_t>(std::find_if(first, text.end(), is_settled_start) - text.begin());
    buffer.append(text.substr(done, at - done));
    append_nfc(text.substr(at, end - at), buffer);
    done = end;
    first = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), may_change);
  }
  buffer.append(text.substr(done));
  return buffer;
}

}  // namespace assay::text
