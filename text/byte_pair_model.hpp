#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/vocabulary.hpp"

namespace assay::text {

/// Byte-pair encoding of a piece: its bytes are symbols, and of all neighbours that have a merge the best
/// merge is done, leftmost first, until none is left (Sennrich et al. 2016, arXiv 1508.07909, section 3.2).
/// Immutable.
class BytePairModel {
 public:
  class Scratch;

  /// Throws Error(malformed) for a merge of unknown tokens or to an unknown token, a merge twice, and more
  /// merges than can be.
  BytePairModel(const std::vector<std::pair<std::string, std::string>>& merges, const Vocabulary& vocabulary,
                bool ignore_merges, const std::string& origin);

  /// Appends the ids of a piece that is not empty.
  void encode(std::string_view piece, const Vocabulary& vocabulary, Scratch& scratch,
              std::vector<std::int32_t>& ids) const;

 private:
  static constexpr std::uint32_t kNoRank = 0xffffffff;
  static constexpr std::uint64_t kNoPair = 0xffffffffffffffff;

  struct Merge {
    std::uint64_t pair = kNoPair;
    std::uint32_t rank = kNoRank;
    std::int32_t id = 0;
  };
  struct Symbol;

  static std::uint64_t pair_of(std::int32_t left, std::int32_t right);
  Merge& slot_of(std::uint64_t pair);
  Merge find(std::int32_t left, std::int32_t right) const;
  void encode_uncached(std::string_view piece, const Vocabulary& vocabulary, Scratch& scratch,
                       std::vector<std::int32_t>& ids) const;
  void merge_short(std::string_view piece, const Vocabulary& vocabulary,
                   std::vector<std::int32_t>& ids) const;
  void merge_long(std::string_view piece, const Vocabulary& vocabulary, Scratch& scratch,
                  std::vector<std::int32_t>& ids) const;

  std::vector<Merge> merges_;  ///< open addressing, a power of two, at most half full
  int shift_ = 63;
  bool ignore_merges_;
};

/// What encoding reuses from piece to piece: work space, and a bounded cache of short pieces. One thread at a
/// time, and one model. What is in the cache never changes an answer.
class BytePairModel::Scratch {
 public:
  Scratch();
  ~Scratch();

  /// Gives back the work space of a long piece.
  void shrink();

 private:
  friend class BytePairModel;

  static constexpr std::size_t kCachedBytes = 31;
  static constexpr std::size_t kCachedIds = 7;
  static constexpr std::size_t kCacheSlots = std::size_t{1} << 14;

  /// A piece, zeros behind it, its length in the last byte.
  using Key = std::array<std::uint64_t, 4>;
  struct alignas(64) Slot {
    Key key{};
    std::array<std::int32_t, kCachedIds> ids{};
    std::uint32_t count = 0;
  };

  static Key key_of(std::string_view piece);
  Slot& slot_of(const Key& key);

  std::vector<Slot> cache_;
  std::vector<Symbol> symbols_;
  std::vector<std::uint64_t> queue_;
};

}  // namespace assay::text
