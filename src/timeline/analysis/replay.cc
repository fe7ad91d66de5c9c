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
#include "timeline/analysis/replay_peers.h"
#include "timeline/analysis/stage_links.h"

namespace assay::timeline {
namespace {

// What a replay takes as recorded; the rest as the peers.
enum class Delays : std::uint8_t { none, recorded };

class Replayer {
 public:
  Replayer(const Trace& trace, const Analysis& analysis, const CollectiveReport& collectives)
      : trace_(trace),
        analysis_(analysis),
        collectives_(collectives),
        links_(stage_links(trace, analysis)) {}

  Replay run(std::vector<Culprit>& culprits) {
    if (!collect()) return {};
    name_types();
    tails_.resize(analysis_.steps.size());
    for (std::size_t begin = 0; begin < operations_.size();) {
      std::size_t end = begin;
      while (end < operations_.size() && operations_[end].step == operations_[begin].step) ++end;
      prepare(begin, end);
      begin = end;
    }
    settle_peers(trace_, analysis_, collectives_, operations_);
    ends_.resize(operations_.size());
    return report(culprits);
  }

 private:
  static constexpr std::size_t kMostOperations = 2'000'000;

  // False without operations, or with too many.
  bool collect();
  void name_types();
  // Of the operations of one step.
  void prepare(std::size_t begin, std::size_t end);
  void meet(std::size_t begin, std::size_t end);
  void follow(std::size_t begin, std::size_t end);
  void order(std::size_t begin, std::size_t end);
  Replay report(std::vector<Culprit>& culprits);
  std::string doubt(const Replay& replay) const;
  Nanos without(const std::vector<const Culprit*>& culprits);
  std::vector<ReplayShare> device_shares(const Replay& all);

  // The mean step; recorded(operation) tells whether it lasts as recorded, else as its peers.
  // delay(operation) is what it waits for the host; tail(step) the time behind its last operation.
  template <typename Recorded, typename Delay, typename Tail>
  Nanos mean_step(Recorded recorded, Delay delay, Tail tail);
  template <typename Recorded>
  Nanos mean_step(Delays delays, Recorded recorded) {
    return mean_step(
        recorded,
        [&](const Operation& one) {
          return delays == Delays::recorded || one.handed_over ? one.delay : 0;
        },
        [&](std::uint32_t step) {
          return delays == Delays::recorded ? tails_[step] : std::min<Nanos>(0, tails_[step]);
        });
  }
  template <typename Is>
  ReplayShare share(std::string name, const Replay& all, Is is) {
    const Nanos alone = mean_step(Delays::none, is);
    return {std::move(name),
            all.ideal > 0 ? static_cast<double>(alone) / static_cast<double>(all.ideal) : 1,
            mean_step(Delays::recorded, [&](const Operation& one) { return !is(one); })};
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
  std::unordered_map<std::uint32_t, std::uint32_t> links_;  // by slice (stage_links.h)
  std::vector<Nanos> tails_;  // by step: from the end of its last operation to the next step
  Nanos hollow_ = 0;          // steps without operations
  std::vector<Nanos> ends_;   // by operation, of the current replay
  std::map<std::string, std::uint32_t> types_;
};

bool Replayer::collect() {
  std::unordered_map<std::size_t, std::uint32_t> call_of;  // by slice
  for (std::uint32_t i = 0; i < collectives_.calls.size(); ++i) {
    for (const CollectivePart& part : collectives_.calls[i].parts) call_of[part.slice] = i;
  }
  const std::vector<std::size_t> device_of = device_of_tracks(trace_);
  std::vector<bool> works(analysis_.devices.size(), false);
  std::set<std::uint32_t> steps;
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
    // A receive may wait since the step before: the last part of a call decides.
    const auto call = call_of.find(i);
    Nanos began = slice.begin;
    if (call != call_of.end()) {
      for (const CollectivePart& part : collectives_.calls[call->second].parts) {
        began = std::max(began, part.begin);
      }
    }
    const auto window = std::ranges::upper_bound(analysis_.windows, began, {}, &Interval::begin);
    if (window == analysis_.windows.begin() || began >= std::prev(window)->end) continue;
    if (operations_.size() >= kMostOperations) return false;
    Operation operation{.slice = i, .device = static_cast<std::uint32_t>(device)};
    operation.step = static_cast<std::uint32_t>(std::prev(window) - analysis_.windows.begin());
    operation.begin = slice.begin;
    operation.end = slice.end;
    if (call != call_of.end()) operation.call = call->second;
    operations_.push_back(operation);
    steps.insert(operation.step);
  }
  for (std::size_t i = 0; i < analysis_.steps.size(); ++i) {
    if (!steps.contains(static_cast<std::uint32_t>(i))) hollow_ += analysis_.lengths[i];
  }
  std::ranges::stable_sort(operations_, {}, [](const Operation& operation) {
    return std::tuple(operation.step, operation.begin, operation.end);
  });
  return !operations_.empty();
}

// Few names are types themselves.
void Replayer::name_types() {
  constexpr std::size_t kFewNames = 32;
  std::set<StringId> names;
  for (const Operation& operation : operations_) {
    if (names.size() <= kFewNames) names.insert(trace_.slices[operation.slice].name);
  }
  const bool few = names.size() <= kFewNames;
  for (Operation& operation : operations_) {
    const Slice& slice = trace_.slices[operation.slice];
    std::string type(few ? trace_.strings.text(slice.name) : name(slice.kind));
    if (!few && operation.call != kNoIndex) type = collectives_.calls[operation.call].name;
    operation.type =
        types_.try_emplace(type, static_cast<std::uint32_t>(types_.size())).first->second;
  }
}

void Replayer::prepare(std::size_t begin, std::size_t end) {
  const std::uint32_t step = operations_[begin].step;
  const Nanos first = analysis_.windows[step].begin;
  Nanos last = 0;
  for (std::size_t i = begin; i < end; ++i) {
    operations_[i].begin -= first;
    operations_[i].end -= first;
    operations_[i].duration = operations_[i].end - operations_[i].begin;
    last = std::max(last, operations_[i].end);
  }
  tails_[step] = analysis_.lengths[step] - last;
  meet(begin, end);
  follow(begin, end);
  order(begin, end);
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
  std::unordered_map<std::uint32_t, std::uint32_t> operation_of;  // by slice
  if (!links_.empty()) {
    for (std::size_t i = begin; i < end; ++i) {
      operation_of[operations_[i].slice] = static_cast<std::uint32_t>(i);
    }
  }
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
    if (const auto link = links_.find(operation.slice); link != links_.end()) {
      const auto before = operation_of.find(link->second);
      if (before != operation_of.end() && before->second < i) before_.push_back(before->second);
    }
    operation.count_before = static_cast<std::uint32_t>(before_.size()) - operation.first_before;
    Nanos ready = 0;
    for (std::uint32_t k = 0; k < operation.count_before; ++k) {
      ready = std::max(ready, operations_[before_[operation.first_before + k]].end);
    }
    operation.delay = operation.begin - ready;
    const auto link = links_.find(operation.slice);
    operation.handed_over = link != links_.end() && operation_of.contains(link->second) &&
                            operations_[operation_of.at(link->second)].end == ready;
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

template <typename Recorded, typename Delay, typename Tail>
Nanos Replayer::mean_step(Recorded recorded, Delay delay, Tail tail) {
  const auto length = [&](const Operation& operation) {
    return recorded(operation) ? operation.duration : operation.ideal;
  };
  Nanos sum = hollow_;
  Nanos last = 0;
  std::uint32_t step = 0;
  for (const std::uint32_t event : events_) {
    if (event == kNoIndex) {
      sum += last + tail(step);
      last = 0;
    } else if (event % 2 == 0) {
      const Operation& operation = operations_[event / 2];
      step = operation.step;
      Nanos begin = 0;
      for (std::uint32_t k = 0; k < operation.count_before; ++k) {
        begin = std::max(begin, ends_[before_[operation.first_before + k]]);
      }
      begin += delay(operation);
      // A part of a meeting has its begin here until the meeting ends.
      ends_[event / 2] = operation.meeting == kNoIndex ? begin + length(operation) : begin;
      if (operation.meeting == kNoIndex) last = std::max(last, ends_[event / 2]);
    } else {
      Nanos begin = 0;
      for (const std::uint32_t part : meetings_[event / 2]) begin = std::max(begin, ends_[part]);
      for (const std::uint32_t part : meetings_[event / 2]) {
        ends_[part] = begin + length(operations_[part]);
        last = std::max(last, ends_[part]);
      }
    }
  }
  return sum / static_cast<Nanos>(std::max<std::size_t>(1, analysis_.steps.size()));
}

void sort_shares(std::vector<ReplayShare>& shares) {
  std::ranges::stable_sort(shares, std::greater{}, &ReplayShare::slowdown);
}

// Of the devices with the most time above their peers.
std::vector<ReplayShare> Replayer::device_shares(const Replay& all) {
  constexpr std::size_t kMostDevices = 16;
  std::map<std::uint32_t, Nanos> excess;
  for (const Operation& operation : operations_) {
    excess[operation.device] += operation.duration - operation.ideal;
  }
  std::vector<std::pair<Nanos, std::uint32_t>> order;
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

// The mean step without what the culprits do longer than their peers, in the steps where they do.
Nanos Replayer::without(const std::vector<const Culprit*>& culprits) {
  const auto affects = [&](const Operation& operation, bool host) {
    return std::ranges::any_of(culprits, [&](const Culprit* one) {
      if ((one->part == Culprit::Part::host) != host || !one->in_step(operation.step)) return false;
      if (one->part == Culprit::Part::transfer) {
        return operation.call != kNoIndex &&
               std::ranges::equal(collectives_.calls[operation.call].parts, one->ranks, {},
                                  &CollectivePart::rank);
      }
      const Kind kind = trace_.slices[operation.slice].kind;
      return std::ranges::find(one->devices, operation.device) != one->devices.end() &&
             (host || (kind == Kind::memory) == (one->part == Culprit::Part::copies)) &&
             (host || operation.call == kNoIndex);
    });
  };
  const Nanos usual_tail = lower_median(tails_);
  return mean_step(
      [&](const Operation& one) { return !affects(one, false); },
      [&](const Operation& one) { return affects(one, true) ? one.usual_delay : one.delay; },
      [&](std::uint32_t step) {
        const bool late = std::ranges::any_of(culprits, [&](const Culprit* one) {
          return one->part == Culprit::Part::host && one->in_step(step);
        });
        return late ? std::min(tails_[step], usual_tail) : tails_[step];
      });
}

// Why the replay is not what was recorded, or empty.
std::string Replayer::doubt(const Replay& replay) const {
  Nanos recorded = 0;
  for (const Nanos length : analysis_.lengths) recorded += length;
  recorded /= static_cast<Nanos>(analysis_.lengths.size());
  constexpr double kMost = 0.03;
  const auto far = static_cast<double>(std::abs(replay.recorded - recorded));
  if (far > kMost * static_cast<double>(recorded)) {
    return fmt::format(
        "a replayed step takes {:.3f} ms, a recorded one {:.3f} ms: some "
        "dependencies are not recorded",
        millis(replay.recorded), millis(recorded));
  }
  // No pipeline is shorter than its work and its ideal bubble.
  double least = 0;
  for (std::size_t i = 0; i < analysis_.steps.size(); ++i) {
    const Schedule& schedule = analysis_.schedules[i];
    Nanos compute = 0;
    for (const DeviceReport& device : analysis_.devices) compute += device.steps[i].compute;
    if (schedule.kind <= ScheduleKind::unknown || schedule.stages < 2) continue;
    least += static_cast<double>(compute) / static_cast<double>(analysis_.devices.size()) /
             (1 - schedule.ideal_bubble) / static_cast<double>(analysis_.steps.size());
  }
  if (static_cast<double>(replay.prompt) >= (1 - kMost) * least) return {};
  return fmt::format(
      "without waiting a step would take {:.3f} ms, less than the pipeline's ideal "
      "{:.3f} ms: some dependencies are not recorded",
      millis(replay.prompt), least / 1e6);
}

Replay Replayer::report(std::vector<Culprit>& culprits) {
  const auto always = [](const Operation&) { return true; };
  Replay result;
  result.recorded = mean_step(Delays::recorded, always);
  result.prompt = mean_step(Delays::none, always);
  result.ideal = mean_step(Delays::none, [](const Operation&) { return false; });
  result.reason = doubt(result);
  if (!result.reason.empty()) return result;
  for (Culprit& culprit : culprits) {
    if (culprit.part == Culprit::Part::step) continue;
    culprit.without = without({&culprit});
    if (culprit.devices.size() < 2 || culprit.kind != "rank") continue;
    Culprit one = culprit;
    culprit.without_one = culprit.without;
    for (const std::size_t device : culprit.devices) {
      one.devices = {device};
      const Nanos left = without({&one});
      culprit.without_one =
          device == culprit.devices.front() ? left : std::min(culprit.without_one, left);
    }
  }
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

Replay replay(const Trace& trace, const Analysis& analysis, const CollectiveReport& collectives,
              std::vector<Culprit>& culprits) {
  Replay result;
  if (!trace.one_clock || trace.clocks_assumed) {
    result.reason = "the clocks of the ranks are not related";
  } else {
    result = Replayer(trace, analysis, collectives).run(culprits);
  }
  return result;
}

}  // namespace assay::timeline
