#include "timeline/importers/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/values.h"
#include "timeline/importers/builder.h"
#include "timeline/importers/chrome_collectives.h"
#include "timeline/importers/chrome_memory.h"
#include "timeline/importers/chrome_operators.h"
#include "timeline/importers/chrome_pairs.h"
#include "timeline/importers/chrome_source.h"
#include "timeline/input/args_store.h"
#include "timeline/serving.h"

namespace assay::timeline {
namespace {

// Merges show a job as "forward@3". Shortens the name to "forward" and returns the micro batch.
std::int32_t take_micro_batch(ChromeEvent& event) {
  const std::size_t at = event.name.rfind('@');
  std::int32_t number = 0;
  if (at == 0 || at == std::string_view::npos || !read_number(event.name.substr(at + 1), number) ||
      number < 0) {
    return kNone;
  }
  event.name = event.name.substr(0, at);
  return number;
}

std::int64_t number_of(std::string_view text, std::int64_t fallback = kNone) {
  std::int64_t value = fallback;
  return read_number(text, value) ? value : fallback;
}

bool on_gpu(EventKind kind) {
  return kind == EventKind::kernel || kind == EventKind::copy || kind == EventKind::gpu_range ||
         kind == EventKind::gpu_job;
}

class ChromeBuilder {
 public:
  ChromeBuilder(const ChromeDialect& dialect, const ImportOptions& options,
                const ChromeHeader& header)
      : dialect_(dialect), options_(options), memory_(header) {
    builder_.trace().sources.emplace_back();
    if (options.analysis) return;
    if (auto store = ArgsStore::create()) {
      args_ = std::make_shared<ArgsStore>(std::move(*store));
      builder_.trace().args.push_back(args_);
    }
  }

  void take(ChromeEvent& event) {
    switch (event.phase) {
      case 'X':
      case 'B':
        slice(event);
        break;
      case 'E':
        end(event);
        break;
      case 'M':
        metadata(event);
        break;
      case 's':
      case 't':
      case 'f':
        flow(event);
        break;
      case 'i':
      case 'I':
        instant(event);
        break;
      default:
        ++counts().ignored;
    }
  }

  Result<Trace> finish(const std::filesystem::path& path, FileReport report, ChromeHeader& header);

 private:
  Trace& trace() { return builder_.trace(); }
  FileReport& counts() { return builder_.report(); }

  EventKind kind_of(const ChromeEvent& event, StringId category) {
    constexpr std::size_t kMaxCategories = 1U << 12U;
    if (dialect_.by_track || category >= kMaxCategories) return dialect_.classify(event);
    return remembered(kinds_, category, [&] { return dialect_.classify(event); });
  }
  template <typename T, typename Make>
  static T remembered(std::vector<std::optional<T>>& known, StringId id, Make make) {
    if (known.size() <= id) known.resize(id + 1);
    if (!known[id]) known[id] = make();
    return *known[id];
  }

  Kind slice_kind(EventKind kind, StringId name, StringId category) {
    switch (kind) {
      case EventKind::kernel:
        return remembered(kernels_, name,
                          [&] { return options_.kinds.kind(trace().strings.text(name)); });
      case EventKind::copy:
        return Kind::memory;
      case EventKind::gpu_job:
        return kind_of_job(trace().strings.text(category));
      case EventKind::launch:
      case EventKind::annotation:
      case EventKind::host:
        return Kind::host;
      case EventKind::gpu_range:
      case EventKind::other:
        break;
    }
    return Kind::other;
  }

  void slice(ChromeEvent& event) {
    if (!event.timed || event.duration < 0 || event.begin > kMaxTime - event.duration) {
      ++counts().malformed;
      return;
    }
    const StringId category = trace().strings.intern_valid(event.category);
    EventKind kind = kind_of(event, category);
    // PyTorch up to 2.0 records it as an operator.
    if (kind == EventKind::host && !event.name.empty() && event.name[0] == 'e' &&
        event.name.starts_with("enumerate(DataLoader")) {
      kind = EventKind::annotation;
    }
    if (event.phase == 'X' && calls_collective(event.name)) collective_call(event);
    if (kind == EventKind::kernel || counts_kernel(event)) add_counters(event, trace());
    if (const auto operation = operators_.kind_of(event, trace()); operation != kNoIndex) {
      trace().operator_calls.push_back(
          {event.begin, event.begin + event.duration, track_of(event, false), operation});
    }
    if (memory_.wants(event)) {
      memory_.range(event, track_of(event, false), trace().strings);
    }
    if (options_.analysis && (kind == EventKind::host || kind == EventKind::other)) {
      if (kind == EventKind::host) count_process(event);
      constexpr Nanos kLong = 1'000'000;
      if ((event.duration >= kLong || is_serving_frame(event.name)) &&
          trace().host_calls.size() < kMaxImportedSlices) {
        trace().host_calls.push_back({event.begin, event.begin + event.duration,
                                      track_of(event, false),
                                      trace().strings.intern_valid(event.name)});
      }
      ++counts().ignored;
      if (event.phase == 'B') open(event, {}, kind, false);
      return;
    }
    if (!builder_.has_room()) return open(event, {}, kind, false);
    const std::uint32_t track = track_of(event, on_gpu(kind));
    if (kind == EventKind::launch) {
      launch(event, track, category);
      return open(event, {}, kind, false);
    }
    const std::int32_t micro_batch = shorten(event, trace().tracks[track].jobs);
    Slice slice{.begin = event.begin,
                .end = event.begin + event.duration,
                .name = trace().strings.intern_valid(event.name),
                .category = category,
                .track = track,
                .micro_batch = micro_batch};
    slice.kind = slice_kind(kind, slice.name, category);
    slice.detail = detail_of(event, kind);
    if (event.phase == 'B') return open(event, slice, kind, true);
    add(slice, kind);
  }

  // Removes the duration and, from a job's name, the micro batch; returns the micro batch. A job is
  // on a track of jobs, or named after its category.
  std::int32_t shorten(ChromeEvent& event, bool job) const {
    if (dialect_.durations_in_names && event.name.ends_with("s]")) {
      event.name = event.name.substr(0, event.name.rfind('['));
    }
    const std::string_view category = event.category;
    job |= !category.empty() && event.name.size() > category.size() &&
           event.name.starts_with(category) && event.name[category.size()] == '@';
    return job ? take_micro_batch(event) : kNone;
  }

  void open(const ChromeEvent& event, Slice slice, EventKind kind, bool kept) {
    if (event.phase != 'B') return;
    if (!kept) slice.name = trace().strings.intern_valid(event.name);
    if (!open_.push(key_of(event, false), {slice, kind, kept}) && kept) ++counts().overlapping;
  }

  void add(const Slice& slice, EventKind kind) {
    if (kind == EventKind::annotation) {
      const std::int64_t step = step_number(trace().strings.text(slice.name), dialect_.steps);
      if (step != kNone) {
        trace().rank_steps.push_back({slice.track, {step, slice.begin, slice.end}});
      }
    }
    builder_.add(slice);
  }

  void end(ChromeEvent& event) {
    shorten(event, false);
    const StringId name = trace().strings.intern_valid(event.name);
    auto closed = open_.close(key_of(event, false), name, event.name.empty());
    if (!closed || !event.timed) {
      ++counts().malformed;
      return;
    }
    closed->slice.end = event.begin;
    if (!closed->kept) {
      ++counts().ignored;
    } else if (closed->slice.end < closed->slice.begin) {
      ++counts().backwards;
    } else {
      add(closed->slice, closed->kind);
    }
  }

  void launch(const ChromeEvent& event, std::uint32_t track, StringId category) {
    count_process(event);
    const StringId name = trace().strings.intern_valid(event.name);
    const std::int64_t correlation = event.number(Arg::correlation, 0);
    trace().launches.push_back({.begin = event.begin,
                                .end = event.begin + event.duration,
                                .correlation = static_cast<std::uint64_t>(correlation),
                                .track = track,
                                .name = name});
    if (options_.analysis) {
      ++counts().ignored;
      return;
    }
    builder_.add({.begin = event.begin,
                  .end = event.begin + event.duration,
                  .name = name,
                  .category = category,
                  .track = track,
                  .kind = Kind::host,
                  .detail = detail_of(event, EventKind::launch)});
  }

  std::uint32_t detail_of(const ChromeEvent& event, EventKind kind) {
    const bool gpu = kind == EventKind::kernel || kind == EventKind::copy;
    const bool keep_args = args_ != nullptr && !event.args_text.empty();
    if (!gpu && !keep_args) return kNoIndex;
    Detail detail;
    if (gpu) {
      detail.correlation = static_cast<std::uint64_t>(event.number(Arg::correlation, 0));
      detail.bytes = event.number(Arg::bytes);
      detail.blocks = event.blocks();
      detail.collective = collective_of(event);
    }
    if (keep_args) {
      detail.args_at = args_->add(event.args_text);
      detail.args_size = static_cast<std::uint32_t>(event.args_text.size());
    }
    return builder_.add_detail(detail);
  }

  std::uint32_t collective_of(const ChromeEvent& event) {
    const auto collective = collective_in(event, trace().strings);
    if (!collective) return kNoIndex;
    trace().collectives.push_back(*collective);
    return static_cast<std::uint32_t>(trace().collectives.size() - 1);
  }

  void collective_call(const ChromeEvent& event) {
    const std::uint32_t collective = collective_of(event);
    if (collective == kNoIndex) return;
    trace().collective_ranges.push_back(
        {event.begin, event.begin + event.duration, track_of(event, false), collective});
  }

  void metadata(const ChromeEvent& event) {
    constexpr std::size_t kMaxNames = 1U << 16U;
    if (process_names_.size() + track_names_.size() > kMaxNames) return;
    const std::string name(event.arg(Arg::name));
    if (event.name == "process_name") process_names_[std::string(event.pid)] = name;
    if (event.name == "thread_name") {
      track_names_[{std::string(event.pid), std::string(event.tid)}] = name;
    }
    if (event.name == kTrackMetadata) merged_track(event);
  }

  void merged_track(const ChromeEvent& event) {
    Track track = merged_track_in(event, trace().sources);
    const auto key = key_of(event, track.gpu);
    const std::uint32_t index = builder_.add_track(std::move(track));
    // A GPU's track has no host events, so both keys find it.
    tracks_.insert_or_assign(key, index);
    tracks_.insert_or_assign(key ^ 1U, index);
    merged_ = true;
  }

  std::uint64_t key_of(const ChromeEvent& event, bool gpu) {
    const std::uint64_t pid = trace().strings.intern_valid(event.pid);
    const std::uint64_t tid = trace().strings.intern_valid(event.tid);
    return pid << 33U | tid << 1U | (gpu ? 1U : 0U);
  }

  std::uint32_t track_of(const ChromeEvent& event, bool gpu) {
    const auto [entry, is_new] = tracks_.try_emplace(key_of(event, gpu));
    if (!is_new) return entry->second;
    Track track;
    track.gpu = gpu;
    track.process = event.pid;
    track.label = event.tid;
    if (gpu) {
      std::int64_t device = event.number(Arg::device);
      if (device == kNone && !dialect_.by_track) device = number_of(event.pid);
      track.device = static_cast<std::int32_t>(device);
      if (device != kNone) {
        std::string_view stream = event.tid;
        if (stream.starts_with("stream ")) stream.remove_prefix(7);
        track.label = fmt::format("GPU {} · stream {}", device, stream);
      }
    }
    return entry->second = builder_.add_track(std::move(track));
  }

  void count_process(const ChromeEvent& event) {
    const std::int64_t pid = number_of(event.pid);
    constexpr std::size_t kMaxProcesses = 1024;
    if (pid > 0 && processes_.size() < kMaxProcesses) ++processes_[pid];
  }

  // The trace may contain events of other processes, such as data loaders.
  std::int64_t busiest_process() const {
    const auto busiest =
        std::ranges::max_element(processes_, {}, [](const auto& entry) { return entry.second; });
    return busiest == processes_.end() ? std::int64_t{kNone} : busiest->first;
  }

  void flow(const ChromeEvent& event) {
    if (options_.analysis || !event.timed || trace().flows.size() >= kMaxImportedSlices) {
      ++counts().ignored;
      return;
    }
    // The track exists by now, because slices create tracks.
    auto known = tracks_.find(key_of(event, true));
    if (known == tracks_.end()) known = tracks_.find(key_of(event, false));
    if (known == tracks_.end()) {
      late_flows_.push_back({trace().flows.size(), key_of(event, false)});
    }
    trace().flows.push_back({.time = event.begin,
                             .id = trace().strings.intern_valid(event.id),
                             .name = trace().strings.intern_valid(event.name),
                             .category = trace().strings.intern_valid(event.category),
                             .track = known == tracks_.end() ? kNoIndex : known->second,
                             .phase = event.phase,
                             .enclosing = event.enclosing});
  }

  void instant(const ChromeEvent& event) {
    if (event.name != "[memory]" || !event.timed || event.arg(Arg::allocated).empty() ||
        trace().memory.size() >= kMaxImportedSlices) {
      ++counts().ignored;
      return;
    }
    memory_.add(event, track_of(event, false), trace());
  }

  void name_tracks();
  void mend_job_tracks();
  void settle_flows();

  static constexpr Nanos kMaxTime = std::numeric_limits<Nanos>::max() / 4;

  const ChromeDialect& dialect_;
  const ImportOptions& options_;
  TraceBuilder builder_;
  std::shared_ptr<ArgsStore> args_;
  std::vector<std::optional<EventKind>> kinds_;              // by category
  std::vector<std::optional<Kind>> kernels_;                 // by name
  std::unordered_map<std::uint64_t, std::uint32_t> tracks_;  // by key_of()
  OpenEvents open_;
  OperatorReader operators_;
  MemoryReader memory_;
  std::map<std::string, std::string> process_names_;
  std::map<std::pair<std::string, std::string>, std::string> track_names_;
  std::map<std::int64_t, std::uint64_t> processes_;
  std::vector<std::pair<std::size_t, std::uint64_t>> late_flows_;
  bool merged_ = false;
};

void ChromeBuilder::name_tracks() {
  if (merged_) return;
  for (Track& track : trace().tracks) {
    if (track.gpu && track.device != kNone) track.process = fmt::format("GPU {}", track.device);
  }
  for (const auto& [key, index] : tracks_) {
    Track& track = trace().tracks[index];
    const std::string pid(trace().strings.text(static_cast<StringId>(key >> 33U)));
    const std::string tid(trace().strings.text(static_cast<StringId>(key >> 1U & 0xffffffffU)));
    const bool stream = track.gpu && track.device != kNone;
    const auto process = process_names_.find(pid);
    if (!stream && process != process_names_.end()) {
      track.process = fmt::format("{} {}", process->second, pid);
    }
    const auto label = track_names_.find({pid, tid});
    if (label != track_names_.end() && !stream) track.label = label->second;
  }
}

// Perfetto's flavour of a merge names its tracks GPU:0, GPU:1(machine:2), … in metadata at the end
// of the file. Only then can their events be classified as pipeline jobs.
void ChromeBuilder::mend_job_tracks() {
  if (!dialect_.by_track) return;
  for (Track& track : trace().tracks) track.gpu |= track.label.starts_with("GPU:");
  for (Slice& slice : trace().slices) {
    if (trace().tracks[slice.track].label.starts_with("GPU:")) {
      slice.kind = kind_of_job(trace().strings.text(slice.category));
    }
  }
}

// Resolves arrows whose track came later; drops arrows without a track.
void ChromeBuilder::settle_flows() {
  for (const auto& [index, key] : late_flows_) {
    for (const std::uint64_t candidate : {key | 1U, key}) {
      const auto track = tracks_.find(candidate);
      if (track == tracks_.end()) continue;
      trace().flows[index].track = track->second;
      break;
    }
  }
  std::erase_if(trace().flows, [](const Flow& flow) { return flow.track == kNoIndex; });
}

Result<Trace> ChromeBuilder::finish(const std::filesystem::path& path, FileReport report,
                                    ChromeHeader& header) {
  counts().truncated += open_.left();
  memory_.finish(trace());
  if (!merged_) {
    trace().sources[0] = source_in(path, header);
    trace().sources[0].pid = busiest_process();
    split_processes(trace());
  }
  for (RankStep& mark : trace().rank_steps) mark.source = trace().tracks[mark.source].source;
  name_tracks();
  mend_job_tracks();
  settle_flows();
  report.format = dialect_.format;
  builder_.add_counts(std::move(report));
  // Kineto's times are relative to this base.
  if (const auto found = header.find("baseTimeNanoseconds"); found != header.end()) {
    const std::int64_t base = number_of(found->second, 0);
    if (base > 0 && base < kMaxTime) {
      trace().shift(std::vector(trace().tracks.size(), base),
                    std::vector(trace().sources.size(), base));
    }
  }
  if (merged_) trace().sources[0].path = path.string();
  return builder_.finish();
}

}  // namespace

std::int64_t step_number(std::string_view name, std::span<const std::string_view> prefixes) {
  for (const std::string_view prefix : prefixes) {
    std::int64_t number = kNone;
    if (!prefix.empty() && name.starts_with(prefix) &&
        read_number(name.substr(prefix.size()), number)) {
      return number;
    }
  }
  return kNone;
}

Result<Trace> import_chrome_trace(const std::filesystem::path& path, const ChromeDialect& dialect,
                                  const ImportOptions& options) {
  ChromeHeader header;
  ChromeBuilder builder(dialect, options, header);
  ASSAY_TRY(FileReport report, read_chrome_events(path, header, [&](ChromeEvent& event) {
              builder.take(event);
              return true;
            }));
  return builder.finish(path, std::move(report), header);
}

}  // namespace assay::timeline
