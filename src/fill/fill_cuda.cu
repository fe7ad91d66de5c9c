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
                         std::conditional_t<kBytes == 4, std::uint32_t, std::uint16_t>>>;
  alignas(Store) T value[kCount];

  __device__ Parts(const FillPlan& plan, const PhiloxBlock& block) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      std::uint64_t draw = 0;
      if constexpr (kWidth == 64) {
        draw = block.word[2 * i] | std::uint64_t{block.word[2 * i + 1]} << 32;
      } else if constexpr (kWidth == 32) {
        draw = block.word[i];
      } else {
        draw = block.word[i / 2] >> (i % 2 * 16) & 0xFFFF;
      }
      value[i] = linear_value<T>(plan, draw);
    }
  }
  __device__ void store_all(T* out) const {
#pragma unroll
    for (int i = 0; i < kBytes / static_cast<int>(sizeof(Store)); ++i) {
      reinterpret_cast<Store*>(out)[i] = reinterpret_cast<const Store*>(value)[i];
    }
  }
};

// The linear kinds: a thread makes the parts of one block. `first` and `count` are in parts.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    linear_kernel(const FillPlan plan, T* out, std::uint64_t first, std::uint64_t count) {
  using Made = Parts<T, kWidth>;
  constexpr int kCount = Made::kCount;
  const std::uint64_t end = first + count;
  const std::uint64_t blocks = (end + kCount - 1) / kCount - first / kCount;
  const bool vectors = first % kCount == 0 &&
                       reinterpret_cast<std::uintptr_t>(out) % sizeof(typename Made::Store) == 0;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t b = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; b < blocks;
       b += stride) {
    const std::uint64_t number = first / kCount + b;
    const Made made(plan, block_of(plan.stream, number));
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

// The width of the draws as a constant of the kernel: of reals it is the type's.
template <typename T>
void launch_linear(const FillPlan& plan, T* out, std::uint64_t first, std::uint64_t count,
                   Launch launch) {
  const auto run = [&](auto kernel) {
    kernel<<<launch.grid, kThreads, 0, launch.stream>>>(plan, out, first, count);
  };
  if (plan.draw_width == 16) return run(linear_kernel<T, 16>);
  if (plan.draw_width == 32) return run(linear_kernel<T, 32>);
  run(linear_kernel<T, 64>);
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
    const cudaError_t error = plan_launch(linear ? count * kParts / 4 + 1 : count, stream, launch);
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
