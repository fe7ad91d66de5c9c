#include "slot/golden_packing.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "slot/arbiter.h"

namespace assay {
namespace {

// Larger results are not recorded.
constexpr std::uint64_t kMostTrialBytes = std::uint64_t{1} << 30;
constexpr int kMovedDrop = 44;  // bits of a double that a distance lacks: 8 of its mantissa remain

}  // namespace

void to_planes(std::span<const std::byte> from, std::size_t width, std::uint8_t* to) {
  const std::size_t count = from.size() / width;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t plane = 0; plane < width; ++plane) {
      to[plane * count + i] = static_cast<std::uint8_t>(from[i * width + plane]);
    }
  }
}

void from_planes(const std::uint8_t* from, std::size_t width, std::span<std::byte> to) {
  const std::size_t count = to.size() / width;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t plane = 0; plane < width; ++plane) {
      to[i * width + plane] = static_cast<std::byte>(from[plane * count + i]);
    }
  }
}

std::vector<std::uint8_t> planes_of(const std::vector<std::uint64_t>& numbers, std::uint8_t head) {
  std::vector<std::uint8_t> planes(1 + numbers.size() * sizeof(std::uint64_t), head);
  to_planes(std::as_bytes(std::span(numbers)), sizeof(std::uint64_t), planes.data() + 1);
  return planes;
}

std::vector<std::uint64_t> numbers_in(const flatbuffers::Vector<std::uint8_t>& planes) {
  std::vector<std::uint64_t> numbers((planes.size() - 1) / sizeof(std::uint64_t));
  from_planes(planes.data() + 1, sizeof(std::uint64_t), std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

Result<std::vector<Segment>> segments_of(wire::Reply& reply) {
  std::vector<Segment> found;
  for (auto* leaves : {reply.mutable_outputs(), reply.mutable_gradients()}) {
    for (flatbuffers::uoffset_t i = 0; leaves != nullptr && i < leaves->size(); ++i) {
      wire::Leaf* leaf = leaves->GetMutableObject(i);
      if (leaf->kind() == wire::LeafKind::tensor) found.push_back({leaf, nullptr});
      auto* parameters = leaf->mutable_parameters();
      for (flatbuffers::uoffset_t k = 0; parameters != nullptr && k < parameters->size(); ++k) {
        wire::Parameter* parameter = parameters->GetMutableObject(k);
        if (parameter->is_array()) found.push_back({leaf, parameter});
      }
    }
  }
  std::uint64_t sum = 0;
  for (const Segment& segment : found) {
    if (segment.dtype() >= kDTypes.size() || segment.bytes() > kMostTrialBytes ||
        segment.bytes() % size_of(static_cast<DType>(segment.dtype())) != 0) {
      return fail("a result has no size that can be recorded");
    }
    sum += segment.bytes();
  }
  if (sum > kMostTrialBytes) return fail("the results are larger than 1 GiB");
  return found;
}

std::uint64_t bits_of(double value) {
  return std::isnan(value) ? std::uint64_t{0x7FF8} << 48 : std::bit_cast<std::uint64_t>(value);
}

std::vector<double> parts_of(const ComplexValues& values, bool complex) {
  std::vector<double> parts;
  parts.reserve(values.size() * (complex ? 2 : 1));
  for (const std::complex<double>& value : values) {
    parts.push_back(value.real());
    if (complex) parts.push_back(value.imag());
  }
  return parts;
}

std::uint64_t step_to(double truth, double result, int drop) {
  const auto apart = static_cast<std::int64_t>(bits_of(truth) - bits_of(result));
  if (apart == 0) return 0;
  const std::int64_t half = drop == 0 ? 0 : std::int64_t{1} << (drop - 1);
  std::int64_t steps = (apart >> drop) + ((apart & ((half << 1) - 1)) >= half && half > 0 ? 1 : 0);
  const std::uint64_t back = bits_of(result) + (static_cast<std::uint64_t>(steps) << drop);
  if (std::isfinite(truth) && !std::isfinite(std::bit_cast<double>(back))) steps = apart >> drop;
  if (steps == 0) steps = apart > 0 ? 1 : -1;
  return (static_cast<std::uint64_t>(steps) << 1) ^ static_cast<std::uint64_t>(steps >> 63);
}

double step_from(double result, std::uint64_t zigzag, int drop) {
  const std::uint64_t steps = (zigzag >> 1) ^ (0 - (zigzag & 1));
  return std::bit_cast<double>(bits_of(result) + (steps << drop));
}

std::uint64_t short_distance(double moved) {
  const std::uint64_t bits = bits_of(moved);
  return std::isinf(moved) ? bits >> kMovedDrop
                           : (bits + (std::uint64_t{1} << (kMovedDrop - 1))) >> kMovedDrop;
}

double at_distance(double truth, std::uint64_t moved) {
  const double distance = std::bit_cast<double>(moved << kMovedDrop);
  if (std::isinf(distance)) return std::isfinite(truth) ? INFINITY : 0;
  return truth + distance;
}

ComplexValues results_of(const wire::Leaf& leaf, std::span<const std::byte> bytes) {
  ComplexValues values = complex_values({static_cast<DType>(leaf.dtype()), bytes});
  put_in_form(values, leaf.equality());
  return values;
}

bool needs_truth(const wire::Leaf& leaf) {
  return leaf.kind() == wire::LeafKind::tensor && leaf.path() != nullptr &&
         leaf.equality() != wire::Equality::bits && leaf.equality() != wire::Equality::shape;
}

bool is_among(const GoldenLeaves* leaves, const wire::Leaf* leaf) {
  return leaves != nullptr && std::find(leaves->begin(), leaves->end(), leaf) != leaves->end();
}

const wire::Leaf* leaf_at(const GoldenLeaves* leaves, std::string_view path) {
  for (flatbuffers::uoffset_t i = 0; leaves != nullptr && i < leaves->size(); ++i) {
    const wire::Leaf* leaf = leaves->Get(i);
    const bool same = flatbuffers::GetStringView(leaf->path()) == path;
    if (same && leaf->kind() == wire::LeafKind::tensor) return leaf;
  }
  return nullptr;
}

DigestPlan plan_of(const wire::Leaf& leaf, std::uint64_t seed,
                   std::vector<std::uint64_t> landmarks) {
  const auto dtype = static_cast<DType>(leaf.dtype());
  return {dtype, leaf.bytes() / size_of(dtype),           leaf.equality(),
          seed,  flatbuffers::GetStringView(leaf.path()), std::move(landmarks)};
}

}  // namespace assay
