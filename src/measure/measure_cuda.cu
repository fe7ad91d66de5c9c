#include <cuda_runtime.h>

#include <algorithm>

#include "fill/numbers.h"
#include "measure/kernels.h"
#include "measure/measure_cuda.h"
#include "measure/pair.h"

namespace assay {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerMultiprocessor = 8;
constexpr int kMostBlocks = 2048;
constexpr int kGrid = static_cast<int>(kRtolGrid.size());
constexpr int kBuckets = static_cast<int>(kUlpBuckets);
using Count = unsigned long long;  // what the atomic functions take
constexpr Count kNone = ~Count{0};

// What all threads find together. Maxima are of numbers that are not negative, whose bits are in
// their order: they are kept as bits.
struct Tally {
  Count needed[kGrid];
  Count relative;
  Count bit_equal;
  Count beyond;
  Count special[6];
  Count buckets[kBuckets];
  Count first;  // smaller is earlier
};
// The worst pair of one block of threads.
struct Worst {
  double excess;
  Count index;
};
struct Scratch {
  Tally tally;
  Worst worst[kMostBlocks];
};
static_assert(sizeof(Scratch) <= kMeasureCudaScratch);

__device__ Count bits(double value) { return static_cast<Count>(ieee::bits_of(value)); }

// What the threads of a block count where they meet; the hardware adds the ones of a warp at once.
struct Table {
  std::uint32_t special[6];
  std::uint32_t buckets[kBuckets];
};

// The elements that one 16-byte load brings.
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

// Through the intrinsic, since a plain read of such a struct is taken apart into its elements.
template <typename T>
__device__ uint4 load_words(const T* from, std::uint64_t load) {
  return __ldcs(reinterpret_cast<const uint4*>(from) + load);
}

// One thread's share.
template <typename T>
struct Share {
  using Real = MeasureReal<T>;
  Real needed[kGrid] = {};
  Real relative = 0;
  Real worst = 0;
  Count worst_index = kNone;
  Count first = kNone;
  std::uint32_t bit_equal = 0;
  std::uint32_t beyond = 0;
  std::uint32_t near[3] = {};  // of the distance 0, of 1, and of 2 and 3

  // Any pair.
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

  // What says whether a finite pair, or one of several, must be looked at again.
  struct Peaks {
    Real excess = 0;      // under the given rtol
    Real above_most = 0;  // difference - relative · reference; its sign is exact
    __device__ void raise(const Peaks& other) {
      excess = ieee::larger(excess, other.excess);
      above_most = ieee::larger(above_most, other.above_most);
    }
    __device__ bool notable(const Share& share, const Limits<Real>& limits) const {
      return above_most > 0 || excess > share.worst || excess > limits.atol;
    }
  };
  __device__ Peaks add_finite(T a, T b, const Limits<Real>& limits, Table& table) {
    const Pair<Real> pair = compare_finite(a, b);
    bit_equal += same_bits(a, b);
    add_distance(pair.ulps, table);
#pragma unroll
    for (int g = 0; g < kGrid; ++g) {
      if (kIsCoarse<T> && g > 0 && g < static_cast<int>(kFirstCoarse)) continue;  // as needed[0]
      const Real excess = ieee::fused(-limits.grid[g], pair.reference, pair.difference);
      needed[g] = ieee::larger(needed[g], excess);
    }
    return {ieee::fused(-limits.rtol, pair.reference, pair.difference),
            ieee::fused(-relative, pair.reference, pair.difference)};
  }
  // The rest for a finite pair that may be an offender or the largest so far.
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
    // A thread goes through its elements in order, so the first of equals stays.
    if (excess > worst) {
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

// The largest, least and sum over the threads of a warp.
__device__ Count warp_larger(Count value) {
  for (int step = 16; step > 0; step /= 2) {
    const Count other = __shfl_xor_sync(~0U, value, step);
    value = value < other ? other : value;
  }
  return value;
}
__device__ Count warp_smaller(Count value) { return ~warp_larger(~value); }

// Carries the shares of a block of threads and its table to the whole tally.
template <typename T>
__device__ void gather(Share<T>& share, const Table& table, Scratch* scratch) {
  __shared__ Count most;
  __shared__ Count where;
  share.finish();
  if (threadIdx.x == 0) {
    most = 0;
    where = kNone;
  }
  __syncthreads();
  const bool leads = threadIdx.x % 32 == 0;
  Tally& all = scratch->tally;
  const auto raise = [&](Count* target, Count value) {
    value = warp_larger(value);
    if (leads && value != 0) atomicMax(target, value);
  };
  for (int g = 0; g < kGrid; ++g) raise(&all.needed[g], bits(share.needed[g]));
  raise(&all.relative, bits(share.relative));
  raise(&most, bits(share.worst));
  const auto sum = [&](Count* target, std::uint32_t value) {
    value = __reduce_add_sync(~0U, value);
    if (leads && value != 0) atomicAdd(target, Count{value});
  };
  sum(&all.bit_equal, share.bit_equal);
  sum(&all.beyond, share.beyond);
  for (int k = 0; k < 3; ++k) sum(&all.buckets[k], share.near[k]);
  const Count first = warp_smaller(share.first);
  if (leads && first != kNone) atomicMin(&all.first, first);
  __syncthreads();
  if (bits(share.worst) == most) atomicMin(&where, share.worst_index);
  __syncthreads();
  if (threadIdx.x == 0) {
    scratch->worst[blockIdx.x] = {ieee::double_of(static_cast<std::uint64_t>(most)), where};
  }
  for (int i = threadIdx.x; i < kBuckets; i += kThreads) {
    if (table.buckets[i] != 0) atomicAdd(&all.buckets[i], Count{table.buckets[i]});
  }
  if (threadIdx.x < 6 && table.special[threadIdx.x] != 0) {
    atomicAdd(&all.special[threadIdx.x], Count{table.special[threadIdx.x]});
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    measure_kernel(const T* left, const T* right, std::uint64_t count,
                   const Limits<MeasureReal<T>> limits, Scratch* scratch) {
  __shared__ Table table;
  for (int i = threadIdx.x; i < static_cast<int>(sizeof(Table) / 4); i += kThreads) {
    reinterpret_cast<std::uint32_t*>(&table)[i] = 0;
  }
  __syncthreads();
  Share<T> share;
  constexpr int kLoad = Load<T>::kCount;
  const bool aligned =
      (reinterpret_cast<std::uintptr_t>(left) | reinterpret_cast<std::uintptr_t>(right)) %
          sizeof(uint4) ==
      0;
  const std::uint64_t loads = aligned ? count / kLoad : 0;
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t i = thread; i < loads; i += stride) {
    const uint4 x = load_words(left, i);
    const uint4 y = load_words(right, i);
    const auto a = __builtin_bit_cast(Load<T>, x);
    const auto b = __builtin_bit_cast(Load<T>, y);
    if (!a.finite() || !b.finite()) {
#pragma unroll 1
      for (std::uint64_t k = i * kLoad; k < (i + 1) * kLoad; ++k) {
        share.add(left[k], right[k], k, limits, table);
      }
    } else if (x.x == y.x && x.y == y.y && x.z == y.z && x.w == y.w) {
      share.add_equal(kLoad);
    } else {
      typename Share<T>::Peaks peaks;
#pragma unroll
      for (int k = 0; k < kLoad; ++k) {
        peaks.raise(share.add_finite(a.element[k], b.element[k], limits, table));
      }
      if (peaks.notable(share, limits)) {
#pragma unroll 1
        for (std::uint64_t k = i * kLoad; k < (i + 1) * kLoad; ++k) {
          share.note(left[k], right[k], k, limits);
        }
      }
    }
  }
  for (std::uint64_t i = loads * kLoad + thread; i < count; i += stride) {
    share.add(left[i], right[i], i, limits, table);
  }
  __syncthreads();
  gather(share, table, scratch);
}

// Copies the pair of an offender from the device and completes it.
template <typename T>
cudaError_t complete(const T* left, const T* right, const Limits<MeasureReal<T>>& limits,
                     Offender& offender, cudaStream_t stream) {
  if (!offender) return cudaSuccess;
  T a;
  T b;
  cudaError_t error =
      cudaMemcpyAsync(&a, left + offender.index, sizeof(T), cudaMemcpyDeviceToHost, stream);
  if (error == cudaSuccess) {
    error = cudaMemcpyAsync(&b, right + offender.index, sizeof(T), cudaMemcpyDeviceToHost, stream);
  }
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess) return error;
  offender.left = values_of<T>(reinterpret_cast<const std::byte*>(&a));
  offender.right = values_of<T>(reinterpret_cast<const std::byte*>(&b));
  const auto pair = compare(a, b);
  offender.excess = pair.kind == PairKind::finite
                        ? ieee::fused(-limits.rtol, pair.reference, pair.difference)
                        : std::numeric_limits<double>::infinity();
  return cudaSuccess;
}

// The tally in the words of a measurement.
void read_tally(const Tally& tally, Measurement& result) {
  const auto number = [](Count bits) { return ieee::double_of(static_cast<std::uint64_t>(bits)); };
  const auto special = [&](PairKind kind) { return tally.special[static_cast<int>(kind)]; };
  result.bit_equal = tally.bit_equal;
  result.both_nan = special(PairKind::both_nan);
  result.nan_left_only = special(PairKind::nan_left_only);
  result.nan_right_only = special(PairKind::nan_right_only);
  result.inf_disagree = special(PairKind::inf_disagree);
  for (int g = 0; g < kGrid; ++g) result.atol_needed[g] = number(tally.needed[g]);
  result.max_abs = result.atol_needed[0];
  result.max_rel = number(tally.relative);
  std::copy(tally.buckets, tally.buckets + kBuckets, result.ulp_histogram.begin());
  result.beyond = tally.beyond + result.nan_left_only + result.nan_right_only + result.inf_disagree;
  result.first.index = tally.first;
}

template <typename T>
cudaError_t run(const T* left, const T* right, std::uint64_t count, Scratch* scratch,
                Measurement& result, cudaStream_t stream) {
  int device = 0;
  int multiprocessors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  }
  if (error != cudaSuccess) return error;
  const std::uint64_t wanted = count / (Load<T>::kCount * kThreads) + 1;
  const int most = std::min(multiprocessors * kBlocksPerMultiprocessor, kMostBlocks);
  const int blocks = static_cast<int>(std::min<std::uint64_t>(wanted, most));

  const auto limits = limits_of<MeasureReal<T>>(result.under, kIsCoarse<T>);
  error = cudaMemsetAsync(scratch, 0, sizeof(Tally), stream);
  if (error == cudaSuccess) {
    error = cudaMemsetAsync(&scratch->tally.first, 0xFF, sizeof(Count), stream);
  }
  if (error != cudaSuccess) return error;
  measure_kernel<T><<<blocks, kThreads, 0, stream>>>(left, right, count, limits, scratch);
  error = cudaGetLastError();
  if (error != cudaSuccess) return error;
  Scratch found;
  const std::size_t bytes = offsetof(Scratch, worst) + sizeof(Worst) * blocks;
  error = cudaMemcpyAsync(&found, scratch, bytes, cudaMemcpyDeviceToHost, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess) return error;

  read_tally(found.tally, result);
  for (int b = 0; b < blocks; ++b) {
    const Worst& worst = found.worst[b];
    const bool earlier = worst.excess == result.worst.excess && worst.index < result.worst.index;
    if (worst.excess > result.worst.excess || (earlier && worst.excess > 0)) {
      result.worst.excess = worst.excess;
      result.worst.index = worst.index;
    }
  }
  error = complete(left, right, limits, result.worst, stream);
  return error == cudaSuccess ? complete(left, right, limits, result.first, stream) : error;
}

}  // namespace

int measure_cuda(DType dtype, const void* left, const void* right, std::uint64_t count,
                 Tolerance under, void* scratch, Measurement& result, void* stream) {
  result = {};
  result.under = under;
  result.count = count;
  if (count == 0) return cudaSuccess;
  return visit(dtype, [&]<typename T>(Type<T>) {
    return run(static_cast<const T*>(left), static_cast<const T*>(right), count,
               static_cast<Scratch*>(scratch), result, static_cast<cudaStream_t>(stream));
  });
}

}  // namespace assay
