#pragma once

// What one thread of the comparing kernel keeps, and how it adds pairs to it.

#include <cuda_runtime.h>

#include "fill/numbers.h"
#include "measure/element_difference.h"
#include "measure/kernels.h"
#include "measure/measure_cuda.h"

namespace assay::cuda_share {

constexpr int kThreads = 256;
constexpr int kMostBlocks = 2048;
constexpr int kGrid = static_cast<int>(kRtolGrid.size());
constexpr int kBuckets = static_cast<int>(kUlpBuckets);
constexpr unsigned kWarp = 32;
constexpr unsigned kAll = ~0U;     // all threads of a warp
using Count = unsigned long long;  // the argument type of CUDA's atomic functions
constexpr Count kNone = ~Count{0};

// The result of all threads; all zeros means nothing found. Maxima are of numbers that are not
// negative, whose bits have the same order, so they are kept as bits. The first offender is kept as
// the largest complement of an index.
struct Tally {
  static constexpr int kRelative = kGrid;
  static constexpr int kFirst = kGrid + 1;
  static constexpr int kMaxima = kGrid + 2;
  static constexpr int kBitEqual = 0;
  static constexpr int kBeyond = 1;
  static constexpr int kSpecial = 2;
  static constexpr int kUlps = kSpecial + 6;
  static constexpr int kSums = kUlps + kBuckets;
  Count maxima[kMaxima];
  Count sums[kSums];
};
// The worst pair of a thread block.
struct Worst {
  double excess;
  Count index;
};
// The part that the host reads.
struct Found {
  Tally tally;
  Worst worst;
  // Left and right element of the worst pair, then of the first offender.
  alignas(16) unsigned char elements[4][16];
};
// All zeros before and after a measurement.
struct Scratch {
  Tally tally;
  unsigned blocks_done;
  Worst worst[kMostBlocks];
};
static_assert(sizeof(Scratch) <= kMeasureCudaScratch);
static_assert(sizeof(Found) <= kMeasureCudaResult);

__device__ Count bits(double value) { return static_cast<Count>(ieee::bits_of(value)); }

// Counters of a thread block in shared memory. The hardware combines the increments of a warp.
struct Table {
  std::uint32_t special[6];
  std::uint32_t buckets[kBuckets];
};

// The elements of one 16-byte load.
template <typename T>
struct alignas(16) Load {
  static constexpr int kCount = 16 / sizeof(T);
  T element[kCount];

  __device__ bool finite() const {
    bool all = true;
#pragma unroll
    for (int k = 0; k < kCount; ++k) all = all && finite_element(element[k]);
    return all;
  }
};

// Uses the intrinsic, because the compiler splits a plain read of the struct into its elements.
template <typename T>
__device__ uint4 load_words(const T* from, std::uint64_t load) {
  return __ldcs(reinterpret_cast<const uint4*>(from) + load);
}

// The maximum over a warp. All of its threads must call this.
__device__ Count warp_larger(Count value) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const Count other = __shfl_xor_sync(kAll, value, step);
    value = value < other ? other : value;
  }
  return value;
}
// The same for numbers that are not negative.
__device__ float warp_larger(float value) {
  return __uint_as_float(__reduce_max_sync(kAll, __float_as_uint(value)));
}
__device__ double warp_larger(double value) {
  return ieee::double_of(static_cast<std::uint64_t>(warp_larger(bits(value))));
}

// The types whose pairs Quick (below) compares with the fewest instructions.
template <typename T>
inline constexpr bool kIsQuick =
    std::is_same_v<T, float> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// Thread blocks per multiprocessor, as many as the registers allow.
template <typename T>
inline constexpr int kBlocksPerMultiprocessor = kIsQuick<T> ? 4 : 2;

// The result of one thread.
template <typename T>
struct Share {
  using Real = MeasureReal<T>;
  Real needed[kGrid] = {};
  Real relative = 0;  // the maximum over the warp, updated now and then
  Real worst = 0;
  Real bar =
      0;  // the largest `worst` of the warp, updated now and then; only larger ones are noted
  Count worst_index = kNone;
  Count first = kNone;
  std::uint32_t bit_equal = 0;
  std::uint32_t beyond = 0;
  std::uint32_t near[3] = {};  // number of distances 0, 1, and 2 to 3

  // Adds any pair.
  __device__ void add(T a, T b, std::uint64_t index, const Limits<Real>& limits, Table& table) {
    if (!finite_element(a) || !finite_element(b)) {
      bit_equal += same_bits(a, b);
      return add_special(compare(a, b).kind, index, table);
    }
    const Peaks peaks = add_finite(a, b, limits, table);
    if (peaks.notable(*this, limits)) note(a, b, index, limits);
  }
  __device__ void add_equal(std::uint32_t count) {
    near[0] += count;
    bit_equal += count;
  }

  // Decides whether finite pairs must be examined again.
  struct Peaks {
    Real excess = 0;      // under the given rtol
    Real above_most = 0;  // difference - relative · reference, with an exact sign
    __device__ void raise(const Peaks& other) {
      excess = ieee::larger(excess, other.excess);
      above_most = ieee::larger(above_most, other.above_most);
    }
    __device__ bool notable(const Share& share, const Limits<Real>& limits) const {
      return above_most > 0 || excess > share.bar || excess > limits.atol;
    }
  };
  __device__ Peaks add_finite(T a, T b, const Limits<Real>& limits, Table& table) {
    const Pair<Real> pair = compare_finite(a, b);
    bit_equal += same_bits(a, b);
    add_distance(pair.ulps, table);
    return add_difference(pair.difference, pair.reference, limits);
  }
  __device__ Peaks add_difference(Real difference, Real reference, const Limits<Real>& limits) {
#pragma unroll
    for (int g = 0; g < kGrid; ++g) {
      if (kIsCoarse<T> && g > 0 && g < static_cast<int>(kFirstCoarse))
        continue;  // equals needed[0]
      const Real excess = g == 0 ? difference : ieee::fused(-limits.grid[g], reference, difference);
      needed[g] = ieee::larger(needed[g], excess);
    }
    return {ieee::fused(-limits.rtol, reference, difference),
            ieee::fused(-relative, reference, difference)};
  }
  // Notes a finite pair that may be an offender or the largest so far.
  __device__ void note(T a, T b, std::uint64_t index, const Limits<Real>& limits) {
    const Pair<Real> pair = compare_finite(a, b);
    if (pair.reference > 0) {
      relative = ieee::larger(relative, ieee::div(pair.difference, pair.reference));
    }
    const Real excess = ieee::fused(-limits.rtol, pair.reference, pair.difference);
    if (excess > limits.atol) {
      ++beyond;
      if (index < first) first = index;
    }
    note_worst(excess, index);
  }
  // Shares the maxima of each thread with its warp. Later loads have higher indices, so a value
  // that only equals the bar is never the first of its kind.
  __device__ void share_peaks() {
    relative = warp_larger(relative);
    bar = warp_larger(bar);
  }
  __device__ void finish() {
    for (int g = 1; kIsCoarse<T> && g < static_cast<int>(kFirstCoarse); ++g) needed[g] = needed[0];
  }

 private:
  __device__ void add_distance(std::uint32_t ulps, Table& table) {
    near[0] += ulps == 0;
    near[1] += ulps == 1;
    near[2] += ulps == 2 || ulps == 3;
    if (ulps > 3) atomicAdd(&table.buckets[ulp_bucket(ulps)], 1U);
  }
  static __device__ bool same_bits(T a, T b) {
    if constexpr (sizeof(T) == 16) {
      return same_code<std::uint64_t>(a.real, b.real) &&
             same_code<std::uint64_t>(a.imaginary, b.imaginary);
    } else if constexpr (sizeof(T) == 8) {
      return same_code<std::uint64_t>(a, b);
    } else if constexpr (sizeof(T) == 4) {
      return same_code<std::uint32_t>(a, b);
    } else if constexpr (sizeof(T) == 2) {
      return same_code<std::uint16_t>(a, b);
    } else {
      return same_code<std::uint8_t>(a, b);
    }
  }
  template <typename Code, typename Part>
  static __device__ bool same_code(Part a, Part b) {
    return __builtin_bit_cast(Code, a) == __builtin_bit_cast(Code, b);
  }
  __device__ void note_worst(Real excess, std::uint64_t index) {
    // A thread visits its elements in order, so the first of equal ones stays.
    if (excess > bar) {
      bar = excess;
      worst = excess;
      worst_index = index;
    }
  }
  __device__ void add_special(PairKind kind, std::uint64_t index, Table& table) {
    atomicAdd(&table.special[static_cast<int>(kind)], 1U);
    near[0] += kind == PairKind::inf_agree;
    if (kind == PairKind::both_nan || kind == PairKind::inf_agree) return;
    if (index < first) first = index;
    note_worst(static_cast<Real>(INFINITY), index);
  }
};

// The pairs of one load of float32, float16 or bfloat16, if all differences are finite and all
// signs equal. Then the distance is an integer difference of the codes.
template <typename T>
struct Quick {
  static constexpr int kCount = Load<T>::kCount;
  // The shift that moves the code's sign bit to the sign bit of an integer.
  static constexpr int kShift = sizeof(T) == 2 ? 16 : 0;
  static constexpr std::uint32_t kSigns = sizeof(T) == 2 ? 0x80008000 : 0x80000000;

  std::uint32_t differing;  // bits that differ in any pair
  float difference[kCount];
  bool possible;

  static __device__ std::uint32_t word(const uint4& words, int i) {
    return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
  }
  static __device__ std::uint32_t code(const uint4& words, int k) {
    if constexpr (sizeof(T) == 4) return word(words, k);
    const std::uint32_t both = word(words, k / 2);
    return k % 2 == 0 ? both << 16 : both & 0xFFFF0000;
  }
  static __device__ float value(const uint4& words, int k) {
    if constexpr (std::is_same_v<T, Float16>) {
      const auto half = static_cast<unsigned short>(code(words, k) >> 16);
      return __half2float(__ushort_as_half(half));
    } else {
      return __uint_as_float(code(words, k));
    }
  }

  __device__ Quick(const uint4& x, const uint4& y) {
    differing = (x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w);
    float most = 0;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      difference[k] = fabsf(__fsub_rn(value(x, k), value(y, k)));
      // max.NaN returns NaN if any operand is NaN, so a finite result means finite elements.
      asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(most), "f"(difference[k]));
    }
    possible = most < INFINITY && (differing & kSigns) == 0;
  }

  __device__ typename Share<T>::Peaks add(const uint4& x, const uint4& y,
                                          const Limits<float>& limits, Share<T>& share,
                                          Table& table) const {
    typename Share<T>::Peaks peaks;
    std::uint32_t near = 0;  // four 8-bit counters for the distances 0 to 3
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      peaks.raise(share.add_difference(difference[k], fabsf(value(y, k)), limits));
      near += one_at(distance_of(x, y, k));
    }
    const std::uint32_t same = __dp4a(near, 0x00000001U, 0U);
    share.add_equal(same);
    share.near[1] = __dp4a(near, 0x00000100U, share.near[1]);
    share.near[2] = __dp4a(near, 0x01010000U, share.near[2]);
    if (__dp4a(near, 0x01010101U, 0U) != kCount) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const std::uint32_t ulps = distance_of(x, y, k) >> kShift;
        if (ulps > 3) atomicAdd(&table.buckets[ulp_bucket(ulps)], 1U);
      }
    }
    return peaks;
  }

 private:
  static __device__ std::uint32_t distance_of(const uint4& x, const uint4& y, int k) {
    return static_cast<std::uint32_t>(
        abs(static_cast<int>(code(x, k)) - static_cast<int>(code(y, k))));
  }
  // 1 in the byte of that distance, 0 for distances from 4 on: the machine's shift clears bits that
  // leave the word.
  static __device__ std::uint32_t one_at(std::uint32_t distance) {
    std::uint32_t place;
    if constexpr (kShift == 16) {
      place = distance >> 13;
    } else {
      place = min(distance, 4U) << 3;
    }
    std::uint32_t one;
    asm("shl.b32 %0, 1, %1;" : "=r"(one) : "r"(place));
    return one;
  }
};

}  // namespace assay::cuda_share
