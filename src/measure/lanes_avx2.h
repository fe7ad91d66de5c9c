#pragma once

// Vectors of eight floats or integers for the AVX2 loops of measure(). Only for files compiled with
// -mavx2 -mfma -mf16c. Nothing here may run before best_measure_kernels() has checked the
// processor.

#ifdef __AVX2__

#include <immintrin.h>

#include "fill/numbers.h"
#include "measure/element_difference.h"
#include "measure/kernels.h"

namespace assay {

inline __m256i load_vector(const std::byte* bytes) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
}
// Prefetches what is read soon, because the processor's own prefetching stops at the end of a page.
inline void prefetch(const std::byte* bytes) {
  _mm_prefetch(reinterpret_cast<const char*>(bytes) + 4096, _MM_HINT_T0);
}
inline void store_vector(void* bytes, __m256i value) {
  _mm256_store_si256(static_cast<__m256i*>(bytes), value);
}

// Sums and maxima over the lanes of a vector; used once per block.
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
// a - b|, if it is below half the range of a lane.
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

// Collects the distances of a block, of 16 or 32 bits, and then counts them by their number of
// bits. The caller keeps their number and the lanes' maxima in registers.
template <typename Code>
struct Distances {
  static constexpr std::size_t kLanes = 32 / sizeof(Code);
  alignas(32) Code value[kMeasureBlock];

  // Counts the first `size` values, a multiple of kLanes. The vector is passed by reference,
  // because by value g++ would leave the upper halves of registers in use, which slows down code
  // without AVX.
  [[gnu::noinline]] void count(std::size_t size, const __m256i& largest,
                               std::uint64_t* buckets) const {
    const std::uint32_t most = largest_code(largest, Code{});
    if (most < 4) return count_near<2>(size, buckets);
    if (most < 64) return count_near<6>(size, buckets);
    if (most < 4096) return count_near<12>(size, buckets);
    // Four tables, so that an increment need not wait for the previous one.
    std::uint32_t table[4][kUlpBuckets] = {};
    for (std::size_t i = 0; i < size; i += 4) {
      for (std::size_t k = 0; k < 4; ++k) ++table[k][ulp_bucket(value[i + k])];
    }
    for (std::size_t b = 0; b < kUlpBuckets; ++b) {
      buckets[b] += table[0][b] + table[1][b] + table[2][b] + table[3][b];
    }
  }

 private:
  // For distances below 2^kBits: counts those of at least 2^k for every k; buckets are the
  // differences.
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

// V names the vector operations, so that one loop serves both arithmetic types.
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
  // 1 in each lane with a > limit, else 0.
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

// Defined in quick_avx2.cc.
extern const QuickLoops<float> kQuickFloat16;
extern const QuickLoops<float> kQuickBFloat16;
extern const QuickLoops<float> kQuickFloat32;

}  // namespace assay

#endif
