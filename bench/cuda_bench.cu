// Needs a GPU: what fill, checksum and measure reach there, against a copy on the device in the
// same run. GB/s count what is read and what is written; GB = 1e9 bytes.

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include "fill/checksum_cuda.h"
#include "fill/fill.h"
#include "fill/fill_cuda.h"
#include "measure/measure.h"
#include "measure/measure_cuda.h"

namespace {

using assay::DType;

constexpr std::size_t kBytes = std::size_t{4} << 30;
constexpr int kRuns = 15;

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : nullptr;
}

// Milliseconds of one call by the device's clock: the median of several.
double device_ms(const std::function<void()>& call) {
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  std::vector<float> times;
  for (int i = -3; i < kRuns; ++i) {
    cudaEventRecord(start);
    call();
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
    float ms = 0;
    cudaEventElapsedTime(&ms, start, stop);
    if (i >= 0) times.push_back(ms);
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

double copy_rate = 0;

void print(const char* what, const char* dtype, double bytes, double ms) {
  const double rate = bytes / ms / 1e6;
  std::printf("%-34s %-9s %7.0f GB/s  %5.1f%% of the copy\n", what, dtype, rate,
              100 * rate / copy_rate);
}

struct Buffers {
  void* left;
  void* right;
  std::uint64_t* sum;
  assay::MeasureCudaMemory memory;
};

// The right side differs from the left one in the last bits of `differing` of 2^32 elements: by one
// or two values; or by some hundred.
template <typename Code>
__global__ void change(Code* codes, std::uint64_t count, std::uint32_t differing, bool far) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    const std::uint64_t draw = (i + 1) * 0x9E3779B97F4A7C15ULL;
    if (static_cast<std::uint32_t>(draw >> 32) >= differing) continue;
    codes[i] = static_cast<Code>(codes[i] + (far ? 1 + (draw >> 16 & 0x3F) : 1 + (draw >> 20 & 1)));
  }
}

void measure_speed(const Buffers& buffers, DType dtype, const char* what, std::uint32_t differing,
                   bool far) {
  const std::uint64_t count = kBytes / assay::size_of(dtype);
  const auto rule = assay::default_rule(dtype);
  assay::fill_cuda(rule, {}, dtype, buffers.left, count);
  assay::fill_cuda(rule, {}, dtype, buffers.right, count);
  switch (assay::size_of(dtype)) {
    case 2:
      change<<<2048, 256>>>(static_cast<std::uint16_t*>(buffers.right), count, differing, far);
      break;
    case 4:
      change<<<2048, 256>>>(static_cast<std::uint32_t*>(buffers.right), count, differing, far);
      break;
    default:
      change<<<2048, 256>>>(static_cast<std::uint64_t*>(buffers.right), count, differing, far);
  }
  assay::Measurement found;
  const double ms = device_ms([&] {
    assay::measure_cuda(dtype, buffers.left, buffers.right, count, {1e-2, 1e-2}, buffers.memory,
                        found);
  });
  print(what, assay::name(dtype).data(), 2.0 * kBytes, ms);
}

void fill_speed(const Buffers& buffers, DType dtype) {
  const std::uint64_t count = kBytes / assay::size_of(dtype);
  const auto rule = assay::default_rule(dtype);
  const double ms = device_ms([&] { assay::fill_cuda(rule, {}, dtype, buffers.left, count); });
  print("fill", assay::name(dtype).data(), kBytes, ms);
}

// The case that engineV2's cache was made for: paddle.matmul of bfloat16, [1, 32, 1024] by
// [1024, 32768]; its inputs, and its result compared, by the host's clock.
void seed_case(const Buffers& buffers) {
  constexpr std::uint64_t kLeft = 32 * 1024;
  constexpr std::uint64_t kRight = 1024 * 32768;
  constexpr std::uint64_t kResult = 32 * 32768;
  const auto rule = assay::default_rule(DType::bfloat16);
  const auto host_ms = [](const std::function<void()>& call) {
    std::vector<double> times;
    for (int i = -5; i < 101; ++i) {
      const auto start = std::chrono::steady_clock::now();
      call();
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      if (i >= 0) times.push_back(took.count());
    }
    std::nth_element(times.begin(), times.begin() + 50, times.end());
    return times[50];
  };
  auto* const second = static_cast<std::byte*>(buffers.left) + (std::size_t{1} << 20);
  const auto fill_both = [&] {
    assay::fill_cuda(rule, {}, DType::bfloat16, buffers.left, kLeft);
    assay::fill_cuda(rule, {1, 2, 3}, DType::bfloat16, second, kRight);
  };
  std::printf("matmul [1,32,1024] x [1024,32768] bfloat16: inputs %.4f ms", host_ms([&] {
                fill_both();
                cudaDeviceSynchronize();
              }));
  std::printf(" (device %.4f), with checksums %.4f ms", device_ms(fill_both), host_ms([&] {
                fill_both();
                assay::add_checksum_cuda(buffers.left, 2 * kLeft, buffers.sum);
                assay::add_checksum_cuda(second, 2 * kRight, buffers.sum);
                cudaDeviceSynchronize();
              }));
  const auto compare_ms = [&](const char* what) {
    assay::Measurement found;
    std::printf(", %s %.4f ms", what, host_ms([&] {
                  assay::measure_cuda(DType::bfloat16, buffers.left, buffers.right, kResult,
                                      {1e-2, 1e-2}, buffers.memory, found);
                }));
  };
  compare_ms("comparison of unrelated values");
  for (void* side : {buffers.left, buffers.right}) {
    assay::fill_cuda(rule, {}, DType::bfloat16, side, kResult);
  }
  compare_ms("of equal ones");
  change<<<256, 256>>>(static_cast<std::uint16_t*>(buffers.right), kResult, 1U << 31, false);
  compare_ms("where half differ by 1 or 2 ulp");
  std::printf("\n");
}

}  // namespace

int main() {
  Buffers buffers{allocate(kBytes),
                  allocate(kBytes),
                  static_cast<std::uint64_t*>(allocate(8)),
                  {allocate(assay::kMeasureCudaScratch), nullptr}};
  if (buffers.left == nullptr || buffers.right == nullptr || buffers.memory.scratch == nullptr ||
      cudaHostAlloc(&buffers.memory.result, assay::kMeasureCudaResult, cudaHostAllocDefault) !=
          cudaSuccess) {
    std::printf("no GPU memory: not run\n");
    return 77;
  }
  cudaMemset(buffers.memory.scratch, 0, assay::kMeasureCudaScratch);
  cudaDeviceProp properties{};
  cudaGetDeviceProperties(&properties, 0);
  copy_rate = 1;
  const double ms = device_ms(
      [&] { cudaMemcpyAsync(buffers.right, buffers.left, kBytes, cudaMemcpyDeviceToDevice); });
  copy_rate = 2.0 * kBytes / ms / 1e6;
  std::printf("%s, buffers of %zu MiB: device-to-device copy %.0f GB/s\n", properties.name,
              kBytes >> 20, copy_rate);
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16, DType::float64,
                            DType::int64, DType::int32, DType::uint8, DType::complex64}) {
    fill_speed(buffers, dtype);
  }
  const double sum_ms =
      device_ms([&] { assay::add_checksum_cuda(buffers.left, kBytes, buffers.sum); });
  print("checksum", "any", kBytes, sum_ms);
  for (const DType dtype :
       {DType::float32, DType::bfloat16, DType::float16, DType::float64, DType::int64}) {
    measure_speed(buffers, dtype, "measure, equal", 0, false);
    measure_speed(buffers, dtype, "measure, half by 1 or 2 ulp", 1U << 31, false);
    measure_speed(buffers, dtype, "measure, half by 1 to 64 ulp", 1U << 31, true);
  }
  seed_case(buffers);
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) std::printf("%s\n", cudaGetErrorString(error));
  return error == cudaSuccess ? 0 : 1;
}
