#pragma once

// The error bar's constants, and what a measured bar says. lab/2026-11-judging.md has the histogram
// that the constants come from.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "wire/messages_generated.h"

namespace assay {

// A first look: results that lie no more than 2^kAlikeBucket - 1 values of their dtype apart,
// element by element, agree; anything else is measured against the truth.
inline constexpr std::size_t kAlikeBucket = 2;
// A result is wrong where its error exceeds kBarUnits of what rounding could have done…
inline constexpr double kBarUnits = 8;
// … and kBarFactor times the largest error of the other side, which computes the same in the same
// precision: an algorithm may be worse than the truth's own conditioning on both sides alike.
inline constexpr double kBarFactor = 4;

// The reference is wrong where it is farther off than this, and the test lane is right: what
// PyTorch loses of a gradient that cancels to 0 says nothing of the lane under test.
inline constexpr double kReferenceUnits = 64;

// A second look, which needs no truth: of results that are no more than half a bar apart neither is
// beyond it. For if the reference is within half a bar of the truth the test lane is within one,
// and if it is farther away, the test lane is no more than twice as far.
inline constexpr double kUnitsApart = kBarUnits / 2;

// Whether a measurement (of counts by ULP bucket) shows no more than rounding of the last place.
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

// Whether a side is more than `units` of rounding from the truth, and much more than the other.
inline bool beyond_bar(const wire::Distance& side, const wire::Distance& other, double units) {
  if (side.specials() > 0) return true;
  const double others = std::isfinite(other.errors()) ? other.errors() : 0;
  return side.errors() > std::max(units, kBarFactor * others);
}

inline BarVerdict judge_bar(const wire::Bar& bar) {
  if (beyond_bar(*bar.test(), *bar.reference(), kBarUnits)) return BarVerdict::test_wrong;
  if (beyond_bar(*bar.reference(), *bar.test(), kReferenceUnits)) {
    return BarVerdict::reference_wrong;
  }
  return BarVerdict::right;
}

}  // namespace assay
