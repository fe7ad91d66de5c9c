#include "slot/mask.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {

using Leaves = flatbuffers::Vector<flatbuffers::Offset<wire::Leaf>>;

const wire::Leaf* kept_leaf(const Leaves* leaves, std::size_t at) {
  if (leaves == nullptr || at >= leaves->size()) return nullptr;
  const wire::Leaf* leaf = leaves->Get(static_cast<flatbuffers::uoffset_t>(at));
  const bool kept =
      leaf->kind() == wire::LeafKind::law && flatbuffers::GetStringView(leaf->text()) == "kept";
  return kept ? leaf : nullptr;
}

const wire::Leaf* tensor_leaf(const Leaves* leaves, std::string_view path) {
  if (leaves == nullptr) return nullptr;
  for (const wire::Leaf* leaf : *leaves) {
    if (flatbuffers::GetStringView(leaf->path()) == path && leaf->kind() == wire::LeafKind::tensor)
      return leaf;
  }
  return nullptr;
}

Result<ComplexValues> values_of(const wire::Leaf& leaf, const LaneMemory& memory) {
  ASSAY_TRY(Tensor tensor, Tensor::of(leaf, memory));
  ASSAY_TRY(const TensorBytes bytes, tensor.bytes());
  return complex_values(bytes);
}

}  // namespace

Result<Comparisons> compare_masks(flatbuffers::FlatBufferBuilder& builder, const wire::Reply& test,
                                  const LaneMemory& test_memory, const wire::Reply& reference) {
  Comparisons found;
  const wire::Leaf* law = kept_leaf(reference.outputs(), 0);
  if (law == nullptr || reference.gradients() == nullptr) return found;
  const wire::Leaf* output = tensor_leaf(test.outputs(), flatbuffers::GetStringView(law->path()));
  for (flatbuffers::uoffset_t i = 0; i < reference.gradients()->size(); ++i) {
    const wire::Leaf* gradient_law = kept_leaf(reference.gradients(), i);
    if (output == nullptr || gradient_law == nullptr) continue;
    const wire::Leaf* gradient =
        tensor_leaf(test.gradients(), flatbuffers::GetStringView(gradient_law->path()));
    if (gradient == nullptr) continue;
    ASSAY_TRY(const ComplexValues y, values_of(*output, test_memory));
    ASSAY_TRY(const ComplexValues dx, values_of(*gradient, test_memory));
    if (y.size() != dx.size()) continue;
    std::uint64_t apart = 0;
    for (std::size_t k = 0; k < y.size(); ++k) apart += (y[k] == 0.0) != (dx[k] == 0.0) ? 1 : 0;
    // A kept value, or an upstream gradient, may itself be 0: a few in a thousand at most.
    if (apart * 100 <= y.size()) continue;
    const auto statement = builder.CreateString(fmt::format(
        "{} of {} elements pass in the forward and not in the backward, or the other way round",
        apart, y.size()));
    const auto name = builder.CreateString("kept");
    const auto measured = wire::CreateLawMeasurement(builder, name, y.size(), false, statement);
    const auto shape = builder.CreateVector(gradient->shape()->data(), gradient->shape()->size());
    const auto side = wire::CreateSide(builder, gradient->dtype(), shape, wire::LeafKind::tensor);
    const auto path = builder.CreateString(gradient->path());
    found.push_back(
        wire::CreateComparison(builder, path, side, side, wire::Equality::value, 0, measured));
  }
  return found;
}

}  // namespace assay
