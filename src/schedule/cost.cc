#include "schedule/cost.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "case/parser.h"

namespace assay {
namespace {

constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::uint64_t kWorkOfAnyUs = 600;  // of a case with tiny tensors
constexpr std::uint64_t kElementsInUs = 50;  // per microsecond
// Multiplications and additions of a product per microsecond, forward and backward together.
constexpr std::uint64_t kProductsInUs = 3'000;
// Larger numbers are reduced to this one, because a store keeps signed numbers.
constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
// Tensors of the size of the inputs: inputs, their gradients, the result, its upstream gradient,
// the copy in the arena, workspace.
constexpr std::uint64_t kCopies = 6;
constexpr std::uint64_t kBytesOfUnknown = 8;  // of an element of unknown dtype
// Memory of a call with tiny tensors.
constexpr std::uint64_t kLeastBytes = 1 << 16;

std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMost : std::min(product, kMost);
}

std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kMost : std::min(sum, kMost);
}

// Elements of a tensor with this list of integers as its shape; 0 for any other value.
std::uint64_t elements_as_shape(const Value& value) {
  if (!value.is(ValueKind::list) && !value.is(ValueKind::tuple)) return 0;
  std::uint64_t elements = 1;
  for (const Value extent : value.children()) {
    if (!extent.is(ValueKind::integer)) return 0;
    elements = saturating_product(
        elements, static_cast<std::uint64_t>(std::max<std::int64_t>(extent.integer(), 1)));
  }
  return elements;
}

// What an API makes of its arguments: COSTS of python/assay/registry.py.
enum class ApiCost { plain, product, expansion, resize, matmul, convolution };

ApiCost cost_of_api(std::string_view api) {
  static constexpr auto kCosts = std::to_array<std::pair<std::string_view, ApiCost>>({
#include "api_costs.inc"
  });
  const auto found = std::ranges::lower_bound(kCosts, api, {}, [](auto& row) { return row.first; });
  return found != kCosts.end() && found->first == api ? found->second : ApiCost::plain;
}

// Elements of a result whose size is the product of the sizes of the arguments. Every integer, also
// in a list, counts as an extent.
std::uint64_t elements_of_product(const Case& parsed) {
  std::uint64_t elements = 1;
  for (const TensorSpec tensor : parsed.tensors()) {
    elements = saturating_product(elements, tensor.elements());
  }
  for (const Argument& argument : parsed.arguments()) {
    if (argument.keyword == "axis") continue;
    if (argument.value.is(ValueKind::integer) && argument.value.integer() > 0) {
      elements = saturating_product(elements, static_cast<std::uint64_t>(argument.value.integer()));
    } else if (const std::uint64_t listed = elements_as_shape(argument.value); listed > 0) {
      elements = saturating_product(elements, listed);
    }
  }
  return elements;
}

// Elements of the first tensor after it is expanded to the list, where -1 keeps an extent.
std::uint64_t elements_expanded(const Case& parsed) {
  if (parsed.tensor_count() == 0 || parsed.argument_count() < 2) return 0;
  const Value list = parsed.argument(1).value;
  if (!list.is(ValueKind::list) && !list.is(ValueKind::tuple)) return 0;
  const auto shape = parsed.tensor(0).shape;
  std::uint64_t elements = 1;
  std::size_t from_end = list.size();
  for (const Value extent : list.children()) {
    std::int64_t expanded = extent.is(ValueKind::integer) ? extent.integer() : 1;
    if (expanded < 0 && from_end <= shape.size()) expanded = shape[shape.size() - from_end];
    elements = saturating_product(elements,
                                  static_cast<std::uint64_t>(std::max<std::int64_t>(expanded, 1)));
    --from_end;
  }
  return elements;
}

// Elements of a batch of images [N, C, …] that are resized or pooled to the extents in a list.
std::uint64_t elements_resized(const Case& parsed) {
  if (parsed.tensor_count() == 0 || parsed.tensor(0).shape.size() < 2) return 0;
  const auto shape = parsed.tensor(0).shape;
  std::uint64_t extents = 0;
  for (const Argument& argument : parsed.arguments()) {
    extents = std::max(extents, elements_as_shape(argument.value));
  }
  return saturating_product(extents, saturating_product(static_cast<std::uint64_t>(shape[0]),
                                                        static_cast<std::uint64_t>(shape[1])));
}

// Elements of the shape to which all tensors broadcast, if it is larger than the tensors. 0 if the
// dtypes differ: such tensors are usually values and indices, which do not broadcast.
std::uint64_t elements_broadcast(const Case& parsed) {
  std::vector<std::int64_t> merged;  // from the last axis on
  for (const TensorSpec tensor : parsed.tensors()) {
    if (tensor.dtype != parsed.tensor(0).dtype) return 0;
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      const std::int64_t extent = tensor.shape[tensor.shape.size() - 1 - axis];
      if (axis == merged.size()) merged.push_back(1);
      if (extent != 1 && merged[axis] != 1 && extent != merged[axis]) return 0;
      if (extent != 1) merged[axis] = extent;
    }
  }
  std::uint64_t elements = 1;
  for (const std::int64_t extent : merged) {
    elements = saturating_product(elements, static_cast<std::uint64_t>(extent));
  }
  return elements > parsed.total_elements() ? elements : 0;
}

bool is_true(const Case& parsed, std::string_view keyword) {
  for (const Argument& argument : parsed.arguments()) {
    if (argument.keyword == keyword)
      return argument.value.is(ValueKind::boolean) && argument.value.boolean();
  }
  return false;
}

// Multiplications in a matrix product or a stack of them. [M, K] times [K, N] needs M·K·N: the
// elements of one side times an extent of the other.
std::uint64_t products_of_matrices(const Case& parsed) {
  if (parsed.tensor_count() < 2) return 0;
  const auto left = parsed.tensor(0).shape;
  const auto right = parsed.tensor(1).shape;
  if (left.size() < 2 || right.size() < 2) return 0;
  const std::size_t inner = is_true(parsed, "transpose_y") ? 2 : 1;
  const auto columns =
      static_cast<std::uint64_t>(std::max<std::int64_t>(right[right.size() - inner], 1));
  const std::uint64_t of_left = saturating_product(parsed.tensor(0).elements(), columns);
  if (right.size() <= left.size()) return of_left;
  // There are more matrices on the right; each is multiplied with all rows of the left.
  const auto rows = static_cast<std::uint64_t>(std::max<std::int64_t>(left[left.size() - 2], 1));
  return std::max(of_left, saturating_product(parsed.tensor(1).elements(), rows));
}

// Multiplications in a convolution with stride 1: each weight with each pixel of each image.
std::uint64_t products_of_convolution(const Case& parsed) {
  if (parsed.tensor_count() < 2) return 0;
  const auto image = parsed.tensor(0).shape;
  if (image.size() < 3 || image[1] <= 0) return 0;
  return saturating_product(parsed.tensor(0).elements() / static_cast<std::uint64_t>(image[1]),
                            parsed.tensor(1).elements());
}

// Elements of a result that may be much larger than the arguments.
std::uint64_t elements_made(const Case& parsed, ApiCost cost) {
  switch (cost) {
    case ApiCost::product:
      return elements_of_product(parsed);
    case ApiCost::expansion:
      return elements_expanded(parsed);
    case ApiCost::resize:
      return elements_resized(parsed);
    case ApiCost::plain:
    case ApiCost::matmul:
    case ApiCost::convolution:
      return 0;
  }
  return 0;
}

std::uint64_t multiplications(const Case& parsed, ApiCost cost) {
  if (cost == ApiCost::matmul) return products_of_matrices(parsed);
  return cost == ApiCost::convolution ? products_of_convolution(parsed) : 0;
}

}  // namespace

std::uint64_t time_limit_ms(std::uint64_t elements) {
  if (elements <= kMillion) return 90'000;
  if (elements <= 10 * kMillion) return 300'000;
  if (elements <= 100 * kMillion) return 1'800'000;
  return 3'600'000;
}

std::uint64_t expected_work_us(std::uint64_t elements) {
  return kWorkOfAnyUs + elements / kElementsInUs;
}

std::uint64_t measured_work_us(const wire::Record& record) {
  std::uint64_t work_ns = 0;
  if (record.trials() == nullptr) return 0;
  for (const wire::Trial* trial : *record.trials()) {
    if (trial->lanes() == nullptr) continue;
    std::uint64_t longest_ns = 0;
    for (const wire::LaneRecord* lane : *trial->lanes()) {
      if (lane->nanoseconds() == nullptr) continue;
      std::uint64_t lane_ns = 0;
      for (const std::uint64_t stage_ns : *lane->nanoseconds()) {
        lane_ns = saturating_sum(lane_ns, stage_ns);
      }
      longest_ns = std::max(longest_ns, lane_ns);
    }
    work_ns = saturating_sum(work_ns, longest_ns);
  }
  return work_ns / 1000;
}

std::uint64_t measured_device_bytes(const wire::Record& record) {
  std::uint64_t most_kb = 0;
  if (record.trials() == nullptr) return 0;
  for (const wire::Trial* trial : *record.trials()) {
    if (trial->lanes() == nullptr) continue;
    for (const wire::LaneRecord* lane : *trial->lanes()) {
      const bool knows =
          lane->status() == wire::Status::ok || lane->status() == wire::Status::out_of_memory;
      if (knows) most_kb = std::max(most_kb, lane->device_kb());
    }
  }
  return saturating_product(most_kb, 1024);
}

Cost estimate_cost(const Case& parsed) {
  Cost cost;
  cost.elements = std::min(parsed.total_elements(), kMost);
  const ApiCost of_api = cost_of_api(parsed.api());
  std::uint64_t made = std::max(elements_made(parsed, of_api), elements_broadcast(parsed));
  for (const Argument& argument : parsed.arguments()) {
    made = std::max(made, elements_as_shape(argument.value));
  }
  cost.bytes = saturating_product(parsed.total_bytes(), kCopies);
  // A list may also be a kernel size or numbers of repeats. It counts as a shape only if it is
  // large.
  if (made > kMillion) {
    cost.elements = saturating_sum(cost.elements, made);
    cost.bytes = saturating_sum(cost.bytes, saturating_product(made, 2 * kBytesOfUnknown));
  }
  cost.bytes = std::max(cost.bytes, kLeastBytes);
  cost.work_us = saturating_sum(expected_work_us(cost.elements),
                                multiplications(parsed, of_api) / kProductsInUs);
  return cost;
}

std::uint64_t input_bytes(std::string_view text) {
  Case parsed;
  if (!parse_case(text, parsed)) return 0;
  std::uint64_t bytes = 0;
  for (const TensorSpec& spec : parsed.tensors()) {
    bytes = saturating_sum(bytes, saturating_product(spec.elements(), info(spec.dtype).size));
  }
  return bytes;
}

}  // namespace assay
