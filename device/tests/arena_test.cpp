#include "device/arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "base/tests/expect_error.hpp"
#include "device/memory.hpp"

namespace assay::device {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kAbsurd = std::size_t{1} << 60;

bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % Arena::kAlignment == 0;
}

TEST(Arena, StorageIsAlignedAndDisjoint) {
  Arena arena;
  const auto bytes = arena.allocate<std::uint8_t>(3);
  const auto floats = arena.allocate<float>(5);
  const auto none = arena.allocate<double>(0);
  EXPECT_TRUE(is_aligned(bytes.data()) && is_aligned(floats.data()) && is_aligned(none.data()));
  std::ranges::fill(bytes, std::uint8_t{7});
  std::ranges::fill(floats, 1.0f);
  EXPECT_EQ(bytes[2], 7);
  EXPECT_EQ(none.size(), 0u);
}

TEST(Arena, AScopeFreesWhatWasAllocatedInsideIt) {
  Arena arena;
  {
    const Arena::Scope outer(arena);
    arena.allocate<float>(100);
    const std::size_t before = arena.used();
    float* first = nullptr;
    {
      const Arena::Scope inner(arena);
      first = arena.allocate<float>(10).data();
      EXPECT_GT(arena.used(), before);
    }
    EXPECT_EQ(arena.used(), before);
    EXPECT_EQ(arena.allocate<float>(10).data(), first);
  }
  EXPECT_EQ(arena.used(), 0u);
}

TEST(Arena, AScopeMadeBeforeAnyBlockFreesIt) {
  Arena arena;
  {
    const Arena::Scope scope(arena);
    arena.allocate<std::byte>(3 * kMebibyte);
    arena.allocate<std::byte>(3 * kMebibyte);
  }
  EXPECT_EQ(arena.used(), 0u);
}

TEST(Arena, AScopeWhoseInsideMovesToOtherBlocksReturnsToItsOwn) {
  Arena arena;
  const Arena::Scope outer(arena);
  const auto kept = arena.allocate<std::uint32_t>(1000);
  std::ranges::fill(kept, 0xabcdu);
  const std::size_t before = arena.used();
  for (int round = 0; round < 3; ++round) {
    const Arena::Scope inner(arena);
    for (const std::size_t size : {kMebibyte, 2 * kMebibyte, kMebibyte / 2}) {
      std::ranges::fill(arena.allocate<std::byte>(size), std::byte{0x5a});
    }
  }
  EXPECT_EQ(arena.used(), before);
  EXPECT_TRUE(std::ranges::all_of(kept, [](std::uint32_t value) { return value == 0xabcdu; }));
}

TEST(Arena, ReserveMakesOneBlockThatServesThePlan) {
  Arena arena;
  arena.reserve(5 * kMebibyte);
  const std::size_t capacity = arena.capacity();
  const Arena::Scope scope(arena);
  for (int i = 0; i < 5; ++i) arena.allocate<std::byte>(kMebibyte);
  EXPECT_EQ(arena.capacity(), capacity);
}

TEST(Arena, ReserveInsideAScopeKeepsWhatIsLiveAndFreesAfterwards) {
  Arena arena;
  {
    const Arena::Scope scope(arena);
    arena.reserve(2 * kMebibyte);  // replaces blocks while a scope remembers a place in the old ones
    const auto kept = arena.allocate<std::uint8_t>(kMebibyte);
    std::ranges::fill(kept, std::uint8_t{9});
    arena.reserve(8 * kMebibyte);
    std::ranges::fill(arena.allocate<std::uint8_t>(8 * kMebibyte), std::uint8_t{1});
    EXPECT_TRUE(std::ranges::all_of(kept, [](std::uint8_t value) { return value == 9; }));
  }
  EXPECT_EQ(arena.used(), 0u);
}

TEST(Arena, WhatIsAllocatedOutsideAnyScopeOutlivesScopesThatOverflow) {
  Arena arena;
  const auto kept = arena.allocate<std::uint32_t>(1000);
  std::ranges::fill(kept, 77u);
  for (int round = 0; round < 3; ++round) {
    const Arena::Scope scope(arena);
    std::ranges::fill(arena.allocate<std::byte>(4 * kMebibyte), std::byte{1});
  }
  EXPECT_TRUE(std::ranges::all_of(kept, [](std::uint32_t value) { return value == 77u; }));
}

TEST(Arena, ManyCallLengthsHoldWhatTheLongestUsedAndNoMore) {
  Arena arena;
  std::mt19937 random(3);
  std::uniform_int_distribution<std::size_t> length(1, 8 * kMebibyte);
  for (int call = 0; call < 200; ++call) {
    const Arena::Scope scope(arena);
    for (int i = 0; i < 4; ++i) {
      const Arena::Scope layer(arena);
      arena.allocate<std::byte>(length(random));
      arena.allocate<std::byte>(length(random) / 3);
    }
  }
  EXPECT_EQ(arena.used(), 0u);
  EXPECT_LE(arena.capacity(), std::max(kMebibyte, arena.high_water()));
  EXPECT_LT(arena.high_water(), 11 * kMebibyte);
}

TEST(Arena, ScopesThatEndOutOfOrderFreeAllTheSame) {
  Arena arena;
  std::optional<Arena::Scope> first(std::in_place, arena);
  arena.allocate<std::byte>(kMebibyte);
  std::optional<Arena::Scope> second(std::in_place, arena);
  arena.allocate<std::byte>(3 * kMebibyte);
  first.reset();
  second.reset();
  EXPECT_EQ(arena.used(), 0u);
  EXPECT_LE(arena.capacity(), arena.high_water());
}

TEST(Arena, ARefusedAllocationLeavesTheArenaAsItWas) {
  Arena arena;
  const Arena::Scope scope(arena);
  const auto kept = arena.allocate<float>(10);
  kept[9] = 4.0f;
  const std::size_t used = arena.used();
  const std::size_t capacity = arena.capacity();
  expect_error(ErrorKind::io, "memory", [&] { arena.allocate<std::byte>(kAbsurd); });
  expect_error(ErrorKind::io, "memory",
               [&] { arena.allocate<double>(std::numeric_limits<std::size_t>::max() / 4); });
  expect_error(ErrorKind::io, "memory",
               [&] { arena.allocate<std::byte>(std::numeric_limits<std::size_t>::max()); });
  expect_error(ErrorKind::io, "memory", [&] { arena.reserve(kAbsurd); });
  EXPECT_EQ(arena.used(), used);
  EXPECT_EQ(kept[9], 4.0f);
  arena.allocate<float>(10);
  EXPECT_EQ(arena.capacity(), capacity);
}

TEST(Buffer, IsZeroedAndReturnsToTheSystem) {
  const std::size_t before = footprint().resident;
  {
    Buffer<float> buffer(16 * kMebibyte);
    EXPECT_EQ(buffer.bytes(), 64 * kMebibyte);
    EXPECT_TRUE(std::ranges::all_of(buffer.span(), [](float value) { return value == 0; }));
    std::ranges::fill(buffer.span(), 1.0f);
    EXPECT_GT(footprint().resident, before + 60 * kMebibyte);
  }
  EXPECT_LT(footprint().resident, before + 30 * kMebibyte);
  EXPECT_GE(footprint().peak, before + 60 * kMebibyte);
  if (reset_peak()) {
    EXPECT_LT(footprint().peak, before + 30 * kMebibyte);
  }
}

TEST(Buffer, AMovedFromBufferIsEmpty) {
  Buffer<int> from(10);
  from.data()[3] = 5;
  Buffer<int> to(std::move(from));
  EXPECT_EQ(to.data()[3], 5);
  EXPECT_EQ(from.size(), 0u);  // NOLINT(bugprone-use-after-move): what a moved-from buffer holds is the point
  from = std::move(to);
  EXPECT_EQ(from.size(), 10u);
  EXPECT_EQ(to.size(), 0u);
  EXPECT_TRUE(to.span().empty());
}

TEST(Buffer, RefusesMoreThanThereIs) {
  expect_error(ErrorKind::io, "memory", [] { Buffer<double> buffer(kAbsurd); });
  expect_error(ErrorKind::io, "memory",
               [] { Buffer<double> buffer(std::numeric_limits<std::size_t>::max()); });
  EXPECT_EQ(Buffer<float>(0).data(), nullptr);
}

}  // namespace
}  // namespace assay::device
