#include "slot/arbiter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "measure/bar.h"

namespace assay {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

const wire::Leaf* leaf_of(const wire::Evaluation& evaluation, bool gradients,
                          std::string_view path) {
  const auto* leaves = gradients ? evaluation.gradients() : evaluation.outputs();
  if (leaves == nullptr) return nullptr;
  for (const wire::Leaf* leaf : *leaves) {
    if (leaf->path() != nullptr && leaf->path()->string_view() == path) return leaf;
  }
  return nullptr;
}

bool alike_in_shape(const wire::Leaf& left, const wire::Leaf& right) {
  const auto* a = left.shape();
  const auto* b = right.shape();
  return a != nullptr && b != nullptr && std::equal(a->begin(), a->end(), b->begin(), b->end());
}

// Values of a tensor, or of the given block of its bytes, in the form that the equality compares.
Result<ComplexValues> numbers_of(Tensor& tensor, wire::Equality equality, std::uint64_t from,
                                 std::uint64_t block) {
  ASSAY_TRY(const TensorBytes bytes, tensor.bytes(from, std::min(block, tensor.size() - from)));
  ComplexValues values = complex_values(bytes);
  put_in_form(values, equality);
  return values;
}

Result<ComplexValues> numbers_of(const wire::Leaf& leaf, const LaneMemory& memory,
                                 wire::Equality equality) {
  ASSAY_TRY(Tensor tensor, Tensor::of(leaf, memory));
  return numbers_of(tensor, equality, 0, tensor.size());
}

BarInput input_of(const wire::Leaf& reference) {
  BarInput input;
  input.dtype = static_cast<DType>(reference.dtype());
  input.terms = reference.terms();
  input.scale_floor = reference.scale_floor();
  input.unit_floor = reference.unit_floor();
  return input;
}

// Sorted comparisons need the whole tensor. All others go block by block, after one pass for the
// scale.
Result<double> widened_apart(Tensor& left, Tensor& right, wire::Equality equality, BarInput input) {
  const std::uint64_t block = equality == wire::Equality::sorted
                                  ? right.size()
                                  : widened_at_once(left, right) * size_of(right.dtype());
  double scale = 0;
  for (std::uint64_t from = 0; from < right.size(); from += block) {
    ASSAY_TRY(const ComplexValues values, numbers_of(right, equality, from, block));
    scale = std::max(scale, scale_of(values));
  }
  double most = 0;
  for (std::uint64_t from = 0; from < right.size() && std::isfinite(most); from += block) {
    ASSAY_TRY(const ComplexValues test_values, numbers_of(left, equality, from, block));
    ASSAY_TRY(const ComplexValues values, numbers_of(right, equality, from, block));
    input.test = test_values;
    input.reference = values;
    most = std::max(most, units_apart(input, scale));
  }
  return most;
}

Result<double> real_apart(Tensor& left, Tensor& right, bool signs, const BarInput& input) {
  const std::uint64_t block = block_of(left, right) * size_of(right.dtype());
  const auto numbers = [&](Tensor& tensor, std::uint64_t from) -> Result<RealNumbers> {
    ASSAY_TRY(const TensorBytes bytes, tensor.bytes(from, std::min(block, tensor.size() - from)));
    return RealNumbers{bytes.dtype, bytes.bytes, signs};
  };
  double scale = 0;
  for (std::uint64_t from = 0; needs_scale(input) && from < right.size(); from += block) {
    ASSAY_TRY(const RealNumbers values, numbers(right, from));
    scale = std::max(scale, scale_of(values));
  }
  double most = 0;
  for (std::uint64_t from = 0; from < right.size() && std::isfinite(most); from += block) {
    ASSAY_TRY(const RealNumbers test, numbers(left, from));
    ASSAY_TRY(const RealNumbers values, numbers(right, from));
    most = std::max(most, units_apart(input, scale, test, values));
  }
  return most;
}

Offset<wire::Distance> build_distance(FlatBufferBuilder& builder, const Distance& distance) {
  return wire::CreateDistance(builder, distance.errors, distance.index, distance.ulps,
                              distance.specials);
}

// Whether a jump of the truth with perturbed inputs excuses a result. Not for exact values, which
// have no rounding error. A gradient at a kink is not defined under any values.
bool jumps_excuse(std::string_view values, bool gradients) {
  return gradients || values == "usual" || values == "wide" || values == "layout" ||
         values == "constant";
}

}  // namespace

void put_in_form(ComplexValues& values, wire::Equality equality) {
  if (equality == wire::Equality::sign) take_magnitudes(values);
  if (equality == wire::Equality::sorted) sort_values(values);
}

Truth truth_of(const wire::Reply& reply, LaneMemory memory, std::string_view values,
               bool gradients) {
  return {reply.evaluations(), std::move(memory), gradients, jumps_excuse(values, gradients),
          values == "exact" && !gradients};
}

BarInput bar_of(const wire::Leaf& reference, const Truth& truth) {
  BarInput input = input_of(reference);
  input.jumps_excuse = truth.jumps_excuse;
  input.exact_values = truth.exact_values;
  if (truth.gradients) input.slack = kGradientSlack;
  return input;
}

Result<std::vector<ComplexValues>> evaluated(const wire::Leaf& reference, const Truth& truth) {
  std::vector<ComplexValues> found;
  if (truth.evaluations == nullptr || truth.evaluations->size() == 0 ||
      reference.path() == nullptr) {
    return found;
  }
  const std::string_view path = reference.path()->string_view();
  for (flatbuffers::uoffset_t i = 0; i < truth.evaluations->size(); ++i) {
    // Without that excuse zeros must stay zeros, but odd perturbations move them.
    if (!truth.jumps_excuse && i % 2 == 1) continue;
    const wire::Leaf* leaf = leaf_of(*truth.evaluations->Get(i), truth.gradients, path);
    if (leaf == nullptr || leaf->kind() != wire::LeafKind::tensor ||
        !alike_in_shape(*leaf, reference)) {
      if (i == 0) return std::vector<ComplexValues>();
      continue;
    }
    ASSAY_TRY(ComplexValues values, numbers_of(*leaf, truth.memory, reference.equality()));
    found.push_back(std::move(values));
  }
  return found;
}

Result<double> measure_apart(const wire::Leaf& test, const LaneMemory& test_memory,
                             const wire::Leaf& reference, const LaneMemory& reference_memory) {
  const wire::Equality equality = reference.equality();
  ASSAY_TRY(Tensor left, Tensor::of(test, test_memory));
  ASSAY_TRY(Tensor right, Tensor::of(reference, reference_memory));
  const BarInput input = input_of(reference);
  if (equality == wire::Equality::sorted || is_complex(right.dtype())) {
    return widened_apart(left, right, equality, input);
  }
  return real_apart(left, right, equality != wire::Equality::sign, input);
}

Result<Offset<wire::Bar>> measure_against_truth(FlatBufferBuilder& builder, const wire::Leaf& test,
                                                const LaneMemory& test_memory,
                                                const wire::Leaf& reference,
                                                const LaneMemory& reference_memory,
                                                const Truth& truth) {
  ASSAY_TRY(const std::vector<ComplexValues> values, evaluated(reference, truth));
  if (values.empty()) return Offset<wire::Bar>();
  const wire::Equality equality = reference.equality();
  ASSAY_TRY(const ComplexValues left, numbers_of(test, test_memory, equality));
  ASSAY_TRY(const ComplexValues right, numbers_of(reference, reference_memory, equality));
  BarInput input = bar_of(reference, truth);
  input.test = left;
  input.reference = right;
  input.truth = values.front();
  input.moved.assign(values.begin() + 1, values.end());
  const BarMeasurement measured = measure_bar(input);
  const auto test_side = build_distance(builder, measured.test);
  const auto reference_side = build_distance(builder, measured.reference);
  return wire::CreateBar(builder, test_side, reference_side, measured.test_value.real(),
                         measured.reference_value.real(), measured.true_value.real(), input.terms);
}

}  // namespace assay
