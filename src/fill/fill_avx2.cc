// Compiled with -mavx2 -mf16c. Nothing here may run before best_fill_kernels() has checked the
// processor. Nothing here may be an inline function that other files share, unless it is always
// inlined (see ASSAY_HD).

#include <immintrin.h>

#include "fill/element.h"
#include "fill/kernels.h"
#include "fill/numbers.h"

namespace assay {
namespace {

// Four Philox blocks at once, one in each 64-bit lane. Only the low 32 bits of a lane count, so
// that products need no shuffles.
struct FourBlocks {
  __m256i word[4];
};

inline void round_once(FourBlocks& b, __m256i key0, __m256i key1) {
  const __m256i product0 = _mm256_mul_epu32(b.word[0], _mm256_set1_epi64x(kPhiloxMultiplier0));
  const __m256i product1 = _mm256_mul_epu32(b.word[2], _mm256_set1_epi64x(kPhiloxMultiplier1));
  b.word[0] = _mm256_xor_si256(_mm256_srli_epi64(product1, 32), _mm256_xor_si256(b.word[1], key0));
  b.word[2] = _mm256_xor_si256(_mm256_srli_epi64(product0, 32), _mm256_xor_si256(b.word[3], key1));
  b.word[1] = product1;
  b.word[3] = product0;
}

inline __m256i lanes(std::uint32_t value) { return _mm256_set1_epi64x(value); }

// The block number of each lane. In this order, the two unpackings below put the words of a block
// side by side.
inline FourBlocks counters(const Stream& stream, std::uint64_t first_block) {
  const __m256i number = _mm256_add_epi64(_mm256_set1_epi64x(static_cast<long long>(first_block)),
                                          _mm256_set_epi64x(3, 1, 2, 0));
  return {{number, _mm256_srli_epi64(number, 32), lanes(stream.nonce[0]), lanes(stream.nonce[1])}};
}

inline void store_blocks(const FourBlocks& b, std::byte* out) {
  const __m256i first = _mm256_blend_epi32(b.word[0], _mm256_slli_epi64(b.word[1], 32), 0xAA);
  const __m256i second = _mm256_blend_epi32(b.word[2], _mm256_slli_epi64(b.word[3], 32), 0xAA);
  auto* target = reinterpret_cast<__m256i*>(out);
  _mm256_store_si256(target, _mm256_unpacklo_epi64(first, second));
  _mm256_store_si256(target + 1, _mm256_unpackhi_epi64(first, second));
}

// The keys of all rounds, in every lane.
struct RoundKeys {
  __m256i key[kFillRounds][2];
  explicit RoundKeys(const Stream& stream) {
    for (std::uint32_t round = 0; round < kFillRounds; ++round) {
      key[round][0] = lanes(stream.key[0] + round * kPhiloxWeyl0);
      key[round][1] = lanes(stream.key[1] + round * kPhiloxWeyl1);
    }
  }
};

void words(const Stream& stream, std::uint64_t first_block, std::size_t blocks, std::byte* out) {
  const RoundKeys keys(stream);
  std::size_t i = 0;
  for (; i + 8 <= blocks; i += 8) {
    FourBlocks a = counters(stream, first_block + i);
    FourBlocks b = counters(stream, first_block + i + 4);
    for (const auto& key : keys.key) {
      round_once(a, key[0], key[1]);
      round_once(b, key[0], key[1]);
    }
    store_blocks(a, out + i * 16);
    store_blocks(b, out + i * 16 + 64);
  }
  for (; i < blocks; ++i) store(out + i * 16, block_of(stream, first_block + i));
}

inline __m256i load_vector(const std::byte* bytes) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
}
inline void store_vector(std::byte* bytes, __m256i value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(bytes), value);
}

// Maps eight whole draws, times `scale`, into the range.
template <typename T>
inline __m256 place(const UniformRange<T>& range, __m256i draws, float scale) {
  const __m256 u = _mm256_mul_ps(_mm256_cvtepi32_ps(draws), _mm256_set1_ps(scale));
  const __m256 value =
      _mm256_add_ps(_mm256_set1_ps(range.low), _mm256_mul_ps(u, _mm256_set1_ps(range.span)));
  return _mm256_min_ps(value, _mm256_set1_ps(range.top));
}

void uniform_float32(const FillPlan& plan, const std::byte* draws, std::size_t n, std::byte* out) {
  const UniformRange<float> range(plan);
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i word = _mm256_srli_epi32(load_vector(draws + i * 4), 8);
    store_vector(out + i * 4, _mm256_castps_si256(place(range, word, 0x1p-24F)));
  }
  for (; i < n; ++i) {
    const auto draw = load<std::uint32_t>(draws + i * 4);
    store(out + i * 4, range.value(draw));
  }
}

// Converts eight finite floats to bfloat16, each in the low half of its lane.
inline __m256i to_bfloat16(__m256 values) {
  const __m256i bits = _mm256_castps_si256(values);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i nearest = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
  return _mm256_srli_epi32(nearest, 16);
}

// A lane holds two draws of 16 bits; the low halves are the even draws.
void uniform_bfloat16(const FillPlan& plan, const std::byte* draws, std::size_t n, std::byte* out) {
  const UniformRange<BFloat16> range(plan);
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256i pair = load_vector(draws + i * 2);
    const __m256i even = _mm256_and_si256(pair, _mm256_set1_epi32(0xFFFF));
    const __m256i odd = _mm256_srli_epi32(pair, 16);
    const __m256i low = to_bfloat16(place(range, even, 0x1p-16F));
    const __m256i high = to_bfloat16(place(range, odd, 0x1p-16F));
    store_vector(out + i * 2, _mm256_or_si256(low, _mm256_slli_epi32(high, 16)));
  }
  for (; i < n; ++i) {
    const auto draw = load<std::uint16_t>(draws + i * 2);
    store(out + i * 2, range.value(draw));
  }
}

void uniform_float16(const FillPlan& plan, const std::byte* draws, std::size_t n, std::byte* out) {
  const UniformRange<Float16> range(plan);
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(draws + i * 2));
    const __m256 values = place(range, _mm256_cvtepu16_epi32(eight), 0x1p-16F);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * 2),
                     _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  for (; i < n; ++i) {
    const auto draw = load<std::uint16_t>(draws + i * 2);
    store(out + i * 2, range.value(draw));
  }
}

// Converts 53-bit whole numbers to double, exactly: their halves become the significands of 2^84
// and 2^52, whose offsets are then subtracted.
inline __m256d to_double(__m256i value) {
  const __m256i high =
      _mm256_or_si256(_mm256_srli_epi64(value, 32), _mm256_castpd_si256(_mm256_set1_pd(0x1p84)));
  const __m256i low = _mm256_blend_epi32(value, _mm256_castpd_si256(_mm256_set1_pd(0x1p52)), 0xAA);
  const __m256d offset = _mm256_set1_pd(0x1p84 + 0x1p52);
  return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), offset), _mm256_castsi256_pd(low));
}

void uniform_float64(const FillPlan& plan, const std::byte* draws, std::size_t n, std::byte* out) {
  const UniformRange<double> range(plan);
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m256d u = _mm256_mul_pd(to_double(_mm256_srli_epi64(load_vector(draws + i * 8), 11)),
                                    _mm256_set1_pd(0x1p-53));
    const __m256d value =
        _mm256_add_pd(_mm256_set1_pd(range.low), _mm256_mul_pd(u, _mm256_set1_pd(range.span)));
    store_vector(out + i * 8, _mm256_castpd_si256(_mm256_min_pd(value, _mm256_set1_pd(range.top))));
  }
  for (; i < n; ++i) {
    const auto draw = load<std::uint64_t>(draws + i * 8);
    store(out + i * 8, range.value(draw));
  }
}

// The low 64 bits of the products with a factor.
inline __m256i multiply(__m256i value, std::uint64_t factor) {
  const __m256i low = _mm256_set1_epi64x(static_cast<long long>(factor & 0xFFFFFFFF));
  const __m256i high = _mm256_set1_epi64x(static_cast<long long>(factor >> 32));
  const __m256i crossed = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(value, 32), low),
                                           _mm256_mul_epu32(value, high));
  return _mm256_add_epi64(_mm256_mul_epu32(value, low), _mm256_slli_epi64(crossed, 32));
}

inline __m256i fold(__m256i value) { return _mm256_xor_si256(value, _mm256_srli_epi64(value, 32)); }

inline __m256i all(std::uint64_t value) {
  return _mm256_set1_epi64x(static_cast<long long>(value));
}

// See Permutation::step. Each step is a chain of dependent products, so four chains run side by
// side.
void permutation_step(const Permutation& permutation, std::size_t n, std::uint64_t* values) {
  constexpr std::size_t kChains = 4;
  const __m128i low_bits = _mm_cvtsi32_si128(permutation.low_bits());
  const __m256i masks[2] = {all(permutation.high_mask()), all(permutation.low_mask())};
  std::size_t i = 0;
  for (; i + 4 * kChains <= n; i += 4 * kChains) {
    auto* const at = reinterpret_cast<std::byte*>(values + i);
    __m256i halves[2][kChains];  // the half that changes, and the half that is mixed into it
    for (std::size_t c = 0; c < kChains; ++c) {
      const __m256i value = load_vector(at + 32 * c);
      halves[0][c] = _mm256_srl_epi64(value, low_bits);
      halves[1][c] = _mm256_and_si256(value, masks[1]);
    }
#pragma GCC unroll 6
    for (int round = 0; round < Permutation::kRounds; ++round) {
      const int changed = round % 2;
      const __m256i key = all(permutation.key(round));
      for (std::size_t c = 0; c < kChains; ++c) {
        const __m256i keyed = _mm256_xor_si256(halves[1 - changed][c], key);
        const __m256i mixed =
            fold(multiply(fold(multiply(keyed, Permutation::kMixFirst)), Permutation::kMixSecond));
        halves[changed][c] =
            _mm256_xor_si256(halves[changed][c], _mm256_and_si256(mixed, masks[changed]));
      }
    }
    for (std::size_t c = 0; c < kChains; ++c) {
      const __m256i high = _mm256_sll_epi64(halves[0][c], low_bits);
      store_vector(at + 32 * c, _mm256_or_si256(high, halves[1][c]));
    }
  }
  for (; i < n; ++i) values[i] = permutation.step(values[i]);
}

}  // namespace

const FillKernels& avx2_fill_kernels() {
  static constexpr FillKernels kernels{words,           uniform_float16, uniform_bfloat16,
                                       uniform_float32, uniform_float64, permutation_step};
  return kernels;
}

}  // namespace assay
