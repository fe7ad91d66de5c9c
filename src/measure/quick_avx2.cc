// The quick pass over a block whose pairs differ little. Compiled with -mavx2 -mfma -mf16c.

#include <utility>

#include "measure/lanes_avx2.h"

namespace assay {
namespace {

// The maxima of a quick pass.
template <std::size_t kFirst, std::size_t kGrid, bool kExcess>
struct QuickLanes {
  __m256i difference =
      _mm256_setzero_si256();  // the largest difference; as an integer, NaN is above all numbers
  __m256 needed[kGrid - kFirst + 1];      // from needed[kFirst] on
  __m256 relative = _mm256_setzero_ps();  // infinite if a reference is 0
  __m256 excess = _mm256_setzero_ps();

  QuickLanes() {
    for (auto& lanes : needed) lanes = _mm256_setzero_ps();
  }
  // `a` and `b` are magnitudes of numbers with the same sign.
  void add(__m256 a, __m256 b, const Limits<float>& limits) {
    const __m256 apart = _mm256_andnot_ps(_mm256_set1_ps(-0.0F), _mm256_sub_ps(a, b));
    difference = _mm256_max_epi32(difference, _mm256_castps_si256(apart));
    for (std::size_t g = kFirst; g <= kGrid; ++g) {
      auto& lanes = needed[g - kFirst];
      lanes = _mm256_max_ps(Floats::excess(apart, b, limits.grid[g]), lanes);
    }
    // max returns its second operand if the first is NaN (0 / 0).
    relative = _mm256_max_ps(_mm256_div_ps(apart, b), relative);
    if constexpr (kExcess) {
      excess = _mm256_max_ps(Floats::excess(apart, b, limits.rtol), excess);
    }
  }
  bool accept(const Accepted<float>& accepted, Profile<float>& profile) const {
    const std::uint32_t largest = largest_of(difference);
    profile.relative = largest_of(relative);
    if (largest >= 0x7F800000 || !is_finite(profile.relative)) return false;
    for (std::size_t g = 0; g < kFirst; ++g) profile.needed[g] = ieee::float_of(largest);
    for (std::size_t g = kFirst; g <= kGrid; ++g) {
      profile.needed[g] = largest_of(needed[g - kFirst]);
    }
    const float worst =
        accepted.rtol_entry > 0 ? profile.needed[accepted.rtol_entry] : largest_of(excess);
    return profile.needed[kGrid] <= accepted.needed && worst <= accepted.excess;
  }
};

// How the quick pass reads a vector of codes. With the same sign, codes have the order of
// magnitudes, so their difference is the distance.
struct QuickFloat32 {
  using Code = std::uint32_t;
  static constexpr std::size_t kFirst = kFirstGrid;
  template <typename Lanes>
  static void add(Lanes& lanes, __m256i a, __m256i b, const Limits<float>& limits) {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    lanes.add(_mm256_andnot_ps(sign, _mm256_castsi256_ps(a)),
              _mm256_andnot_ps(sign, _mm256_castsi256_ps(b)), limits);
  }
};
struct QuickFloat16 {
  using Code = std::uint16_t;
  static constexpr std::size_t kFirst = kFirstCoarse;
  template <typename Lanes>
  static void add(Lanes& lanes, __m256i a, __m256i b, const Limits<float>& limits) {
    const __m256i sign_off = _mm256_set1_epi16(0x7FFF);
    const __m256i x = _mm256_and_si256(a, sign_off);
    const __m256i y = _mm256_and_si256(b, sign_off);
    lanes.add(_mm256_cvtph_ps(_mm256_castsi256_si128(x)),
              _mm256_cvtph_ps(_mm256_castsi256_si128(y)), limits);
    lanes.add(_mm256_cvtph_ps(_mm256_extracti128_si256(x, 1)),
              _mm256_cvtph_ps(_mm256_extracti128_si256(y, 1)), limits);
  }
};
struct QuickBFloat16 {
  using Code = std::uint16_t;
  static constexpr std::size_t kFirst = kFirstCoarse;
  // A bfloat16 is the high half of a float: odd codes are in position, even codes are shifted. The
  // order of the pairs does not matter.
  template <typename Lanes>
  static void add(Lanes& lanes, __m256i a, __m256i b, const Limits<float>& limits) {
    const __m256i odd = _mm256_set1_epi32(0x7FFF0000);
    const auto even = [&](__m256i codes) {
      return _mm256_castsi256_ps(_mm256_and_si256(_mm256_slli_epi32(codes, 16), odd));
    };
    lanes.add(_mm256_castsi256_ps(_mm256_and_si256(a, odd)),
              _mm256_castsi256_ps(_mm256_and_si256(b, odd)), limits);
    lanes.add(even(a), even(b), limits);
  }
};

template <typename Format, std::size_t kGrid, bool kExcess>
bool quick(const std::byte* left, const std::byte* right, const Accepted<float>& accepted,
           Split<float>& split, Profile<float>& profile) {
  using Code = Format::Code;
  QuickLanes<Format::kFirst, kGrid, kExcess> lanes;
  Distances<Code> distances;
  __m256i unlike = _mm256_setzero_si256();
  __m256i largest = _mm256_setzero_si256();
  for (std::size_t i = 0; i < kBlockOf<Code>; i += 32 / sizeof(Code)) {
    const __m256i a = load_vector(left + i * sizeof(Code));
    const __m256i b = load_vector(right + i * sizeof(Code));
    prefetch(left + i * sizeof(Code));
    prefetch(right + i * sizeof(Code));
    unlike = _mm256_or_si256(unlike, _mm256_xor_si256(a, b));
    const __m256i distance = distance_of(a, b, Code{});
    store_vector(distances.value + i, distance);
    largest = larger_lanes(largest, distance, Code{});
    Format::add(lanes, a, b, accepted.limits);
  }
  const __m256i sign =
      sizeof(Code) == 2 ? _mm256_set1_epi16(-0x8000) : _mm256_set1_epi32(-0x7FFFFFFF - 1);
  if (_mm256_testz_si256(unlike, sign) == 0 || !lanes.accept(accepted, profile)) return false;
  const std::uint64_t before = split.buckets[0];
  distances.count(kBlockOf<Code>, largest, split.buckets);
  split.bit_equal += split.buckets[0] - before;  // with one sign, equal numbers have equal bits
  return true;
}

template <typename Format>
constexpr QuickLoops<float> quick_loops() {
  return []<std::size_t... kP>(std::index_sequence<kP...>) {
    QuickLoops<float> loops{};
    ((loops.grid_alone[Format::kFirst + kP] = quick<Format, Format::kFirst + kP, false>), ...);
    ((loops.with_excess[Format::kFirst + kP] = quick<Format, Format::kFirst + kP, true>), ...);
    return loops;
  }(std::make_index_sequence<kRtolGrid.size() - Format::kFirst>{});
}

}  // namespace

constexpr QuickLoops<float> kQuickFloat16 = quick_loops<QuickFloat16>();
constexpr QuickLoops<float> kQuickBFloat16 = quick_loops<QuickBFloat16>();
constexpr QuickLoops<float> kQuickFloat32 = quick_loops<QuickFloat32>();

}  // namespace assay
