#pragma once

// A fill rule worked out for one dtype. The host computes every constant once, so that host and
// device use the same numbers. Plain data, passed to CUDA kernels by value.

#include <cstdint>

#include "case/dtype.h"
#include "fill/philox.h"
#include "fill/rule.h"

namespace assay {

struct FillPlan {
  Stream stream;
  FillKind kind;
  DType dtype;
  bool whole;           // whole numbers first + k, k < count; else reals low + u · span
  int draw_width;       // bits of the stream per part of an element: 16, 32 or 64
  double low;           // smallest value of the dtype in the range
  double top;           // largest value of the dtype in the range
  double span;          // high - low; low, top and span are floats for float32 and narrower
  std::uint64_t first;  // in two's complement if negative
  std::uint64_t count;
  std::uint64_t extent;
  double diagonal;  // positive_definite: added to the diagonal
  // distinct: position p of `extent` has number p · grid_step, rounded down, of the whole numbers,
  // or for reals of the grid from grid_first on. The step is grid_step_whole + grid_step_fraction /
  // 2^64; 2^grid_exponent is the quantum of the grid.
  std::int64_t grid_first;
  std::uint64_t grid_step_whole;
  std::uint64_t grid_step_fraction;
  int grid_exponent;
  // magnitudes of reals: `count` powers of two from grid_first on, and no value above `top`.
};

// True if element i depends only on draw i of the stream; such kinds have the fast loops.
constexpr bool is_linear(const FillPlan& plan) {
  return plan.kind == FillKind::uniform || plan.kind == FillKind::integers;
}

}  // namespace assay
