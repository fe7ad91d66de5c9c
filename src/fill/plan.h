#pragma once

// A fill rule worked out for one dtype: every constant that an element needs, computed once on the
// host, so that host and device use the same numbers. Plain data; passed to CUDA kernels by value.

#include <cstdint>

#include "case/dtype.h"
#include "fill/philox.h"
#include "fill/rule.h"

namespace assay {

struct FillPlan {
  Stream stream;
  FillKind kind;
  DType dtype;
  bool whole;           // whole numbers first + k, k < count; otherwise reals low + u · span
  int draw_width;       // bits of the stream that one part of one element takes: 16, 32 or 64
  double low;           // smallest value of the dtype in the range
  double top;           // largest value of the dtype in the range
  double span;          // high - low; for float32 and narrower this, low and top are floats
  std::uint64_t first;  // in two's complement where negative
  std::uint64_t count;
  std::uint64_t extent;
  double diagonal;  // positive_definite: what is added there
  // distinct: position p of `extent` is number p · grid_step, rounded down, of the whole numbers
  // or, of reals, of the grid from grid_first on; the step is grid_step_whole + grid_step_fraction
  // / 2^64, and grid_exponent the grid's finest step.
  std::int64_t grid_first;
  std::uint64_t grid_step_whole;
  std::uint64_t grid_step_fraction;
  int grid_exponent;
  // magnitudes, of reals: the powers of two from grid_first on, `count` of them, and nothing above
  // `top`.
};

// Whether element i is a function of draw i of the stream alone; those have the fast loops.
constexpr bool is_linear(const FillPlan& plan) {
  return plan.kind == FillKind::uniform || plan.kind == FillKind::integers;
}

}  // namespace assay
