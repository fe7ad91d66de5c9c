// Filling and summing block by block, against fill() and checksum() one after the other.

#include "fill/filled.h"

#include <gtest/gtest.h>

#include "tensor.h"

namespace assay {
namespace {

TEST(FillAndSum, WritesTheSameBytesAndGivesTheirChecksumForEveryKindAndDtype) {
  for (int kind = 0; kind <= static_cast<int>(kLastFillKind); ++kind) {
    for (const DTypeInfo& entry : kDTypes) {
      const DType dtype = entry.dtype;
      FillRule rule{static_cast<FillKind>(kind), -0.5, 40, 1000};
      if (rule.kind == FillKind::magnitudes) rule = {rule.kind, 1e-3, 100, 2};
      // Rows and matrices begin and end inside of blocks; the last block is partial.
      if (rule.kind == FillKind::symmetric || rule.kind == FillKind::positive_definite) {
        rule.extent = 37;
      }
      const std::size_t count = 3 * kFillBlock / size_of(dtype) - 100;
      std::vector<std::byte> bytes(count * size_of(dtype));
      const std::uint64_t sum = fill_and_sum(rule, kKey, dtype, bytes);
      const std::vector<std::byte> whole = make(rule, dtype, count);
      EXPECT_TRUE(bytes == whole) << entry.name << " kind " << kind;
      EXPECT_EQ(sum, checksum(whole)) << entry.name << " kind " << kind;
    }
  }
}

TEST(FillAndSum, KnowsTensorsOfLessThanABlockAndOfWholeBlocks) {
  const FillRule rule = default_rule(DType::int16);
  const std::size_t in_block = kFillBlock / 2;
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{2048},
                                  std::size_t{2049}, in_block, in_block + 1, 2 * in_block}) {
    std::vector<std::byte> bytes(count * 2);
    const std::uint64_t sum = fill_and_sum(rule, kKey, DType::int16, bytes);
    EXPECT_EQ(sum, checksum(make(rule, DType::int16, count))) << count;
  }
}

}  // namespace
}  // namespace assay
