// Compiled with -mavx2 -mfma -mf16c; nothing here may run before best_measure_kernels() has looked
// at the processor, and nothing here may be an inline function that other files share and the
// compiler does not inline (see ASSAY_HD).

#include <immintrin.h>

#include "fill/numbers.h"
#include "measure/kernels.h"
#include "measure/pair.h"

namespace assay {
namespace {

inline __m256i load_vector(const std::byte* bytes) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
}
inline void store_vector(void* bytes, __m256i value) {
  _mm256_store_si256(static_cast<__m256i*>(bytes), value);
}

// The sum and the largest of eight 32-bit lanes, for once a block.
inline std::uint32_t sum_of(__m256i lanes) {
  alignas(32) std::uint32_t lane[8];
  store_vector(lane, lanes);
  return lane[0] + lane[1] + lane[2] + lane[3] + lane[4] + lane[5] + lane[6] + lane[7];
}
inline std::uint32_t largest_of(__m256i lanes) {
  __m128i half = _mm_max_epu32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0x4E));
  half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0xB1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(half));
}
inline float largest_of(__m256 lanes) {
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  half = _mm_max_ss(half, _mm_movehdup_ps(half));
  return _mm_cvtss_f32(half);
}
inline double largest_of(__m256d lanes) {
  __m128d half = _mm_max_pd(_mm256_castpd256_pd128(lanes), _mm256_extractf128_pd(lanes, 1));
  half = _mm_max_sd(half, _mm_unpackhi_pd(half, half));
  return _mm_cvtsd_f64(half);
}

// Every split keeps these per lane and adds them to the block's at its end.
struct SplitLanes {
  __m256i equal = _mm256_setzero_si256();    // minus the number of pairs with the same bits
  __m256i largest = _mm256_setzero_si256();  // of the distances
  template <typename Real>
  void finish(Split<Real>& split) const {
    split.bit_equal += 0 - sum_of(equal);
    split.largest_ulps = ieee::larger(split.largest_ulps, largest_of(largest));
  }
};

void split_float32(const std::byte* left, const std::byte* right, std::size_t n,
                   Split<float>& split) {
  const __m256i sign_off = _mm256_set1_epi32(0x7FFFFFFF);
  const __m256i last_finite = _mm256_set1_epi32(0x7F7FFFFF);
  const __m256i one = _mm256_set1_epi32(1);
  SplitLanes lanes;
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i a = load_vector(left + i * 4);
    const __m256i b = load_vector(right + i * 4);
    const __m256i rank_a = _mm256_and_si256(a, sign_off);
    const __m256i rank_b = _mm256_and_si256(b, sign_off);
    const __m256i special = _mm256_cmpgt_epi32(_mm256_max_epi32(rank_a, rank_b), last_finite);
    if (_mm256_testz_si256(special, special) == 0) {
      for (std::size_t k = i; k < i + 8; ++k) split_one<float>(left, right, k, split);
      continue;
    }
    lanes.equal = _mm256_add_epi32(lanes.equal, _mm256_cmpeq_epi32(a, b));
    const __m256 apart = _mm256_sub_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    store_vector(split.difference + i, _mm256_and_si256(_mm256_castps_si256(apart), sign_off));
    store_vector(split.reference + i, rank_b);
    // The number with its sign: a | 1 has the sign of a and is never zero.
    const __m256i place_a = _mm256_sign_epi32(rank_a, _mm256_or_si256(a, one));
    const __m256i place_b = _mm256_sign_epi32(rank_b, _mm256_or_si256(b, one));
    const __m256i ulps =
        _mm256_sub_epi32(_mm256_max_epi32(place_a, place_b), _mm256_min_epi32(place_a, place_b));
    lanes.largest = _mm256_max_epu32(lanes.largest, ulps);
    store_vector(split.ulps + i, ulps);
  }
  for (; i < n; ++i) split_one<float>(left, right, i, split);
  lanes.finish(split);
}

inline __m256 widen_eight(__m128i codes, Float16) { return _mm256_cvtph_ps(codes); }
inline __m256 widen_eight(__m128i codes, BFloat16) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16));
}

// float16 and bfloat16: distances in 16-bit lanes, differences in 32-bit ones.
template <typename T>
void split_sixteen_bits(const std::byte* left, const std::byte* right, std::size_t n,
                        Split<float>& split) {
  const __m256i sign_off = _mm256_set1_epi16(0x7FFF);
  const __m256i last_finite = _mm256_set1_epi16(static_cast<short>(T::kOverflow - 1));
  const __m256i one = _mm256_set1_epi16(1);
  const __m256 float_sign_off = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  const auto store_half = [&](__m128i a, __m128i b, std::size_t at) {
    const __m256 y = widen_eight(b, T{});
    const __m256 apart = _mm256_sub_ps(widen_eight(a, T{}), y);
    _mm256_store_ps(split.difference + at, _mm256_and_ps(apart, float_sign_off));
    _mm256_store_ps(split.reference + at, _mm256_and_ps(y, float_sign_off));
  };
  SplitLanes lanes;
  __m256i equal = _mm256_setzero_si256();  // in 16-bit lanes; a block has at most 64 in each
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256i a = load_vector(left + i * 2);
    const __m256i b = load_vector(right + i * 2);
    const __m256i rank_a = _mm256_and_si256(a, sign_off);
    const __m256i rank_b = _mm256_and_si256(b, sign_off);
    const __m256i special = _mm256_cmpgt_epi16(_mm256_max_epi16(rank_a, rank_b), last_finite);
    if (_mm256_testz_si256(special, special) == 0) {
      for (std::size_t k = i; k < i + 16; ++k) split_one<T>(left, right, k, split);
      continue;
    }
    equal = _mm256_sub_epi16(equal, _mm256_cmpeq_epi16(a, b));
    const __m256i place_a = _mm256_sign_epi16(rank_a, _mm256_or_si256(a, one));
    const __m256i place_b = _mm256_sign_epi16(rank_b, _mm256_or_si256(b, one));
    const __m256i ulps =
        _mm256_sub_epi16(_mm256_max_epi16(place_a, place_b), _mm256_min_epi16(place_a, place_b));
    const __m256i low = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(ulps));
    const __m256i high = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(ulps, 1));
    store_vector(split.ulps + i, low);
    store_vector(split.ulps + i + 8, high);
    lanes.largest = _mm256_max_epu32(lanes.largest, _mm256_max_epu32(low, high));
    store_half(_mm256_castsi256_si128(a), _mm256_castsi256_si128(b), i);
    store_half(_mm256_extracti128_si256(a, 1), _mm256_extracti128_si256(b, 1), i + 8);
  }
  lanes.equal = _mm256_sub_epi32(lanes.equal, _mm256_madd_epi16(equal, one));
  for (; i < n; ++i) split_one<T>(left, right, i, split);
  lanes.finish(split);
}

void split_float64(const std::byte* left, const std::byte* right, std::size_t n,
                   Split<double>& split) {
  const __m256i sign_off = _mm256_set1_epi64x(0x7FFFFFFFFFFFFFFF);
  const __m256i last_finite = _mm256_set1_epi64x(0x7FEFFFFFFFFFFFFF);
  const __m256i zero = _mm256_setzero_si256();
  const auto place = [&](__m256i bits, __m256i rank) {
    const __m256i negative = _mm256_cmpgt_epi64(zero, bits);
    return _mm256_sub_epi64(_mm256_xor_si256(rank, negative), negative);
  };
  SplitLanes lanes;
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m256i a = load_vector(left + i * 8);
    const __m256i b = load_vector(right + i * 8);
    const __m256i rank_a = _mm256_and_si256(a, sign_off);
    const __m256i rank_b = _mm256_and_si256(b, sign_off);
    const __m256i special = _mm256_or_si256(_mm256_cmpgt_epi64(rank_a, last_finite),
                                            _mm256_cmpgt_epi64(rank_b, last_finite));
    if (_mm256_testz_si256(special, special) == 0) {
      for (std::size_t k = i; k < i + 4; ++k) split_one<double>(left, right, k, split);
      continue;
    }
    // A 64-bit lane of ones is -1 in one of its 32-bit halves once the other is taken off.
    lanes.equal = _mm256_add_epi32(lanes.equal, _mm256_srli_epi64(_mm256_cmpeq_epi64(a, b), 32));
    const __m256d apart = _mm256_sub_pd(_mm256_castsi256_pd(a), _mm256_castsi256_pd(b));
    store_vector(split.difference + i, _mm256_and_si256(_mm256_castpd_si256(apart), sign_off));
    store_vector(split.reference + i, rank_b);
    const __m256i place_a = place(a, rank_a);
    const __m256i place_b = place(b, rank_b);
    const __m256i below = _mm256_cmpgt_epi64(place_b, place_a);
    const __m256i ulps =
        _mm256_sub_epi64(_mm256_xor_si256(_mm256_sub_epi64(place_a, place_b), below), below);
    const __m256i far = _mm256_xor_si256(_mm256_cmpeq_epi64(_mm256_srli_epi64(ulps, 31), zero),
                                         _mm256_set1_epi64x(-1));
    const __m256i clipped_ulps = _mm256_blendv_epi8(ulps, _mm256_set1_epi64x(0x80000000), far);
    lanes.largest = _mm256_max_epu32(lanes.largest, clipped_ulps);
    const __m256i packed =
        _mm256_permutevar8x32_epi32(clipped_ulps, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
    _mm_store_si128(reinterpret_cast<__m128i*>(split.ulps + i), _mm256_castsi256_si128(packed));
  }
  for (; i < n; ++i) split_one<double>(left, right, i, split);
  lanes.finish(split);
}

// Whether any lane holds a NaN.
struct NanInFloat32 {
  static __m256i find(__m256i bits) {
    const __m256 value = _mm256_castsi256_ps(bits);
    return _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  }
};
struct NanInFloat64 {
  static __m256i find(__m256i bits) {
    const __m256d value = _mm256_castsi256_pd(bits);
    return _mm256_castpd_si256(_mm256_cmp_pd(value, value, _CMP_UNORD_Q));
  }
};
template <typename T>
struct NanInSixteenBits {
  static constexpr auto kInfinity = static_cast<short>(T::kOverflow);
  static __m256i find(__m256i bits) {
    return _mm256_cmpgt_epi16(_mm256_and_si256(bits, _mm256_set1_epi16(0x7FFF)),
                              _mm256_set1_epi16(kInfinity));
  }
};

template <typename Nan>
bool plain_equal(const std::byte* left, const std::byte* right, std::size_t bytes) {
  constexpr std::size_t kStep = 128;
  std::size_t i = 0;
  for (; i + kStep <= bytes; i += kStep) {
    __m256i unlike = _mm256_setzero_si256();
    for (std::size_t k = i; k < i + kStep; k += 32) {
      const __m256i a = load_vector(left + k);
      const __m256i apart = _mm256_xor_si256(a, load_vector(right + k));
      unlike = _mm256_or_si256(unlike, _mm256_or_si256(apart, Nan::find(a)));
    }
    if (_mm256_testz_si256(unlike, unlike) == 0) return false;
  }
  // The rest beside zeros, which are equal and no NaN.
  alignas(32) std::byte tail[2][kStep] = {};
  __builtin_memcpy(tail[0], left + i, bytes - i);
  __builtin_memcpy(tail[1], right + i, bytes - i);
  return i == bytes || plain_equal<Nan>(tail[0], tail[1], kStep);
}

inline __m256 excess_of(__m256 difference, __m256 reference, float rtol) {
  return _mm256_fnmadd_ps(_mm256_set1_ps(rtol), reference, difference);
}
inline __m256d excess_of(__m256d difference, __m256d reference, double rtol) {
  return _mm256_fnmadd_pd(_mm256_set1_pd(rtol), reference, difference);
}

Profile<float> profile_float(const Split<float>& split, std::size_t n,
                             const Limits<float>& limits) {
  Profile<float> profile{};
  const __m256 zero = _mm256_setzero_ps();
  __m256 needed[kRtolGrid.size()] = {zero, zero, zero, zero, zero, zero, zero, zero};
  __m256 relative = zero;
  __m256 worst = zero;
  __m256i beyond = _mm256_setzero_si256();
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 difference = _mm256_load_ps(split.difference + i);
    const __m256 reference = _mm256_load_ps(split.reference + i);
    needed[0] = _mm256_max_ps(difference, needed[0]);
    for (std::size_t g = 1; g < kRtolGrid.size(); ++g) {
      needed[g] = _mm256_max_ps(excess_of(difference, reference, limits.grid[g]), needed[g]);
    }
    const __m256 quotient = _mm256_and_ps(_mm256_div_ps(difference, reference),
                                          _mm256_cmp_ps(reference, zero, _CMP_GT_OQ));
    relative = _mm256_max_ps(quotient, relative);
    const __m256 excess = excess_of(difference, reference, limits.rtol);
    worst = _mm256_max_ps(excess, worst);
    const __m256 over = _mm256_cmp_ps(excess, _mm256_set1_ps(limits.atol), _CMP_GT_OQ);
    beyond = _mm256_sub_epi32(beyond, _mm256_castps_si256(over));
  }
  for (std::size_t g = 0; g < kRtolGrid.size(); ++g) profile.needed[g] = largest_of(needed[g]);
  profile.relative = largest_of(relative);
  profile.worst = largest_of(worst);
  profile.beyond = sum_of(beyond);
  for (; i < n; ++i) profile_one(split.difference[i], split.reference[i], limits, profile);
  return profile;
}

Profile<double> profile_double(const Split<double>& split, std::size_t n,
                               const Limits<double>& limits) {
  Profile<double> profile{};
  const __m256d zero = _mm256_setzero_pd();
  __m256d needed[kRtolGrid.size()] = {zero, zero, zero, zero, zero, zero, zero, zero};
  __m256d relative = zero;
  __m256d worst = zero;
  __m256i beyond = _mm256_setzero_si256();
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m256d difference = _mm256_load_pd(split.difference + i);
    const __m256d reference = _mm256_load_pd(split.reference + i);
    needed[0] = _mm256_max_pd(difference, needed[0]);
    for (std::size_t g = 1; g < kRtolGrid.size(); ++g) {
      needed[g] = _mm256_max_pd(excess_of(difference, reference, limits.grid[g]), needed[g]);
    }
    const __m256d quotient = _mm256_and_pd(_mm256_div_pd(difference, reference),
                                           _mm256_cmp_pd(reference, zero, _CMP_GT_OQ));
    relative = _mm256_max_pd(quotient, relative);
    const __m256d excess = excess_of(difference, reference, limits.rtol);
    worst = _mm256_max_pd(excess, worst);
    const __m256d over = _mm256_cmp_pd(excess, _mm256_set1_pd(limits.atol), _CMP_GT_OQ);
    beyond = _mm256_add_epi32(beyond, _mm256_srli_epi64(_mm256_castpd_si256(over), 63));
  }
  for (std::size_t g = 0; g < kRtolGrid.size(); ++g) profile.needed[g] = largest_of(needed[g]);
  profile.relative = largest_of(relative);
  profile.worst = largest_of(worst);
  profile.beyond = sum_of(beyond);
  for (; i < n; ++i) profile_one(split.difference[i], split.reference[i], limits, profile);
  return profile;
}

// Distances below 2^kBits: counts those of at least 2^k for every k; buckets are the differences.
template <int kBits>
std::size_t near_histogram(const std::uint32_t* ulps, std::size_t n, std::uint64_t* buckets) {
  __m256i at_least[kBits];
  for (auto& counts : at_least) counts = _mm256_setzero_si256();
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i distance = _mm256_load_si256(reinterpret_cast<const __m256i*>(ulps + i));
    for (int k = 0; k < kBits; ++k) {
      const __m256i over = _mm256_cmpgt_epi32(distance, _mm256_set1_epi32((1 << k) - 1));
      at_least[k] = _mm256_sub_epi32(at_least[k], over);
    }
  }
  std::uint64_t more = i;
  for (int k = 0; k < kBits; ++k) {
    const std::uint64_t count = sum_of(at_least[k]);
    buckets[k] += more - count;
    more = count;
  }
  buckets[kBits] += more;
  return i;
}

void histogram(const std::uint32_t* ulps, std::size_t n, std::uint32_t largest,
               std::uint64_t* buckets) {
  std::size_t i = 0;
  if (largest < 4) {
    i = near_histogram<2>(ulps, n, buckets);
  } else if (largest < 64) {
    i = near_histogram<6>(ulps, n, buckets);
  } else {
    // Four tables, so that an increment need not wait for the one before.
    std::uint32_t table[4][kUlpBuckets] = {};
    for (; i + 4 <= n; i += 4) {
      for (std::size_t k = 0; k < 4; ++k) ++table[k][ulp_bucket(ulps[i + k])];
    }
    for (std::size_t b = 0; b < kUlpBuckets; ++b) {
      buckets[b] += table[0][b] + table[1][b] + table[2][b] + table[3][b];
    }
  }
  for (; i < n; ++i) ++buckets[ulp_bucket(ulps[i])];
}

}  // namespace

const MeasureKernels& avx2_measure_kernels() {
  static constexpr MeasureKernels kernels{
      .split_float16 = split_sixteen_bits<Float16>,
      .split_bfloat16 = split_sixteen_bits<BFloat16>,
      .split_float32 = split_float32,
      .split_float64 = split_float64,
      .equal_float16 = plain_equal<NanInSixteenBits<Float16>>,
      .equal_bfloat16 = plain_equal<NanInSixteenBits<BFloat16>>,
      .equal_float32 = plain_equal<NanInFloat32>,
      .equal_float64 = plain_equal<NanInFloat64>,
      .profile_float = profile_float,
      .profile_double = profile_double,
      .histogram = histogram,
  };
  return kernels;
}

}  // namespace assay
