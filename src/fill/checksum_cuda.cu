#include <cuda_runtime.h>

#include <algorithm>

#include "fill/checksum.h"
#include "fill/checksum_cuda.h"

namespace assay {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerMultiprocessor = 8;
constexpr int kParts = 4;  // threads per chunk
constexpr int kSecretWords = 24;
constexpr std::uint64_t kStripes = (kChecksumChunk - 1) / xxh3::kStripe;
using Count = unsigned long long;  // the argument type of CUDA's atomic functions

// The 64-bit word of the secret at this byte, which may be unaligned.
__device__ std::uint64_t secret_at(const std::uint64_t* secret, int byte) {
  const int bits = byte % 8 * 8;
  return secret[byte / 8] >> bits | secret[byte / 8 + 1] << 1 << (63 - bits);
}

// Hashes one part of a whole chunk. The chunk is aligned to 16 bytes; the secret is in shared
// memory.
__device__ std::uint64_t whole_part(const unsigned char* chunk, int part,
                                    const std::uint64_t* secret) {
  const auto* const loads = reinterpret_cast<const ulonglong2*>(chunk) + part;
  constexpr int kLoads = xxh3::kStripe / sizeof(ulonglong2);
  const std::uint64_t* const keys = secret + 2 * part;
  xxh3::Part gathered = xxh3::first_part(part);
#pragma unroll 1
  for (std::uint64_t block = 0; block < kStripes; block += xxh3::kStripesInBlock) {
#pragma unroll 8
    for (int s = 0; s < xxh3::kStripesInBlock; ++s) {
      if (block + s == kStripes) break;
      const ulonglong2 load = loads[(block + s) * kLoads];
      gathered.add(load.x, load.y, keys[s], keys[s + 1]);
    }
    if (block + xxh3::kStripesInBlock <= kStripes) {
      gathered.scramble(keys[xxh3::kScrambleKeys / 8], keys[xxh3::kScrambleKeys / 8 + 1]);
    }
  }
  const ulonglong2 last = loads[kStripes * kLoads];
  const int key = 16 * part;
  gathered.add(last.x, last.y, secret_at(secret, xxh3::kLastStripeKeys + key),
               secret_at(secret, xxh3::kLastStripeKeys + key + 8));
  return xxh3::folded_product(gathered.first ^ secret_at(secret, xxh3::kMergeKeys + key),
                              gathered.second ^ secret_at(secret, xxh3::kMergeKeys + key + 8));
}

// Four neighbouring threads hash a chunk; the first of them adds the chunk's term to the sum.
__global__ void __launch_bounds__(kThreads, 4)
    checksum_kernel(const unsigned char* data, std::uint64_t bytes, std::uint64_t chunks,
                    Count* sum) {
  __shared__ std::uint64_t secret[kSecretWords];
  __shared__ Count block_sum;
  if (threadIdx.x < kSecretWords) secret[threadIdx.x] = xxh3::secret(8 * threadIdx.x);
  if (threadIdx.x == 0) block_sum = 0;
  __syncthreads();
  const int part = threadIdx.x % kParts;
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % sizeof(ulonglong2) == 0;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * (kThreads / kParts);
  std::uint64_t found = 0;
  const std::uint64_t group = (std::uint64_t{blockIdx.x} * kThreads + threadIdx.x) / kParts;
  // All threads run the same number of rounds, because the shuffles need them all.
  const std::uint64_t rounds = (chunks + stride - 1) / stride;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t c = group + round * stride;
    std::uint32_t size = 0;
    std::uint64_t of_part = 0;
    const unsigned char* const chunk = data + c * kChecksumChunk;
    if (c < chunks) {
      const std::uint64_t left = bytes - c * kChecksumChunk;
      size = static_cast<std::uint32_t>(left < kChecksumChunk ? left : kChecksumChunk);
      if (size == kChecksumChunk && aligned) {
        of_part = whole_part(chunk, part, secret);
      } else if (size > xxh3::kLongest) {
        of_part = xxh3::long_part(chunk, size, part);
      }
    }
    of_part += __shfl_xor_sync(~0U, of_part, 1);
    of_part += __shfl_xor_sync(~0U, of_part, 2);
    if (c >= chunks || part != 0) continue;
    const std::uint64_t hash =
        size > xxh3::kLongest ? xxh3::merged(size, of_part) : xxh3::hash_short(chunk, size);
    found += chunks == 1 ? hash : chunk_term(hash, c);
  }
  if (found != 0) atomicAdd(&block_sum, Count{found});
  __syncthreads();
  if (threadIdx.x == 0 && block_sum != 0) atomicAdd(sum, block_sum);
}

}  // namespace

int add_checksum_cuda(const void* data, std::uint64_t bytes, std::uint64_t* sum, void* stream) {
  const std::uint64_t chunks =
      std::max<std::uint64_t>(1, (bytes + kChecksumChunk - 1) / kChecksumChunk);
  int device = 0;
  int multiprocessors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  }
  if (error != cudaSuccess) return error;
  const std::uint64_t wanted = (chunks * kParts + kThreads - 1) / kThreads;
  const std::uint64_t most = std::uint64_t(multiprocessors) * kBlocksPerMultiprocessor;
  checksum_kernel<<<static_cast<int>(std::min(wanted, most)), kThreads, 0,
                    static_cast<cudaStream_t>(stream)>>>(
      static_cast<const unsigned char*>(data), bytes, chunks, reinterpret_cast<Count*>(sum));
  return cudaGetLastError();
}

std::uint64_t checksum_of_cuda_sum(std::uint64_t sum, std::uint64_t bytes) {
  return bytes <= kChecksumChunk ? sum : checksum_of_sum(sum, bytes);
}

}  // namespace assay
