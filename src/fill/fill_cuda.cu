#include <cuda_runtime.h>

#include "fill/element.h"
#include "fill/fill_cuda.h"
#include "fill/numbers.h"

namespace assay {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerMultiprocessor = 8;

// The linear kinds: a thread turns one block of the stream (four words) into the 2, 4 or 8 parts
// that its draws make. `first` and `count` are in parts.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    linear_kernel(const FillPlan plan, T* out, std::uint64_t first, std::uint64_t count) {
  constexpr int kDraws = 128 / kWidth;
  const std::uint64_t end = first + count;
  const std::uint64_t blocks = (end + kDraws - 1) / kDraws - first / kDraws;
  const bool vectors = sizeof(T) * 8 == kWidth && first % kDraws == 0 &&
                       reinterpret_cast<std::uintptr_t>(out) % 16 == 0;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t b = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; b < blocks;
       b += stride) {
    const std::uint64_t number = first / kDraws + b;
    const PhiloxBlock block = block_of(plan.stream, number);
    alignas(16) T parts[kDraws];
#pragma unroll
    for (int i = 0; i < kDraws; ++i) {
      std::uint64_t draw = 0;
      if constexpr (kWidth == 64) {
        draw = block.word[2 * i] | std::uint64_t{block.word[2 * i + 1]} << 32;
      } else if constexpr (kWidth == 32) {
        draw = block.word[i];
      } else {
        draw = block.word[i / 2] >> (i % 2 * 16) & 0xFFFF;
      }
      parts[i] = linear_value<T>(plan, draw);
    }
    const std::uint64_t place = number * kDraws;
    if (vectors && place + kDraws <= end) {
      *reinterpret_cast<uint4*>(out + (place - first)) = *reinterpret_cast<const uint4*>(parts);
      continue;
    }
#pragma unroll
    for (int i = 0; i < kDraws; ++i) {
      if (place + i >= first && place + i < end) out[place + i - first] = parts[i];
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
