#include "timeline/importers/chrome_collectives.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace assay::timeline {
namespace {

using nlohmann::json;

// The elements of all tensors in a nested list of shapes.
std::int64_t elements_of(const json& shapes) {
  if (!shapes.is_array() || shapes.empty()) return 0;
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 56;
  const bool one_tensor = shapes.front().is_number();
  std::int64_t elements = one_tensor ? 1 : 0;
  for (const json& part : shapes) {
    if (one_tensor && !part.is_number_unsigned()) return 0;
    const std::int64_t here = one_tensor ? part.get<std::int64_t>() : elements_of(part);
    if (here < 0 || here > kMaxElements || (one_tensor && here > kMaxElements / elements)) return 0;
    elements = one_tensor ? elements * here : elements + here;
    if (elements <= 0 && one_tensor) return 0;
    if (elements > kMaxElements) return 0;
  }
  return elements;
}

// "nccl:all_reduce" with recorded shapes: the shapes and types of the inputs.
std::optional<Collective> by_shapes(const ChromeEvent& event, Strings& strings) {
  const std::size_t colon = event.name.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const json types = parse_json(event.arg(Arg::input_types));
  Collective collective;
  collective.name = strings.intern_valid(event.name.substr(colon + 1));
  collective.group = collective.description = collective.ranks = strings.intern_valid("");
  const bool typed = types.is_array() && !types.empty() && types.front().is_string();
  collective.dtype = strings.intern(typed ? types.front().get<std::string>() : "");
  if (const auto elements = elements_in(event.arg(Arg::input_dims)); elements > 0) {
    collective.in_elements = elements;
  }
  return collective;
}

}  // namespace

std::int64_t elements_in(std::string_view shapes) { return elements_of(parse_json(shapes)); }

bool is_cpu_collective(std::string_view name) {
  return name.starts_with("gloo:") || name.starts_with("mpi:") || name.starts_with("ucc:");
}

bool calls_collective(std::string_view name) {
  // nccl: rccl: hccl: xccl:
  return name == "record_param_comms" || (name.size() > 5 && name.substr(1, 4) == "ccl:") ||
         is_cpu_collective(name);
}

std::optional<Collective> collective_in(const ChromeEvent& event, Strings& strings) {
  if (event.arg(Arg::collective).empty()) {
    return calls_collective(event.name) ? by_shapes(event, strings) : std::nullopt;
  }
  const auto intern = [&](Arg arg) { return strings.intern_valid(event.arg(arg)); };
  const std::string_view described = event.arg(Arg::group_description);
  Collective collective;
  collective.name = intern(Arg::collective);
  collective.group = intern(Arg::group);
  collective.description = described.empty() || described == "undefined"
                               ? collective.group
                               : intern(Arg::group_description);
  collective.dtype = intern(Arg::dtype);
  collective.ranks = intern(Arg::group_ranks);
  collective.in_elements = event.number(Arg::in_elements);
  collective.out_elements = event.number(Arg::out_elements);
  collective.group_size = static_cast<std::int32_t>(event.number(Arg::group_size));
  collective.peer = static_cast<std::int32_t>(event.number(Arg::peer));
  collective.sequence = event.number(Arg::sequence);
  return collective;
}

}  // namespace assay::timeline
