#include "timeline/analysis/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/statistics.h"
#include "timeline/analysis/devices.h"

namespace assay::timeline {
namespace {

struct Operation {
  std::uint32_t slice = 0;
  std::uint32_t device = 0;
  std::uint32_t step = 0;
  std::uint32_t type = 0;
  std::uint32_t peers = 0;        // index of its group of peers
  std::uint32_t call = kNoIndex;  // of a collective: index into the report's calls
  std::uint32_t meeting = kNoIndex;
  Nanos begin = 0;  // since the step's first operation
  Nanos end = 0;
  Nanos delay = 0;     // from the end of the last operation that it follows to its begin
  Nanos duration = 0;  // of a collective: the transfer
  std::uint32_t first_before = 0;  // the operations that it follows
  std::uint32_t count_before = 0;
};

// Operations of a type that have the same duration in an ideal step.
struct Peers {
  bool transfer = false;
  std::vector<Nanos> durations;
  double ideal = 0;

  void settle() {
    if (durations.empty()) return;
    if (transfer) {
      ideal = static_cast<double>(upper_median(std::move(durations)));
    } else {
      for (const Nanos duration : durations) ideal += static_cast<double>(duration);
      ideal /= static_cast<double>(durations.size());
    }
    durations = {};
  }
};

class Replayer {
 public:
  Replayer(const Trace& trace, const Analysis& analysis, const CollectiveReport& collectives)
      : trace_(trace), analysis_(analysis), collectives_(collectives) {}

  Replay run() {
    if (!collect()) return {};
    classify();
    for (std::size_t begin = 0; begin < operations_.size();) {
      std::size_t end = begin;
      while (end < operations_.size() && operations_[end].step == operations_[begin].step) ++end;
      prepare(begin, end);
      begin = end;
    }
    for (Peers& peers : peers_) peers.settle();
    ends_.resize(operations_.size());
    return report();
  }

 private:
  static constexpr std::size_t kMostOperations = 2'000'000;

  // False without operations of several devices.
  bool collect();
  void classify();
  // Of the operations of one step.
  void prepare(std::size_t begin, std::size_t end);
  void meet(std::size_t begin, std::size_t end);
  void follow(std::size_t begin, std::size_t end);
  void order(std::size_t begin, std::size_t end);
  Replay report();
  std::vector<ReplayShare> device_shares(const Replay& all);

  // The mean step; recorded(operation) tells whether it lasts as recorded, else as its peers.
  template <typename Recorded>
  Nanos mean_step(bool delays, Recorded recorded);
  template <typename Is>
  ReplayShare share(std::string name, const Replay& all, Is is) {
    const Nanos alone = mean_step(false, is);
    return {std::move(name),
            all.ideal > 0 ? static_cast<double>(alone) / static_cast<double>(all.ideal) : 1,
            mean_step(false, [&](const Operation& operation) { return !is(operation); })};
  }

  std::uint32_t type(const std::string& name) {
    const auto [entry, is_new] =
        types_.try_emplace(name, static_cast<std::uint32_t>(types_.size()));
    return entry->second;
  }
  template <typename Table, typename Key>
  std::uint32_t peers(Table& table, const Key& key, bool transfer) {
    const auto [entry, is_new] = table.try_emplace(key, static_cast<std::uint32_t>(peers_.size()));
    if (is_new) peers_.push_back({.transfer = transfer, .durations = {}});
    return entry->second;
  }

  const Trace& trace_;
  const Analysis& analysis_;
  const CollectiveReport& collectives_;
  std::vector<Operation> operations_;  // by step and begin
  std::vector<std::uint32_t> before_;
  std::vector<std::vector<std::uint32_t>> meetings_;  // a collective's parts in one step
  // What happens, in order: an operation begins (2 i), a meeting ends (2 i + 1). kNoIndex ends a
  // step.
  std::vector<std::uint32_t> events_;
  std::vector<Peers> peers_;
  std::vector<double> ends_;  // by operation, of the current replay
  std::map<std::string, std::uint32_t> types_;
};

bool Replayer::collect() {
  std::unordered_map<std::size_t, std::uint32_t> call_of;  // by slice
  for (std::uint32_t i = 0; i < collectives_.calls.size(); ++i) {
    for (const CollectivePart& part : collectives_.calls[i].parts) call_of[part.slice] = i;
  }
  const std::vector<std::size_t> device_of = device_of_tracks(trace_);
  std::vector<bool> works(analysis_.devices.size(), false);
  std::set<std::size_t> devices;
  for (std::size_t i = 0; i < trace_.tracks.size(); ++i) {
    const bool work = trace_.tracks[i].gpu && !trace_.tracks[i].jobs;
    if (work && device_of[i] < works.size()) works[device_of[i]] = true;
  }
  for (std::uint32_t i = 0; i < trace_.slices.size(); ++i) {
    const Slice& slice = trace_.slices[i];
    const Track& track = trace_.tracks[slice.track];
    const std::size_t device = device_of[slice.track];
    if (!track.gpu || device >= works.size() || !is_gpu_work(slice.kind)) continue;
    if (track.jobs && works[device]) continue;
    const auto window =
        std::ranges::upper_bound(analysis_.windows, slice.begin, {}, &Interval::begin);
    if (window == analysis_.windows.begin() || slice.begin >= std::prev(window)->end) continue;
    if (operations_.size() >= kMostOperations) return false;
    Operation operation{.slice = i, .device = static_cast<std::uint32_t>(device)};
    operation.step = static_cast<std::uint32_t>(std::prev(window) - analysis_.windows.begin());
    operation.begin = slice.begin;
    operation.end = slice.end;
    const auto call = call_of.find(i);
    if (call != call_of.end()) operation.call = call->second;
    devices.insert(device);
    operations_.push_back(operation);
  }
  std::ranges::stable_sort(operations_, {}, [](const Operation& operation) {
    return std::tuple(operation.step, operation.begin, operation.end);
  });
  return devices.size() > 1;
}

// Names types and finds peers. Few names, as of pipeline jobs, are types themselves, and all
// operations of a name are peers. Kernels are peers at the same position of their step.
void Replayer::classify() {
  constexpr std::size_t kFewNames = 32;
  std::set<StringId> names;
  for (const Operation& operation : operations_) {
    if (names.size() <= kFewNames) names.insert(trace_.slices[operation.slice].name);
  }
  const bool few = names.size() <= kFewNames;
  std::map<std::tuple<std::string, std::int64_t, std::int32_t>, std::uint32_t> of_calls;
  std::unordered_map<std::uint64_t, std::uint32_t> of_work;    // by name and position
  std::unordered_map<std::uint64_t, std::uint32_t> positions;  // by name and device, in the step
  std::uint32_t step = kNoIndex;
  constexpr unsigned kHalf = 32;
  for (Operation& operation : operations_) {
    if (operation.step != step) positions.clear();
    step = operation.step;
    const Slice& slice = trace_.slices[operation.slice];
    const CollectiveCall* const call =
        operation.call == kNoIndex ? nullptr : &collectives_.calls[operation.call];
    operation.type = type(few               ? std::string(trace_.strings.text(slice.name))
                          : call != nullptr ? call->name
                                            : std::string(name(slice.kind)));
    if (call != nullptr) {
      operation.peers =
          peers(of_calls, std::tuple(call->name, call->bytes, call->group_size), true);
      continue;
    }
    const std::uint64_t key = std::uint64_t{slice.name} << kHalf;
    const std::uint32_t position = few ? 0 : positions[key | operation.device]++;
    operation.peers = peers(of_work, key | position, false);
  }
}

void Replayer::prepare(std::size_t begin, std::size_t end) {
  const Nanos first = operations_[begin].begin;
  for (std::size_t i = begin; i < end; ++i) {
    operations_[i].begin -= first;
    operations_[i].end -= first;
    operations_[i].duration = operations_[i].end - operations_[i].begin;
  }
  meet(begin, end);
  follow(begin, end);
  order(begin, end);
  for (std::size_t i = begin; i < end; ++i) {
    peers_[operations_[i].peers].durations.push_back(operations_[i].duration);
  }
}

void Replayer::meet(std::size_t begin, std::size_t end) {
  std::unordered_map<std::uint32_t, std::uint32_t> meeting_of;  // by call
  const std::size_t first = meetings_.size();
  for (std::size_t i = begin; i < end; ++i) {
    Operation& operation = operations_[i];
    if (operation.call == kNoIndex) continue;
    const auto [entry, is_new] =
        meeting_of.try_emplace(operation.call, static_cast<std::uint32_t>(meetings_.size()));
    if (is_new) meetings_.emplace_back();
    operation.meeting = entry->second;
    meetings_[entry->second].push_back(static_cast<std::uint32_t>(i));
  }
  for (std::size_t i = first; i < meetings_.size(); ++i) {
    const Nanos last = operations_[meetings_[i].back()].begin;  // operations are by begin
    for (const std::uint32_t part : meetings_[i]) {
      operations_[part].duration = std::max<Nanos>(0, operations_[part].end - last);
    }
  }
}

// What had ended on its device when an operation began, and not already when its predecessor on
// the stream began.
void Replayer::follow(std::size_t begin, std::size_t end) {
  constexpr Nanos kTolerance = 50'000;  // of times that are not of the GPU itself
  constexpr Nanos kPart = 10;
  constexpr std::size_t kMostLooks = 64;
  std::map<std::uint32_t, std::map<std::uint32_t, std::vector<std::uint32_t>>> streams;
  for (std::size_t i = begin; i < end; ++i) {
    Operation& operation = operations_[i];
    auto& of_device = streams[operation.device];
    const std::uint32_t own = trace_.slices[operation.slice].track;
    auto& mine = of_device[own];
    const Nanos since = mine.empty() ? -1 : operations_[mine.back()].begin;
    operation.first_before = static_cast<std::uint32_t>(before_.size());
    if (!mine.empty()) before_.push_back(mine.back());
    for (const auto& [track, earlier] : of_device) {
      if (track == own) continue;
      std::size_t looked = 0;
      for (auto it = earlier.rbegin(); it != earlier.rend() && looked < kMostLooks;
           ++it, ++looked) {
        const Operation& other = operations_[*it];
        const Nanos tolerance = std::min(kTolerance, (other.end - other.begin) / kPart);
        if (other.end > operation.begin + tolerance || other.begin >= operation.begin) continue;
        if (other.end > since) before_.push_back(*it);
        break;
      }
    }
    operation.count_before = static_cast<std::uint32_t>(before_.size()) - operation.first_before;
    Nanos ready = 0;
    for (std::uint32_t k = 0; k < operation.count_before; ++k) {
      ready = std::max(ready, operations_[before_[operation.first_before + k]].end);
    }
    operation.delay = operation.begin - ready;
    mine.push_back(static_cast<std::uint32_t>(i));
  }
}

// Kahn's algorithm. Where clocks make a circle, the rest of the step is left out.
void Replayer::order(std::size_t begin, std::size_t end) {
  std::vector<std::uint32_t> waits(end - begin);  // how many operations it waits for
  std::vector<std::vector<std::uint32_t>> after(end - begin);
  std::vector<std::uint32_t> ready;
  std::unordered_map<std::uint32_t, std::size_t> present;  // by meeting
  for (std::size_t i = begin; i < end; ++i) {
    const Operation& operation = operations_[i];
    waits[i - begin] = operation.count_before;
    for (std::uint32_t k = 0; k < operation.count_before; ++k) {
      after[before_[operation.first_before + k] - begin].push_back(static_cast<std::uint32_t>(i));
    }
    if (operation.count_before == 0) ready.push_back(static_cast<std::uint32_t>(i));
  }
  const auto release = [&](std::uint32_t i) {
    for (const std::uint32_t next : after[i - begin]) {
      if (--waits[next - begin] == 0) ready.push_back(next);
    }
  };
  while (!ready.empty()) {
    const std::uint32_t i = ready.back();
    ready.pop_back();
    events_.push_back(2 * i);
    const std::uint32_t meeting = operations_[i].meeting;
    if (meeting == kNoIndex) {
      release(i);
    } else if (++present[meeting] == meetings_[meeting].size()) {
      events_.push_back(2 * meeting + 1);
      for (const std::uint32_t part : meetings_[meeting]) release(part);
    }
  }
  events_.push_back(kNoIndex);
}

template <typename Recorded>
Nanos Replayer::mean_step(bool delays, Recorded recorded) {
  const auto length = [&](const Operation& operation) {
    return recorded(operation) ? static_cast<double>(operation.duration)
                               : peers_[operation.peers].ideal;
  };
  double sum = 0;
  double last = 0;
  std::size_t steps = 0;
  for (const std::uint32_t event : events_) {
    if (event == kNoIndex) {
      sum += last;
      last = 0;
      ++steps;
    } else if (event % 2 == 0) {
      const Operation& operation = operations_[event / 2];
      double begin = 0;
      for (std::uint32_t k = 0; k < operation.count_before; ++k) {
        begin = std::max(begin, ends_[before_[operation.first_before + k]]);
      }
      if (delays) begin += static_cast<double>(operation.delay);
      // A part of a meeting has its begin here until the meeting ends.
      ends_[event / 2] = operation.meeting == kNoIndex ? begin + length(operation) : begin;
      if (operation.meeting == kNoIndex) last = std::max(last, ends_[event / 2]);
    } else {
      double begin = 0;
      for (const std::uint32_t part : meetings_[event / 2]) begin = std::max(begin, ends_[part]);
      for (const std::uint32_t part : meetings_[event / 2]) {
        ends_[part] = begin + length(operations_[part]);
        last = std::max(last, ends_[part]);
      }
    }
  }
  return steps == 0 ? 0 : static_cast<Nanos>(sum / static_cast<double>(steps));
}

void sort_shares(std::vector<ReplayShare>& shares) {
  std::ranges::stable_sort(shares, std::greater{}, &ReplayShare::slowdown);
}

// Of the devices with the most time above their peers.
std::vector<ReplayShare> Replayer::device_shares(const Replay& all) {
  constexpr std::size_t kMostDevices = 16;
  std::map<std::uint32_t, double> excess;
  for (const Operation& operation : operations_) {
    excess[operation.device] +=
        static_cast<double>(operation.duration) - peers_[operation.peers].ideal;
  }
  std::vector<std::pair<double, std::uint32_t>> order;
  order.reserve(excess.size());
  for (const auto& [device, time] : excess) order.emplace_back(-time, device);
  std::ranges::sort(order);
  if (order.size() > kMostDevices) order.resize(kMostDevices);
  std::vector<ReplayShare> shares;
  shares.reserve(order.size());
  for (const auto& [time, device] : order) {
    shares.push_back(share(analysis_.devices[device].label, all,
                           [&](const Operation& operation) { return operation.device == device; }));
  }
  sort_shares(shares);
  return shares;
}

Replay Replayer::report() {
  const auto always = [](const Operation&) { return true; };
  Replay result;
  result.recorded = mean_step(true, always);
  result.prompt = mean_step(false, always);
  result.ideal = mean_step(false, [](const Operation&) { return false; });
  for (const auto& [name, id] : types_) {
    result.types.push_back(
        share(name, result, [&](const Operation& operation) { return operation.type == id; }));
  }
  sort_shares(result.types);
  result.devices = device_shares(result);
  std::vector<std::size_t> stage_of(analysis_.devices.size(), kNoIndex);
  std::size_t stages = 0;
  for (const auto& pipeline : analysis_.pipelines) {
    for (std::size_t stage = 0; stage < pipeline.size(); ++stage) stage_of[pipeline[stage]] = stage;
    stages = std::max(stages, pipeline.size());
  }
  for (std::size_t stage = 0; stage < stages; ++stage) {
    result.stages.push_back(
        share(fmt::format("stage {}", stage), result,
              [&](const Operation& operation) { return stage_of[operation.device] == stage; }));
  }
  sort_shares(result.stages);
  return result;
}

}  // namespace

Replay replay(const Trace& trace, const Analysis& analysis, const CollectiveReport& collectives) {
  if (analysis.devices.size() < 2 || !trace.one_clock || trace.clocks_assumed) return {};
  return Replayer(trace, analysis, collectives).run();
}

}  // namespace assay::timeline
