#include "slot/mask.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {

using Leaves = flatbuffers::Vector<flatbuffers::Offset<wire::Leaf>>;

const wire::Leaf* kept_leaf(const Leaves* leaves, std::size_t at) {
  if (leaves == nullptr || at >= leaves->size()) return nullptr;
  const wire::Leaf* leaf = leaves->Get(static_cast<flatbuffers::uoffset_t>(at));
  const bool kept = leaf->kind() == wire::LeafKind::distribution &&
                    flatbuffers::GetStringView(leaf->text()) == "kept";
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

// Elements that are zero on one side only. Widens a block at a time, which stays in the cache.
Result<std::uint64_t> zeros_apart(Tensor& left, Tensor& right) {
  constexpr std::uint64_t kAtOnce = 1 << 14;
  const std::uint64_t left_size = size_of(left.dtype());
  const std::uint64_t right_size = size_of(right.dtype());
  const std::uint64_t count = left.size() / left_size;
  std::uint64_t apart = 0;
  for (std::uint64_t from = 0; from < count; from += kAtOnce) {
    const std::uint64_t some = std::min(kAtOnce, count - from);
    ASSAY_TRY(const TensorBytes a, left.bytes(from * left_size, some * left_size));
    ASSAY_TRY(const TensorBytes b, right.bytes(from * right_size, some * right_size));
    const ComplexValues x = complex_values(a);
    const ComplexValues y = complex_values(b);
    for (std::size_t k = 0; k < x.size(); ++k) apart += (x[k] == 0.0) != (y[k] == 0.0) ? 1 : 0;
  }
  return apart;
}

}  // namespace

Result<Comparisons> compare_masks(flatbuffers::FlatBufferBuilder& builder, const wire::Reply& test,
                                  const LaneMemory& test_memory, const wire::Reply& reference) {
  Comparisons found;
  const wire::Leaf* distribution = kept_leaf(reference.outputs(), 0);
  if (distribution == nullptr || reference.gradients() == nullptr) return found;
  const wire::Leaf* output =
      tensor_leaf(test.outputs(), flatbuffers::GetStringView(distribution->path()));
  for (flatbuffers::uoffset_t i = 0; i < reference.gradients()->size(); ++i) {
    const wire::Leaf* gradient_distribution = kept_leaf(reference.gradients(), i);
    if (output == nullptr || gradient_distribution == nullptr) continue;
    const wire::Leaf* gradient =
        tensor_leaf(test.gradients(), flatbuffers::GetStringView(gradient_distribution->path()));
    if (gradient == nullptr) continue;
    ASSAY_TRY(Tensor y, Tensor::of(*output, test_memory));
    ASSAY_TRY(Tensor dx, Tensor::of(*gradient, test_memory));
    const std::uint64_t count = y.size() / size_of(y.dtype());
    if (count != dx.size() / size_of(dx.dtype())) continue;
    ASSAY_TRY(const std::uint64_t apart, zeros_apart(y, dx));
    // A kept value or an upstream gradient may itself be 0: a few in a thousand at most.
    if (apart * 100 <= count) continue;
    const auto statement = builder.CreateString(
        fmt::format("{} of {} elements pass in only one of forward and backward", apart, count));
    const auto name = builder.CreateString("kept");
    const auto measured = wire::CreateDrawMeasurement(builder, name, count, false, statement);
    const auto shape = builder.CreateVector(gradient->shape()->data(), gradient->shape()->size());
    const auto side = wire::CreateSide(builder, gradient->dtype(), shape, wire::LeafKind::tensor);
    const auto path = builder.CreateString(gradient->path());
    found.push_back(
        wire::CreateComparison(builder, path, side, side, wire::Equality::value, 0, measured));
  }
  return found;
}

}  // namespace assay
