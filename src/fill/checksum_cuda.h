#pragma once

// checksum() on a GPU, with the same result. Built if nvcc is available.

#include <cstdint>

namespace assay {

// Adds the bytes' sum to *sum, which is in device memory and 0 before the first call. Asynchronous
// on `stream` (a cudaStream_t; nullptr: the default stream). Returns a cudaError_t; 0 is success.
int add_checksum_cuda(const void* data, std::uint64_t bytes, std::uint64_t* sum,
                      void* stream = nullptr);

// Converts such a sum to the checksum.
std::uint64_t checksum_of_cuda_sum(std::uint64_t sum, std::uint64_t bytes);

}  // namespace assay
