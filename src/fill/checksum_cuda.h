#pragma once

// checksum() of memory of a GPU: the same numbers. Built where nvcc is.

#include <cstdint>

namespace assay {

// Adds what the bytes come to, to *sum (device memory, 0 before). Asynchronous on `stream` (a
// cudaStream_t; nullptr is the default one). Returns a cudaError_t; 0 is success.
int add_checksum_cuda(const void* data, std::uint64_t bytes, std::uint64_t* sum,
                      void* stream = nullptr);

// The checksum that such a sum stands for.
std::uint64_t checksum_of_cuda_sum(std::uint64_t sum, std::uint64_t bytes);

}  // namespace assay
