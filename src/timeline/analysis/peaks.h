#pragma once

// What a GPU can compute and move at most, by its makers' data sheets.

#include <string_view>

namespace assay::timeline {

struct Peak {
  double tflops = 0;  // dense, without sparsity; 0: unknown
  double gbps = 0;    // of its memory, 10^9 bytes a second
  double link = 0;    // GB/s to the other GPUs of its host, in one direction
};

// Of the GPU by the name that its driver gives it: "NVIDIA H100 80GB HBM3".
Peak peak_of(std::string_view device, std::string_view dtype);

}  // namespace assay::timeline
