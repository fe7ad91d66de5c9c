#include "wire/arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace assay::wire {
namespace {

TEST(Arena, BothSidesSeeOneMemory) {
  auto arena = Arena::create();
  ASSERT_TRUE(arena.has_value());
  EXPECT_EQ(arena->header().running.load(), kIdle);
  auto other = Arena::map(Fd(::fcntl(arena->fd(), F_DUPFD_CLOEXEC, 3)));
  ASSERT_TRUE(other.has_value());
  const auto offset = other->reserve(5);
  std::memcpy(other->data() + *offset, "assay", 5);
  EXPECT_EQ(std::memcmp(arena->data() + *offset, "assay", 5), 0);
  other->header().running.store(3);
  EXPECT_EQ(arena->header().running.load(), 3U);
}

TEST(Arena, ReservationsAreAlignedAndApart) {
  auto arena = Arena::create();
  const auto first = arena->reserve(65);
  const auto empty = arena->reserve(0);
  const auto second = arena->reserve(1);
  EXPECT_EQ(*first % kArenaAlignment, 0U);
  EXPECT_GE(*first, sizeof(ArenaHeader));
  EXPECT_EQ(*empty, *first + 128);
  EXPECT_EQ(*second, *empty);
  arena->clear();
  EXPECT_EQ(*arena->reserve(1), *first);
  EXPECT_FALSE(arena->reserve(kArenaBytes).has_value());
  EXPECT_FALSE(arena->reserve(std::numeric_limits<std::uint64_t>::max()).has_value());
}

// Offsets come from a lane, which may be broken.
TEST(Arena, HoldsOnlyWhatLiesInsideBehindTheHeader) {
  auto arena = Arena::create();
  const std::uint64_t first = *arena->reserve(1);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_TRUE(arena->holds(first, 100));
  EXPECT_TRUE(arena->holds(kArenaBytes - 100, 100));
  EXPECT_FALSE(arena->holds(kArenaBytes - 100, 101));
  EXPECT_FALSE(arena->holds(0, 8));
  EXPECT_FALSE(arena->holds(first - 1, 8));
  EXPECT_FALSE(arena->holds(kMost, 2));
  EXPECT_FALSE(arena->holds(kMost - 1, kMost));
  EXPECT_FALSE(arena->holds(first, kMost));
}

TEST(Arena, TrimmedMemoryReadsAsZero) {
  auto arena = Arena::create();
  const std::uint64_t offset = *arena->reserve(1 << 20);
  std::memset(arena->data() + offset, 1, 1 << 20);
  arena->trim(64 << 10);
  EXPECT_EQ(arena->data()[offset], std::byte{1});
  EXPECT_EQ(arena->data()[offset + (1 << 20) - 1], std::byte{0});
}

}  // namespace
}  // namespace assay::wire
