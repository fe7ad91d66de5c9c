#include "timeline/analysis/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>

#include "base/statistics.h"
#include "timeline/analysis/replay_operations.h"
#include "timeline/analysis/slice_steps.h"
#include "timeline/analysis/stage_links.h"

namespace assay::timeline {
namespace {

// What an operation waits for its host: as recorded, or not at all.
Nanos as_recorded(const Operation& one) { return one.delay; }
Nanos prompt(const Operation& one) { return one.held; }

class Replayer {
 public:
  Replayer(const Trace& trace, const Analysis& analysis, const CollectiveReport& collectives)
      : trace_(trace),
        analysis_(analysis),
        collectives_(collectives),
        steps_(trace, analysis),
        links_(stage_links(trace, analysis, collectives)) {}

  Replay run(std::vector<Culprit>& culprits) {
    if (!collect()) return {};
    origin_ = analysis_.windows.front().begin;
    name_types();
    meet();
    before_ = find_waits(trace_, analysis_.steps.size(), links_, operations_);
    find_delays();
    order();
    settle_peers(trace_, analysis_, collectives_, operations_);
    ends_.resize(operations_.size());
    return report(culprits);
  }

 private:
  static constexpr std::size_t kMostOperations = 2'000'000;

  // False without operations, or with too many.
  bool collect();
  void name_types();
  void meet();
  void find_delays();
  void order();
  Replay report(std::vector<Culprit>& culprits);
  std::string doubt(const Replay& replay) const;
  Nanos without(const Culprit& one);
  std::vector<ReplayShare> device_shares(const Replay& all);

  // The end of the last operation; delay(operation) is what it waits for the host.
  template <typename Length, typename Delay>
  Nanos last_end(Length length, Delay delay);
  // The mean step: the recorded one less what the replay saves. recorded(operation) tells whether
  // it lasts as recorded, else as its peers.
  template <typename Recorded, typename Delay>
  Nanos mean_step(Recorded recorded, Delay delay) {
    const auto length = [&](const Operation& one) {
      return recorded(one) ? one.duration : one.ideal;
    };
    return analysis_.per_step(analysis_.time() - recorded_end_ + last_end(length, delay));
  }
  template <typename Is>
  ReplayShare share(std::string name, const Replay& all, Is is) {
    const Nanos alone = mean_step(is, prompt);
    return {std::move(name),
            all.ideal > 0 ? static_cast<double>(alone) / static_cast<double>(all.ideal) : 1,
            mean_step([&](const Operation& one) { return !is(one); }, as_recorded)};
  }

  const Slice& slice_of(const Operation& one) const { return trace_.slices[one.slice]; }
  std::span<std::uint32_t> before(const Operation& one) {
    return std::span(before_).subspan(one.first_before, one.count_before);
  }

  const Trace& trace_;
  const Analysis& analysis_;
  const CollectiveReport& collectives_;
  SliceSteps steps_;
  Nanos origin_ = 0;                   // when the first step begins; ends_ are since then
  std::vector<Operation> operations_;  // by begin
  std::vector<std::uint32_t> before_;
  std::vector<std::vector<std::uint32_t>> meetings_;  // by call: its parts
  // What happens, in order: an operation begins (2 i), a meeting ends (2 i + 1).
  std::vector<std::uint32_t> events_;
  std::unordered_map<std::uint32_t, std::uint32_t> links_;  // by slice (stage_links.h)
  Nanos recorded_end_ = 0;                                  // of the last operation, replayed
  std::vector<Nanos> ends_;                                 // by operation, of the current replay
  std::map<std::string, std::uint32_t> types_;
};

bool Replayer::collect() {
  std::unordered_map<std::size_t, std::uint32_t> call_of;  // by slice
  for (std::uint32_t i = 0; i < collectives_.calls.size(); ++i) {
    for (const CollectivePart& part : collectives_.calls[i].parts) call_of[part.slice] = i;
  }
  const std::vector<std::size_t>& device_of = analysis_.device_of;
  std::vector<bool> works(analysis_.devices.size(), false);
  operations_.reserve(std::min(trace_.slices.size(), kMostOperations));
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
    const auto step = steps_.of(slice, began);
    if (!step) continue;
    if (operations_.size() >= kMostOperations) return false;
    Operation operation{.slice = i, .device = static_cast<std::uint32_t>(device)};
    operation.step = static_cast<std::uint32_t>(*step);
    operation.duration = slice.end - slice.begin;
    if (call != call_of.end()) operation.call = call->second;
    operations_.push_back(operation);
  }
  const auto times = [&](const Operation& one) {
    return std::tuple(slice_of(one).begin, slice_of(one).end);
  };
  if (!std::ranges::is_sorted(operations_, {}, times)) {
    std::ranges::stable_sort(operations_, {}, times);
  }
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

void Replayer::meet() {
  meetings_.resize(collectives_.calls.size());
  for (std::uint32_t i = 0; i < operations_.size(); ++i) {
    if (operations_[i].call != kNoIndex) meetings_[operations_[i].call].push_back(i);
  }
  for (const auto& parts : meetings_) {
    for (const std::uint32_t part : parts) {
      const Nanos last = slice_of(operations_[parts.back()]).begin;  // operations are by begin
      operations_[part].duration = std::max<Nanos>(0, slice_of(operations_[part]).end - last);
    }
  }
}

// How long operations wait for their hosts, after all that they follow.
void Replayer::find_delays() {
  constexpr Nanos kStart = 10'000;
  std::vector<std::int64_t> step_of(analysis_.devices.size(), kNone);  // number, by device
  for (Operation& operation : operations_) {
    Nanos ready = origin_;
    std::uint32_t last = kNoIndex;
    for (const std::uint32_t one : before(operation)) {
      const Nanos end = slice_of(operations_[one]).end;
      if (end < ready) continue;
      ready = end;
      last = one;
    }
    const Slice& slice = slice_of(operation);
    operation.delay = slice.begin - ready;
    operation.host_step = static_cast<std::uint32_t>(
        steps_.begun_by_host(trace_.tracks[slice.track].source, slice.begin - operation.delay / 2)
            .value_or(operation.step));
    // What a launched operation waits for is no host, but for the time that a start takes.
    if (const Launch* launch = trace_.launch_of(slice)) {
      const Nanos held = slice.begin - std::max(ready, launch->end);
      operation.held =
          std::min(operation.delay, std::max<Nanos>(0, launch->end > ready ? held - kStart : held));
    }
    const auto link = links_.find(operation.slice);
    const bool linked =
        last != kNoIndex && link != links_.end() && operations_[last].slice == link->second;
    std::int64_t& step = step_of[operation.device];
    const std::int64_t number = analysis_.steps[operation.step].number;
    const bool skipped = step != kNone && number > step + 1;  // nothing is recorded between
    if (linked || skipped) operation.held = operation.delay;
    step = number;
  }
}

// Kahn's algorithm. Where clocks make a circle, the earliest operation goes without what it waits
// for.
void Replayer::order() {
  const auto count = static_cast<std::uint32_t>(operations_.size());
  std::vector<std::uint32_t> waits(count);  // how many operations it waits for
  std::vector<std::uint32_t> first_after(count + 1);
  for (const std::uint32_t before : before_) ++first_after[before + 1];
  std::partial_sum(first_after.begin(), first_after.end(), first_after.begin());
  std::vector<std::uint32_t> after(before_.size());
  std::vector<std::uint32_t> filled = first_after;
  std::vector<std::uint32_t> ready;
  std::vector<bool> done(count);
  std::vector<bool> begun(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Operation& operation = operations_[i];
    waits[i] = operation.count_before;
    for (const std::uint32_t one : before(operation)) after[filled[one]++] = i;
    if (operation.count_before == 0) ready.push_back(i);
  }
  std::vector<std::size_t> present(meetings_.size());
  const auto release = [&](std::uint32_t i) {
    done[i] = true;
    for (std::uint32_t k = first_after[i]; k < first_after[i + 1]; ++k) {
      if (--waits[after[k]] == 0 && !begun[after[k]]) ready.push_back(after[k]);
    }
  };
  for (std::uint32_t next = 0; next < count;) {
    if (ready.empty()) {
      if (!begun[next]) {
        Operation& operation = operations_[next];
        const auto rest =
            std::ranges::partition(before(operation), [&](std::uint32_t i) { return done[i]; });
        operation.count_before -= static_cast<std::uint32_t>(rest.size());
        ready.push_back(next);
      }
      ++next;
      continue;
    }
    const std::uint32_t i = ready.back();
    ready.pop_back();
    begun[i] = true;
    events_.push_back(2 * i);
    const std::uint32_t meeting = operations_[i].call;
    if (meeting == kNoIndex) {
      release(i);
    } else if (++present[meeting] == meetings_[meeting].size()) {
      events_.push_back(2 * meeting + 1);
      for (const std::uint32_t part : meetings_[meeting]) release(part);
    }
  }
}

template <typename Length, typename Delay>
Nanos Replayer::last_end(Length length, Delay delay) {
  Nanos last = 0;
  for (const std::uint32_t event : events_) {
    Nanos begin = 0;
    if (event % 2 == 0) {
      const Operation& operation = operations_[event / 2];
      for (const std::uint32_t one : before(operation)) begin = std::max(begin, ends_[one]);
      begin += delay(operation);
      // A part of a meeting has its begin here until the meeting ends.
      ends_[event / 2] = operation.call == kNoIndex ? begin + length(operation) : begin;
      if (operation.call == kNoIndex) last = std::max(last, ends_[event / 2]);
      continue;
    }
    for (const std::uint32_t part : meetings_[event / 2]) begin = std::max(begin, ends_[part]);
    for (const std::uint32_t part : meetings_[event / 2]) {
      ends_[part] = begin + length(operations_[part]);
      last = std::max(last, ends_[part]);
    }
  }
  return last;
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

// The mean step without what a culprit does longer than its peers, in the steps where it does.
Nanos Replayer::without(const Culprit& culprit) {
  using Part = Culprit::Part;
  const auto computes = [&](const Operation& one) {
    if (culprit.part == Part::host || !culprit.in_step(one.step)) return false;
    if (culprit.part == Part::transfer) {
      return one.call != kNoIndex && std::ranges::equal(collectives_.calls[one.call].parts,
                                                        culprit.ranks, {}, &CollectivePart::rank);
    }
    return culprit.on_device(one.device) && one.call == kNoIndex &&
           (slice_of(one).kind == Kind::memory) == (culprit.part == Part::copies);
  };
  const auto waits = [&](const Operation& one) {
    return culprit.part == Part::host && culprit.in_step(one.host_step) &&
           culprit.on_device(one.device);
  };
  return mean_step([&](const Operation& one) { return !computes(one); },
                   [&](const Operation& one) { return waits(one) ? one.usual_delay : one.delay; });
}

// Why the replay is not what was recorded, or empty.
std::string Replayer::doubt(const Replay& replay) const {
  Nanos recorded = origin_;
  for (const Operation& one : operations_) recorded = std::max(recorded, slice_of(one).end);
  recorded -= origin_;
  constexpr double kMost = 0.03;
  const auto far = static_cast<double>(std::abs(recorded_end_ - recorded));
  if (far > kMost * static_cast<double>(recorded)) {
    return fmt::format(
        "the replayed steps take {:.3f} ms, the recorded ones {:.3f} ms: some "
        "dependencies are not recorded",
        millis(recorded_end_), millis(recorded));
  }
  if (std::ranges::any_of(collectives_.calls, [](const CollectiveCall& call) {
        return call.name == "sendrecv" && call.parts.size() == 1 && call.missing.empty();
      })) {
    return "sends and receives do not name their peers: their waits count as transfers";
  }
  // No pipeline is shorter than its jobs and their ideal bubble. A job's time has the gaps within
  // it, and the work of a device has that of its optimizer: the shorter one counts.
  double least = 0;
  for (std::size_t i = 0; i < analysis_.steps.size(); ++i) {
    const Schedule& schedule = analysis_.schedules[i];
    Nanos compute = 0;
    for (const DeviceReport& device : analysis_.devices) compute += device.steps[i].compute;
    const double work = static_cast<double>(compute) /
                        static_cast<double>(analysis_.devices.size()) / (1 - schedule.ideal_bubble);
    least += std::min(schedule.ideal_time, work) / static_cast<double>(analysis_.steps.size());
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
  recorded_end_ = last_end([](const Operation& one) { return one.duration; }, as_recorded);
  const Nanos silent = last_end(
      [](const Operation& one) { return one.call == kNoIndex ? one.duration : 0; }, as_recorded);
  result.silent = analysis_.per_step(analysis_.time() - recorded_end_ + silent);
  result.recorded = mean_step(always, as_recorded);
  result.prompt = mean_step(always, prompt);
  result.ideal = mean_step([](const Operation&) { return false; }, prompt);
  result.reason = doubt(result);
  if (!result.reason.empty()) return result;
  for (Culprit& culprit : culprits) {
    if (culprit.part == Culprit::Part::step) continue;
    culprit.without = without(culprit);
    if (culprit.devices.size() < 2 || culprit.kind != "rank") continue;
    Culprit one = culprit;
    culprit.without_one = culprit.without;
    for (const std::size_t device : culprit.devices) {
      one.devices = {device};
      const Nanos left = without(one);
      culprit.without_one =
          device == culprit.devices.front() ? left : std::min(culprit.without_one, left);
    }
  }
  if (analysis_.devices.size() < 2) return result;  // no peers to compare with
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
  if (!trace.one_clock || trace.clocks_assumed) {
    Replay none;
    none.reason = "the clocks of the ranks are not related";
    return none;
  }
  return Replayer(trace, analysis, collectives).run(culprits);
}

}  // namespace assay::timeline
