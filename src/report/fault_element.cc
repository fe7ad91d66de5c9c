#include "report/fault_element.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "case/parser.h"
#include "report/inputs.h"
#include "verdict/messages.h"
#include "wire/frame.h"

namespace assay {
namespace {

constexpr std::uint64_t kFewElements = 32;  // of an input that is shown whole

constexpr std::size_t kIdsOfQuery = 500;

using Extents = std::vector<std::int64_t>;

std::string list_text(const auto& entries) { return fmt::format("[{}]", fmt::join(entries, ", ")); }

std::string where_of(const Fault& fault) {
  if (fault.kinds == 0) return fault.lane.empty() ? "" : fmt::format("the {} lane", fault.lane);
  if (fault.kinds == kInput) return "the input " + fault.leaf;
  return (fault.gradient ? "gradient of " : "result") + fault.leaf;
}

// The position of an element in a tensor of this shape; nullopt if the tensor has no such element.
std::optional<Extents> position_of(std::uint64_t index, const Extents& shape) {
  Extents position(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] <= 0) return std::nullopt;
    const auto extent = static_cast<std::uint64_t>(shape[axis]);
    position[axis] = static_cast<std::int64_t>(index % extent);
    index /= extent;
  }
  if (index != 0) return std::nullopt;
  return position;
}

// The element of an input that meets an element of the result if the input is broadcast to the
// result; nullopt if the shapes do not allow that.
std::optional<Extents> broadcast(const Extents& at, const Extents& shape, const TensorSpec& spec) {
  if (spec.shape.size() > shape.size()) return std::nullopt;
  const std::size_t more = shape.size() - spec.shape.size();
  Extents position(spec.shape.size());
  for (std::size_t axis = 0; axis < position.size(); ++axis) {
    const std::int64_t extent = spec.shape[axis];
    if (extent != 1 && extent != shape[axis + more]) return std::nullopt;
    position[axis] = extent == 1 ? 0 : at[axis + more];
  }
  return position;
}

// The index of an element in the memory that a lane fills.
std::uint64_t index_in(const TensorSpec& spec, const Extents& position) {
  std::uint64_t index = 0;
  for (std::size_t axis = 0; axis < position.size(); ++axis) {
    const auto at = static_cast<std::uint64_t>(position[axis]);
    if (spec.strides.empty()) {
      index = index * static_cast<std::uint64_t>(spec.shape[axis]) + at;
    } else {
      index += at * static_cast<std::uint64_t>(spec.strides[axis]);
    }
  }
  return index;
}

// The shape of the results that a comparison is of.
Extents shape_of(const wire::Comparison& comparison) {
  const wire::Side* side = comparison.left();
  if (side == nullptr || side->shape() == nullptr) return {};
  return {side->shape()->begin(), side->shape()->end()};
}

// Sets what came and what is right.
void read_results(const Witness& witness, const Fault& fault, FaultElement& element) {
  if (witness.comparison == nullptr) {
    if (fault.kinds == 0) element.got = fault.message;
    return;
  }
  const wire::Comparison& comparison = *witness.comparison;
  if ((fault.kinds & kValue) == 0 || !witness.element) {
    element.got = side_text(comparison.left());
    element.expected = side_text(comparison.right());
    return;
  }
  element.index = witness.index;
  element.got = witness.got;
  element.expected = witness.right;
  if (fault.by_truth) element.reference = witness.by_reference;
  // Elements that are compared in sorted order have lost their positions.
  if (comparison.equality() == wire::Equality::sorted) return;
  if (const auto at = position_of(witness.index, shape_of(comparison))) {
    element.position = list_text(*at);
  }
}

class InputReader {
 public:
  InputReader(const wire::Trial& trial, std::uint64_t seed, std::uint64_t id)
      : trial_(trial), seed_(seed), id_(id) {}

  // `at`: the position of the element in a result of `shape`, if one shows the fault.
  Result<InputValues> read(const TensorSpec& spec, std::size_t ordinal,
                           const std::optional<Extents>& at, const Extents& shape) const {
    InputValues values;
    values.name = fmt::format("x{}", ordinal);
    values.type = fmt::format("{}{}", name(spec.dtype), list_text(spec.shape));
    const wire::Filling* filling = filling_of(trial_, ordinal);
    const FillKey key{seed_, id_, static_cast<std::uint32_t>(ordinal)};
    if (spec.elements() <= kFewElements && spec.strides.empty()) {
      std::vector<std::byte> elements(spec.bytes());
      ASSAY_CHECK(fill_again(filling, key, spec.dtype, elements));
      values.whole = list_text(python_numbers(spec.dtype, elements));
    }
    const auto here = at ? broadcast(*at, shape, spec) : std::nullopt;
    if (!here) return values;
    values.position = list_text(*here);
    std::vector<std::byte> element(size_of(spec.dtype));
    ASSAY_CHECK(fill_element_again(filling, key, spec.dtype, index_in(spec, *here), element));
    values.value = python_numbers(spec.dtype, element).front();
    return values;
  }

 private:
  const wire::Trial& trial_;
  std::uint64_t seed_;
  std::uint64_t id_;
};

// A number as a Python literal.
std::string python_literal(DType dtype, double value, double second) {
  std::string text = element_text(dtype, value, second);
  if (info(dtype).kind != DTypeClass::complex) return text;
  return fmt::format("complex({}, {})", element_text(DType::float64, value),
                     element_text(DType::float64, second));
}

const wire::Comparison* comparison_of(const wire::Pair& pair, const Fault& fault,
                                      std::size_t& place) {
  const auto* comparisons = fault.gradient ? pair.gradients() : pair.outputs();
  for (std::uint32_t i = 0; comparisons != nullptr && i < comparisons->size(); ++i) {
    const wire::Comparison* comparison = comparisons->Get(i);
    if (comparison->path() == nullptr || comparison->path()->string_view() != fault.leaf) continue;
    place = i;
    return comparison;
  }
  return nullptr;
}

void read_bar(const wire::Comparison& comparison, bool of_reference, Witness& witness) {
  const wire::Bar& bar = *comparison.bar();
  const wire::Distance* worst = of_reference ? bar.reference() : bar.test();
  const wire::Measurement* measured = comparison.measurement();
  const auto dtype = static_cast<DType>(comparison.left()->dtype());
  witness.index = worst->index();
  witness.element = measured != nullptr && witness.index < measured->count();
  const double got = of_reference ? bar.reference_value() : bar.test_value();
  witness.got = python_literal(dtype, got, 0);
  witness.right = python_literal(info(dtype).kind == DTypeClass::floating ? DType::float64 : dtype,
                                 bar.true_value(), 0);
  witness.by_reference = python_literal(dtype, bar.reference_value(), 0);
  witness.apart = std::abs(got - bar.true_value());
  if (info(dtype).kind == DTypeClass::complex) witness.element = false;  // bars keep moduli
}

void read_measurement(const wire::Comparison& comparison, Witness& witness) {
  const wire::Offender& first = *comparison.measurement()->first();
  const auto left = static_cast<DType>(comparison.left()->dtype());
  const auto right = static_cast<DType>(comparison.right()->dtype());
  witness.index = first.index();
  witness.element = true;
  witness.got = python_literal(left, first.left(), first.left_imaginary());
  witness.right = python_literal(right, first.right(), first.right_imaginary());
  witness.by_reference = witness.right;
  witness.apart =
      std::hypot(first.left() - first.right(), first.left_imaginary() - first.right_imaginary());
}

}  // namespace

Witness witness_of(const wire::Trial& trial, const Fault& fault) {
  Witness witness;
  if (fault.kinds == 0 || trial.pairs() == nullptr || trial.pairs()->size() == 0) return witness;
  const wire::Comparison* comparison = comparison_of(*trial.pairs()->Get(0), fault, witness.place);
  if (comparison == nullptr) return witness;
  witness.comparison = comparison;
  const bool of_reference = fault.outcome == Outcome::reference_error;
  const wire::Bar* bar = comparison->bar();
  const wire::Distance* side =
      bar == nullptr ? nullptr : (of_reference ? bar->reference() : bar->test());
  if (side != nullptr && comparison->left() != nullptr)
    read_bar(*comparison, of_reference, witness);
  const wire::Measurement* measured = comparison->measurement();
  if (!witness.element && measured != nullptr && measured->first() != nullptr) {
    read_measurement(*comparison, witness);
  }
  return witness;
}

std::string FaultElement::inputs_line() const {
  std::vector<std::string> parts;
  for (const InputValues& input : inputs) {
    if (!input.position.empty()) {
      const bool scalar = input.position == "[]";
      parts.push_back(
          fmt::format("{}{} = {}", input.name, scalar ? "" : input.position, input.value));
    } else if (!input.whole.empty()) {
      parts.push_back(fmt::format("{} = {}", input.name, input.whole));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string FaultElement::lines() const {
  std::string text;
  if (!position.empty()) {
    text += fmt::format("at {} (element {}) of {}\n", position, index, where);
  }
  const auto line = [&](std::string_view what, const std::string& value) {
    if (!value.empty()) text += fmt::format("{} {}\n", what, value);
  };
  line("got      ", got);
  line("expected ", expected);
  line("reference", reference);
  for (const InputValues& input : inputs) {
    const std::string tensor = fmt::format("{} {}", input.name, input.type);
    if (!input.position.empty()) {
      text += fmt::format("input     {} at {}: {}\n", tensor, input.position, input.value);
    }
    if (!input.whole.empty()) text += fmt::format("input     {}: {}\n", tensor, input.whole);
  }
  return text;
}

nlohmann::json FaultElement::json() const {
  nlohmann::json object = {{"where", where}};
  const auto add = [](nlohmann::json& to, const char* key, const std::string& value) {
    if (!value.empty()) to[key] = value;
  };
  add(object, "got", got);
  add(object, "expected", expected);
  add(object, "reference", reference);
  add(object, "position", position);
  if (!position.empty()) object["index"] = index;
  object["inputs"] = nlohmann::json::array();
  for (const InputValues& input : inputs) {
    nlohmann::json of_input = {{"name", input.name}, {"type", input.type}};
    add(of_input, "position", input.position);
    add(of_input, "value", input.value);
    add(of_input, "whole", input.whole);
    object["inputs"].push_back(std::move(of_input));
  }
  return object;
}

Result<FaultElement> element_of(std::string_view case_text, std::uint64_t id, std::uint64_t seed,
                                const wire::Record& record, const Fault& fault) {
  Case parsed;
  if (const auto status = parse_case(case_text, parsed); !status) {
    return fail("a stored case does not parse: " + status.error().message);
  }
  const wire::Trial& trial = trial_under(record, fault.values);
  const Witness witness = witness_of(trial, fault);
  FaultElement element;
  element.where = where_of(fault);
  read_results(witness, fault, element);
  const Extents shape = witness.comparison == nullptr ? Extents() : shape_of(*witness.comparison);
  const auto at = element.position.empty() ? std::nullopt : position_of(element.index, shape);
  const InputReader reader(trial, seed, id);
  for (std::size_t i = 0; i < parsed.tensor_count(); ++i) {
    ASSAY_TRY(InputValues values, reader.read(parsed.tensor(i), i, at, shape));
    element.inputs.push_back(std::move(values));
  }
  return element;
}

const wire::Record* record_with_lanes(const FinishedCase& finished) {
  if (finished.record.empty()) return nullptr;
  const auto record = wire::open<wire::Record>(finished.record);
  return record && has_lanes(**record) ? *record : nullptr;
}

Status each_with_lanes(RunReader& run, std::span<const std::uint64_t> ids,
                       const std::function<void(const FinishedCase&, const wire::Record&)>& visit) {
  while (!ids.empty()) {
    RunQuery query;
    query.ids = ids.first(std::min(ids.size(), kIdsOfQuery));
    ids = ids.subspan(query.ids.size());
    ASSAY_CHECK(run.each(query, [&](const FinishedCase& finished) -> Status {
      if (const wire::Record* record = record_with_lanes(finished)) visit(finished, *record);
      return {};
    }));
  }
  return {};
}

}  // namespace assay
