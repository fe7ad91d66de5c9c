#include "timeline/importers/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "timeline/serving.h"

namespace assay::timeline {

std::uint32_t TraceBuilder::add_track(Track track) {
  constexpr std::size_t kMaxTracks = 1U << 16U;
  if (trace_.tracks.size() < kMaxTracks) trace_.tracks.push_back(std::move(track));
  return static_cast<std::uint32_t>(trace_.tracks.size() - 1);
}

void TraceBuilder::describe(const std::filesystem::path& path, std::string_view format) {
  report_.path = path.string();
  report_.format = format;
  std::error_code ignored;
  report_.bytes = std::filesystem::file_size(path, ignored);
}

void TraceBuilder::add_counts(FileReport counts) {
  counts.kept += report_.kept;
  counts.ignored += report_.ignored;
  counts.malformed += report_.malformed;
  counts.truncated += report_.truncated;
  counts.backwards += report_.backwards;
  counts.overlapping += report_.overlapping;
  counts.records += report_.records;
  counts.repaired += report_.repaired;
  counts.notes.insert(counts.notes.end(), report_.notes.begin(), report_.notes.end());
  report_ = std::move(counts);
}

void TraceBuilder::identify_tracks() {
  for (Track& track : trace_.tracks) {
    if (track.source >= trace_.sources.size()) continue;
    const Source& source = trace_.sources[track.source];
    if (track.machine.empty()) track.machine = source.host;
    if (track.rank == kNone) track.rank = source.rank;
    if (track.pid == kNone) track.pid = source.pid;
  }
}

// Correlation ids are unique only within a process.
void TraceBuilder::join_launches() {
  auto& launches = trace_.launches;
  const auto source_of = [&](std::uint32_t track) { return trace_.tracks[track].source; };
  std::erase_if(launches, [](const Launch& launch) { return launch.correlation == 0; });
  const auto stands_before = [&](const Launch& a, const Launch& b) {
    const auto key = [&](const Launch& launch) {
      return std::tuple(source_of(launch.track), launch.correlation, launch.begin);
    };
    return key(a) < key(b);
  };
  std::ranges::sort(launches, stands_before);
  const auto repeated = std::ranges::unique(launches, [](const Launch& a, const Launch& b) {
    return std::tie(a.track, a.correlation, a.begin) == std::tie(b.track, b.correlation, b.begin);
  });
  launches.erase(repeated.begin(), repeated.end());
  for (const Slice& slice : trace_.slices) {
    if (slice.detail == kNoIndex || !trace_.tracks[slice.track].gpu) continue;
    Detail& detail = trace_.details[slice.detail];
    if (detail.correlation == 0) continue;
    const auto key = std::pair(source_of(slice.track), detail.correlation);
    const auto launch = std::ranges::partition_point(launches, [&](const Launch& entry) {
      return std::pair(source_of(entry.track), entry.correlation) < key;
    });
    if (launch != launches.end() && source_of(launch->track) == key.first &&
        launch->correlation == key.second) {
      detail.launch = static_cast<std::uint32_t>(launch - launches.begin());
    }
  }
}

// A kernel without a description gets that of the innermost call around its launch; a call that
// names its group takes precedence.
void TraceBuilder::join_collectives() {
  auto& ranges = trace_.collective_ranges;
  if (ranges.empty()) return;
  std::ranges::sort(ranges, [](const CollectiveRange& a, const CollectiveRange& b) {
    return std::tie(a.track, a.begin) < std::tie(b.track, b.begin);
  });
  const auto range_at = [&](std::uint32_t track, Nanos time) {
    constexpr int kMaxLook = 16;  // most nesting of calls
    std::uint32_t found = kNoIndex;
    auto it = std::ranges::partition_point(ranges, [&](const CollectiveRange& range) {
      return std::tie(range.track, range.begin) <= std::tie(track, time);
    });
    for (int looked = 0; it != ranges.begin() && looked < kMaxLook; ++looked) {
      --it;
      if (it->track != track) break;
      if (time >= it->end) continue;
      if (!trace_.strings.text(trace_.collectives[it->collective].group).empty()) {
        return it->collective;
      }
      if (found == kNoIndex) found = it->collective;
    }
    return found;
  };
  for (const Slice& slice : trace_.slices) {
    if (slice.kind != Kind::communication || slice.detail == kNoIndex) continue;
    Detail& detail = trace_.details[slice.detail];
    if (detail.collective != kNoIndex || detail.launch == kNoIndex) continue;
    const Launch& launch = trace_.launches[detail.launch];
    detail.collective = range_at(launch.track, launch.begin);
  }
}

// Merges the marks of one step by several processes and threads.
void TraceBuilder::fold_steps() {
  std::map<std::pair<std::uint32_t, std::int64_t>, Step> of_source;
  std::map<std::int64_t, Step> of_all;
  for (const RankStep& mark : trace_.rank_steps) {
    const auto key = std::pair(mark.source, mark.step.number);
    widen(of_source.try_emplace(key, mark.step).first->second, mark.step);
    widen(of_all.try_emplace(mark.step.number, mark.step).first->second, mark.step);
  }
  if (of_all.empty()) return;
  trace_.rank_steps.clear();
  for (const auto& [key, step] : of_source) trace_.rank_steps.push_back({key.first, step});
  trace_.steps.clear();
  for (const auto& [number, step] : of_all) trace_.steps.push_back(step);
}

// Files that somebody put together may have the same work twice. Needs sorted slices.
void TraceBuilder::drop_repeated() {
  auto& slices = trace_.slices;
  const auto key = [&](const Slice& slice) {
    const bool work = trace_.tracks[slice.track].gpu && slice.detail != kNoIndex;
    const std::uint64_t correlation = work ? trace_.details[slice.detail].correlation : 0;
    return std::tuple(-slice.end, slice.track, slice.name, correlation);
  };
  for (auto first = slices.begin(); first != slices.end();) {
    const auto last = std::find_if(first, slices.end(),
                                   [&](const Slice& slice) { return slice.begin != first->begin; });
    if (last - first > 1) std::ranges::stable_sort(first, last, {}, key);
    first = last;
  }
  const std::size_t all = slices.size();
  const auto repeated = std::ranges::unique(slices, [&](const Slice& a, const Slice& b) {
    return a.begin == b.begin && a.end > a.begin && key(a) == key(b) && std::get<3>(key(a)) != 0;
  });
  slices.erase(repeated.begin(), repeated.end());
  if (slices.size() == all) return;
  report_.notes.push_back(
      fmt::format("{} kernels and copies stand twice in the file", all - slices.size()));
}

Trace TraceBuilder::finish() {
  identify_tracks();
  trace_.sort();
  drop_repeated();
  join_launches();
  join_collectives();
  // A server's batches are its steps, also where marks of the profiler hold several.
  if (const auto batches = serving_steps(trace_);
      !batches.empty() && batches.size() >= trace_.rank_steps.size()) {
    trace_.rank_steps.clear();
    for (const ServingStep& step : batches) {
      trace_.rank_steps.push_back(step.mark);
      trace_.batches.try_emplace(step.mark.step.number, step.batch);
    }
  }
  fold_steps();
  trace_.files.push_back(std::move(report_));
  return std::move(trace_);
}

}  // namespace assay::timeline
