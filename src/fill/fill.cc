#include "fill/fill.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "fill/element.h"
#include "fill/kernels.h"
#include "fill/make_plan.h"
#include "fill/numbers.h"

namespace assay {
namespace {

constexpr std::size_t kBlockBytes = 16;
constexpr std::size_t kChunkBlocks = 256;  // a chunk of words stays in the first-level cache

void portable_words(const Stream& stream, std::uint64_t first_block, std::size_t blocks,
                    std::byte* out) {
  for (std::size_t i = 0; i < blocks; ++i) {
    store(out + i * kBlockBytes, block_of(stream, first_block + i));
  }
}

template <typename T>
void portable_uniform(const FillPlan& plan, const std::byte* draws, std::size_t n, std::byte* out) {
  using Draw = std::conditional_t<kRealDrawWidth<T> == 16, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  const UniformRange<T> range(plan);
  for (std::size_t i = 0; i < n; ++i) {
    store(out + i * sizeof(T), range.value(load<Draw>(draws + i * sizeof(Draw))));
  }
}

template <typename T, typename Draw>
void whole_loop(const FillPlan& plan, const std::byte* draws, std::size_t n, std::byte* out) {
  constexpr int kWidth = 8 * sizeof(Draw);
  for (std::size_t i = 0; i < n; ++i) {
    const auto draw = load<Draw>(draws + i * sizeof(Draw));
    store(out + i * sizeof(T), whole_value<T>(plan, below(draw, kWidth, plan.count)));
  }
}

// The loop from draws to elements of a part type, for the linear kinds.
template <typename T>
UniformLoop loop_for(const FillKernels& kernels, const FillPlan& plan) {
  if (plan.whole) {
    if (plan.draw_width == 16) return whole_loop<T, std::uint16_t>;
    if (plan.draw_width == 32) return whole_loop<T, std::uint32_t>;
    return whole_loop<T, std::uint64_t>;
  }
  if constexpr (std::is_same_v<T, Float16>) return kernels.float16;
  if constexpr (std::is_same_v<T, BFloat16>) return kernels.bfloat16;
  if constexpr (std::is_same_v<T, float>) return kernels.float32;
  if constexpr (std::is_same_v<T, double>) return kernels.float64;
  if constexpr (kIsFloat<T>) return portable_uniform<T>;
  return nullptr;  // integers are always whole
}

// Parts first, first + 1, … of a linear kind; T is the part's type.
template <typename T>
void fill_linear(const FillKernels& kernels, const FillPlan& plan, std::uint64_t first,
                 std::span<std::byte> out) {
  alignas(32) std::byte words[kChunkBlocks * kBlockBytes];
  const UniformLoop convert = loop_for<T>(kernels, plan);
  const auto draw_bytes = static_cast<std::size_t>(plan.draw_width / 8);
  const std::size_t draws_in_block = kBlockBytes / draw_bytes;
  while (!out.empty()) {
    const std::size_t skip = first % draws_in_block;
    const std::size_t n = std::min(out.size() / sizeof(T), kChunkBlocks * draws_in_block - skip);
    const std::size_t blocks = (skip + n + draws_in_block - 1) / draws_in_block;
    kernels.words(plan.stream, first / draws_in_block, blocks, words);
    convert(plan, words + skip * draw_bytes, n, out.data());
    out = out.subspan(n * sizeof(T));
    first += n;
  }
}

void portable_permutation_step(const Permutation& permutation, std::size_t n,
                               std::uint64_t* values) {
  for (std::size_t i = 0; i < n; ++i) values[i] = permutation.step(values[i]);
}

constexpr std::size_t kPermuted = 256;  // places that are worked out at once

// The places of `n` elements from `first` on: all take a step together, then those that have not
// fallen inside take another.
void permute(const FillKernels& kernels, const Permutation& permutation, std::uint64_t first,
             std::size_t n, std::uint64_t* places) {
  if (permutation.tiny()) {
    for (std::size_t i = 0; i < n; ++i) places[i] = permutation.of(first + i);
    return;
  }
  std::iota(places, places + n, first);
  kernels.permutation_step(permutation, n, places);
  std::array<std::uint64_t, kPermuted> walking;
  std::array<std::uint16_t, kPermuted> index;
  std::size_t outside = 0;
  for (std::size_t i = 0; i < n; ++i) {
    index[outside] = static_cast<std::uint16_t>(i);
    outside += places[i] >= permutation.extent;
  }
  while (outside > 0) {
    for (std::size_t k = 0; k < outside; ++k) walking[k] = places[index[k]];
    kernels.permutation_step(permutation, outside, walking.data());
    std::size_t still = 0;
    for (std::size_t k = 0; k < outside; ++k) {
      places[index[k]] = walking[k];
      index[still] = index[k];
      still += walking[k] >= permutation.extent;
    }
    outside = still;
  }
}

// Elements first, first + 1, … of `distinct`; T is the part's type.
template <typename T>
void fill_distinct(const FillKernels& kernels, const FillPlan& plan, std::uint64_t first, int parts,
                   std::span<std::byte> out) {
  TensorDraws draws(plan.stream);
  std::array<std::uint64_t, kPermuted> places;
  const std::size_t element = static_cast<std::size_t>(parts) * sizeof(T);
  const std::size_t count = out.size() / element;
  for (std::size_t done = 0; done < count;) {
    const std::uint64_t index = first + done;
    const std::uint64_t at = index % plan.extent;
    const std::size_t n = std::min<std::uint64_t>({kPermuted, plan.extent - at, count - done});
    permute(kernels, Permutation(plan.extent, draws.keys.block(index / plan.extent)), at, n,
            places.data());
    for (std::size_t i = 0; i < n; ++i) {
      std::byte* const to = out.data() + (done + i) * element;
      store(to, distinct_value<T>(plan, places[i]));
      if (parts == 2) store(to + sizeof(T), part_value<T>(plan, draws, index + i, parts, 1));
    }
    done += n;
  }
}

template <typename T>
void fill_each(const FillPlan& plan, std::uint64_t first, int parts, std::span<std::byte> out) {
  TensorDraws draws(plan.stream);
  const auto step = static_cast<std::size_t>(parts);
  for (std::size_t i = 0; (i + 1) * step * sizeof(T) <= out.size(); ++i) {
    for (int part = 0; part < parts; ++part) {
      store(out.data() + (i * step + static_cast<std::size_t>(part)) * sizeof(T),
            part_value<T>(plan, draws, first + i, parts, part));
    }
  }
}

}  // namespace

const FillKernels& portable_fill_kernels() {
  static constexpr FillKernels kernels{
      portable_words,          portable_uniform<Float16>, portable_uniform<BFloat16>,
      portable_uniform<float>, portable_uniform<double>,  portable_permutation_step};
  return kernels;
}

const FillKernels& best_fill_kernels() {
  static const FillKernels& best = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
                                       ? avx2_fill_kernels()
                                       : portable_fill_kernels();
  return best;
}

void fill_with(const FillKernels& kernels, const FillRule& rule, const FillKey& key, DType dtype,
               std::span<std::byte> out, std::uint64_t first_element) {
  const FillPlan plan = make_plan(rule, key, dtype);
  visit(dtype, [&]<typename T>(Type<T>) {
    constexpr int kParts = kIsComplex<T> ? 2 : 1;
    if (is_linear(plan)) {
      fill_linear<PartOf<T>>(kernels, plan, first_element * kParts, out);
    } else if (plan.kind == FillKind::distinct) {
      fill_distinct<PartOf<T>>(kernels, plan, first_element, kParts, out);
    } else {
      fill_each<PartOf<T>>(plan, first_element, kParts, out);
    }
  });
}

void fill(const FillRule& rule, const FillKey& key, DType dtype, std::span<std::byte> out,
          std::uint64_t first_element) {
  fill_with(best_fill_kernels(), rule, key, dtype, out, first_element);
}

void fill_values(std::span<const double> values, DType dtype, std::span<std::byte> out) {
  visit(dtype, [&]<typename T>(Type<T>) {
    using Part = PartOf<T>;
    const std::size_t count = std::min(values.size(), out.size() / sizeof(T));
    for (std::size_t i = 0; i < count; ++i) {
      std::byte* const to = out.data() + i * sizeof(T);
      store(to, constant_value<Part>(constant_plan(values[i], dtype)));
      if constexpr (kIsComplex<T>) {
        store(to + sizeof(Part), constant_value<Part>(constant_plan(0, dtype)));
      }
    }
  });
}

FillRule default_rule(DType dtype) {
  switch (info(dtype).kind) {
    case DTypeClass::boolean:
      return {FillKind::integers, 0, 2, 1};
    case DTypeClass::floating:
    case DTypeClass::complex:
      return {FillKind::uniform, -0.5, 0.5, 1};
    case DTypeClass::integer:
      break;
  }
  if (dtype == DType::int8) return {FillKind::integers, -128, 128, 1};
  if (dtype == DType::uint8) return {FillKind::integers, 0, 256, 1};
  const bool has_sign = dtype == DType::int16 || dtype == DType::int32 || dtype == DType::int64;
  return {FillKind::integers, has_sign ? -1000.0 : 0.0, 1000, 1};
}

}  // namespace assay
