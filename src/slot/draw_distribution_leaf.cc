#include "slot/draw_distribution_leaf.h"

#include <algorithm>
#include <array>
#include <complex>
#include <optional>
#include <string>
#include <vector>

#include "measure/dependence.h"
#include "measure/draw_distribution.h"
#include "measure/two_valued_draws.h"
#include "slot/values.h"

namespace assay {
namespace {

// The numbers of a tensor; with `by_parts` the real and imaginary part of each element in turn.
std::vector<double> numbers_of(const TensorBytes& tensor, bool by_parts) {
  if (!by_parts) return real_values(tensor);
  std::vector<double> parts;
  for (const std::complex<double>& value : complex_values(tensor)) {
    parts.push_back(value.real());
    // A real parameter applies to both parts of a draw.
    parts.push_back(is_complex(tensor.dtype) ? value.imag() : value.real());
  }
  return parts;
}

Result<DrawParameter> read_parameter(const wire::Parameter& parameter, const wire::Arena& arena,
                                     bool by_parts) {
  DrawParameter read;
  read.number = parameter.number();
  if (!parameter.is_array()) return read;
  if (parameter.dtype() >= kDTypes.size() || !arena.holds(parameter.offset(), parameter.bytes())) {
    return fail("a lane sent a distribution whose parameter lies outside its arena");
  }
  const TensorBytes tensor{static_cast<DType>(parameter.dtype()),
                           {arena.data() + parameter.offset(), parameter.bytes()}};
  read.values = numbers_of(tensor, by_parts);
  if (tensor.count() == 1 && !(by_parts && is_complex(tensor.dtype))) {
    read.number = read.values.front();
    read.values.clear();
  }
  return read;
}

// The number of draws of a row, a plane and so on.
std::vector<std::size_t> rows_of(const wire::Leaf& leaf, std::size_t parts) {
  std::vector<std::size_t> rows;
  const auto* shape = leaf.shape();
  std::size_t length = parts;
  for (flatbuffers::uoffset_t axis = shape == nullptr ? 0 : shape->size(); axis > 1; --axis) {
    length *= static_cast<std::size_t>(shape->Get(axis - 1));
    if (rows.size() < kMostRows) rows.push_back(length);
  }
  return rows;
}

// Draws of one block, so that it stays in the cache.
constexpr std::uint64_t kBlock = std::uint64_t{1} << 14;

// A parameter in the arena: one number for all draws, or one number for each.
struct PartOfDraw {
  double number = 0;
  TensorBytes values;
};

std::optional<PartOfDraw> part_of(const wire::Parameter& parameter, const wire::Arena& arena,
                                  std::uint64_t draws) {
  PartOfDraw part;
  part.number = parameter.number();
  if (!parameter.is_array()) return part;
  if (parameter.dtype() >= kDTypes.size() || !arena.holds(parameter.offset(), parameter.bytes())) {
    return std::nullopt;
  }
  part.values = {static_cast<DType>(parameter.dtype()),
                 {arena.data() + parameter.offset(), parameter.bytes()}};
  if (part.values.count() != draws || draws == 1) return std::nullopt;
  return part;
}

// Measures independent draws of `kept` and `either` block by block. nullopt: another distribution,
// or invalid parameters, which the reader of parameters reports.
Result<std::optional<DrawMeasurement>> measure_choices(DrawDistribution kind,
                                                       const wire::Leaf& distribution,
                                                       const wire::Arena& arena, Tensor& drawn) {
  std::optional<DrawMeasurement> none;
  const std::size_t size = size_of(drawn.dtype());
  const std::uint64_t draws = drawn.size() / size;
  const auto* given = distribution.parameters();
  if (kind != DrawDistribution::kept && kind != DrawDistribution::either) return none;
  if (given == nullptr || given->size() != parameter_count(kind)) return none;
  std::vector<PartOfDraw> parts;
  for (const wire::Parameter* each : *given) {
    const auto part = part_of(*each, arena, draws);
    const bool is_last = parts.size() + 2 >= given->size();  // the share, and the groups
    if (!part || (is_last && each->is_array())) return none;
    parts.push_back(*part);
  }
  if (kind == DrawDistribution::kept) parts.insert(parts.begin() + 1, PartOfDraw{});
  Choice choice(parts[2].number, resolution_of(drawn.dtype()));
  for (std::uint64_t from = 0; from < draws; from += kBlock) {
    const std::uint64_t count = std::min(kBlock, draws - from);
    ASSAY_TRY(const TensorBytes block, drawn.bytes(from * size, count * size));
    std::array<std::vector<double>, 2> values;
    std::array<DrawNumbers, 2> numbers;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const TensorBytes& all = parts[i].values;
      const std::size_t each = all.bytes.empty() ? 0 : size_of(all.dtype);
      if (each > 0) {
        values[i] = real_values({all.dtype, all.bytes.subspan(from * each, count * each)});
      }
      numbers[i] = {parts[i].number, values[i]};
    }
    choice.add(real_values(block), numbers[0], numbers[1], {});
  }
  return std::optional(choice.finish());
}

}  // namespace

Result<flatbuffers::Offset<wire::DrawMeasurement>> measure_draws(
    flatbuffers::FlatBufferBuilder& builder, const wire::Leaf& drawn,
    const LaneMemory& drawn_memory, const wire::Leaf& distribution,
    const wire::Arena& distribution_arena) {
  const std::string distribution_name =
      distribution.text() == nullptr ? std::string() : distribution.text()->str();
  const auto kind = find_distribution(distribution_name);
  if (!kind) return fail("a lane sent an unknown distribution: " + distribution_name);
  ASSAY_TRY(Tensor in_lane, Tensor::of(drawn, drawn_memory));
  const auto said = [&](const DrawMeasurement& measured) {
    const bool holds = distribution_holds(measured);
    return wire::CreateDrawMeasurement(
        builder, builder.CreateString(distribution_name), measured.count, holds,
        builder.CreateString(holds ? "" : describe(*kind, measured)));
  };
  ASSAY_TRY(const auto measured, measure_choices(*kind, distribution, distribution_arena, in_lane));
  if (measured) return said(*measured);
  ASSAY_TRY(const TensorBytes tensor, in_lane.bytes());
  // The parts of a complex draw are two draws. If values are kept or dropped whole, the real part
  // decides.
  const bool by_parts = is_complex(tensor.dtype) && has_distribution(*kind);
  const std::vector<double> drawn_values = numbers_of(tensor, by_parts);
  std::vector<DrawParameter> parameters;
  const std::size_t given =
      distribution.parameters() == nullptr ? 0 : distribution.parameters()->size();
  for (std::size_t i = 0; i < given; ++i) {
    const wire::Parameter* parameter =
        distribution.parameters()->Get(static_cast<flatbuffers::uoffset_t>(i));
    ASSAY_TRY(DrawParameter read, read_parameter(*parameter, distribution_arena, by_parts));
    parameters.push_back(std::move(read));
  }
  if (const std::string fault = parameter_fault(*kind, parameters, drawn_values.size());
      !fault.empty()) {
    return fail("a lane sent an invalid distribution: " + distribution_name + ": " + fault);
  }
  const std::vector<std::size_t> rows = rows_of(drawn, by_parts ? 2 : 1);
  return said(measure_draws(*kind, drawn_values, parameters, resolution_of(tensor.dtype), rows));
}

}  // namespace assay
