#include "case/case.h"

#include <algorithm>
#include <limits>

namespace assay {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMost : product;
}

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return a > kMost - b ? kMost : a + b;
}

}  // namespace

std::uint64_t TensorSpec::elements() const {
  // One extent of 0 makes the tensor empty, even if the product of the others overflows.
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::uint64_t product = 1;
  for (const std::int64_t dimension : shape) {
    product = saturating_multiply(product, static_cast<std::uint64_t>(dimension));
  }
  return product;
}

std::uint64_t TensorSpec::storage() const {
  const std::uint64_t count = elements();
  if (count == 0 || strides.empty()) return count;
  std::uint64_t last = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    last = saturating_add(last, saturating_multiply(static_cast<std::uint64_t>(shape[axis] - 1),
                                                    static_cast<std::uint64_t>(strides[axis])));
  }
  return std::max(last, count);
}

std::uint64_t TensorSpec::bytes() const { return saturating_multiply(storage(), size_of(dtype)); }

std::uint64_t Case::total_elements() const {
  std::uint64_t sum = 0;
  for (const TensorSpec spec : tensors()) sum = saturating_add(sum, spec.elements());
  return sum;
}

std::uint64_t Case::total_bytes() const {
  std::uint64_t sum = 0;
  for (const TensorSpec spec : tensors()) sum = saturating_add(sum, spec.bytes());
  return sum;
}

bool Case::same_tensor(const TensorEntry& mine, const Case& other,
                       const TensorEntry& theirs) const {
  const auto numbers = [](const Case& owner, std::uint32_t begin, const TensorEntry& entry) {
    return std::span(owner.dimensions_).subspan(begin, entry.rank);
  };
  return mine.rank == theirs.rank && mine.dtype == theirs.dtype && mine.strided == theirs.strided &&
         text(mine.place) == other.text(theirs.place) &&
         std::ranges::equal(numbers(*this, mine.shape, mine),
                            numbers(other, theirs.shape, theirs)) &&
         (!mine.strided || std::ranges::equal(numbers(*this, mine.strides, mine),
                                              numbers(other, theirs.strides, theirs)));
}

bool Case::same_node(const Node& mine, const Case& other, const Node& theirs) const {
  if (mine.kind != theirs.kind || mine.subtree != theirs.subtree) return false;
  switch (mine.kind) {
    case ValueKind::string:
    case ValueKind::big_integer:
    case ValueKind::place:
      return text(mine) == other.text(theirs);
    case ValueKind::dtype:
      return mine.form == theirs.form && mine.dtype == theirs.dtype;
    default:
      return mine.first == theirs.first && mine.second == theirs.second;
  }
}

bool operator==(const Case& a, const Case& b) {
  // Subtree sizes in pre-order define the trees, so it is enough to compare the tables.
  return a.api() == b.api() && a.constructs_ == b.constructs_ &&
         a.construction_ == b.construction_ &&
         std::ranges::equal(a.tensors_, b.tensors_,
                            [&](const auto& mine, const auto& theirs) {
                              return a.same_tensor(mine, b, theirs);
                            }) &&
         std::ranges::equal(a.arguments_, b.arguments_,
                            [&](const auto& mine, const auto& theirs) {
                              return mine.node == theirs.node &&
                                     a.text(mine.keyword) == b.text(theirs.keyword);
                            }) &&
         std::ranges::equal(a.nodes_, b.nodes_, [&](const auto& mine, const auto& theirs) {
           return a.same_node(mine, b, theirs);
         });
}

}  // namespace assay
