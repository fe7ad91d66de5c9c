#include <cuda_runtime.h>

#include <algorithm>
#include <bit>

#include "fill/element.h"
#include "fill/fill_cuda.h"
#include "fill/make_plan.h"
#include "fill/numbers.h"

namespace assay {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerMultiprocessor = 8;

// The parts that one thread computes: those of a block of the stream (four words), but at most 16
// bytes, one store. Neighbouring threads must write neighbouring bytes, so if a block gives more,
// kShare threads read it and each computes its own share.
template <typename T, int kWidth>
struct Parts {
  static constexpr int kInBlock = 128 / kWidth;
  static constexpr int kBlockBytes = kInBlock * static_cast<int>(sizeof(T));
  static constexpr int kShare = kBlockBytes > 16 ? kBlockBytes / 16 : 1;
  static constexpr int kCount = kInBlock / kShare;
  static constexpr int kBytes = kBlockBytes / kShare;
  using Store = std::conditional_t<
      kBytes == 16, uint4,
      std::conditional_t<kBytes == 8, uint2,
                         std::conditional_t<kBytes == 4, unsigned int, unsigned short>>>;
  alignas(Store) T value[kCount];

  // Uses the intrinsic, because the compiler splits a plain assignment of a vector.
  __device__ void store_all(T* out) const {
    Store chunk;
    __builtin_memcpy(&chunk, value, sizeof chunk);
    __stcs(reinterpret_cast<Store*>(out), chunk);
  }
};

// Draw i of the given share of a block.
template <typename Made, int kWidth>
__device__ std::uint64_t draw_of(const PhiloxBlock& block, int share, int i) {
  if constexpr (kWidth == 64) {
    // A type wider than its draws is never 16 bytes, so it takes two words of a block.
    return block.word[2 * i] | std::uint64_t{block.word[2 * i + 1]} << 32;
  } else if constexpr (kWidth == 32) {
    if constexpr (Made::kShare == 1) return block.word[i];
    return share == 0 ? block.word[i] : block.word[i + Made::kCount];
  } else {
    constexpr int kWords = 4 / Made::kShare;
    std::uint32_t word = block.word[i / 2];
#pragma unroll
    for (int other = 1; other < Made::kShare; ++other) {
      if (share == other) word = block.word[i / 2 + other * kWords];
    }
    return word >> (i % 2 * 16) & 0xFFFF;
  }
}

template <typename T, int kBits>
struct WholeMaker {
  static constexpr int kWidth = kBits;
  using Made = Parts<T, kWidth>;
  FillPlan plan;

  __device__ std::uint64_t below_count(std::uint64_t draw) const {
    if constexpr (kWidth == 64) return below(draw, kWidth, plan.count);
    // 32 bits suffice: the count is at most 2^32, and for 2^32 itself the draw is the value.
    const auto count = static_cast<std::uint32_t>(plan.count);
    if constexpr (kWidth == 16) return static_cast<std::uint32_t>(draw) * count >> 16;
    return count == 0 ? draw : __umulhi(static_cast<std::uint32_t>(draw), count);
  }
  __device__ void make(const PhiloxBlock& block, int share, Made& made) const {
#pragma unroll
    for (int i = 0; i < Made::kCount; ++i) {
      made.value[i] = whole_value<T>(plan, below_count(draw_of<Made, kWidth>(block, share, i)));
    }
  }
};

template <typename T>
struct RealMaker {
  static constexpr int kWidth = kRealDrawWidth<T>;
  using Made = Parts<T, kWidth>;
  UniformRange<T> range;

  __device__ void make(const PhiloxBlock& block, int share, Made& made) const {
#pragma unroll
    for (int i = 0; i < Made::kCount; ++i) {
      made.value[i] = range.value(draw_of<Made, kWidth>(block, share, i));
    }
  }
};

// float16 and bfloat16, two values at a time and with fewer instructions, but the same numbers as
// UniformRange. A draw as the last bits of 2^23 + draw, times span · 2^-16, minus 2^7 · span, is
// draw · span · 2^-16 rounded once: nothing before is inexact while the span is neither huge nor
// tiny. The cap at the upper end follows the rounding to T, which is monotone. If the product is
// exact (kExact), the same instruction adds the low end.
template <typename T, bool kExact>
struct HalfMaker {
  static constexpr int kWidth = 16;
  using Made = Parts<T, kWidth>;
  using Two = std::conditional_t<std::is_same_v<T, Float16>, __half2, __nv_bfloat162>;
  float low;
  float step;         // span · 2^-16
  float start;        // -2^7 · span, plus the low end if kExact
  std::uint32_t top;  // in both halves

  explicit HalfMaker(const UniformRange<T>& range)
      : low(range.low),
        step(range.span * 0x1p-16F),
        start(range.span * -0x1p7F + (kExact ? range.low : 0.0F)),
        top(rounded<T>(range.top).code * 0x10001U) {}
  static bool can_make(const UniformRange<T>& range) {
    return range.span > 0x1p-100F && range.span < 0x1p100F;
  }
  // A draw of 16 bits times a span of 8 bits is exact, and the start must be a float.
  static bool is_exact(const UniformRange<T>& range) {
    const float from = range.span * -0x1p7F + range.low;
    return (std::bit_cast<std::uint32_t>(range.span) & 0xFFFF) == 0 &&
           double{from} + double{range.span} * 0x1p7 == double{range.low};
  }

  __device__ float place(std::uint32_t word, std::uint32_t half) const {
    const float draw = __uint_as_float(__byte_perm(word, 0x4B000000, half));
    const float value = __fmaf_rn(draw, step, start);
    return kExact ? value : __fadd_rn(low, value);
  }
  __device__ void make(const PhiloxBlock& block, int, Made& made) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float first = place(block.word[i], 0x7610);
      const float second = place(block.word[i], 0x7632);
      Two two;
      if constexpr (std::is_same_v<T, Float16>) {
        two = __floats2half2_rn(first, second);
      } else {
        two = __floats2bfloat162_rn(first, second);
      }
      Two limit;
      __builtin_memcpy(&limit, &top, sizeof limit);
      two = __hmin2(two, limit);
      __builtin_memcpy(made.value + 2 * i, &two, sizeof two);
    }
  }
};

// Linear kinds. `first` and `count` are in parts.
template <typename T, typename Maker>
__global__ void __launch_bounds__(kThreads)
    linear_kernel(const Maker maker, const Stream stream, T* out, std::uint64_t first,
                  std::uint64_t count) {
  using Made = typename Maker::Made;
  constexpr int kCount = Made::kCount;
  const std::uint64_t end = first + count;
  const std::uint64_t units = (end + kCount - 1) / kCount - first / kCount;
  const bool vectors = first % kCount == 0 &&
                       reinterpret_cast<std::uintptr_t>(out) % sizeof(typename Made::Store) == 0;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t u = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; u < units;
       u += stride) {
    const std::uint64_t number = first / kCount + u;
    Made made;
    maker.make(block_of(stream, number / Made::kShare), static_cast<int>(number % Made::kShare),
               made);
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

// All other kinds, one element per thread. `first` and `count` are in elements.
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
    const UniformRange<T> range(plan);
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
      using Exact = HalfMaker<T, true>;
      using Rounded = HalfMaker<T, false>;
      if (!plan.whole && Exact::can_make(range)) {
        return Exact::is_exact(range) ? run(Exact(range)) : run(Rounded(range));
      }
    }
    if (!plan.whole) return run(RealMaker<T>{range});
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
    // A thread writes 16 bytes of a linear kind, or the parts of one block of the stream.
    const std::uint64_t in_block = 128 / static_cast<std::uint64_t>(plan.draw_width);
    const std::uint64_t in_store = std::max<std::uint64_t>(1, 16 / sizeof(Part));
    const std::uint64_t work = linear ? count * kParts / std::min(in_block, in_store) + 1 : count;
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
