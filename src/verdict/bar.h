#pragma once

// The constants of the error bar, and the verdict of a measured bar. The constants come from the
// histogram in lab/judging.md.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "wire/messages_generated.h"

namespace assay {

// First check, without the truth: results agree if all elements differ by at most
// 2^kAlikeBucket - 1 ulps. Other results are measured against the truth.
inline constexpr std::size_t kAlikeBucket = 2;
// A result is wrong if its error exceeds both kBarUnits times the error that rounding can cause,
// and kBarFactor times the largest error of the other side. The other side computes the same in the
// same precision, so an algorithm whose error exceeds the conditioning shows it on both sides.
inline constexpr double kBarUnits = 8;
inline constexpr double kBarFactor = 4;

// The limit for the reference, if the test lane is right. It is wider because the accuracy that
// PyTorch loses, such as in a gradient that cancels to 0, is no fault of the lane under test.
inline constexpr double kReferenceUnits = 64;

// Second check, without the truth: results that differ by at most half an error bar are both right.
// If the reference is within half a bar of the truth, the test lane is within one bar. If the
// reference is farther away, the test lane's error is at most twice that of the reference.
inline constexpr double kUnitsApart = kBarUnits / 2;

// The first check. `ulps`: numbers of elements by ULP bucket; `both_nan`: elements that are NaN on
// both sides; `count`: all elements. Whole numbers must be equal.
inline bool looks_alike(std::span<const std::uint64_t> ulps, std::uint64_t both_nan,
                        std::uint64_t count, bool whole_numbers) {
  std::uint64_t alike = both_nan;
  const std::size_t last = whole_numbers ? 0 : kAlikeBucket;
  for (std::size_t bucket = 0; bucket <= last && bucket < ulps.size(); ++bucket) {
    alike += ulps[bucket];
  }
  return alike == count;
}

enum class BarVerdict : std::uint8_t { right, test_wrong, reference_wrong };

// Whether a side's error exceeds `units` times the rounding error, and kBarFactor times the error
// of the other side. A NaN or infinity in a wrong position always does.
inline bool beyond_bar(const wire::Distance& side, const wire::Distance& other, double units) {
  if (side.specials() > 0) return true;
  const double others = std::isfinite(other.errors()) ? other.errors() : 0;
  return side.errors() > std::max(units, kBarFactor * others);
}

// Which side the error bar finds wrong. The test lane is checked first.
inline BarVerdict judge_bar(const wire::Bar& bar) {
  if (beyond_bar(*bar.test(), *bar.reference(), kBarUnits)) return BarVerdict::test_wrong;
  if (beyond_bar(*bar.reference(), *bar.test(), kReferenceUnits)) {
    return BarVerdict::reference_wrong;
  }
  return BarVerdict::right;
}

}  // namespace assay
