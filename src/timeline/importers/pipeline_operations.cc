// Imports timelines of pipeline operations, as ByteDance's StragglerAnalysis writes them: a process
// for each data-parallel rank, a thread for each stage and kind ("PP rank 0, TP rank 0, compute").

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/json.h"
#include "timeline/importers/builder.h"
#include "timeline/importers/chrome_events.h"
#include "timeline/importers/importer.h"
#include "timeline/importers/json_fields.h"
#include "timeline/names.h"

namespace assay::timeline {
namespace {

using nlohmann::json;

std::int64_t known(std::int64_t number, std::int64_t otherwise = kNone) {
  constexpr std::int64_t kMost = 1 << 20;
  return number >= 0 && number < kMost ? number : otherwise;
}

struct Worker {
  std::int64_t copy = 0;  // data-parallel rank
  std::int64_t stage = 0;
  std::int64_t part = 0;  // tensor-parallel rank
  friend auto operator<=>(const Worker&, const Worker&) = default;
};

class PipelineReader {
 public:
  void take(const ChromeEvent& event) {
    const std::pair thread(known(leading_number(event.pid)), known(leading_number(event.tid)));
    if (event.phase == 'M') {
      if (event.name == "thread_name") threads_[thread] = event.arg(Arg::name);
    } else if (event.phase == 'X' && event.timed && event.duration >= 0) {
      add(event, thread);
    } else {
      ++builder_.report().ignored;
    }
  }

  Trace finish(const std::filesystem::path& path, FileReport report) {
    report.format = "pipeline operations";
    Trace& trace = builder_.trace();
    trace.sources.push_back({.path = path.string(), .host = {}, .groups = {}});
    find_workers();
    for (std::size_t i = 0; i < trace.slices.size(); ++i) place(trace.slices[i], operations_[i]);
    builder_.add_counts(std::move(report));
    return builder_.finish();
  }

 private:
  using Thread = std::pair<std::int64_t, std::int64_t>;  // process and thread
  struct Operation {
    Thread thread;
    std::string name;
  };

  void add(const ChromeEvent& event, const Thread& thread) {
    if (!builder_.has_room()) return;
    const json args = parse_json(event.args_text);
    Slice slice{.begin = event.begin, .end = event.begin + event.duration};
    std::string_view name = event.name;
    slice.kind = Kind::communication;
    if (name == "forward-compute" || name == "backward-compute") {
      name = name.substr(0, name.find('-'));
      slice.micro_batch =
          static_cast<std::int32_t>(args.is_object() ? whole(args, "mb_id") : kNone);
    }
    for (const char* computes : {"forward", "backward", "optimizer", "gc"}) {
      if (name == computes) slice.kind = Kind::compute;
    }
    slice.name = slice.category = builder_.trace().strings.intern(name);
    const std::int64_t step = args.is_object() ? whole(args, "step") : kNone;
    if (step != kNone) {
      builder_.trace().rank_steps.push_back({0, {step, slice.begin, slice.end}});
    }
    operations_.push_back({thread, std::string(name)});
    builder_.add(slice);
  }

  void find_workers() {
    for (const auto& [thread, name] : threads_) {
      workers_[thread] = {thread.first, known(number_behind(name, "PP rank "), 0),
                          known(number_behind(name, "TP rank "), 0)};
    }
    for (const auto& [thread, worker] : workers_) {
      ranks_.try_emplace(worker, 0);
      stages_ = std::max(stages_, worker.stage + 1);
    }
    std::int32_t rank = 0;
    auto& groups = builder_.trace().sources[0].groups;
    for (auto& [worker, number] : ranks_) {
      number = rank++;
      ProcessGroup& group = groups[fmt::format("pp {} {}", worker.copy, worker.part)];
      group.description = "pp";
      group.ranks.push_back(number);
    }
  }

  void place(Slice& slice, const Operation& operation) {
    const Worker worker = workers_[operation.thread];
    slice.track = tracks_.find(operation.thread, [&] {
      Track track;
      track.gpu = true;
      track.rank = ranks_[worker];
      track.device = 0;
      track.process = fmt::format("DP rank {} · PP rank {}", worker.copy, worker.stage);
      track.label = threads_[operation.thread];
      return track;
    });
    if (slice.kind != Kind::communication) return;
    const std::string group = group_of(operation.name, worker);
    if (group.empty()) return;
    Trace& trace = builder_.trace();
    const auto [entry, is_new] =
        collectives_.try_emplace(group, static_cast<std::uint32_t>(trace.collectives.size()));
    if (is_new) {
      Collective collective;
      const bool pair = operation.name.ends_with("-send") || operation.name.ends_with("-recv");
      std::string plain = pair ? "p2p" : operation.name;
      std::ranges::replace(plain, '-', '_');  // as PyTorch writes them
      collective.name = trace.strings.intern(plain);
      collective.group = collective.description = trace.strings.intern(group);
      collective.dtype = collective.ranks = trace.strings.intern("");
      trace.collectives.push_back(collective);
    }
    Detail detail;
    detail.collective = entry->second;
    slice.detail = builder_.add_detail(detail);
  }

  // Who takes part; empty for an operation of one worker. A stage without a neighbour sends
  // nothing.
  std::string group_of(std::string_view name, const Worker& worker) const {
    const bool sends = name == "forward-send" || name == "backward-recv";
    if (sends || name == "forward-recv" || name == "backward-send") {
      const std::int64_t below = sends ? worker.stage : worker.stage - 1;
      if (below < 0 || below + 1 >= stages_) return {};
      return fmt::format("{} of DP {} TP {}, stages {} and {}", name.substr(0, name.find('-')),
                         worker.copy, worker.part, below, below + 1);
    }
    if (name == "embedding-grads-all-reduce") {
      return fmt::format("{} of DP {} TP {}", name, worker.copy, worker.part);
    }
    if (name == "optimizer-clip-main-grad") return std::string(name);
    if (name == "layernorm-grads-all-reduce") return {};
    return fmt::format("{} of stage {} TP {}", name, worker.stage, worker.part);
  }

  TraceBuilder builder_;
  TrackTable<Thread> tracks_{builder_};
  std::vector<Operation> operations_;  // by slice
  std::map<Thread, std::string> threads_;
  std::map<Thread, Worker> workers_;
  std::map<Worker, std::int32_t> ranks_;
  std::map<std::string, std::uint32_t> collectives_;
  std::int64_t stages_ = 0;
};

bool recognises(const Sniff& sniff) {
  return sniff.json && sniff.categories.contains("forward-compute") &&
         sniff.categories.contains("backward-compute");
}

Result<Trace> import(const std::filesystem::path& path, const ImportOptions&) {
  return import_events(path, PipelineReader());
}

}  // namespace

const Importer kPipelineOperations{
    "pipeline operations", "JSON with events of the category forward-compute", recognises, import};

}  // namespace assay::timeline
