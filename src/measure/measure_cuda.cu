#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "fill/numbers.h"
#include "measure/cuda_share.cuh"
#include "measure/element_difference.h"
#include "measure/kernels.h"
#include "measure/measure_cuda.h"

namespace assay {
namespace {

using namespace cuda_share;

// Adds the pairs of a load of any type. All threads of a warp must call this together.
template <typename T>
__device__ void add_load(const T* left, const T* right, const uint4& x, const uint4& y,
                         std::uint64_t load, const Limits<MeasureReal<T>>& limits, Share<T>& share,
                         Table& table) {
  constexpr int kLoad = Load<T>::kCount;
  typename Share<T>::Peaks peaks;
  bool each = false;
  if constexpr (kIsQuick<T>) {
    const Quick<T> quick(x, y);
    each = !quick.possible;
    if (quick.possible && quick.differing == 0) {
      share.add_equal(kLoad);
    } else if (quick.possible) {
      peaks = quick.add(x, y, limits, share, table);
    }
  } else {
    const auto a = __builtin_bit_cast(Load<T>, x);
    const auto b = __builtin_bit_cast(Load<T>, y);
    each = !a.finite() || !b.finite();
    if (!each && x.x == y.x && x.y == y.y && x.z == y.z && x.w == y.w) {
      share.add_equal(kLoad);
    } else if (!each) {
#pragma unroll
      for (int k = 0; k < kLoad; ++k) {
        peaks.raise(share.add_finite(a.element[k], b.element[k], limits, table));
      }
    }
  }
  const bool notable = peaks.notable(share, limits);
  if (!__any_sync(kAll, each || notable)) return;
  const std::uint64_t from = load * kLoad;
  if (each) {
#pragma unroll 1
    for (std::uint64_t k = from; k < from + kLoad; ++k) {
      share.add(left[k], right[k], k, limits, table);
    }
  } else if (notable) {
#pragma unroll 1
    for (std::uint64_t k = from; k < from + kLoad; ++k) share.note(left[k], right[k], k, limits);
  }
  __syncwarp();
  share.share_peaks();
}

template <typename T>
__device__ void copy_element(const T* from, Count index, unsigned char* to) {
  if (index == kNone) return;
  const T element = from[index];
  __builtin_memcpy(to, &element, sizeof element);
}

// Runs in the last thread block: finds the worst pair of all, writes the host's result, and clears
// the scratch.
template <typename T>
__device__ void conclude(const T* left, const T* right, Scratch* scratch, Found* found) {
  __shared__ Count most;
  __shared__ Count where;
  if (threadIdx.x == 0) {
    most = 0;
    where = kNone;
  }
  __syncthreads();
  for (unsigned b = threadIdx.x; b < gridDim.x; b += kThreads) {
    atomicMax(&most, bits(__ldcg(&scratch->worst[b].excess)));
  }
  __syncthreads();
  for (unsigned b = threadIdx.x; b < gridDim.x; b += kThreads) {
    if (most != 0 && bits(__ldcg(&scratch->worst[b].excess)) == most) {
      atomicMin(&where, __ldcg(&scratch->worst[b].index));
    }
  }
  Tally& all = scratch->tally;
  const auto take = [](Count* from, Count* to) {
    *to = __ldcg(from);
    *from = 0;
  };
  const Count first = ~__ldcg(&all.maxima[Tally::kFirst]);
  __syncthreads();
  for (int i = threadIdx.x; i < Tally::kMaxima; i += kThreads) {
    take(&all.maxima[i], &found->tally.maxima[i]);
  }
  for (int i = threadIdx.x; i < Tally::kSums; i += kThreads) {
    take(&all.sums[i], &found->tally.sums[i]);
  }
  if (threadIdx.x == 0) {
    scratch->blocks_done = 0;
    found->worst = {ieee::double_of(static_cast<std::uint64_t>(most)), where};
    copy_element(left, where, found->elements[0]);
    copy_element(right, where, found->elements[1]);
    copy_element(left, first, found->elements[2]);
    copy_element(right, first, found->elements[3]);
  }
}

// Adds the results of a thread block and its table to the total.
template <typename T>
__device__ void gather(Share<T>& share, const Table& table, Scratch* scratch, bool& is_last) {
  __shared__ Tally block;
  __shared__ Count most;
  __shared__ Count where;
  share.finish();
  for (int i = threadIdx.x; i < static_cast<int>(sizeof(Tally) / sizeof(Count)); i += kThreads) {
    reinterpret_cast<Count*>(&block)[i] = 0;
  }
  if (threadIdx.x == 0) {
    most = 0;
    where = kNone;
  }
  __syncthreads();
  const bool leads = threadIdx.x % kWarp == 0;
  const auto raise = [&](Count* target, Count value) {
    value = warp_larger(value);
    if (leads && value != 0) atomicMax(target, value);
  };
  for (int g = 0; g < kGrid; ++g) raise(&block.maxima[g], bits(share.needed[g]));
  raise(&block.maxima[Tally::kRelative], bits(share.relative));
  raise(&block.maxima[Tally::kFirst], ~share.first);
  raise(&most, bits(share.worst));
  const auto sum = [&](Count* target, std::uint32_t value) {
    value = __reduce_add_sync(kAll, value);
    if (leads && value != 0) atomicAdd(target, Count{value});
  };
  sum(&block.sums[Tally::kBitEqual], share.bit_equal);
  sum(&block.sums[Tally::kBeyond], share.beyond);
  for (int k = 0; k < 3; ++k) sum(&block.sums[Tally::kUlps + k], share.near[k]);
  for (int i = threadIdx.x; i < kBuckets; i += kThreads) {
    atomicAdd(&block.sums[Tally::kUlps + i], Count{table.buckets[i]});
  }
  if (threadIdx.x < 6) block.sums[Tally::kSpecial + threadIdx.x] = table.special[threadIdx.x];
  __syncthreads();
  if (bits(share.worst) == most) atomicMin(&where, share.worst_index);
  Tally& all = scratch->tally;
  for (int i = threadIdx.x; i < Tally::kMaxima; i += kThreads) {
    if (block.maxima[i] != 0) atomicMax(&all.maxima[i], block.maxima[i]);
  }
  for (int i = threadIdx.x; i < Tally::kSums; i += kThreads) {
    if (block.sums[i] != 0) atomicAdd(&all.sums[i], block.sums[i]);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    scratch->worst[blockIdx.x] = {ieee::double_of(static_cast<std::uint64_t>(most)), where};
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(&scratch->blocks_done, 1U) + 1 == gridDim.x;
  __syncthreads();
}

template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor<T>)
    measure_kernel(const T* left, const T* right, std::uint64_t count,
                   const Limits<MeasureReal<T>> limits, Scratch* scratch, Found* found) {
  __shared__ Table table;
  __shared__ bool is_last;
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
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kThreads;
  // All threads of a warp or none; two loads per side at a time.
  const std::uint64_t loads = aligned ? count / kLoad / kWarp * kWarp : 0;
  std::uint64_t i = thread;
#pragma unroll 1
  for (; i + stride < loads; i += 2 * stride) {
    const uint4 x = load_words(left, i);
    const uint4 y = load_words(right, i);
    const uint4 next_x = load_words(left, i + stride);
    const uint4 next_y = load_words(right, i + stride);
    add_load(left, right, x, y, i, limits, share, table);
    add_load(left, right, next_x, next_y, i + stride, limits, share, table);
  }
  if (i < loads) {
    add_load(left, right, load_words(left, i), load_words(right, i), i, limits, share, table);
  }
  for (std::uint64_t k = loads * kLoad + thread; k < count; k += stride) {
    share.add(left[k], right[k], k, limits, table);
  }
  __syncthreads();
  gather(share, table, scratch, is_last);
  if (is_last) {
    __threadfence();
    conclude(left, right, scratch, found);
  }
}

// Builds an offender from its index and elements.
template <typename T>
void complete(const unsigned char* left, const unsigned char* right,
              const Limits<MeasureReal<T>>& limits, Offender& offender) {
  if (!offender) return;
  T a;
  T b;
  std::memcpy(&a, left, sizeof a);
  std::memcpy(&b, right, sizeof b);
  offender.left = values_of<T>(reinterpret_cast<const std::byte*>(&a));
  offender.right = values_of<T>(reinterpret_cast<const std::byte*>(&b));
  const auto pair = compare(a, b);
  offender.excess = pair.kind == PairKind::finite
                        ? ieee::fused(-limits.rtol, pair.reference, pair.difference)
                        : std::numeric_limits<double>::infinity();
}

// Converts the tally to a Measurement.
void read_tally(const Tally& tally, Measurement& result) {
  const auto number = [](Count bits) { return ieee::double_of(static_cast<std::uint64_t>(bits)); };
  const auto special = [&](PairKind kind) {
    return tally.sums[Tally::kSpecial + static_cast<int>(kind)];
  };
  result.bit_equal = tally.sums[Tally::kBitEqual];
  result.both_nan = special(PairKind::both_nan);
  result.nan_left_only = special(PairKind::nan_left_only);
  result.nan_right_only = special(PairKind::nan_right_only);
  result.inf_disagree = special(PairKind::inf_disagree);
  for (int g = 0; g < kGrid; ++g) result.atol_needed[g] = number(tally.maxima[g]);
  result.max_abs = result.atol_needed[0];
  result.max_rel = number(tally.maxima[Tally::kRelative]);
  std::copy(tally.sums + Tally::kUlps, tally.sums + Tally::kSums, result.ulp_histogram.begin());
  result.beyond = tally.sums[Tally::kBeyond] + result.nan_left_only + result.nan_right_only +
                  result.inf_disagree;
  result.first.index = ~tally.maxima[Tally::kFirst];
}

template <typename T>
cudaError_t run(const T* left, const T* right, std::uint64_t count, Scratch* scratch, Found* found,
                Measurement& result, cudaStream_t stream) {
  int device = 0;
  int multiprocessors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  }
  if (error != cudaSuccess) return error;
  // Two loads per thread, as in the kernel: a small result is gathered faster from few blocks.
  const std::uint64_t wanted = count / (2 * Load<T>::kCount * kThreads) + 1;
  const int most = std::min(multiprocessors * kBlocksPerMultiprocessor<T>, kMostBlocks);
  const int blocks = static_cast<int>(std::min<std::uint64_t>(wanted, most));

  const auto limits = limits_of<MeasureReal<T>>(result.under, kIsCoarse<T>);
  measure_kernel<T><<<blocks, kThreads, 0, stream>>>(left, right, count, limits, scratch, found);
  error = cudaGetLastError();
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess) return error;

  read_tally(found->tally, result);
  result.worst.index = found->worst.index;
  complete<T>(found->elements[0], found->elements[1], limits, result.worst);
  complete<T>(found->elements[2], found->elements[3], limits, result.first);
  return cudaSuccess;
}

}  // namespace

int measure_cuda(DType dtype, const void* left, const void* right, std::uint64_t count,
                 Tolerance under, const MeasureCudaMemory& memory, Measurement& result,
                 void* stream) {
  result = {};
  result.under = under;
  result.count = count;
  if (count == 0) return cudaSuccess;
  return visit(dtype, [&]<typename T>(Type<T>) {
    return run(static_cast<const T*>(left), static_cast<const T*>(right), count,
               static_cast<Scratch*>(memory.scratch), static_cast<Found*>(memory.result), result,
               static_cast<cudaStream_t>(stream));
  });
}

}  // namespace assay
