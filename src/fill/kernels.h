#pragma once

// The inner loops of fill() in plain C++ and AVX2. Both give the same bits.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "case/dtype.h"
#include "fill/philox.h"
#include "fill/plan.h"
#include "fill/rule.h"

namespace assay {

// Converts n consecutive draws of plan.draw_width bits to n uniform reals.
using UniformLoop = void (*)(const FillPlan& plan, const std::byte* draws, std::size_t n,
                             std::byte* out);

struct Permutation;

// Applies Permutation::step to each of n values in place; not for tiny permutations.
using PermutationStep = void (*)(const Permutation& permutation, std::size_t n,
                                 std::uint64_t* values);

struct FillKernels {
  // Writes whole blocks of the stream, 16 bytes each, to `out`, which is aligned to 32 bytes.
  void (*words)(const Stream& stream, std::uint64_t first_block, std::size_t blocks,
                std::byte* out);
  UniformLoop float16;
  UniformLoop bfloat16;
  UniformLoop float32;
  UniformLoop float64;
  PermutationStep permutation_step;
};

const FillKernels& portable_fill_kernels();
const FillKernels& avx2_fill_kernels();
// True if this machine supports the kernels.
bool has_avx2();
// The fastest kernels that this machine supports.
const FillKernels& best_fill_kernels();

// fill() with the given kernels, for tests and benchmarks.
void fill_with(const FillKernels& kernels, const FillRule& rule, const FillKey& key, DType dtype,
               std::span<std::byte> out, std::uint64_t first_element);

template <typename T>
ASSAY_HD T load(const std::byte* bytes) {
  T value;
  __builtin_memcpy(&value, bytes, sizeof value);
  return value;
}
template <typename T>
ASSAY_HD void store(std::byte* bytes, T value) {
  __builtin_memcpy(bytes, &value, sizeof value);
}

}  // namespace assay
