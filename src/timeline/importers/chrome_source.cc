#include "timeline/importers/chrome_source.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/json.h"
#include "timeline/importers/json_fields.h"

namespace assay::timeline {
namespace {

using nlohmann::json;

std::int32_t rank_field(const json& object, const char* key) {
  constexpr std::int64_t kMaxRank = 1 << 24;
  const std::int64_t value = whole(object, key);
  return value >= 0 && value < kMaxRank ? static_cast<std::int32_t>(value) : kNone;
}

void add_group(const json& group, Source& source) {
  if (!group.is_object()) return;
  const auto name = group.find("pg_name");
  if (name == group.end() || !name->is_string()) return;
  ProcessGroup& known = source.groups[name->get<std::string>()];
  if (group.contains("pg_desc")) known.description = text_of(group, "pg_desc");
  if (group.contains("ranks")) known.ranks = whole_numbers(group["ranks"]);
}

}  // namespace

Result<Trace> import_profile(const std::filesystem::path& path, const ChromeDialect& dialect,
                             const ImportOptions& options) {
  ASSAY_TRY(Trace trace, import_chrome_trace(path, dialect, options));
  if (!options.analysis || std::ranges::any_of(trace.tracks, &Track::gpu)) return trace;
  ImportOptions whole = options;
  whole.analysis = false;
  return import_chrome_trace(path, dialect, whole);
}

Track merged_track_in(const ChromeEvent& event, std::vector<Source>& sources) {
  Track track;
  track.label = event.arg(Arg::name);
  track.process = event.arg(Arg::process);
  track.machine = event.arg(Arg::machine);
  track.device = static_cast<std::int32_t>(event.number(Arg::device));
  track.rank = static_cast<std::int32_t>(event.number(Arg::rank));
  track.pid = event.number(Arg::pid);
  track.gpu = event.arg(Arg::gpu) == "true";
  track.jobs = event.arg(Arg::jobs) == "true";
  const auto known = std::find_if(sources.begin() + 1, sources.end(), [&](const Source& source) {
    return std::tie(source.rank, source.host, source.pid) ==
           std::tie(track.rank, track.machine, track.pid);
  });
  track.source = static_cast<std::uint32_t>(known - sources.begin());
  if (known == sources.end()) {
    sources.push_back(
        {.path = "", .host = track.machine, .rank = track.rank, .pid = track.pid, .groups = {}});
  }
  return track;
}

Source source_in(const std::filesystem::path& path, const ChromeHeader& header) {
  Source source;
  source.path = path.string();
  if (const auto host = header.find("host_name"); host != header.end()) source.host = host->second;
  if (const auto found = header.find("deviceProperties"); found != header.end()) {
    const json devices = parse_json(found->second);
    if (devices.is_array() && !devices.empty()) source.device = text_of(devices[0], "name");
  }
  const auto found = header.find("distributedInfo");
  if (found == header.end()) return source;
  const json info = parse_json(found->second);
  if (!info.is_object()) return source;
  source.rank = rank_field(info, "rank");
  source.world_size = rank_field(info, "world_size");
  const auto groups = info.find("pg_config");
  if (groups == info.end() || !groups->is_array()) return source;
  for (const json& group : *groups) add_group(group, source);
  return source;
}

}  // namespace assay::timeline
