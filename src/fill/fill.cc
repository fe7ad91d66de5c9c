#include "fill/fill.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "fill/element.h"
#include "fill/kernels.h"
#include "fill/make_plan.h"
#include "fill/numbers.h"

namespace assay {
namespace {

constexpr std::size_t kBlockBytes = 16;
constexpr std::size_t kChunkBlocks = 256;  // words of a chunk fit into the first-level cache

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

template <typename T, typename Draw>
void half_loop(const FillPlan& plan, const std::byte* draws, std::size_t n, std::byte* out) {
  constexpr int kWidth = 8 * sizeof(Draw);
  for (std::size_t i = 0; i < n; ++i) {
    store(out + i * sizeof(T), half_value<T>(plan, load<Draw>(draws + i * sizeof(Draw)), kWidth));
  }
}

// Chooses the loop for draws of the plan's width.
UniformLoop of_width(const FillPlan& plan, UniformLoop narrow, UniformLoop middle,
                     UniformLoop wide) {
  if (plan.draw_width == 16) return narrow;
  return plan.draw_width == 32 ? middle : wide;
}

// The loop from draws to parts, for kinds whose elements depend on their own draws only; else
// nullptr.
template <typename T>
UniformLoop loop_for(const FillKernels& kernels, const FillPlan& plan) {
  if constexpr (kIsFloat<T>) {
    if (plan.kind == FillKind::halves) {
      return of_width(plan, half_loop<T, std::uint16_t>, half_loop<T, std::uint32_t>,
                      half_loop<T, std::uint64_t>);
    }
  }
  if (plan.whole) {
    return of_width(plan, whole_loop<T, std::uint16_t>, whole_loop<T, std::uint32_t>,
                    whole_loop<T, std::uint64_t>);
  }
  if constexpr (std::is_same_v<T, Float16>) return kernels.float16;
  if constexpr (std::is_same_v<T, BFloat16>) return kernels.bfloat16;
  if constexpr (std::is_same_v<T, float>) return kernels.float32;
  if constexpr (std::is_same_v<T, double>) return kernels.float64;
  if constexpr (kIsFloat<T>) return portable_uniform<T>;
  return nullptr;  // integers are always whole
}

// Calls use(draws, done, n) for `count` draws of `bytes` each, in batches: n draws from first +
// done.
template <typename Use>
void for_draws(const FillKernels& kernels, const Stream& stream, std::size_t bytes,
               std::uint64_t first, std::size_t count, Use use) {
  alignas(32) std::byte words[kChunkBlocks * kBlockBytes];
  const std::size_t in_block = kBlockBytes / bytes;
  for (std::size_t done = 0; done < count;) {
    const std::size_t skip = (first + done) % in_block;
    const std::size_t n = std::min(count - done, kChunkBlocks * in_block - skip);
    const std::size_t blocks = (skip + n + in_block - 1) / in_block;
    kernels.words(stream, (first + done) / in_block, blocks, words);
    use(words + skip * bytes, done, n);
    done += n;
  }
}

// Fills parts first, first + 1, … of a kind with a loop_for().
template <typename T>
void fill_linear(const FillKernels& kernels, const FillPlan& plan, std::uint64_t first,
                 std::span<std::byte> out) {
  const UniformLoop convert = loop_for<T>(kernels, plan);
  for_draws(kernels, plan.stream, static_cast<std::size_t>(plan.draw_width / 8), first,
            out.size() / sizeof(T), [&](const std::byte* draws, std::size_t done, std::size_t n) {
              convert(plan, draws, n, out.data() + done * sizeof(T));
            });
}

// Fills parts first, first + 1, … of `magnitudes`.
template <typename T>
void fill_magnitudes(const FillKernels& kernels, const FillPlan& plan, std::uint64_t first,
                     std::span<std::byte> out) {
  const std::uint64_t start = TensorDraws(plan.stream).keys.draw(32, 0);
  for_draws(kernels, plan.stream, sizeof(std::uint64_t), first, out.size() / sizeof(T),
            [&](const std::byte* draws, std::size_t done, std::size_t n) {
              for (std::size_t i = 0; i < n; ++i) {
                const auto draw = load<std::uint64_t>(draws + i * sizeof(std::uint64_t));
                store(out.data() + (done + i) * sizeof(T),
                      magnitude_value<T>(plan, draw, start, first + done + i));
              }
            });
}

// Fills elements first, first + 1, … of `with_nan` and `with_infinity`: ordinary values first, then
// NaN and infinities over them.
template <typename T>
void fill_special(const FillKernels& kernels, const FillPlan& plan, std::uint64_t first, int parts,
                  std::span<std::byte> out) {
  const auto step = static_cast<std::size_t>(parts);
  fill_linear<T>(kernels, plan, first * step, out);
  TensorDraws draws(plan.stream);
  RowEdges edges = edges_of(plan, draws.keys, first);
  const auto put = [&](std::size_t i, T value) {
    for (std::size_t part = 0; part < step; ++part) {
      store(out.data() + (i * step + part) * sizeof(T), value);
    }
  };
  const Stream keys = companion(plan.stream);
  const auto take = [&](const std::byte* of_elements, std::size_t done, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      edges.of_element = load<std::uint32_t>(of_elements + i * sizeof(std::uint32_t));
      if (plan.kind == FillKind::with_nan) {
        if (edges.is_nan(plan)) put(done + i, nan_value<T>());
      } else if (const int sign = edges.infinity(plan); sign != 0) {
        put(done + i, infinity_value<T>(sign));
      }
      if (++edges.column < plan.extent) continue;
      edges.column = 0;
      edges.of_row = draws.keys.draw(32, RowEdges::kRows + ++edges.row);
    }
  };
  for_draws(kernels, keys, sizeof(std::uint32_t), first, out.size() / (step * sizeof(T)), take);
}

void portable_permutation_step(const Permutation& permutation, std::size_t n,
                               std::uint64_t* values) {
  for (std::size_t i = 0; i < n; ++i) values[i] = permutation.step(values[i]);
}

constexpr std::size_t kPermuted = 256;  // indices that are permuted at a time

// Permutes `n` indices from `first` on. All of them take a step; then those that are still outside
// of the domain take another.
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

// Fills elements first, first + 1, … of `distinct`.
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

// Fills elements first, first + 1, … of any kind, one by one.
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

// Fills elements first, first + 1, … in the fastest way for their kind.
template <typename T>
void fill_parts(const FillKernels& kernels, const FillPlan& plan, std::uint64_t first, int parts,
                std::span<std::byte> out) {
  const std::uint64_t first_part = first * static_cast<std::uint64_t>(parts);
  if (is_linear(plan)) return fill_linear<T>(kernels, plan, first_part, out);
  switch (plan.kind) {
    case FillKind::distinct:
      return fill_distinct<T>(kernels, plan, first, parts, out);
    case FillKind::magnitudes:
      return fill_magnitudes<T>(kernels, plan, first_part, out);
    case FillKind::halves:
      return fill_linear<T>(kernels, plan, first_part, out);
    case FillKind::with_nan:
    case FillKind::with_infinity:
      if constexpr (kIsFloat<T>) return fill_special<T>(kernels, plan, first, parts, out);
      return fill_linear<T>(kernels, plan, first_part, out);
    default:
      return fill_each<T>(plan, first, parts, out);
  }
}

}  // namespace

const FillKernels& portable_fill_kernels() {
  static constexpr FillKernels kernels{
      portable_words,          portable_uniform<Float16>, portable_uniform<BFloat16>,
      portable_uniform<float>, portable_uniform<double>,  portable_permutation_step};
  return kernels;
}

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

const FillKernels& best_fill_kernels() {
  static const FillKernels& best = has_avx2() ? avx2_fill_kernels() : portable_fill_kernels();
  return best;
}

void fill_with(const FillKernels& kernels, const FillRule& rule, const FillKey& key, DType dtype,
               std::span<std::byte> out, std::uint64_t first_element) {
  const FillPlan plan = make_plan(rule, key, dtype);
  visit(dtype, [&]<typename T>(Type<T>) {
    fill_parts<PartOf<T>>(kernels, plan, first_element, kIsComplex<T> ? 2 : 1, out);
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

FillRule upstream_rule(DType dtype, std::uint64_t count, std::uint64_t inputs) {
  constexpr std::uint64_t kManyElements = 1U << 16U;
  double reach = 0.5;
  if (dtype != DType::float16 && dtype != DType::bfloat16 && count <= kManyElements) {
    const auto bits = static_cast<int>(std::bit_width(inputs / std::max<std::uint64_t>(1, count)));
    reach = std::ldexp(kUpstreamReach, std::clamp(bits - 1, 0, 16));
  }
  return {FillKind::uniform, -reach, reach, 1};
}

}  // namespace assay
