// Compiled with -mavx2 -mfma -mf16c; nothing here may run before best_measure_kernels() has looked
// at the processor, and nothing here may be an inline function that other files share and the
// compiler does not inline (see ASSAY_HD).

#include <immintrin.h>

#include <utility>

#include "fill/numbers.h"
#include "measure/kernels.h"
#include "measure/pair.h"

namespace assay {
namespace {

inline __m256i load_vector(const std::byte* bytes) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
}
// A hint for what will be read soon: the processor's own prefetching stops at the end of a page.
inline void prefetch(const std::byte* bytes) {
  _mm_prefetch(reinterpret_cast<const char*>(bytes) + 2048, _MM_HINT_T0);
}
inline void store_vector(void* bytes, __m256i value) {
  _mm256_store_si256(static_cast<__m256i*>(bytes), value);
}

// Sums and maxima over the lanes of a vector; needed once a block.
inline std::uint32_t sum_of(__m256i lanes) {
  alignas(32) std::uint32_t lane[8];
  store_vector(lane, lanes);
  return lane[0] + lane[1] + lane[2] + lane[3] + lane[4] + lane[5] + lane[6] + lane[7];
}
// The sum of sixteen 16-bit lanes, none above 32767.
inline std::uint32_t sum_of_halves(__m256i lanes) {
  return sum_of(_mm256_madd_epi16(lanes, _mm256_set1_epi16(1)));
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

inline __m256i larger_lanes(__m256i a, __m256i b, std::uint16_t) { return _mm256_max_epu16(a, b); }
inline __m256i larger_lanes(__m256i a, __m256i b, std::uint32_t) { return _mm256_max_epu32(a, b); }
// |a - b|, for less than half the lanes' range apart.
inline __m256i distance_of(__m256i a, __m256i b, std::uint16_t) {
  return _mm256_abs_epi16(_mm256_sub_epi16(a, b));
}
inline __m256i distance_of(__m256i a, __m256i b, std::uint32_t) {
  return _mm256_abs_epi32(_mm256_sub_epi32(a, b));
}
inline std::uint32_t largest_code(__m256i lanes, std::uint32_t) { return largest_of(lanes); }
inline std::uint32_t largest_code(__m256i lanes, std::uint16_t) {
  const __m256i low = _mm256_and_si256(lanes, _mm256_set1_epi32(0xFFFF));
  return largest_of(_mm256_max_epu32(_mm256_srli_epi32(lanes, 16), low));
}

// Distances of 16 or 32 bits, collected over a block and then counted by their number of bits. How
// many there are and the lanes' maxima stay with the caller, in registers.
template <typename Code>
struct Distances {
  static constexpr std::size_t kLanes = 32 / sizeof(Code);
  alignas(32) Code value[kMeasureBlock];

  // Of the first `size` values, which is a multiple of kLanes.
  [[gnu::noinline]] void count(std::size_t size, __m256i largest, std::uint64_t* buckets) const {
    const std::uint32_t most = largest_code(largest, Code{});
    if (most < 4) return count_near<2>(size, buckets);
    if (most < 64) return count_near<6>(size, buckets);
    if (most < 4096) return count_near<12>(size, buckets);
    // Four tables, so that an increment need not wait for the one before.
    std::uint32_t table[4][kUlpBuckets] = {};
    for (std::size_t i = 0; i < size; i += 4) {
      for (std::size_t k = 0; k < 4; ++k) ++table[k][ulp_bucket(value[i + k])];
    }
    for (std::size_t b = 0; b < kUlpBuckets; ++b) {
      buckets[b] += table[0][b] + table[1][b] + table[2][b] + table[3][b];
    }
  }

 private:
  // Distances below 2^kBits: counts those of at least 2^k for every k; buckets are the differences.
  template <int kBits>
  void count_near(std::size_t size, std::uint64_t* buckets) const {
    __m256i at_least[kBits];
    for (auto& counts : at_least) counts = _mm256_setzero_si256();
    for (std::size_t i = 0; i < size; i += kLanes) {
      const __m256i distance = _mm256_load_si256(reinterpret_cast<const __m256i*>(value + i));
      for (int k = 0; k < kBits; ++k) {
        if constexpr (sizeof(Code) == 2) {
          const __m256i limit = _mm256_set1_epi16(static_cast<short>((1 << k) - 1));
          at_least[k] = _mm256_sub_epi16(at_least[k], _mm256_cmpgt_epi16(distance, limit));
        } else {
          const __m256i limit = _mm256_set1_epi32((1 << k) - 1);
          at_least[k] = _mm256_sub_epi32(at_least[k], _mm256_cmpgt_epi32(distance, limit));
        }
      }
    }
    std::uint64_t more = size;
    for (int k = 0; k < kBits; ++k) {
      const std::uint64_t count =
          sizeof(Code) == 2 ? sum_of_halves(at_least[k]) : sum_of(at_least[k]);
      buckets[k] += more - count;
      more = count;
    }
    buckets[kBits] += more;
  }
};

void split_float32(const std::byte* left, const std::byte* right, std::size_t n,
                   Split<float>& split) {
  const __m256i sign_off = _mm256_set1_epi32(0x7FFFFFFF);
  const __m256i last_finite = _mm256_set1_epi32(0x7F7FFFFF);
  const __m256i one = _mm256_set1_epi32(1);
  Distances<std::uint32_t> distances;
  __m256i equal = _mm256_setzero_si256();
  __m256i largest = _mm256_setzero_si256();
  std::size_t size = 0;  // of the distances
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i a = load_vector(left + i * 4);
    const __m256i b = load_vector(right + i * 4);
    const __m256i rank_a = _mm256_and_si256(a, sign_off);
    const __m256i rank_b = _mm256_and_si256(b, sign_off);
    const __m256i special = _mm256_cmpgt_epi32(_mm256_max_epi32(rank_a, rank_b), last_finite);
    if (_mm256_movemask_epi8(special) != 0) {
      for (std::size_t k = i; k < i + 8; ++k) split_one<float>(left, right, k, split);
      continue;
    }
    equal = _mm256_sub_epi32(equal, _mm256_cmpeq_epi32(a, b));
    const __m256 apart = _mm256_sub_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    store_vector(split.difference + i, _mm256_and_si256(_mm256_castps_si256(apart), sign_off));
    store_vector(split.reference + i, rank_b);
    // The rank with its sign: a | 1 has the sign of a and is never zero.
    const __m256i place_a = _mm256_sign_epi32(rank_a, _mm256_or_si256(a, one));
    const __m256i place_b = _mm256_sign_epi32(rank_b, _mm256_or_si256(b, one));
    const __m256i distance =
        _mm256_sub_epi32(_mm256_max_epi32(place_a, place_b), _mm256_min_epi32(place_a, place_b));
    store_vector(distances.value + size, distance);
    largest = _mm256_max_epu32(largest, distance);
    size += 8;
  }
  for (; i < n; ++i) split_one<float>(left, right, i, split);
  split.bit_equal += sum_of(equal);
  distances.count(size, largest, split.buckets);
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
  Distances<std::uint16_t> distances;
  __m256i equal = _mm256_setzero_si256();
  __m256i largest = _mm256_setzero_si256();
  std::size_t size = 0;  // of the distances
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256i a = load_vector(left + i * 2);
    const __m256i b = load_vector(right + i * 2);
    const __m256i rank_a = _mm256_and_si256(a, sign_off);
    const __m256i rank_b = _mm256_and_si256(b, sign_off);
    const __m256i special = _mm256_cmpgt_epi16(_mm256_max_epi16(rank_a, rank_b), last_finite);
    if (_mm256_movemask_epi8(special) != 0) {
      for (std::size_t k = i; k < i + 16; ++k) split_one<T>(left, right, k, split);
      continue;
    }
    equal = _mm256_sub_epi16(equal, _mm256_cmpeq_epi16(a, b));
    const __m256i place_a = _mm256_sign_epi16(rank_a, _mm256_or_si256(a, one));
    const __m256i place_b = _mm256_sign_epi16(rank_b, _mm256_or_si256(b, one));
    const __m256i distance =
        _mm256_sub_epi16(_mm256_max_epi16(place_a, place_b), _mm256_min_epi16(place_a, place_b));
    store_vector(distances.value + size, distance);
    largest = _mm256_max_epu16(largest, distance);
    size += 16;
    store_half(_mm256_castsi256_si128(a), _mm256_castsi256_si128(b), i);
    store_half(_mm256_extracti128_si256(a, 1), _mm256_extracti128_si256(b, 1), i + 8);
  }
  for (; i < n; ++i) split_one<T>(left, right, i, split);
  split.bit_equal += sum_of_halves(equal);
  distances.count(size, largest, split.buckets);
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
  Distances<std::uint32_t> distances;
  __m256i equal = zero;
  __m256i largest = zero;
  std::size_t size = 0;  // of the distances
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m256i a = load_vector(left + i * 8);
    const __m256i b = load_vector(right + i * 8);
    const __m256i rank_a = _mm256_and_si256(a, sign_off);
    const __m256i rank_b = _mm256_and_si256(b, sign_off);
    const __m256i special = _mm256_or_si256(_mm256_cmpgt_epi64(rank_a, last_finite),
                                            _mm256_cmpgt_epi64(rank_b, last_finite));
    if (_mm256_movemask_epi8(special) != 0) {
      for (std::size_t k = i; k < i + 4; ++k) split_one<double>(left, right, k, split);
      continue;
    }
    equal = _mm256_sub_epi64(equal, _mm256_cmpeq_epi64(a, b));
    const __m256d apart = _mm256_sub_pd(_mm256_castsi256_pd(a), _mm256_castsi256_pd(b));
    store_vector(split.difference + i, _mm256_and_si256(_mm256_castpd_si256(apart), sign_off));
    store_vector(split.reference + i, rank_b);
    const __m256i place_a = place(a, rank_a);
    const __m256i place_b = place(b, rank_b);
    const __m256i below = _mm256_cmpgt_epi64(place_b, place_a);
    const __m256i ulps =
        _mm256_sub_epi64(_mm256_xor_si256(_mm256_sub_epi64(place_a, place_b), below), below);
    // Clipped to 2^31, and the four low halves brought together.
    const __m256i near = _mm256_cmpeq_epi64(_mm256_srli_epi64(ulps, 31), zero);
    const __m256i clip = _mm256_blendv_epi8(_mm256_set1_epi64x(0x80000000), ulps, near);
    const __m128i distance = _mm256_castsi256_si128(
        _mm256_permutevar8x32_epi32(clip, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6)));
    _mm_store_si128(reinterpret_cast<__m128i*>(distances.value + size), distance);
    largest = _mm256_max_epu32(largest, _mm256_zextsi128_si256(distance));
    size += 4;
  }
  for (; i < n; ++i) split_one<double>(left, right, i, split);
  split.bit_equal += sum_of(equal);
  // Zeros up to a whole vector, taken off again.
  for (; size % 8 != 0; ++size, --split.buckets[0]) distances.value[size] = 0;
  distances.count(size, largest, split.buckets);
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

// One loop for both arithmetic types: V names the vector's operations.
struct Floats {
  using Real = float;
  using Vector = __m256;
  static constexpr std::size_t kLanes = 8;
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector load(const float* from) { return _mm256_load_ps(from); }
  static Vector larger(Vector a, Vector b) { return _mm256_max_ps(a, b); }
  static Vector excess(Vector difference, Vector reference, float rtol) {
    return _mm256_fnmadd_ps(_mm256_set1_ps(rtol), reference, difference);
  }
  static Vector quotient(Vector a, Vector b) {
    return _mm256_and_ps(_mm256_div_ps(a, b), _mm256_cmp_ps(b, zero(), _CMP_GT_OQ));
  }
  // A one in each lane where a > limit.
  static __m256i above(Vector a, float limit) {
    const __m256 over = _mm256_cmp_ps(a, _mm256_set1_ps(limit), _CMP_GT_OQ);
    return _mm256_srli_epi32(_mm256_castps_si256(over), 31);
  }
};
struct Doubles {
  using Real = double;
  using Vector = __m256d;
  static constexpr std::size_t kLanes = 4;
  static Vector zero() { return _mm256_setzero_pd(); }
  static Vector load(const double* from) { return _mm256_load_pd(from); }
  static Vector larger(Vector a, Vector b) { return _mm256_max_pd(a, b); }
  static Vector excess(Vector difference, Vector reference, double rtol) {
    return _mm256_fnmadd_pd(_mm256_set1_pd(rtol), reference, difference);
  }
  static Vector quotient(Vector a, Vector b) {
    return _mm256_and_pd(_mm256_div_pd(a, b), _mm256_cmp_pd(b, zero(), _CMP_GT_OQ));
  }
  static __m256i above(Vector a, double limit) {
    const __m256d over = _mm256_cmp_pd(a, _mm256_set1_pd(limit), _CMP_GT_OQ);
    return _mm256_srli_epi64(_mm256_castpd_si256(over), 63);
  }
};

template <typename V>
Profile<typename V::Real> profile(const Split<typename V::Real>& split, std::size_t n,
                                  const Limits<typename V::Real>& limits) {
  typename V::Vector needed[kRtolGrid.size()];
  for (auto& lanes : needed) lanes = V::zero();
  auto relative = V::zero();
  auto worst = V::zero();
  __m256i beyond = _mm256_setzero_si256();
  std::size_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) {
    const auto difference = V::load(split.difference + i);
    const auto reference = V::load(split.reference + i);
    needed[0] = V::larger(difference, needed[0]);
    for (std::size_t g = 1; g <= kLastGrid; ++g) {
      needed[g] = V::larger(V::excess(difference, reference, limits.grid[g]), needed[g]);
    }
    relative = V::larger(V::quotient(difference, reference), relative);
    const auto excess = V::excess(difference, reference, limits.rtol);
    worst = V::larger(excess, worst);
    beyond = _mm256_add_epi32(beyond, V::above(excess, limits.atol));
  }
  Profile<typename V::Real> result{};
  for (std::size_t g = 0; g <= kLastGrid; ++g) result.needed[g] = largest_of(needed[g]);
  result.relative = largest_of(relative);
  result.worst = largest_of(worst);
  result.beyond = sum_of(beyond);
  for (; i < n; ++i) profile_one(split.difference[i], split.reference[i], limits, result);
  return result;
}

// What a quick look gathers of differences and references.
template <std::size_t kFirst, std::size_t kGrid, bool kExcess>
struct QuickLanes {
  __m256i difference = _mm256_setzero_si256();  // the largest; above all numbers where one is NaN
  __m256 needed[kGrid - kFirst + 1];            // needed[kFirst] and on
  __m256 relative = _mm256_setzero_ps();        // infinite where a reference is 0
  __m256 excess = _mm256_setzero_ps();

  QuickLanes() {
    for (auto& lanes : needed) lanes = _mm256_setzero_ps();
  }
  // `a` and `b` are magnitudes of numbers with one sign.
  void add(__m256 a, __m256 b, const Limits<float>& limits) {
    const __m256 apart = _mm256_andnot_ps(_mm256_set1_ps(-0.0F), _mm256_sub_ps(a, b));
    difference = _mm256_max_epi32(difference, _mm256_castps_si256(apart));
    for (std::size_t g = kFirst; g <= kGrid; ++g) {
      auto& lanes = needed[g - kFirst];
      lanes = _mm256_max_ps(Floats::excess(apart, b, limits.grid[g]), lanes);
    }
    // Of 0 / 0, a NaN, max keeps its second operand.
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
    return profile.needed[kGrid] <= accepted.needed && largest_of(excess) <= accepted.excess;
  }
};

// How the quick look reads a vector of codes. Under one sign codes are in the order of the numbers'
// magnitudes, and their difference is the distance.
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
  // A bfloat16 is the high half of a float: the odd codes are in place, the even ones are shifted
  // there. The order of the pairs does not matter.
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
  using Code = typename Format::Code;
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
  split.bit_equal += split.buckets[0] - before;  // of one sign, equal numbers are equal bits
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
constexpr QuickLoops<float> kQuickFloat16 = quick_loops<QuickFloat16>();
constexpr QuickLoops<float> kQuickBFloat16 = quick_loops<QuickBFloat16>();
constexpr QuickLoops<float> kQuickFloat32 = quick_loops<QuickFloat32>();

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
      .profile_float = profile<Floats>,
      .profile_double = profile<Doubles>,
      .quick_float16 = &kQuickFloat16,
      .quick_bfloat16 = &kQuickBFloat16,
      .quick_float32 = &kQuickFloat32,
  };
  return kernels;
}

}  // namespace assay
