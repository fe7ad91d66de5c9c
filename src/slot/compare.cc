#include "slot/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string_view>

#include "case/dtype.h"
#include "measure/measure.h"
#include "slot/draw_distribution_leaf.h"
#include "slot/values.h"
#include "verdict/bar.h"

namespace assay {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<wire::Side> build_side(FlatBufferBuilder& builder, const wire::Leaf* leaf) {
  if (leaf == nullptr) return wire::CreateSide(builder, 0, 0, wire::LeafKind::none, 0, true);
  const auto shape = leaf->shape() == nullptr
                         ? Offset<flatbuffers::Vector<std::int64_t>>()
                         : builder.CreateVector(leaf->shape()->data(), leaf->shape()->size());
  const auto text = builder.CreateString(scalar_text(*leaf));
  return wire::CreateSide(builder, leaf->dtype(), shape, leaf->kind(), text, false);
}

Offset<wire::Offender> build_offender(FlatBufferBuilder& builder, const Offender& offender) {
  if (!offender) return 0;
  return wire::CreateOffender(builder, offender.index, offender.left[0], offender.left[1],
                              offender.right[0], offender.right[1]);
}

Offset<wire::Measurement> build_measurement(FlatBufferBuilder& builder, const Measurement& m) {
  const auto first = build_offender(builder, m.first);
  const auto worst = build_offender(builder, m.worst);
  const auto needed = builder.CreateVector(m.atol_needed.data(), m.atol_needed.size());
  const auto ulps = builder.CreateVector(m.ulp_histogram.data(), m.ulp_histogram.size());
  return wire::CreateMeasurement(builder, m.count, m.bit_equal, m.beyond, m.max_abs, m.max_rel,
                                 needed, ulps, m.nan_left_only, m.nan_right_only, m.both_nan,
                                 m.inf_disagree, first, worst);
}

Result<bool> same_shape(const wire::Leaf& left, const wire::Leaf& right) {
  const auto* a = left.shape();
  const auto* b = right.shape();
  if (a == nullptr || b == nullptr)
    return fail("a lane sent a tensor or a distribution without shape");
  return std::equal(a->begin(), a->end(), b->begin(), b->end());
}

// The measurement of two tensors of one shape, block by block with `measure_block`.
Result<Measurement> measure_blocks(Tensor& left, Tensor& right, Tolerance tolerance,
                                   std::uint64_t block, const auto& measure_block) {
  const std::uint64_t left_size = size_of(left.dtype());
  const std::uint64_t right_size = size_of(right.dtype());
  const std::uint64_t count = left.size() / left_size;
  Measurement measured;
  measured.under = tolerance;
  std::uint64_t from = 0;
  do {
    const std::uint64_t some = std::min(block, count - from);
    ASSAY_TRY(const TensorBytes a, left.bytes(from * left_size, some * left_size));
    ASSAY_TRY(const TensorBytes b, right.bytes(from * right_size, some * right_size));
    append(measured, measure_block(a, b));
    from += some;
  } while (from < count);
  return measured;
}

// One tensor lies on a device: the other is copied there, block by block.
Result<Measurement> measure_sent(const Tensor& left, const Tensor& right, Tolerance tolerance,
                                 Staging& staging) {
  const bool left_is_there = left.device() != nullptr;
  const Tensor& there = left_is_there ? left : right;
  const Tensor& here = left_is_there ? right : left;
  Measurement measured;
  measured.under = tolerance;
  for (std::uint64_t from = 0; from < left.size(); from += Staging::kBlock) {
    const std::uint64_t some = std::min(Staging::kBlock, left.size() - from);
    ASSAY_TRY(const std::byte* const sent,
              staging.send(some, [&](std::span<std::byte> to) { return here.read(from, to); }));
    const std::byte* const other = there.device_memory() + from;
    ASSAY_TRY(const Measurement of_block,
              there.device()->measure(left.dtype(), left_is_there ? other : sent,
                                      left_is_there ? sent : other, some / size_of(left.dtype()),
                                      tolerance));
    append(measured, of_block);
  }
  return measured;
}

// Element by element in their own dtype; on the device if one of them lies there.
Result<Measurement> measure_values(Tensor& left, Tensor& right, Tolerance tolerance) {
  if (left.device() != nullptr && left.device() == right.device()) {
    return left.device()->measure(left.dtype(), left.device_memory(), right.device_memory(),
                                  left.size() / size_of(left.dtype()), tolerance);
  }
  // Two tensors on the host, or on two devices, are not copied to a device.
  const bool mixed = (left.device() == nullptr) != (right.device() == nullptr);
  const Tensor& there = left.device() != nullptr ? left : right;
  Staging* const staging = mixed ? there.staging() : nullptr;
  if (staging != nullptr) return measure_sent(left, right, tolerance, *staging);
  return measure_blocks(left, right, tolerance, block_of(left, right),
                        [&](const TensorBytes& a, const TensorBytes& b) {
                          return measure(a.dtype, a.bytes, b.bytes, tolerance);
                        });
}

// Widened to real or complex numbers, in the form that `look` returns.
template <typename Values>
Measurement measure_widened(Values x, Values y, Tolerance tolerance, void (*look)(Values&)) {
  if (look != nullptr) {
    look(x);
    look(y);
  }
  constexpr bool kReal = std::is_same_v<Values, std::vector<double>>;
  return measure(kReal ? DType::float64 : DType::complex128, std::as_bytes(std::span(x)),
                 std::as_bytes(std::span(y)), tolerance);
}

// Measures two tensors of one shape in the form that their equality compares; in float64 if their
// dtypes differ.
// dtypes differ.
Result<Measurement> measure_tensors(const wire::Leaf& left, const LaneMemory& left_memory,
                                    const wire::Leaf& right, const LaneMemory& right_memory,
                                    Tolerance tolerance) {
  ASSAY_TRY(Tensor left_tensor, Tensor::of(left, left_memory));
  ASSAY_TRY(Tensor right_tensor, Tensor::of(right, right_memory));
  const wire::Equality equality = right.equality();
  const bool as_they_are = equality == wire::Equality::value || equality == wire::Equality::bits;
  if (left_tensor.dtype() == right_tensor.dtype() && as_they_are) {
    return measure_values(left_tensor, right_tensor, tolerance);
  }
  if (equality == wire::Equality::sorted) {
    ASSAY_TRY(const TensorBytes a, left_tensor.bytes());
    ASSAY_TRY(const TensorBytes b, right_tensor.bytes());
    return measure_widened<ComplexValues>(complex_values(a), complex_values(b), tolerance,
                                          sort_values);
  }
  const bool real = equality == wire::Equality::value && !is_complex(left_tensor.dtype()) &&
                    !is_complex(right_tensor.dtype());
  const auto look = equality == wire::Equality::sign ? take_magnitudes : nullptr;
  return measure_blocks(left_tensor, right_tensor, tolerance,
                        widened_at_once(left_tensor, right_tensor),
                        [&](const TensorBytes& a, const TensorBytes& b) {
                          return real ? measure_widened<std::vector<double>>(
                                            real_values(a), real_values(b), tolerance, nullptr)
                                      : measure_widened<ComplexValues>(
                                            complex_values(a), complex_values(b), tolerance, look);
                        });
}

// Whether a tensor without a partner is a gradient of zeros, which the other framework left out.
Result<bool> all_zero(const wire::Leaf& leaf, const LaneMemory& memory) {
  if (leaf.kind() == wire::LeafKind::none) return true;
  if (leaf.kind() != wire::LeafKind::tensor) return false;
  constexpr std::uint64_t kAtOnce = 1 << 18;  // bytes, a multiple of any element's
  ASSAY_TRY(Tensor tensor, Tensor::of(leaf, memory));
  for (std::uint64_t from = 0; from < tensor.size(); from += kAtOnce) {
    ASSAY_TRY(const TensorBytes bytes, tensor.bytes(from, std::min(kAtOnce, tensor.size() - from)));
    if (!all_zero(bytes)) return false;
  }
  return true;
}

bool equal_scalars(const wire::Leaf& left, const wire::Leaf& right, Tolerance tolerance) {
  if (left.kind() != right.kind()) return false;
  const auto close = [&](double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    if (!std::isfinite(a) || !std::isfinite(b)) return a == b;
    return std::abs(a - b) <= tolerance.atol + tolerance.rtol * std::abs(b);
  };
  switch (left.kind()) {
    case wire::LeafKind::floating:
    case wire::LeafKind::complex:
      return close(left.number(), right.number()) && close(left.imaginary(), right.imaginary());
    case wire::LeafKind::boolean:
      return left.integer() == right.integer();
    default:
      return flatbuffers::GetStringView(left.text()) == flatbuffers::GetStringView(right.text());
  }
}

bool alike(const Measurement& measured, DType dtype) {
  const DTypeClass kind = info(dtype).kind;
  return looks_alike(measured.ulp_histogram, measured.both_nan, measured.count,
                     kind == DTypeClass::boolean || kind == DTypeClass::integer);
}

// Python numbers are taken from tensors and widened, so a rounding of float32 is no difference.
constexpr Tolerance kOfNumbers{0, 1e-6};

struct Pairing {
  const wire::Leaf* left = nullptr;
  const wire::Leaf* right = nullptr;
};

// In the order of the left side; leaves that only the right side has come last.
std::vector<Pairing> pair_leaves(const Results& left, const Results& right) {
  std::vector<Pairing> pairs;
  std::map<std::string_view, std::size_t> unpaired;
  if (left.leaves != nullptr) {
    for (const wire::Leaf* leaf : *left.leaves) {
      unpaired.emplace(flatbuffers::GetStringView(leaf->path()), pairs.size());
      pairs.push_back({leaf, nullptr});
    }
  }
  if (right.leaves == nullptr) return pairs;
  for (const wire::Leaf* leaf : *right.leaves) {
    const auto found = unpaired.find(flatbuffers::GetStringView(leaf->path()));
    if (found == unpaired.end()) {
      pairs.push_back({nullptr, leaf});
    } else {
      pairs[found->second].right = leaf;
    }
  }
  return pairs;
}

bool is_tensor(const wire::Leaf& leaf) { return leaf.kind() == wire::LeafKind::tensor; }

// The distance of the two, if it decides; infinite if only the truth can decide.
Result<double> second_look(const Pairing& pair, const Results& left, const Results& right) {
  if (pair.left->dtype() != pair.right->dtype()) return INFINITY;
  return measure_apart(*pair.left, left.memory, *pair.right, right.memory);
}

// Against the truth, if it is known.
Result<Offset<wire::Bar>> third_look(FlatBufferBuilder& builder, const Pairing& pair,
                                     const Results& left, const Results& right, Look& look) {
  look.suspicious = true;
  if (look.truth == nullptr) return Offset<wire::Bar>();
  ASSAY_TRY(const auto bar, measure_against_truth(builder, *pair.left, left.memory, *pair.right,
                                                  right.memory, *look.truth));
  if (!bar.IsNull()) {
    const auto* measured = flatbuffers::GetTemporaryPointer(builder, bar);
    look.wrong = look.wrong || judge_bar(*measured) != BarVerdict::right;
  }
  return bar;
}

Result<Offset<wire::Comparison>> compare_pair(FlatBufferBuilder& builder, const Pairing& pair,
                                              const Results& left, const Results& right,
                                              ResultRole role, Tolerance tolerance, Look* look) {
  Offset<wire::Measurement> measurement;
  Offset<wire::Bar> bar;
  Offset<wire::DrawMeasurement> distribution;
  bool scalar_equal = true;
  double apart = INFINITY;
  const bool both = pair.left != nullptr && pair.right != nullptr;
  if (both && is_tensor(*pair.left) && pair.right->kind() == wire::LeafKind::distribution) {
    ASSAY_TRY(const bool same, same_shape(*pair.left, *pair.right));
    if (same) {
      ASSAY_TRY(distribution,
                measure_draws(builder, *pair.left, left.memory, *pair.right, *right.memory.arena));
    }
  } else if (both && is_tensor(*pair.left) && is_tensor(*pair.right)) {
    ASSAY_TRY(const bool same, same_shape(*pair.left, *pair.right));
    if (same && pair.right->equality() != wire::Equality::shape) {
      ASSAY_TRY(const Measurement measured,
                measure_tensors(*pair.left, left.memory, *pair.right, right.memory, tolerance));
      measurement = build_measurement(builder, measured);
      const auto dtype = static_cast<DType>(pair.right->dtype());
      if (look != nullptr && pair.right->equality() != wire::Equality::bits &&
          !alike(measured, dtype)) {
        if (look->closer && measured.count <= look->most) {
          ASSAY_TRY(apart, second_look(pair, left, right));
          look->apart = std::max(look->apart, apart);
        }
        if (apart > kUnitsApart) {
          ASSAY_TRY(bar, third_look(builder, pair, left, right, *look));
        }
      }
    }
  } else if (role == ResultRole::gradient) {
    for (const auto& [leaf, memory] :
         {std::pair{pair.left, &left.memory}, {pair.right, &right.memory}}) {
      if (leaf == nullptr) continue;
      ASSAY_TRY(const bool zero, all_zero(*leaf, *memory));
      scalar_equal = scalar_equal && zero;
    }
  } else {
    const bool by_bar = look != nullptr && look->by_bar;
    scalar_equal = both && equal_scalars(*pair.left, *pair.right, by_bar ? kOfNumbers : tolerance);
  }
  const wire::Leaf& any = pair.left != nullptr ? *pair.left : *pair.right;
  const auto path = builder.CreateString(any.path());
  const auto left_side = build_side(builder, pair.left);
  const auto right_side = build_side(builder, pair.right);
  const wire::Equality equality =
      pair.right != nullptr ? pair.right->equality() : wire::Equality::value;
  return wire::CreateComparison(builder, path, left_side, right_side, equality, measurement,
                                distribution, scalar_equal, bar, apart);
}

}  // namespace

Result<Comparisons> compare(FlatBufferBuilder& builder, const Results& left, const Results& right,
                            ResultRole role, Tolerance tolerance, Look* look) {
  Comparisons comparisons;
  for (const Pairing& pair : pair_leaves(left, right)) {
    ASSAY_TRY(const auto comparison,
              compare_pair(builder, pair, left, right, role, tolerance, look));
    comparisons.push_back(comparison);
  }
  return comparisons;
}

}  // namespace assay
