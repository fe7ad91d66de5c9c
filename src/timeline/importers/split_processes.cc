#include "timeline/importers/split_processes.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

namespace assay::timeline {
namespace {

// "[TP01] 4711" has the label "[TP01] " and the number 4711.
std::pair<std::string, std::int64_t> parts_of(const std::string& process) {
  const std::size_t at = process.rfind(' ') + 1;
  std::int64_t number = kNone;
  std::from_chars(process.data() + at, process.data() + process.size(), number);
  return {process.substr(0, at), number};
}

}  // namespace

bool split_processes(Trace& trace) {
  constexpr std::size_t kMostProcesses = 1024;
  std::map<std::pair<std::string, std::int64_t>, std::uint32_t> source_of;
  std::vector<bool> launches_on(trace.tracks.size());
  for (const Launch& launch : trace.launches) launches_on[launch.track] = true;
  for (std::size_t i = 0; i < trace.tracks.size(); ++i) {
    if (launches_on[i]) source_of[parts_of(trace.tracks[i].process)] = 0;
  }
  if (source_of.size() < 2 || source_of.size() > kMostProcesses) return false;
  trace.sources.assign(source_of.size(), trace.sources[0]);
  std::map<std::string, std::uint32_t> of_label;
  std::vector<std::string> labels;  // by source
  std::uint32_t source = 0;
  for (auto& [process, index] : source_of) {
    trace.sources[source].rank = static_cast<std::int32_t>(source);
    trace.sources[source].pid = process.second;
    of_label.try_emplace(process.first, source);
    labels.push_back(process.first);
    index = source++;
  }
  for (Track& track : trace.tracks) {
    const auto process = parts_of(track.process);
    const auto known = source_of.find(process);
    track.source = known == source_of.end() ? of_label[process.first] : known->second;
  }
  std::vector<std::tuple<std::uint64_t, Nanos, std::uint32_t>> launches;
  launches.reserve(trace.launches.size());
  for (const Launch& launch : trace.launches) {
    launches.emplace_back(launch.correlation, launch.begin, launch.track);
  }
  std::ranges::sort(launches);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> copies;  // by track and source
  std::vector<bool> settled(trace.tracks.size());
  for (Slice& slice : trace.slices) {
    if (!trace.tracks[slice.track].gpu || slice.detail == kNoIndex) continue;
    const std::uint64_t correlation = trace.details[slice.detail].correlation;
    auto launch =
        std::ranges::upper_bound(launches, std::tuple(correlation, slice.begin, kNoIndex));
    for (; launch != launches.begin(); --launch) {
      const auto& [number, begin, track] = *std::prev(launch);
      if (number != correlation) break;
      const std::uint32_t owner = trace.tracks[track].source;
      if (labels[owner] != labels[trace.tracks[slice.track].source]) continue;
      const auto [entry, is_new] = copies.try_emplace({slice.track, owner}, slice.track);
      if (is_new && settled[slice.track]) {
        entry->second = static_cast<std::uint32_t>(trace.tracks.size());
        trace.tracks.push_back(trace.tracks[slice.track]);
      }
      settled[slice.track] = true;
      trace.tracks[entry->second].source = owner;
      slice.track = entry->second;
      break;
    }
  }
  return true;
}

}  // namespace assay::timeline
