// Inputs that several lanes make together.

#include "device/shared_inputs.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "fill/fill.h"
#include "fill/filled.h"

namespace assay {
namespace {

constexpr FillRule kUniform{FillKind::uniform, -0.5, 0.5, 1};
constexpr FillKey kTensor{.seed = 7, .case_id = 0xABCDEF, .tensor = 0};
constexpr std::uint64_t kCount = 5 * kFillBlock / sizeof(float) - 3;

std::vector<std::byte> expected(const FillKey& key = kTensor, const FillRule& rule = kUniform) {
  std::vector<std::byte> bytes(kCount * sizeof(float));
  fill(rule, key, DType::float32, bytes);
  return bytes;
}

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::ranges::equal(a, b);
}

// The other process's view of the file.
SharedInputs opened_again(const SharedInputs& inputs) {
  return std::move(*SharedInputs::open(Fd(::dup(inputs.fd()))));
}

std::optional<SharedTensor> make(SharedInputs& inputs, const FillKey& key = kTensor,
                                 const FillRule& rule = kUniform,
                                 std::uint64_t offset = SharedInputs::kFirst) {
  return inputs.make(rule, key, DType::float32, kCount, offset, key.tensor);
}

TEST(SharedInputs, HoldsTheBytesThatFillMakesAndTheirChecksum) {
  SharedInputs inputs = std::move(*SharedInputs::create());
  const auto tensor = make(inputs);
  ASSERT_TRUE(tensor);
  EXPECT_TRUE(same(tensor->memory(), expected()));
  EXPECT_EQ(tensor->checksum(), checksum(expected()));
}

TEST(SharedInputs, ALaneThatWritesChangesItsOwnCopyOnly) {
  SharedInputs inputs = std::move(*SharedInputs::create());
  SharedInputs other = opened_again(inputs);
  const auto mine = make(inputs);
  const auto theirs = make(other);
  ASSERT_TRUE(mine && theirs);
  std::fill(mine->memory().begin(), mine->memory().end(), std::byte{1});
  EXPECT_TRUE(same(theirs->memory(), expected()));
  EXPECT_NE(checksum(mine->memory()), mine->checksum());
  const auto later = make(other);
  ASSERT_TRUE(later);
  EXPECT_TRUE(same(later->memory(), expected()));
}

TEST(SharedInputs, TwoLanesMakeATensorTogether) {
  SharedInputs inputs = std::move(*SharedInputs::create());
  for (std::uint64_t round = 0; round < 20; ++round) {
    inputs.renew();
    const FillKey key{.seed = round, .case_id = 1, .tensor = 3};
    std::vector<bool> right(2);
    {
      std::vector<std::jthread> lanes;
      std::vector<std::uint8_t> seen(2);
      for (std::size_t lane = 0; lane < 2; ++lane) {
        lanes.emplace_back([&, lane] {
          SharedInputs own = opened_again(inputs);
          const auto tensor = make(own, key);
          seen[lane] = tensor && same(tensor->memory(), expected(key)) &&
                       tensor->checksum() == checksum(expected(key));
        });
      }
      lanes.clear();
      for (std::size_t lane = 0; lane < 2; ++lane) right[lane] = seen[lane] != 0;
    }
    EXPECT_TRUE(right[0] && right[1]) << round;
  }
}

// A lane that dies while it makes a block does not block the others.
TEST(SharedInputs, BlocksOfALaneThatDiedAreMadeByTheOther) {
  SharedInputs inputs = std::move(*SharedInputs::create());
  for (int round = 0; round < 20; ++round) {
    inputs.renew();
    const FillKey key{.seed = static_cast<std::uint64_t>(round), .case_id = 2, .tensor = 0};
    const pid_t lane = ::fork();
    ASSERT_GE(lane, 0);
    if (lane == 0) {
      SharedInputs own = opened_again(inputs);
      while (true) (void)make(own, key);
    }
    ::usleep(static_cast<useconds_t>(round) * 50);
    ::kill(lane, SIGKILL);
    ::waitpid(lane, nullptr, 0);
    const auto tensor = make(inputs, key);
    ASSERT_TRUE(tensor);
    EXPECT_TRUE(same(tensor->memory(), expected(key))) << round;
    EXPECT_EQ(tensor->checksum(), checksum(expected(key))) << round;
  }
}

TEST(SharedInputs, WhatLiesInAPlaceStaysThereUntilItIsRenewed) {
  SharedInputs inputs = std::move(*SharedInputs::create());
  const auto first = make(inputs);
  ASSERT_TRUE(first);
  constexpr FillRule kOther{FillKind::integers, 0, 9, 1};
  FillKey another = kTensor;
  another.case_id = 5;
  EXPECT_FALSE(make(inputs, another));
  EXPECT_FALSE(make(inputs, kTensor, kOther));
  EXPECT_TRUE(same(first->memory(), expected()));
  inputs.renew();
  const auto second = make(inputs, another);
  ASSERT_TRUE(second);
  EXPECT_TRUE(same(second->memory(), expected(another)));
  // The marks of the first tensor are still in the file, but they are out of date.
  inputs.renew();
  const auto third = make(inputs);
  ASSERT_TRUE(third);
  EXPECT_TRUE(same(third->memory(), expected()));
}

TEST(SharedInputs, TensorsLieBesideEachOther) {
  SharedInputs inputs = std::move(*SharedInputs::create());
  FillKey second = kTensor;
  second.tensor = 1;
  const std::uint64_t offset =
      SharedInputs::kFirst + SharedInputs::room_for(kCount * sizeof(float));
  const auto a = make(inputs);
  const auto b = make(inputs, second, kUniform, offset);
  ASSERT_TRUE(a && b);
  EXPECT_TRUE(same(a->memory(), expected()));
  EXPECT_TRUE(same(b->memory(), expected(second)));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b->memory().data()) % 64, 0U);
}

TEST(SharedInputs, GivesMemoryBackAndKeepsWhatItIsTold) {
  SharedInputs inputs = std::move(*SharedInputs::create());
  const std::uint64_t bytes = kCount * sizeof(float);
  {
    const auto tensor = make(inputs);
    ASSERT_TRUE(tensor);
    EXPECT_GE(inputs.held(), bytes);
  }
  EXPECT_GE(inputs.held(), bytes);  // kept for the next one
  inputs.trim(bytes / 2);
  EXPECT_LT(inputs.held(), bytes / 2 + 16384);
  inputs.renew();
  const auto tensor = make(inputs);
  ASSERT_TRUE(tensor);
  EXPECT_TRUE(same(tensor->memory(), expected()));
}

TEST(SharedInputs, WhatIsTooLargeOrOneTooManyIsNotMade) {
  SharedInputs inputs = std::move(*SharedInputs::create());
  EXPECT_EQ(SharedInputs::room_for(std::uint64_t{1} << 62), 0U);
  FillKey last = kTensor;
  last.tensor = SharedInputs::kPlaces;
  EXPECT_FALSE(make(inputs, last));
  EXPECT_FALSE(make(inputs, kTensor, kUniform, std::uint64_t{1} << 40));
}

}  // namespace
}  // namespace assay
