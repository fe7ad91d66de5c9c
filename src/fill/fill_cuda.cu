#include <cuda_runtime.h>

#include "fill/element.h"
#include "fill/fill_cuda.h"
#include "fill/numbers.h"

namespace assay {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerMultiprocessor = 8;

// The parts that one block of the stream (four words) makes, and the widest store for them.
template <typename T, int kWidth>
struct Parts {
  static constexpr int kCount = 128 / kWidth;
  static constexpr int kBytes = kCount * static_cast<int>(sizeof(T));
  using Store = std::conditional_t<
      kBytes % 16 == 0, uint4,
      std::conditional_t<kBytes == 8, uint2,
                         std::conditional_t<kBytes == 4, unsigned int, unsigned short>>>;
  alignas(Store) T value[kCount];

  // Through the intrinsic, since a plain assignment of a vector is taken apart again.
  __device__ void store_all(T* out) const {
#pragma unroll
    for (int i = 0; i < kBytes / static_cast<int>(sizeof(Store)); ++i) {
      Store chunk;
      __builtin_memcpy(&chunk, reinterpret_cast<const char*>(value) + i * sizeof chunk,
                       sizeof chunk);
      __stcs(reinterpret_cast<Store*>(out) + i, chunk);
    }
  }
};

template <int kWidth>
__device__ std::uint64_t draw_of(const PhiloxBlock& block, int i) {
  if constexpr (kWidth == 64) {
    return block.word[2 * i] | std::uint64_t{block.word[2 * i + 1]} << 32;
  } else if constexpr (kWidth == 32) {
    return block.word[i];
  } else {
    return block.word[i / 2] >> (i % 2 * 16) & 0xFFFF;
  }
}

template <typename T, int kWidth>
struct WholeMaker {
  using Made = Parts<T, kWidth>;
  FillPlan plan;

  __device__ void make(const PhiloxBlock& block, Made& made) const {
#pragma unroll
    for (int i = 0; i < Made::kCount; ++i) {
      made.value[i] = whole_value<T>(plan, below(draw_of<kWidth>(block, i), kWidth, plan.count));
    }
  }
};

template <typename T>
struct RealMaker {
  static constexpr int kWidth = kRealDrawWidth<T>;
  using Made = Parts<T, kWidth>;
  UniformRange<T> range;

  // Those of 16 bits are rounded two at a time.
  __device__ void make(const PhiloxBlock& block, Made& made) const {
#pragma unroll
    for (int i = 0; i < Made::kCount; i += 2) {
      const auto first = range.place(draw_of<kWidth>(block, i));
      const auto second = range.place(draw_of<kWidth>(block, i + 1));
      if constexpr (std::is_same_v<T, Float16>) {
        *reinterpret_cast<__half2*>(made.value + i) = __floats2half2_rn(first, second);
      } else if constexpr (std::is_same_v<T, BFloat16>) {
        *reinterpret_cast<__nv_bfloat162*>(made.value + i) = __floats2bfloat162_rn(first, second);
      } else {
        made.value[i] = rounded<T>(first);
        made.value[i + 1] = rounded<T>(second);
      }
    }
  }
};

// The linear kinds: a thread makes the parts of one block of the stream. `first` and `count` are in
// parts.
template <typename T, typename Maker>
__global__ void __launch_bounds__(kThreads)
    linear_kernel(const Maker maker, const Stream stream, T* out, std::uint64_t first,
                  std::uint64_t count) {
  using Made = typename Maker::Made;
  constexpr int kCount = Made::kCount;
  const std::uint64_t end = first + count;
  const std::uint64_t blocks = (end + kCount - 1) / kCount - first / kCount;
  const bool vectors = first % kCount == 0 &&
                       reinterpret_cast<std::uintptr_t>(out) % sizeof(typename Made::Store) == 0;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t b = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; b < blocks;
       b += stride) {
    const std::uint64_t number = first / kCount + b;
    Made made;
    maker.make(block_of(stream, number), made);
    const std::uint64_t place = number * kCount;
    if (vectors && place + kCount <= end) {
      made.store_all(out + (place - first));
      continue;
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (place + i >= first && place + i < end) out[place + i - first] = made.value[i];
    }
  }
}

// Every other kind, an element at a time. `first` and `count` are in elements.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    element_kernel(const FillPlan plan, T* out, std::uint64_t first, std::uint64_t count,
                   int parts) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += stride) {
    TensorDraws draws(plan.stream);
    for (int part = 0; part < parts; ++part) {
      out[i * parts + part] = part_value<T>(plan, draws, first + i, parts, part);
    }
  }
}

struct Launch {
  int grid;
  cudaStream_t stream;
};

cudaError_t plan_launch(std::uint64_t work, void* stream, Launch& launch) {
  int device = 0;
  int multiprocessors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  }
  const std::uint64_t wanted = (work + kThreads - 1) / kThreads;
  const std::uint64_t most = std::uint64_t(multiprocessors) * kBlocksPerMultiprocessor;
  launch = {static_cast<int>(wanted < most ? wanted : most), static_cast<cudaStream_t>(stream)};
  return error;
}

template <typename T>
void launch_linear(const FillPlan& plan, T* out, std::uint64_t first, std::uint64_t count,
                   Launch launch) {
  const auto run = [&](auto maker) {
    linear_kernel<T>
        <<<launch.grid, kThreads, 0, launch.stream>>>(maker, plan.stream, out, first, count);
  };
  if constexpr (kIsFloat<T>) {
    if (!plan.whole) return run(RealMaker<T>{UniformRange<T>(plan)});
  }
  if (plan.draw_width == 16) return run(WholeMaker<T, 16>{plan});
  if (plan.draw_width == 32) return run(WholeMaker<T, 32>{plan});
  run(WholeMaker<T, 64>{plan});
}

}  // namespace

int fill_cuda(const FillRule& rule, const FillKey& key, DType dtype, void* out, std::uint64_t count,
              std::uint64_t first_element, void* stream) {
  if (count == 0) return cudaSuccess;
  const FillPlan plan = make_plan(rule, key, dtype);
  visit(dtype, [&]<typename T>(Type<T>) {
    using Part = PartOf<T>;
    constexpr int kParts = kIsComplex<T> ? 2 : 1;
    const bool linear = is_linear(plan);
    Launch launch{};
    const std::uint64_t in_block = 128 / static_cast<std::uint64_t>(plan.draw_width);
    const std::uint64_t work = linear ? count * kParts / in_block + 1 : count;
    const cudaError_t error = plan_launch(work, stream, launch);
    if (error != cudaSuccess) return;
    if (linear) {
      launch_linear(plan, static_cast<Part*>(out), first_element * kParts, count * kParts, launch);
    } else {
      element_kernel<<<launch.grid, kThreads, 0, launch.stream>>>(plan, static_cast<Part*>(out),
                                                                  first_element, count, kParts);
    }
  });
  return cudaGetLastError();
}

}  // namespace assay
