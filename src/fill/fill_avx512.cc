// Compiled with -mavx512f -mavx512dq; the rules of fill_avx2.cc apply. It has the expensive parts
// of filling: the words, single precision, and permutations, whose 64-bit products are one
// instruction here. fill_avx2.cc does the rest.

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC bug 105593, in the header of g++ 12
#endif

#include <immintrin.h>

#include "fill/element.h"
#include "fill/kernels.h"

namespace assay {
namespace {

inline __m512i all(std::uint64_t value) { return _mm512_set1_epi64(static_cast<long long>(value)); }
inline __m512i exclusive_or(__m512i a, __m512i b, __m512i c) {
  return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}

// Eight Philox blocks at once, one in each 64-bit lane. Only the low 32 bits of a lane count, so
// that products need no shuffles.
struct EightBlocks {
  __m512i word[4];
};

inline void round_once(EightBlocks& b, __m512i key0, __m512i key1) {
  const __m512i product0 = _mm512_mul_epu32(b.word[0], all(kPhiloxMultiplier0));
  const __m512i product1 = _mm512_mul_epu32(b.word[2], all(kPhiloxMultiplier1));
  b.word[0] = exclusive_or(_mm512_srli_epi64(product1, 32), b.word[1], key0);
  b.word[2] = exclusive_or(_mm512_srli_epi64(product0, 32), b.word[3], key1);
  b.word[1] = product1;
  b.word[3] = product0;
}

// The block number of each lane. In this order, the two unpackings below put the words of a block
// side by side.
inline EightBlocks counters(const Stream& stream, std::uint64_t first_block) {
  const __m512i number =
      _mm512_add_epi64(all(first_block), _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0));
  return {{number, _mm512_srli_epi64(number, 32), all(stream.nonce[0]), all(stream.nonce[1])}};
}

inline void store_blocks(const EightBlocks& b, std::byte* out) {
  constexpr __mmask16 kOdd = 0xAAAA;
  const __m512i first = _mm512_mask_blend_epi32(kOdd, b.word[0], _mm512_slli_epi64(b.word[1], 32));
  const __m512i second = _mm512_mask_blend_epi32(kOdd, b.word[2], _mm512_slli_epi64(b.word[3], 32));
  _mm512_storeu_si512(out, _mm512_unpacklo_epi64(first, second));
  _mm512_storeu_si512(out + 64, _mm512_unpackhi_epi64(first, second));
}

void words(const Stream& stream, std::uint64_t first_block, std::size_t blocks, std::byte* out) {
  __m512i keys[kFillRounds][2];
  for (std::uint32_t round = 0; round < kFillRounds; ++round) {
    keys[round][0] = all(stream.key[0] + round * kPhiloxWeyl0);
    keys[round][1] = all(stream.key[1] + round * kPhiloxWeyl1);
  }
  std::size_t i = 0;
  for (; i + 16 <= blocks; i += 16) {
    EightBlocks a = counters(stream, first_block + i);
    EightBlocks b = counters(stream, first_block + i + 8);
    for (const auto& key : keys) {
      round_once(a, key[0], key[1]);
      round_once(b, key[0], key[1]);
    }
    store_blocks(a, out + i * 16);
    store_blocks(b, out + i * 16 + 128);
  }
  for (; i < blocks; ++i) store(out + i * 16, block_of(stream, first_block + i));
}

void uniform_float32(const FillPlan& plan, const std::byte* draws, std::size_t n, std::byte* out) {
  const UniformRange<float> range(plan);
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m512i word = _mm512_srli_epi32(_mm512_loadu_si512(draws + i * 4), 8);
    const __m512 u = _mm512_mul_ps(_mm512_cvtepi32_ps(word), _mm512_set1_ps(0x1p-24F));
    const __m512 value =
        _mm512_add_ps(_mm512_set1_ps(range.low), _mm512_mul_ps(u, _mm512_set1_ps(range.span)));
    _mm512_storeu_ps(out + i * 4, _mm512_min_ps(value, _mm512_set1_ps(range.top)));
  }
  for (; i < n; ++i) store(out + i * 4, range.value(load<std::uint32_t>(draws + i * 4)));
}

inline __m512i fold(__m512i value) { return _mm512_xor_si512(value, _mm512_srli_epi64(value, 32)); }

// See Permutation::step. Each step is a chain of dependent products, so four chains run side by
// side.
void permutation_step(const Permutation& permutation, std::size_t n, std::uint64_t* values) {
  constexpr std::size_t kChains = 4;
  const __m128i low_bits = _mm_cvtsi32_si128(permutation.low_bits());
  const __m512i masks[2] = {all(permutation.high_mask()), all(permutation.low_mask())};
  std::size_t i = 0;
  for (; i + 8 * kChains <= n; i += 8 * kChains) {
    __m512i halves[2][kChains];  // the half that changes, and the half that is mixed into it
    for (std::size_t c = 0; c < kChains; ++c) {
      const __m512i value = _mm512_loadu_si512(values + i + 8 * c);
      halves[0][c] = _mm512_srl_epi64(value, low_bits);
      halves[1][c] = _mm512_and_si512(value, masks[1]);
    }
#pragma GCC unroll 6
    for (int round = 0; round < Permutation::kRounds; ++round) {
      const int changed = round % 2;
      const __m512i key = all(permutation.key(round));
      for (std::size_t c = 0; c < kChains; ++c) {
        const __m512i keyed = _mm512_xor_si512(halves[1 - changed][c], key);
        const __m512i once = fold(_mm512_mullo_epi64(keyed, all(Permutation::kMixFirst)));
        const __m512i mixed = fold(_mm512_mullo_epi64(once, all(Permutation::kMixSecond)));
        halves[changed][c] =
            _mm512_xor_si512(halves[changed][c], _mm512_and_si512(mixed, masks[changed]));
      }
    }
    for (std::size_t c = 0; c < kChains; ++c) {
      const __m512i high = _mm512_sll_epi64(halves[0][c], low_bits);
      _mm512_storeu_si512(values + i + 8 * c, _mm512_or_si512(high, halves[1][c]));
    }
  }
  for (; i < n; ++i) values[i] = permutation.step(values[i]);
}

}  // namespace

const FillKernels& avx512_fill_kernels() {
  static const FillKernels kernels = [] {
    FillKernels made = avx2_fill_kernels();
    made.words = words;
    made.float32 = uniform_float32;
    made.permutation_step = permutation_step;
    return made;
  }();
  return kernels;
}

}  // namespace assay
