#include "text/byte_pair_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "text/unicode.hpp"

namespace assay::text {
namespace {

constexpr std::size_t kMaxMerges = std::size_t{1} << 22;
// Up to here looking at every symbol for each merge beats a queue.
constexpr std::size_t kShortPiece = 48;

constexpr std::size_t kKeptSymbols = std::size_t{1} << 16;

// Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4).
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

}  // namespace

/// A symbol of a long piece and its neighbours' places; `rank` is that of its merge with the next.
struct BytePairModel::Symbol {
  std::int32_t id;
  std::uint32_t previous;
  std::uint32_t next;
  std::uint32_t rank;
};

BytePairModel::Scratch::Scratch() : cache_(kCacheSlots) {}
BytePairModel::Scratch::~Scratch() = default;

void BytePairModel::Scratch::shrink() {
  if (symbols_.capacity() <= kKeptSymbols) return;
  std::vector<Symbol>().swap(symbols_);
  std::vector<std::uint64_t>().swap(queue_);
}

BytePairModel::Scratch::Key BytePairModel::Scratch::key_of(std::string_view piece) {
  std::array<char, sizeof(Key)> bytes{};
  std::memcpy(bytes.data(), piece.data(), piece.size());
  bytes.back() = static_cast<char>(piece.size());
  return std::bit_cast<Key>(bytes);
}

BytePairModel::Scratch::Slot& BytePairModel::Scratch::slot_of(const Key& key) {
  std::uint64_t hash = 0;
  for (const std::uint64_t part : key) hash = std::rotl((hash ^ part) * kGolden, 29);
  return cache_[(hash * kGolden) >> (64 - std::countr_zero(kCacheSlots))];
}

BytePairModel::BytePairModel(const std::vector<std::pair<std::string, std::string>>& merges,
                             const Vocabulary& vocabulary, bool ignore_merges, const std::string& origin)
    : ignore_merges_(ignore_merges) {
  if (merges.size() > kMaxMerges) {
    throw Error(ErrorKind::malformed, {.where = origin + ": merges",
                                       .found = fmt::format("{} merges", merges.size()),
                                       .expected = fmt::format("at most {}", kMaxMerges)});
  }
  const std::size_t slots = std::bit_ceil(std::max<std::size_t>(2 * merges.size(), 2));
  merges_.resize(slots);
  shift_ = 64 - std::countr_zero(slots);
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto fail = [&](std::string found, std::string expected) {
      throw Error(ErrorKind::malformed, {.where = fmt::format("{}: merges[{}]", origin, i),
                                         .found = std::move(found),
                                         .expected = std::move(expected)});
    };
    const auto known = [&](std::string_view token) {
      const auto id = vocabulary.id(token);
      if (!id)
        fail(fmt::format("token {}, which is not in the vocabulary", in_quotes(token)),
             "tokens of the vocabulary");
      return *id;
    };
    const auto& [left, right] = merges[i];
    const std::uint64_t pair = pair_of(known(left), known(right));
    Merge& slot = slot_of(pair);
    if (slot.pair == pair)
      fail(fmt::format("{} and {} a second time", in_quotes(left), in_quotes(right)), "a merge once");
    slot = {pair, static_cast<std::uint32_t>(i), known(left + right)};
  }
}

std::uint64_t BytePairModel::pair_of(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

BytePairModel::Merge& BytePairModel::slot_of(std::uint64_t pair) {
  std::size_t at = (pair * kGolden) >> shift_;
  while (merges_[at].pair != pair && merges_[at].pair != kNoPair) at = (at + 1) & (merges_.size() - 1);
  return merges_[at];
}

BytePairModel::Merge BytePairModel::find(std::int32_t left, std::int32_t right) const {
  const std::uint64_t pair = pair_of(left, right);
  std::size_t at = (pair * kGolden) >> shift_;
  while (merges_[at].pair != pair && merges_[at].pair != kNoPair) at = (at + 1) & (merges_.size() - 1);
  return merges_[at];
}

void BytePairModel::encode(std::string_view piece, const Vocabulary& vocabulary, Scratch& scratch,
                           std::vector<std::int32_t>& ids) const {
  if (piece.size() == 1) return ids.push_back(vocabulary.id_of_byte(static_cast<unsigned char>(piece[0])));
  if (piece.size() > Scratch::kCachedBytes) return encode_uncached(piece, vocabulary, scratch, ids);
  const Scratch::Key key = Scratch::key_of(piece);
  Scratch::Slot& slot = scratch.slot_of(key);
  if (slot.key != key) {
    const std::size_t before = ids.size();
    encode_uncached(piece, vocabulary, scratch, ids);
    const std::size_t count = ids.size() - before;
    if (count > Scratch::kCachedIds) return;
    slot.key = key;
    slot.count = static_cast<std::uint32_t>(count);
    std::copy_n(ids.end() - static_cast<std::ptrdiff_t>(count), count, slot.ids.begin());
    return;
  }
  ids.insert(ids.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
}

void BytePairModel::encode_uncached(std::string_view piece, const Vocabulary& vocabulary, Scratch& scratch,
                                    std::vector<std::int32_t>& ids) const {
  if (ignore_merges_) {
    std::string text;
    for (const char c : piece) append_utf8(byte_level_alphabet()[static_cast<unsigned char>(c)], text);
    if (const auto id = vocabulary.id(text)) return ids.push_back(*id);
  }
  return piece.size() <= kShortPiece ? merge_short(piece, vocabulary, ids)
                                     : merge_long(piece, vocabulary, scratch, ids);
}

void BytePairModel::merge_short(std::string_view piece, const Vocabulary& vocabulary,
                                std::vector<std::int32_t>& ids) const {
  std::array<std::int32_t, kShortPiece> symbols;
  std::array<Merge, kShortPiece> merges;  // merges[i] joins symbols i and i + 1
  std::size_t count = piece.size();
  for (std::size_t i = 0; i < count; ++i) {
    symbols[i] = vocabulary.id_of_byte(static_cast<unsigned char>(piece[i]));
    if (i > 0) merges[i - 1] = find(symbols[i - 1], symbols[i]);
  }
  while (count > 1) {
    const auto best =
        std::min_element(merges.begin(), merges.begin() + static_cast<std::ptrdiff_t>(count - 1),
                         [](const Merge& a, const Merge& b) { return a.rank < b.rank; });
    if (best->rank == kNoRank) break;
    const auto at = static_cast<std::size_t>(best - merges.begin());
    symbols[at] = best->id;
    std::copy(&symbols[at + 1] + 1, symbols.data() + count, &symbols[at + 1]);
    std::copy(best + 1, merges.begin() + static_cast<std::ptrdiff_t>(count - 1), best);
    --count;
    if (at > 0) merges[at - 1] = find(symbols[at - 1], symbols[at]);
    if (at + 1 < count) merges[at] = find(symbols[at], symbols[at + 1]);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.begin() + static_cast<std::ptrdiff_t>(count));
}

void BytePairModel::merge_long(std::string_view piece, const Vocabulary& vocabulary, Scratch& scratch,
                               std::vector<std::int32_t>& ids) const {
  const auto count = static_cast<std::uint32_t>(piece.size());
  auto& symbols = scratch.symbols_;
  auto& queue = scratch.queue_;  // rank above place: the smallest is the best merge, leftmost first
  symbols.clear();
  queue.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    symbols.push_back({vocabulary.id_of_byte(static_cast<unsigned char>(piece[i])), i - 1, i + 1, kNoRank});
  }
  const auto rank_at = [&](std::uint32_t at) {
    Symbol& symbol = symbols[at];
    symbol.rank = symbol.next < count ? find(symbol.id, symbols[symbol.next].id).rank : kNoRank;
    return symbol.rank;
  };
  const auto entry = [](std::uint32_t rank, std::uint32_t at) { return std::uint64_t{rank} << 32 | at; };
  for (std::uint32_t i = 0; i < count; ++i) {
    if (const std::uint32_t rank = rank_at(i); rank != kNoRank) queue.push_back(entry(rank, i));
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  const auto enqueue = [&](std::uint32_t at) {
    const std::uint32_t rank = rank_at(at);
    if (rank == kNoRank) return;
    queue.push_back(entry(rank, at));
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const std::uint64_t best = queue.back();
    queue.pop_back();
    const auto at = static_cast<std::uint32_t>(best);
    Symbol& left = symbols[at];
    if (left.rank != best >> 32) continue;  // the pair it was queued for is gone
    Symbol& right = symbols[left.next];
    left.id = find(left.id, right.id).id;
    left.next = right.next;
    right.rank = kNoRank;
    if (left.next < count) symbols[left.next].previous = at;
    enqueue(at);
    if (at > 0) enqueue(left.previous);
  }
  for (std::uint32_t at = 0; at < count; at = symbols[at].next) ids.push_back(symbols[at].id);
}

}  // namespace assay::text
