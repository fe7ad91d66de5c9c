#include "timeline/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/text.h"
#include "timeline/cpu_work.h"
#include "timeline/input/args_store.h"
#include "timeline/names.h"

namespace assay::timeline {
namespace {

namespace fs = std::filesystem;

// Outputs of `merge` and `analyze` may be in the same folder as the traces.
bool is_own_output(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("pipeline_profile") || name == "analysis.json" || name == "analysis.html";
}

std::int32_t rank_in_text(const std::string& name) {
  constexpr std::string_view kWord = "rank";
  const std::string text = lowered(name) + ' ';
  std::int32_t rank = kNone;
  for (std::size_t at = text.find(kWord); at != std::string::npos; at = text.find(kWord, at)) {
    at += kWord.size();
    if (std::string_view("-_.= ").find(text[at]) != std::string_view::npos) ++at;
    const auto found = leading_number<std::int32_t>(std::string_view(text).substr(at));
    if (found >= 0) rank = found;
  }
  return rank;
}

// "trace.json" and "trace.json.gz" are the same trace.
fs::path unpacked_name(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".gz" || extension == ".zst" ? path.parent_path() / path.stem() : path;
}

FileReport damaged_file(const fs::path& path, std::string why) {
  FileReport report;
  report.path = path.string();
  report.format = "damaged";
  report.truncated = 1;
  std::error_code ignored;
  report.bytes = fs::file_size(path, ignored);
  if (why.starts_with(report.path + ": ")) why.erase(0, report.path.size() + 2);
  report.notes.push_back(std::move(why));
  return report;
}

// Whether a file that is no readable trace was to be one: its name says so.
bool has_name_of_trace(const fs::path& path) {
  const std::string extension = unpacked_name(path).extension().string();
  const std::string name = lowered(path.filename().string());
  constexpr std::array<std::string_view, 4> kOthers{".txt", ".log", ".md", ".py"};
  return std::ranges::find(kOthers, extension) == kOthers.end() &&
         (rank_in_name(path) != kNone || name.find("trace") != std::string::npos);
}

Status search(const fs::path& folder, FoundTraces& result) {
  std::vector<std::string>& notes = result.notes;
  constexpr std::size_t kMaxFiles = 100'000;
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_regular_file(error) && files.size() < kMaxFiles) files.push_back(entry->path());
  }
  if (error)
    return usage_error(fmt::format("cannot search {}: {}", folder.string(), error.message()));
  std::ranges::sort(files, [](const fs::path& a, const fs::path& b) {
    return stands_before(a.string(), b.string());
  });
  std::set<fs::path> names(files.begin(), files.end());
  std::size_t others = 0;
  std::size_t traces = 0;
  for (const fs::path& file : files) {
    if (is_own_output(file)) continue;
    if (unpacked_name(file) != file && names.contains(unpacked_name(file))) {
      notes.push_back(fmt::format("{}: skipped, because it is the same trace as {}", file.string(),
                                  unpacked_name(file).filename().string()));
      continue;
    }
    const auto found_out = sniff(file);
    const bool known = found_out && std::ranges::any_of(importers(), [&](const Importer* one) {
                         return one->recognises(*found_out);
                       });
    if (!known && has_name_of_trace(file)) {
      result.damaged.push_back(damaged_file(file, fs::file_size(file, error) == 0
                                                      ? "the file is empty"
                                                      : "this is no readable trace"));
      continue;
    }
    ++(known ? traces : others);
    if (known) result.files.push_back(file);
  }
  if (others > 0) {
    notes.push_back(
        fmt::format("{}: skipped {} files that are not traces", folder.string(), others));
  }
  if (traces == 0) {
    const auto first = files.empty() ? Result<Sniff>(Sniff{}) : sniff(files[0]);
    const std::string hint = files.empty() || !first
                                 ? ""
                                 : fmt::format("; {} seems to be {}", files[0].filename().string(),
                                               seems_to_be(files[0], *first));
    return usage_error(
        fmt::format("{}: none of the {} files is a trace{}; for job logs use --log_dir, for what "
                    "`record --watch` wrote use `assay timeline watch`",
                    folder.string(), files.size(), hint));
  }
  return {};
}

// Reads the files; a file that cannot be read is passed over and named, unless no other can.
// Removes such files from `found`, and their ranks.
Result<std::vector<Trace>> import_all(FoundTraces& found, LoadOptions& options) {
  const std::vector<fs::path> files = std::move(found.files);
  found.files.clear();
  std::vector<std::optional<Result<Trace>>> results(files.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) {
      results[i] = import_trace(files[i], options.import);
    }
  };
  const unsigned cores =
      options.threads > 0 ? options.threads : std::thread::hardware_concurrency();
  const std::size_t count = std::min<std::size_t>(files.size(), std::max(1U, cores));
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < count; ++i) others.emplace_back(work);
    work();
  }
  const bool any = std::ranges::any_of(results, [](const auto& one) { return one->has_value(); });
  std::vector<Trace> traces;
  std::vector<std::int32_t> ranks;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!*results[i]) {
      if (!any || !fs::exists(files[i])) return tl::unexpected(results[i]->error());
      found.damaged.push_back(damaged_file(files[i], results[i]->error().message));
      continue;
    }
    traces.push_back(std::move(**results[i]));
    results[i].reset();
    found.files.push_back(files[i]);
    if (i < options.ranks.size()) ranks.push_back(options.ranks[i]);
  }
  options.ranks = std::move(ranks);
  return traces;
}

void set_rank(Trace& trace, std::int32_t rank) {
  for (Source& source : trace.sources) source.rank = rank;
  for (Track& track : trace.tracks) track.rank = rank;
}

// The rank at the end of a dump's name: "trace_0", "nccl_trace_rank_node00_0", "run_dump_3.pickle".
std::int32_t rank_of_dump(const fs::path& path) {
  const std::string name = path.filename().string();
  if (const std::int32_t rank = rank_in_text(name); rank != kNone) return rank;
  const std::string_view stem = std::string_view(name).substr(0, name.find('.'));
  const auto rank =
      leading_number<std::int32_t>(stem.substr(stem.find_last_not_of("0123456789") + 1));
  return rank != kNone ? rank : rank_in_name(path);
}

// The only rank that is in all groups of a dump, or kNone.
std::int32_t rank_by_groups(const Source& source) {
  std::vector<std::int32_t> common;
  bool first = true;
  for (const auto& [name, group] : source.groups) {
    std::vector<std::int32_t> ranks = group.ranks;
    std::ranges::sort(ranks);
    std::vector<std::int32_t> both;
    std::ranges::set_intersection(ranks, first ? ranks : common, std::back_inserter(both));
    common = std::move(both);
    first = false;
  }
  return common.size() == 1 ? common.front() : kNone;
}

// The host in the name that PyTorch's TensorBoard handler gives: "HOST_PID.TIME.pt.trace.json".
std::string host_in_name(const fs::path& path) {
  const std::string name = path.filename().string();
  std::string_view head = name;
  head = head.substr(0, head.find(".pt.trace.json"));
  if (head.size() == name.size()) return {};
  const auto drop_number = [&](char before) {
    const std::size_t digits = head.find_last_not_of("0123456789");
    if (digits >= head.size() || digits + 1 == head.size() || head[digits] != before) return false;
    head = head.substr(0, digits);
    return true;
  };
  drop_number('.');
  return drop_number('_') ? std::string(head) : std::string();
}

void set_host(Trace& trace, const std::string& host) {
  for (Source& source : trace.sources) source.host = host;
  for (Track& track : trace.tracks) track.machine = host;
}

// Numbers the processes of one file that use a GPU, from `next` on: by their GPU, then in their
// order.
void number_processes(Trace& trace, std::int32_t& next) {
  std::set<std::pair<std::int32_t, std::uint32_t>> processes;  // GPU, source
  for (std::uint32_t source = 0; source < trace.sources.size(); ++source) {
    if (trace.sources[source].rank != kNone) return;
    std::set<std::int32_t> gpus;
    for (const Track& track : trace.tracks) {
      if (track.gpu && track.source == source) gpus.insert(track.device);
    }
    if (!gpus.empty()) processes.emplace(*gpus.begin(), source);
  }
  if (processes.size() < 2) return;
  for (const auto& [gpu, source] : processes) {
    trace.sources[source].rank = next++;
    for (Track& track : trace.tracks) {
      if (track.source == source) track.rank = trace.sources[source].rank;
    }
  }
  trace.files[0].notes.push_back(
      fmt::format("{} processes in one file: ranks in their order", processes.size()));
}

// Sets hosts that only names tell, and ranks: from the command line, else from the trace, else from
// the file's name, else from the content.
void complete_ranks(std::span<const fs::path> files, const LoadOptions& options,
                    std::vector<Trace>& traces) {
  std::int32_t next = 0;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (traces[i].sources.size() != 1) {
      number_processes(traces[i], next);
      continue;
    }
    const Source& source = traces[i].sources[0];
    if (source.host.empty()) set_host(traces[i], host_in_name(files[i]));
    std::int32_t rank = source.rank;
    if (rank == kNone) rank = source.dump ? rank_of_dump(files[i]) : rank_in_name(files[i]);
    if (rank == kNone && source.dump) rank = rank_by_groups(source);
    if (i < options.ranks.size()) rank = options.ranks[i];
    if (rank != kNone) set_rank(traces[i], rank);
  }
}

Span gpu_span(const Trace& trace) {
  Span span;
  for (const Slice& slice : trace.slices) {
    if (trace.tracks[slice.track].gpu) widen(span, slice);
  }
  return span;
}

// What tells two files of one rank apart: parts of one run do not overlap in time, do not share
// steps, and come from one process.
struct Identity {
  std::size_t file = 0;
  Span span;
  std::set<std::int64_t> steps;
  std::int64_t pid = kNone;
  bool dump = false;

  Identity(std::size_t number, const Trace& trace)
      : file(number),
        span(gpu_span(trace)),
        pid(trace.sources[0].pid),
        dump(trace.sources[0].dump) {
    for (const Step& step : trace.steps) steps.insert(step.number);
  }
  bool known() const { return dump || span.begin <= span.end; }
  bool collides(const Identity& other) const {
    if (dump || other.dump) return dump && other.dump;
    if (span.begin < other.span.end && other.span.begin < span.end) return true;
    if (pid != kNone && other.pid != kNone && pid != other.pid) return true;
    return std::ranges::any_of(steps, [&](auto step) { return other.steps.contains(step); });
  }
};

// Refuses files that are two runs, or that claim the same identity.
Status check_identities(std::span<const fs::path> files, std::span<const Trace> traces) {
  std::map<std::tuple<std::int32_t, std::string, std::int64_t>, std::vector<Identity>> known;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (traces[i].sources.size() != 1) continue;
    const Source& source = traces[i].sources[0];
    Identity identity(i, traces[i]);
    if (!identity.known()) continue;
    const bool ranked = source.rank != kNone;
    auto& same = known[{source.rank, ranked ? "" : source.host, ranked ? kNone : source.pid}];
    for (const Identity& other : same) {
      if (!identity.collides(other)) continue;
      const std::string first = files[other.file].string();
      if (ranked) {
        return usage_error(fmt::format(
            "{} and {} are both of rank {}: two runs, or one rank twice. Give the files of one "
            "run, or the rank of each file in their order: --ranks 0,1",
            first, files[i].string(), source.rank));
      }
      return usage_error(fmt::format(
          "the ranks of {} and {} are unknown: name the files rank0…, rank1…, or give the ranks in "
          "the order of the files: --ranks 0,1",
          first, files[i].string()));
    }
    same.push_back(std::move(identity));
  }
  return {};
}

template <typename T>
void extend(std::vector<T>& into, std::vector<T>& from) {
  std::ranges::move(from, std::back_inserter(into));
}

// Maps string ids of another trace to ids of this one.
class NameMap {
 public:
  NameMap(Strings& into, const Strings& from) : into_(into), from_(from) {
    ids_.assign(from.size(), kNoIndex);
  }
  StringId operator()(StringId id) {
    if (ids_[id] == kNoIndex) ids_[id] = into_.intern_valid(from_.text(id));
    return ids_[id];
  }

 private:
  Strings& into_;
  const Strings& from_;
  std::vector<StringId> ids_;
};

// One step of each number, in their order.
void fold(std::vector<Step>& steps) {
  std::map<std::int64_t, Step> by_number;
  for (const Step& step : steps)
    widen(by_number.try_emplace(step.number, step).first->second, step);
  steps.clear();
  for (const auto& [number, step] : by_number) steps.push_back(step);
}

void append_unsorted(Trace& trace, Trace other) {
  const auto first_track = static_cast<std::uint32_t>(trace.tracks.size());
  const auto first_source = static_cast<std::uint32_t>(trace.sources.size());
  const auto first_launch = static_cast<std::uint32_t>(trace.launches.size());
  const auto first_detail = static_cast<std::uint32_t>(trace.details.size());
  const auto first_collective = static_cast<std::uint32_t>(trace.collectives.size());
  const auto first_store = static_cast<std::uint64_t>(trace.args.size());
  NameMap names(trace.strings, other.strings);
  for (Track& track : other.tracks) track.source += first_source;
  for (RankStep& mark : other.rank_steps) mark.source += first_source;
  for (MemoryPoint& point : other.memory) {
    point.source += first_source;
    if (point.where != kNoIndex) point.where = names(point.where);
  }
  for (MemorySegments& segments : other.memory_segments) segments.source += first_source;
  for (FlightEntry& entry : other.flight) entry.source += first_source;
  for (Slice& slice : other.slices) {
    slice.track += first_track;
    slice.name = names(slice.name);
    slice.category = names(slice.category);
    if (slice.detail != kNoIndex) slice.detail += first_detail;
  }
  for (Launch& launch : other.launches) {
    launch.track += first_track;
    launch.name = names(launch.name);
  }
  for (HostCall& call : other.host_calls) {
    call.track += first_track;
    call.name = names(call.name);
  }
  for (Detail& detail : other.details) {
    detail.args_at += first_store << ArgsStore::kStoreShift;
    if (detail.launch != kNoIndex) detail.launch += first_launch;
    if (detail.collective != kNoIndex) detail.collective += first_collective;
  }
  for (Collective& one : other.collectives) {
    for (StringId Collective::*field :
         {&Collective::name, &Collective::group, &Collective::description, &Collective::dtype,
          &Collective::ranks}) {
      one.*field = names(one.*field);
    }
  }
  for (CollectiveRange& range : other.collective_ranges) {
    range.track += first_track;
    range.collective += first_collective;
  }
  for (KernelCounters& counters : other.kernel_counters) counters.kernel = names(counters.kernel);
  for (OperatorKind& kind : other.operator_kinds) {
    for (StringId OperatorKind::*field :
         {&OperatorKind::name, &OperatorKind::dtype, &OperatorKind::shapes}) {
      kind.*field = names(kind.*field);
    }
  }
  for (OperatorCall& call : other.operator_calls) {
    call.track += first_track;
    call.kind += static_cast<std::uint32_t>(trace.operator_kinds.size());
  }
  for (Flow& flow : other.flows) {
    flow.track += first_track;
    flow.name = names(flow.name);
    flow.category = names(flow.category);
    // Ids of arrows are unique only within a process.
    const std::string id = fmt::format("{}.{}", first_source, other.strings.text(flow.id));
    flow.id = trace.strings.intern_valid(id);
  }
  trace.batches.merge(other.batches);  // all ranks of a server compute the same batch
  const auto move_over = [&](auto... fields) { (extend(trace.*fields, other.*fields), ...); };
  move_over(&Trace::tracks, &Trace::slices, &Trace::steps, &Trace::sources, &Trace::rank_steps,
            &Trace::launches, &Trace::host_calls, &Trace::details, &Trace::collectives,
            &Trace::collective_ranges, &Trace::flows, &Trace::memory, &Trace::memory_segments,
            &Trace::operator_kinds, &Trace::operator_calls, &Trace::kernel_counters, &Trace::flight,
            &Trace::args, &Trace::files, &Trace::notes);
}

// Adds the rank to the names of tracks and processes.
void label_ranks(Trace& trace) {
  for (Track& track : trace.tracks) {
    if (track.rank == kNone) continue;
    const std::string rank = fmt::format("rank {} · ", track.rank);
    if (track.gpu && !track.label.starts_with("rank ")) track.label = rank + track.label;
    if (!track.process.starts_with("rank ")) track.process = rank + track.process;
  }
}

}  // namespace

std::int32_t rank_in_name(const fs::path& path) {
  const std::int32_t rank = rank_in_text(path.filename().string());
  return rank != kNone ? rank : rank_in_text(path.parent_path().filename().string());
}

Result<FoundTraces> find_traces(std::span<const fs::path> paths) {
  FoundTraces found;
  for (const fs::path& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      ASSAY_CHECK(search(path, found));
    } else {
      found.files.push_back(path);
    }
  }
  return found;
}

Result<Trace> load_traces(std::span<const fs::path> paths, const LoadOptions& given) {
  LoadOptions options = given;
  ASSAY_TRY(FoundTraces found, find_traces(paths));
  if (!options.ranks.empty() && options.ranks.size() != found.files.size()) {
    return usage_error(fmt::format("--ranks names {} ranks for {} files", options.ranks.size(),
                                   found.files.size()));
  }
  ASSAY_TRY(std::vector<Trace> traces, import_all(found, options));
  complete_ranks(found.files, options, traces);
  ASSAY_CHECK(check_identities(found.files, traces));
  Trace trace;
  if (traces.size() == 1) {
    trace = std::move(traces[0]);
  } else {
    for (Trace& other : traces) append_unsorted(trace, std::exchange(other, {}));
    trace.sort();
    fold(trace.steps);
  }
  std::ranges::move(found.damaged, std::back_inserter(trace.files));
  add_cpu_work(trace);
  label_ranks(trace);
  add_annotated_jobs(trace, options.job_names);
  ASSAY_CHECK(relate_clocks(trace, options.clocks));
  trace.notes.insert(trace.notes.begin(), found.notes.begin(), found.notes.end());
  return trace;
}

}  // namespace assay::timeline
