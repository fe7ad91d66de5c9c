// The full pass over a block, and the test for equal blocks. Compiled with -mavx2 -mfma -mf16c.

#include "measure/lanes_avx2.h"

namespace assay {
namespace {

inline __m256 widen_eight(__m128i codes, Float16) { return _mm256_cvtph_ps(codes); }
inline __m256 widen_eight(__m128i codes, BFloat16) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16));
}

void split_float32(const std::byte* left, const std::byte* right, std::size_t n,
                   Split<float>& split) {
  const __m256i sign_off = _mm256_set1_epi32(0x7FFFFFFF);
  const __m256i last_finite = _mm256_set1_epi32(0x7F7FFFFF);
  const __m256i one = _mm256_set1_epi32(1);
  Distances<std::uint32_t> distances;
  __m256i equal = _mm256_setzero_si256();
  __m256i largest = _mm256_setzero_si256();
  std::size_t size = 0;  // number of distances
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
    // The signed rank: a | 1 has the sign of a and is never zero.
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

// float16 and bfloat16: distances in 16-bit lanes, differences in 32-bit lanes.
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
  std::size_t size = 0;  // number of distances
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
  std::size_t size = 0;  // number of distances
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
    // Clips to 2^31 and packs the four low halves.
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
  // Pads with zeros to a whole vector, and subtracts their count.
  for (; size % 8 != 0; ++size, --split.buckets[0]) distances.value[size] = 0;
  distances.count(size, largest, split.buckets);
}

// Tests whether any lane is NaN.
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
  // Pads the rest with zeros, which are equal and not NaN.
  alignas(32) std::byte tail[2][kStep] = {};
  __builtin_memcpy(tail[0], left + i, bytes - i);
  __builtin_memcpy(tail[1], right + i, bytes - i);
  return i == bytes || plain_equal<Nan>(tail[0], tail[1], kStep);
}

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
