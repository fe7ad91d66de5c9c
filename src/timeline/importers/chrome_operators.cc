#include "timeline/importers/chrome_operators.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "timeline/importers/builder.h"
#include "timeline/operator_work.h"

namespace assay::timeline {
namespace {

using nlohmann::json;

std::vector<std::string> texts_in(std::string_view text) {
  std::vector<std::string> texts;
  for (const json& one : parse_json(text)) {
    texts.push_back(one.is_string() ? one.get<std::string>() : std::string());
  }
  return texts;
}

// Lists of tensors, scalars and missing arguments have no shape.
std::vector<Shape> shapes_in(std::string_view text) {
  std::vector<Shape> shapes;
  for (const json& one : parse_json(text)) {
    Shape& shape = shapes.emplace_back();
    if (!one.is_array() || !std::ranges::all_of(one, &json::is_number_integer)) continue;
    for (const json& size : one) shape.push_back(size.get<std::int64_t>());
  }
  return shapes;
}

}  // namespace

std::uint32_t OperatorReader::kind_of(const ChromeEvent& event, Trace& trace) {
  if (event.phase != 'X' || !event.name.starts_with("aten::")) return kNoIndex;
  const OperatorFormula* const formula = formula_of(event.name);
  if (formula == nullptr || trace.operator_calls.size() >= kMaxImportedSlices) return kNoIndex;
  std::string key(event.name);
  for (const Arg arg : {Arg::input_dims, Arg::input_types, Arg::input_values}) {
    key.append("\n").append(event.arg(arg));
  }
  const auto [known, is_new] = known_.try_emplace(std::move(key), kNoIndex);
  if (!is_new) return known->second;
  OperatorKind kind;
  kind.name = trace.strings.intern_valid(event.name);
  kind.composite = formula->composite;
  const auto cost = cost_of(
      *formula, {shapes_in(event.arg(Arg::input_dims)), texts_in(event.arg(Arg::input_types)),
                 texts_in(event.arg(Arg::input_values))});
  if (cost) {
    kind.flop = cost->flop;
    kind.bytes = cost->bytes;
  }
  kind.dtype = trace.strings.intern(cost ? cost->dtype : "");
  kind.shapes = trace.strings.intern(cost ? cost->shapes : "");
  trace.operator_kinds.push_back(kind);
  known->second = static_cast<std::uint32_t>(trace.operator_kinds.size() - 1);
  return known->second;
}

}  // namespace assay::timeline
