#include "text/vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "text/unicode.hpp"

namespace assay::text {
namespace {

constexpr std::size_t kMaxTokenBytes = 4096;
// The alphabet ends before U+0144: 68 bytes that cannot be printed follow U+0100.
constexpr char32_t kAlphabetEnd = 0x144;

std::array<char32_t, 256> make_alphabet() {
  std::array<char32_t, 256> alphabet{};
  char32_t stand_in = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    alphabet[byte] = printable ? byte : stand_in++;
  }
  return alphabet;
}

std::array<std::int16_t, kAlphabetEnd> make_inverse() {
  std::array<std::int16_t, kAlphabetEnd> inverse{};
  inverse.fill(-1);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    inverse[byte_level_alphabet()[byte]] = static_cast<std::int16_t>(byte);
  }
  return inverse;
}

// A token with a character outside the alphabet is taken at its word, as Hugging Face's decoder does; no text
// encodes to it.
void bytes_of_byte_level(std::string_view text, std::string& out) {
  static const std::array<std::int16_t, kAlphabetEnd> inverse = make_inverse();
  out.clear();
  for (std::size_t at = 0; at < text.size();) {
    const auto [c, bytes] = decode_utf8(text, at);
    if (c >= kAlphabetEnd || inverse[c] < 0) {
      out = text;
      return;
    }
    out.push_back(static_cast<char>(inverse[c]));
    at += bytes;
  }
}

}  // namespace

const std::array<char32_t, 256>& byte_level_alphabet() {
  static const std::array<char32_t, 256> alphabet = make_alphabet();
  return alphabet;
}

Vocabulary::Vocabulary(TokenizerParts& parts, const std::string& origin) {
  const std::string where = origin + ": vocabulary";
  std::size_t total = 0;
  for (const auto& [text, id] : parts.vocabulary) total += text.size();
  bytes_.reserve(total);
  ids_.reserve(parts.vocabulary.size() + parts.added.size());
  std::string bytes;
  for (auto& [text, id] : parts.vocabulary) {
    if (const auto bad = find_invalid_utf8(text)) {
      throw Error(ErrorKind::malformed,
                  {.where = where, .found = fmt::format("{} is not UTF-8", in_quotes(text))});
    }
    bytes_of_byte_level(text, bytes);
    insert(std::move(text), id, bytes, where);
  }
  parts.vocabulary.clear();
  for (std::size_t byte = 0; byte < 256; ++byte) {
    std::string text;
    append_utf8(byte_level_alphabet()[byte], text);
    const auto found = id(text);
    if (!found) {
      throw Error(ErrorKind::malformed,
                  {.where = where,
                   .found = fmt::format("no token for byte 0x{:02x}", byte),
                   .expected = fmt::format("a byte-level vocabulary with {}", in_quotes(text))});
    }
    id_of_byte_[byte] = *found;
  }
  for (std::size_t i = 0; i < parts.added.size(); ++i) {
    insert_added(parts.added[i], fmt::format("{}: added_tokens[{}]", origin, i));
  }
}

void Vocabulary::insert(std::string text, std::int32_t id, std::string_view bytes, const std::string& where) {
  const auto fail = [&](std::string found, std::string expected) {
    throw Error(ErrorKind::malformed,
                {.where = where, .found = std::move(found), .expected = std::move(expected)});
  };
  if (text.empty()) fail(fmt::format("an empty token, id {}", id), "tokens of at least a byte");
  if (text.size() > kMaxTokenBytes) {
    fail(fmt::format("a token of {} bytes, {}", text.size(), in_quotes(text)),
         fmt::format("at most {}", kMaxTokenBytes));
  }
  if (id < 0 || id >= kMaxTokenIds) {
    fail(fmt::format("id {} of token {}", id, in_quotes(text)),
         fmt::format("ids from 0 to {}", kMaxTokenIds - 1));
  }
  const auto index = static_cast<std::size_t>(id);
  if (index >= spans_.size()) spans_.resize(index + 1);
  if (spans_[index].size != 0)
    fail(fmt::format("id {} a second time, for {}", id, in_quotes(text)), "an id per token");
  spans_[index] = {bytes_.size(), static_cast<std::uint32_t>(bytes.size())};
  longest_token_ = std::max(longest_token_, bytes.size());
  bytes_ += bytes;
  const auto [entry, is_new] = ids_.emplace(std::move(text), id);
  if (!is_new) fail(fmt::format("token {} a second time", in_quotes(entry->first)), "each token once");
}

void Vocabulary::insert_added(const TokenizerParts::Added& token, const std::string& where) {
  if (const auto bad = find_invalid_utf8(token.content)) {
    throw Error(ErrorKind::malformed,
                {.where = where, .found = fmt::format("{} is not UTF-8", in_quotes(token.content))});
  }
  const auto known = id(token.content);
  if (!known) return insert(token.content, token.id, token.content, where);
  if (*known == token.id) return;
  throw Error(ErrorKind::malformed, {.where = where,
                                     .found = fmt::format("id {} for {}", token.id, in_quotes(token.content)),
                                     .expected = fmt::format("id {}, as it has already", *known)});
}

std::optional<std::int32_t> Vocabulary::id(std::string_view text) const {
  const auto found = ids_.find(text);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::string_view Vocabulary::bytes(std::int32_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= spans_.size()) return {};
  const Span span = spans_[static_cast<std::size_t>(id)];
  return std::string_view(bytes_).substr(span.first, span.size);
}

}  // namespace assay::text
