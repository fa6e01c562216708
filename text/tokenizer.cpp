#include "text/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "text/added_tokens.hpp"
#include "text/byte_pair_model.hpp"
#include "text/nfc.hpp"
#include "text/split_pattern.hpp"
#include "text/tokenizer_json.hpp"
#include "text/unicode.hpp"
#include "text/vocabulary.hpp"

namespace assay::text {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;

// A token that is matched after NFC is matched by its own NFC.
std::vector<TokenizerParts::Added> with_normal_contents(std::vector<TokenizerParts::Added> added, bool nfc) {
  std::string buffer;
  for (auto& token : added) {
    if (nfc && token.normalized) token.content = std::string(to_nfc(token.content, buffer));
  }
  return added;
}

}  // namespace

struct Tokenizer::Impl {
  /// What one call of encode works with; kept from call to call, for the cache of pieces.
  struct Workspace {
    explicit Workspace(const SplitPattern& pattern) : cursor(pattern.cursor()) {}

    std::unique_ptr<SplitCursor> cursor;
    BytePairModel::Scratch scratch;
    std::string normal_text;
    std::vector<TextPart> raw_parts;
    std::vector<TextPart> normal_parts;
  };

  Impl(TokenizerParts parts, const std::string& origin)
      : nfc(parts.nfc),
        vocabulary(parts, origin),
        model(parts.merges, vocabulary, parts.ignore_merges, origin),
        added(with_normal_contents(std::move(parts.added), nfc)),
        raw_added(added, false, origin),
        normal_added(added, true, origin),
        pattern(make_split_pattern(parts.split_pattern, origin + ": the split pattern")) {
    for (const std::string& token : parts.appended) {
      const auto id = vocabulary.id(token);
      if (!id) {
        throw Error(ErrorKind::malformed, {.where = origin + ": post_processor",
                                           .found = fmt::format("the token '{}'", token.substr(0, 40)),
                                           .expected = "a token of the vocabulary"});
      }
      appended.push_back(*id);
    }
  }

  std::unique_ptr<Workspace> take_workspace() {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto workspace = std::move(idle.back());
        idle.pop_back();
        return workspace;
      }
    }
    return std::make_unique<Workspace>(*pattern);
  }

  void give_back(std::unique_ptr<Workspace> workspace) {
    workspace->scratch.shrink();
    if (workspace->normal_text.capacity() > kKeptBytes) std::string().swap(workspace->normal_text);
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(workspace));
  }

  // These append the ids of `text`; false, somewhere in it, where they would be more than `limit`.

  bool encode_words(std::string_view text, std::size_t limit, Workspace& workspace, Ids& ids) const {
    if (ids.size() + text.size() / vocabulary.longest_token() > limit) return false;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = workspace.cursor->end_of_piece(text, begin);
      model.encode(text.substr(begin, end - begin), vocabulary, workspace.scratch, ids);
      if (ids.size() > limit) return false;
      begin = end;
    }
    return true;
  }

  bool encode_raw(std::string_view text, std::size_t limit, Workspace& workspace, Ids& ids) const {
    if (nfc) text = to_nfc(text, workspace.normal_text);
    if (normal_added.empty()) return encode_words(text, limit, workspace, ids);
    workspace.normal_parts.clear();
    normal_added.split(text, workspace.normal_parts);
    for (const auto [first, size, id] : workspace.normal_parts) {
      if (id >= 0) {
        ids.push_back(id);
      } else if (!encode_words(text.substr(first, size), limit, workspace, ids)) {
        return false;
      }
    }
    return ids.size() <= limit;
  }

  bool encode(std::string_view text, std::size_t limit, Workspace& workspace, Ids& ids) const {
    ids.reserve(std::min(text.size() / 4, limit) + 1);
    workspace.raw_parts.clear();
    raw_added.split(text, workspace.raw_parts);
    for (const auto [first, size, id] : workspace.raw_parts) {
      if (id >= 0) {
        ids.push_back(id);
      } else if (!encode_raw(text.substr(first, size), limit, workspace, ids)) {
        return false;
      }
    }
    return ids.size() <= limit;
  }

  static constexpr std::size_t kKeptBytes = std::size_t{1} << 20;

  bool nfc;
  Vocabulary vocabulary;
  BytePairModel model;
  std::vector<TokenizerParts::Added> added;
  AddedTokens raw_added;
  AddedTokens normal_added;
  std::unique_ptr<const SplitPattern> pattern;
  std::vector<std::int32_t> appended;
  std::mutex mutex;
  std::vector<std::unique_ptr<Workspace>> idle;
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::from_json(std::string_view json, const std::string& origin, TextTemplate text_template) {
  return from_parts(read_tokenizer_json(json, origin, text_template), origin);
}

Tokenizer Tokenizer::from_parts(TokenizerParts parts, const std::string& origin) {
  return Tokenizer(std::make_unique<Impl>(std::move(parts), origin));
}

std::span<const std::int32_t> Tokenizer::appended() const {
  return impl_->appended;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view utf8) const {
  return encode_within(utf8, std::numeric_limits<std::size_t>::max()).value();
}

std::optional<std::vector<std::int32_t>> Tokenizer::encode_within(std::string_view utf8,
                                                                  std::size_t limit) const {
  if (utf8.size() > kMaxTextBytes) {
    throw Error(ErrorKind::limit_exceeded, {.where = "the text",
                                            .found = fmt::format("{} bytes", utf8.size()),
                                            .expected = fmt::format("at most {}", kMaxTextBytes)});
  }
  if (const auto bad = find_invalid_utf8(utf8)) {
    throw Error(ErrorKind::invalid_argument, {.where = "the text",
                                              .found = fmt::format("no UTF-8 at byte {} (0x{:02x})", *bad,
                                                                   static_cast<unsigned char>(utf8[*bad])),
                                              .expected = "UTF-8",
                                              .advice = "convert the text to UTF-8 first"});
  }
  std::optional<Ids> ids(std::in_place);
  auto workspace = impl_->take_workspace();
  if (!impl_->encode(utf8, limit, *workspace, *ids)) ids.reset();
  impl_->give_back(std::move(workspace));
  return ids;
}

std::optional<std::int32_t> Tokenizer::token_id(std::string_view token) const {
  return impl_->vocabulary.id(token);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string_view bytes = impl_->vocabulary.bytes(ids[i]);
    if (bytes.empty()) {
      throw Error(ErrorKind::invalid_argument,
                  {.where = fmt::format("ids[{}]", i),
                   .found = fmt::format("id {}, which no token has", ids[i]),
                   .expected = fmt::format("ids of the vocabulary, below {}", id_limit())});
    }
    text += bytes;
  }
  return text;
}

std::size_t Tokenizer::id_limit() const {
  return impl_->vocabulary.id_limit();
}

}  // namespace assay::text
