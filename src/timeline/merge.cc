#include "timeline/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "timeline/analysis/memory.h"
#include "timeline/slice_source.h"
#include "timeline/writers/writers.h"

namespace assay::timeline {
namespace {

using Writers = std::vector<std::unique_ptr<TraceWriter>>;

Result<Writers> open_writers(const OutputPaths& outputs, const TraceHeader& header,
                             const TraceHeader& binary_header) {
  Writers writers;
  const auto add = [&](const std::filesystem::path& path, auto open) -> Status {
    if (path.empty()) return {};
    ASSAY_TRY(auto writer, open());
    writers.push_back(std::move(writer));
    return {};
  };
  ASSAY_CHECK(add(outputs.chrome,
                  [&] { return chrome_json_writer(outputs.chrome, JsonFlavour::chrome, header); }));
  ASSAY_CHECK(add(outputs.perfetto_json, [&] {
    return chrome_json_writer(outputs.perfetto_json, JsonFlavour::perfetto, header);
  }));
  ASSAY_CHECK(add(outputs.perfetto_binary,
                  [&] { return perfetto_writer(outputs.perfetto_binary, binary_header); }));
  return writers;
}

// In the binary trace, each machine without a clock relation is a group of tracks.
std::vector<Track> grouped_by_clock(std::span<const Track> tracks,
                                    std::span<const MachineClock> clocks) {
  std::vector<Track> grouped(tracks.begin(), tracks.end());
  if (clocks.size() < 2) return grouped;
  for (Track& track : grouped) {
    for (const MachineClock& clock : clocks) {
      if (!track.gpu || clock.machine != track.machine) continue;
      track.process = clock.related ? fmt::format("machine {} (clock ± {:.3f} µs)", clock.machine,
                                                  static_cast<double>(clock.uncertainty) / 1000.0)
                                    : fmt::format("machine {} (own clock)", clock.machine);
    }
  }
  return grouped;
}

struct JobLogRun {
  std::vector<JobLogFile> logs;
  std::vector<MachineClock> clocks;
  std::vector<Nanos> offsets;  // by log
};

Result<Trace> load_logs(const JobLogRun& run, std::size_t max_slices) {
  Trace trace;
  const auto take = [&](const Slice& slice) -> Status {
    if (trace.slices.size() == max_slices) {
      return usage_error(fmt::format(
          "more than {} jobs, the limit of an analysis: give fewer --devices", max_slices));
    }
    trace.slices.push_back(slice);
    return {};
  };
  ASSAY_TRY(JobLogSurvey survey,
            survey_job_logs(run.logs, run.offsets, JobFilter::all, trace.strings,
                            [&]() -> Result<TakeSlice> { return TakeSlice(std::cref(take)); }));
  // Nothing is known of the devices of logs without a record: they did not idle.
  const bool none = std::ranges::all_of(survey.files, &FileReport::unrelated);
  std::vector<JobLogFile> logs;
  std::vector<std::uint32_t> places{0};  // by track
  for (std::size_t i = 0; i < run.logs.size(); ++i) {
    if (none || !survey.files[i].unrelated()) logs.push_back(run.logs[i]);
    places.push_back(static_cast<std::uint32_t>(logs.size()));
  }
  for (Slice& slice : trace.slices) slice.track = places[slice.track];
  std::ranges::stable_partition(survey.files, std::not_fn(&FileReport::unrelated));
  trace.tracks = job_log_tracks(logs);
  trace.steps = std::move(survey.steps);
  const std::vector<Slice> steps = step_slices(trace.steps, trace.strings);
  trace.slices.insert(trace.slices.end(), steps.begin(), steps.end());
  trace.files = std::move(survey.files);
  trace.notes = std::move(survey.notes);
  trace.sort();
  return trace;
}

Result<JobLogRun> find_run(const JobLogOptions& options, const ClockOptions& clock_options,
                           std::size_t max_slices) {
  JobLogRun run;
  ASSAY_TRY(run.logs, find_job_logs(options));
  run.offsets.assign(run.logs.size(), 0);
  const std::vector<std::string> machines = machines_of(job_log_tracks(run.logs));
  std::optional<Trace> pipeline;
  if (clock_options.pairs && machines.size() > 1) {
    ASSAY_TRY(pipeline, load_logs(run, max_slices));
  }
  ASSAY_TRY(run.clocks, relate_clocks(machines, clock_options, pipeline ? &*pipeline : nullptr));
  for (std::size_t i = 0; i < run.logs.size(); ++i) {
    for (const MachineClock& clock : run.clocks) {
      if (clock.machine == run.logs[i].machine) run.offsets[i] = clock.offset;
    }
  }
  return run;
}

// The scratch file is a fraction of the output's size, so the output's file system has room for it.
std::filesystem::path scratch_beside(const OutputPaths& outputs) {
  for (const auto* path : {&outputs.chrome, &outputs.perfetto_json, &outputs.perfetto_binary}) {
    if (!path->empty()) return path->has_parent_path() ? path->parent_path() : ".";
  }
  std::error_code error;
  return std::filesystem::temp_directory_path(error);
}

constexpr std::size_t kMaxPairSlices = 20'000'000;

Result<MergeResult> finish(Writers& writers, const MergeCounts& counts,
                           std::vector<FileReport> files, std::vector<std::string> notes) {
  for (const auto& writer : writers) ASSAY_CHECK(writer->finish());
  return MergeResult{std::move(files), std::move(notes), counts.slices};
}

}  // namespace

OutputPaths OutputPaths::in(const std::filesystem::path& folder) {
  return {folder / "pipeline_profile.json", folder / "pipeline_profile_perfetto.json",
          folder / "pipeline_profile.perfetto-trace"};
}

Result<MergeResult> merge_job_logs(const JobLogOptions& options, const ClockOptions& clocks,
                                   const OutputPaths& outputs) {
  ASSAY_TRY(const JobLogRun run, find_run(options, clocks, kMaxPairSlices));
  Strings strings;
  std::optional<SliceSorter> sorter;
  std::vector<std::unique_ptr<SliceSource>> sources;
  const auto end_log = [&] { return sorter ? sorter->finish(sources) : Status(); };
  ASSAY_TRY(JobLogSurvey survey,
            survey_job_logs(
                run.logs, run.offsets, JobFilter::as_paddle, strings, [&]() -> Result<TakeSlice> {
                  ASSAY_CHECK(end_log());
                  sorter.emplace(scratch_beside(outputs));
                  return TakeSlice([&](const Slice& slice) { return sorter->add(slice); });
                }));
  ASSAY_CHECK(end_log());
  const std::vector<Track> tracks = job_log_tracks(run.logs);
  const std::vector<Track> grouped = grouped_by_clock(tracks, run.clocks);
  std::vector<std::string> notes = describe_clocks(run.clocks);
  notes.insert(notes.end(), survey.notes.begin(), survey.notes.end());
  ASSAY_TRY(Writers writers, open_writers(outputs, {strings, tracks, {}, notes, nullptr},
                                          {strings, grouped, {}, notes, nullptr}));

  const std::vector<Slice> steps = step_slices(survey.steps, strings);
  sources.insert(sources.begin(), std::make_unique<MemorySource>(steps));
  ASSAY_TRY(MergeCounts counts, merge_slices(sources, writers, tracks.size()));
  for (std::size_t i = 0; i < survey.files.size(); ++i) {
    survey.files[i].overlapping = counts.overlapping[i + 1];
    survey.files[i].kept -= counts.overlapping[i + 1];
  }
  return finish(writers, counts, std::move(survey.files), std::move(notes));
}

Result<MergeResult> write_trace(Trace& trace, const OutputPaths& outputs) {
  std::vector<Counter> counters = memory_counters(trace);
  counters.insert(counters.end(), trace.counters.begin(), trace.counters.end());
  const TraceHeader header{trace.strings, trace.tracks, counters, trace.notes, &trace};
  ASSAY_TRY(Writers writers, open_writers(outputs, header, header));
  std::vector<std::unique_ptr<SliceSource>> sources;
  sources.push_back(std::make_unique<MemorySource>(trace.slices));
  ASSAY_TRY(MergeCounts counts, merge_slices(sources, writers, trace.tracks.size()));
  return finish(writers, counts, trace.files, trace.notes);
}

Result<Trace> load_job_logs(const JobLogOptions& options, const ClockOptions& clocks,
                            std::size_t max_slices) {
  ASSAY_TRY(const JobLogRun run, find_run(options, clocks, max_slices));
  ASSAY_TRY(Trace trace, load_logs(run, max_slices));
  const auto notes = describe_clocks(run.clocks);
  trace.notes.insert(trace.notes.end(), notes.begin(), notes.end());
  return trace;
}

std::string describe(std::span<const FileReport> files, std::span<const std::string> notes) {
  // Of many files, those without fault share one line.
  constexpr std::size_t kMostFiles = 16;
  std::string text;
  FileReport sum;
  std::size_t summed = 0;
  for (const FileReport& file : files) {
    if (files.size() > kMostFiles && file.dropped() + file.notes.size() == 0) {
      ++summed;
      sum.bytes += file.bytes;
      sum.records += file.records;
      sum.kept += file.kept;
      continue;
    }
    text += fmt::format("{}: {}, {} bytes, {} records, {} slices", file.path, file.format,
                        file.bytes, file.records, file.kept);
    const auto say = [&text](std::uint64_t count, std::string_view what) {
      if (count > 0) text += fmt::format("; {} {}", count, what);
    };
    say(file.ignored, "left out by a rule of the format");
    say(file.malformed, "malformed (dropped)");
    say(file.truncated, "truncated (dropped)");
    say(file.backwards, "ending before they begin (dropped)");
    say(file.overlapping, "nested too deeply (dropped)");
    say(file.repaired, "with text that is not UTF-8 (kept)");
    say(file.interleaved, "mixed with other text (kept)");
    say(file.non_monotonic, "out of order (sorted)");
    say(file.unmatched_steps, "step marks without a counterpart");
    text += '\n';
    for (const std::string& note : file.notes) text += fmt::format("  {}\n", note);
  }
  if (summed > 0) {
    text += fmt::format("{} files: {} bytes, {} records, {} slices\n", summed, sum.bytes,
                        sum.records, sum.kept);
  }
  for (const std::string& note : notes) text += note + '\n';
  return text;
}

}  // namespace assay::timeline
