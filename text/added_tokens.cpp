#include "text/added_tokens.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "text/unicode.hpp"
#include "text/vocabulary.hpp"

namespace assay::text {
namespace {

// A walk of the trie starts at every byte, so the longest content bounds the work per byte of text.
constexpr std::size_t kMaxContentBytes = 512;
constexpr std::size_t kMaxTokens = std::size_t{1} << 16;
constexpr std::size_t kMaxTotalBytes = std::size_t{4} << 20;

std::uint8_t class_at(std::string_view text, std::size_t at) {
  return code_point_classes()[decode_utf8(text, at).value];
}

bool stands_alone(std::string_view text, std::size_t first, std::size_t end) {
  if (first > 0 && (class_at(text, previous_code_point(text, first)) & class_word) != 0) return false;
  return end == text.size() || (class_at(text, end) & class_word) == 0;
}

std::size_t space_before(std::string_view text, std::size_t from, std::size_t end) {
  while (end > from) {
    const std::size_t previous = previous_code_point(text, end);
    if ((class_at(text, previous) & class_space) == 0) break;
    end = previous;
  }
  return end;
}

std::size_t space_after(std::string_view text, std::size_t at) {
  while (at < text.size() && (class_at(text, at) & class_space) != 0) at += decode_utf8(text, at).bytes;
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::span<const TokenizerParts::Added> added, bool normalized,
                         const std::string& origin)
    : token_at_{kNone} {
  const auto fail = [&](std::size_t i, std::string found, std::string expected) {
    throw Error(ErrorKind::malformed, {.where = fmt::format("{}: added_tokens[{}]", origin, i),
                                       .found = std::move(found),
                                       .expected = std::move(expected)});
  };
  std::size_t total = 0;
  for (std::size_t i = 0; i < added.size(); ++i) {
    const auto& token = added[i];
    if (token.normalized != normalized) continue;
    if (token.content.empty() || token.content.size() > kMaxContentBytes) {
      fail(i, fmt::format("content of {} bytes", token.content.size()),
           fmt::format("1 to {}", kMaxContentBytes));
    }
    total += token.content.size();
    if (tokens_.size() == kMaxTokens || total > kMaxTotalBytes) {
      fail(i, "more tokens than are handled",
           fmt::format("at most {}, of {} bytes", kMaxTokens, kMaxTotalBytes));
    }
    insert(token.content, static_cast<std::uint32_t>(tokens_.size()),
           fmt::format("{}: added_tokens[{}]", origin, i));
    tokens_.push_back(token);
  }
}

void AddedTokens::insert(std::string_view content, std::uint32_t token, const std::string& where) {
  starts_token_[static_cast<unsigned char>(content[0])] = true;
  std::uint32_t node = 0;
  for (const char c : content) {
    const auto next = static_cast<std::uint32_t>(token_at_.size());
    const auto key = std::uint64_t{node} << 8 | static_cast<unsigned char>(c);
    const auto [entry, is_new] = children_.emplace(key, next);
    if (is_new) token_at_.push_back(kNone);
    node = entry->second;
  }
  if (token_at_[node] != kNone) {
    throw Error(ErrorKind::malformed, {.where = where,
                                       .found = fmt::format("{} a second time", in_quotes(content)),
                                       .expected = "each added token once"});
  }
  token_at_[node] = token;
}

std::uint32_t AddedTokens::child(std::uint32_t node, char byte) const {
  const auto found = children_.find(std::uint64_t{node} << 8 | static_cast<unsigned char>(byte));
  return found == children_.end() ? kNone : found->second;
}

AddedTokens::Found AddedTokens::find(std::string_view text, std::size_t from) const {
  for (std::size_t first = from; first < text.size(); ++first) {
    if (!starts_token_[static_cast<unsigned char>(text[first])]) continue;
    Found found;
    std::uint32_t node = 0;
    for (std::size_t at = first; at < text.size(); ++at) {
      node = child(node, text[at]);
      if (node == kNone) break;
      if (token_at_[node] != kNone) found = {first, at + 1, token_at_[node]};
    }
    if (found.token != kNone) return found;
  }
  return {};
}

void AddedTokens::split(std::string_view text, std::vector<TextPart>& parts) const {
  const auto put = [&](std::size_t first, std::size_t end, std::int32_t id) {
    if (first < end) parts.push_back({first, end - first, id});
  };
  std::size_t done = 0;
  std::size_t space_end = 0;  // where the white space ends that the last rstrip took
  for (Found found = find(text, 0); !tokens_.empty() && found.token != kNone; found = find(text, found.end)) {
    const auto& token = tokens_[found.token];
    auto [first, end, index] = found;
    if (token.single_word && !stands_alone(text, first, end)) continue;
    if (token.lstrip) first = std::max(done, space_before(text, done, first));
    // Inside white space that is known already its end is known too, so a text of spaces stays linear.
    if (token.rstrip) end = space_end = end < space_end ? space_end : space_after(text, end);
    put(done, first, -1);
    put(first, end, token.id);
    done = end;
  }
  put(done, text.size(), -1);
}

}  // namespace assay::text
