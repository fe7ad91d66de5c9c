#pragma once

// Floating-point operations of the operators whose shapes are recorded, beside the time of the
// kernels that they launched: achieved TFLOP/s, model FLOPs utilisation (MFU), roofline.

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/peaks.h"
#include "timeline/model.h"

namespace assay::timeline {

struct OperatorRow {
  std::string name;
  std::string dtype;
  std::string shapes;
  std::uint64_t calls = 0;
  double flop = 0;   // of one call
  double bytes = 0;  // of one call; 0: unknown
  Nanos total = 0;   // of its kernels; on a CPU, of itself
  double ideal = 0;  // nanoseconds at the peak; NaN: the peak is not known
  Peak peak = {};    // of the first GPU

  double tflops() const;
  double mfu() const;   // 0: unknown
  double roof() const;  // share of what its FLOP/byte allow; 0: unknown
};

struct StepFlops {
  std::int64_t number = 0;
  double flop = 0;   // of all GPUs
  double time = 0;   // nanoseconds, the sum of all GPUs
  double ideal = 0;  // as in OperatorRow

  double tflops() const;  // of one GPU
  double mfu() const;
};

struct FlopReport {
  std::vector<OperatorRow> rows;  // longest total first
  std::vector<StepFlops> steps;   // as Analysis::steps
  std::string device;             // the first GPU's name; empty: unknown
  double given_peak = 0;
  Nanos kernel_time = 0;             // of all kernels and copies
  std::uint64_t without_shapes = 0;  // calls left out
  std::vector<std::string> without_shapes_names;
  std::uint64_t without_kernels = 0;  // calls left out

  StepFlops all_steps() const;
};

// `peak`: TFLOP/s of a GPU; 0: of its data sheet.
FlopReport flops_of(const Trace& trace, const Analysis& analysis, double peak);

}  // namespace assay::timeline
