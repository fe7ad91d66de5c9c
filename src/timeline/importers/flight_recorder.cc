// Imports dumps of PyTorch's flight recorder: the last collectives of a rank, with their state. The
// format is pickle, as the watchdog writes (nccl_trace_rank_N), or JSON.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "timeline/importers/builder.h"
#include "timeline/importers/chrome_collectives.h"
#include "timeline/importers/importer.h"
#include "timeline/importers/json_fields.h"
#include "timeline/input/byte_source.h"
#include "timeline/input/pickle.h"
#include "timeline/names.h"

namespace assay::timeline {
namespace {

using nlohmann::json;

// "[0, 1, 2]", or a list.
std::vector<std::int32_t> ranks_of(const json& group) {
  const auto field = group.find("ranks");
  if (field == group.end()) return {};
  return whole_numbers(field->is_string() ? parse_json(field->get<std::string>()) : *field);
}

FlightState state_of(const std::string& name) {
  if (name == "completed") return FlightState::completed;
  return name == "started" ? FlightState::started : FlightState::scheduled;
}

// The innermost frame outside of PyTorch's own code, else the innermost one.
std::string frame_in(const json& entry) {
  const auto frames = entry.find("frames");
  if (frames == entry.end() || !frames->is_array() || frames->empty()) return {};
  const auto is_users = [](const json& frame) {
    const std::string file = frame.is_object() ? text_of(frame, "filename") : "";
    return !file.empty() && file[0] != '<' && !has_any(file, {"/torch/", "??"});
  };
  const auto users = std::ranges::find_if(*frames, is_users);
  const json& frame = users == frames->end() ? frames->front() : *users;
  if (!frame.is_object()) return {};
  return fmt::format("{}:{} ({})", text_of(frame, "filename"), whole(frame, "line"),
                     text_of(frame, "name"));
}

// Collectives whose ranks must agree in the size of their output; others agree in their input.
// All-to-alls may differ, and a barrier has no data.
void describe_tensors(const json& entry, FlightEntry& flight) {
  const bool scatters = flight.name.ends_with(":scatter");
  const bool free = has_any(flight.name, {"all_to_all", "alltoall", "barrier", "coalesced"});
  const auto sizes = entry.find(scatters ? "output_sizes" : "input_sizes");
  const auto types = entry.find(scatters ? "output_dtypes" : "input_dtypes");
  if (types != entry.end() && types->is_array() && !types->empty() && types->front().is_string()) {
    flight.dtype = types->front().get<std::string>();
  }
  flight.root = whole(entry, "root");
  if (sizes == entry.end() || !sizes->is_array()) return;
  flight.shapes = fmt::format("{} {}", sizes->dump(), flight.dtype);
  if (!free && !flight.p2p) flight.elements = elements_in(sizes->dump());
}

void add_entry(TraceBuilder& builder, const json& entry) {
  ++builder.report().records;
  if (!entry.is_object()) {
    ++builder.report().malformed;
    return;
  }
  FlightEntry flight;
  const auto group = entry.find("process_group");
  if (group != entry.end() && group->is_array() && !group->empty() && (*group)[0].is_string()) {
    flight.group = (*group)[0].get<std::string>();
    if (group->size() > 1 && (*group)[1].is_string()) {
      flight.description = (*group)[1].get<std::string>();
    }
  } else {
    flight.group = std::to_string(whole(entry, "pg_id"));
  }
  const auto p2p = entry.find("is_p2p");
  flight.p2p = p2p != entry.end() && p2p->is_boolean() && p2p->get<bool>();
  flight.sequence = whole(entry, flight.p2p ? "p2p_seq_id" : "collective_seq_id");
  if (flight.sequence == kNone) flight.sequence = whole(entry, "seq_id");  // version 1
  flight.name = text_of(entry, "profiling_name");
  flight.state = state_of(text_of(entry, "state"));
  // The watchdog retires what has ended; without timing, the state stays "scheduled".
  const auto retired = entry.find("retired");
  if (retired != entry.end() && retired->is_boolean() && retired->get<bool>()) {
    flight.state = FlightState::completed;
  }
  flight.frame = frame_in(entry);
  describe_tensors(entry, flight);
  flight.created = whole(entry, "time_created_ns");
  if (flight.sequence == kNone) {
    ++builder.report().malformed;
    return;
  }
  ++builder.report().kept;
  builder.trace().flight.push_back(std::move(flight));
}

Result<json> read_dump(const std::filesystem::path& path, bool is_json) {
  constexpr std::size_t kMaxDump = 512U << 20U;
  ASSAY_TRY(const std::string bytes, read_head(path, kMaxDump));
  if (!is_json) return read_pickle(bytes);
  json parsed = parse_json(bytes);
  if (parsed.is_discarded()) return usage_error("the JSON is damaged");
  return parsed;
}

Result<Trace> import(const std::filesystem::path& path, const ImportOptions&) {
  ASSAY_TRY(const std::string head, read_head(path, 1));
  auto dump = read_dump(path, !head.empty() && head[0] == '{');
  if (!dump) return usage_error(fmt::format("{}: {}", path.string(), dump.error().message));
  TraceBuilder builder;
  builder.describe(path, "flight recorder");
  Source source{.path = path.string(), .host = {}, .groups = {}};
  source.rank = static_cast<std::int32_t>(whole(*dump, "rank"));
  source.dump = true;
  if (const auto groups = dump->find("pg_config"); groups != dump->end() && groups->is_object()) {
    for (const auto& [name, group] : groups->items()) {
      if (group.is_object()) source.groups[name] = {text_of(group, "desc"), ranks_of(group)};
    }
  }
  builder.trace().sources.push_back(std::move(source));
  const auto entries = dump->find("entries");
  if (entries == dump->end() || !entries->is_array()) {
    builder.report().notes.emplace_back(
        "no entries: the recorder was off (TORCH_NCCL_TRACE_BUFFER_SIZE)");
  } else {
    for (const json& entry : *entries) add_entry(builder, entry);
  }
  return builder.finish();
}

bool recognises(const Sniff& sniff) {
  if (sniff.json) return sniff.keys.contains("entries") && sniff.keys.contains("pg_config");
  return sniff.head.starts_with('\x80') && has(sniff.head, "version") &&
         has_any(sniff.head, {"pg_config", "entries"});
}

}  // namespace

const Importer kFlightRecorder{"flight recorder", "a pickle or JSON with entries and pg_config",
                               recognises, import};

}  // namespace assay::timeline
