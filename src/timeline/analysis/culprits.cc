#include "timeline/analysis/culprits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>

#include "base/statistics.h"
#include "timeline/analysis/kernel_comparison.h"
#include "timeline/analysis/outliers.h"
#include "timeline/analysis/report_text.h"
#include "timeline/analysis/slice_steps.h"
#include "timeline/cpu_work.h"

namespace assay::timeline {
namespace {

using TimePart = Nanos (*)(const DeviceReport&, std::size_t step);

Series series_of(const DeviceReport& device, TimePart time) {
  Series series;
  for (std::size_t step = 0; step < device.steps.size(); ++step) {
    series.push_back(time(device, step));
  }
  return series;
}

// By step, what a device spends on computing, and so on.
Nanos compute(const DeviceReport& device, std::size_t step) { return device.steps[step].compute; }
Nanos copies(const DeviceReport& device, std::size_t step) { return device.steps[step].copying; }
Nanos launches(const DeviceReport& device, std::size_t step) { return device.late[step].launches; }
Nanos loading(const DeviceReport& device, std::size_t step) { return device.late[step].loading; }
Nanos exposed(const DeviceReport& device, std::size_t step) {
  return device.steps[step].exposed_communication();
}

struct Metric {
  TimePart time;
  Culprit::Part part;
  const char* cause;
};

class CulpritFinder {
 public:
  CulpritFinder(const Trace& trace, const Analysis& analysis, const CollectiveReport& collectives)
      : trace_(trace),
        analysis_(analysis),
        collectives_(collectives),
        comparer_(trace, analysis),
        step_(lower_median(analysis.lengths)) {}

  std::vector<Culprit> find() {
    if (step_ <= 0) return {};
    using Part = Culprit::Part;
    const std::array<Metric, 4> metrics{
        {{loading, Part::host, "data loader"},
         {compute, Part::compute, ""},
         {copies, Part::copies, ""},
         {launches, Part::host,
          is_cpu(label()) ? "more time outside operators" : "host: late launches"}}};
    std::vector<std::size_t> all(analysis_.devices.size());
    std::iota(all.begin(), all.end(), 0U);
    const bool same_copies = copies_are_equal();
    // Without common clocks, what looks like a late host may be a stage that waits for another.
    const bool waits_unseen = (!trace_.one_clock || trace_.clocks_assumed) &&
                              std::ranges::any_of(trace_.tracks, &Track::jobs);
    for (const Metric& metric : metrics) {
      if (waits_unseen && &metric == &metrics.back()) continue;
      // Hosts have the same to do on all stages.
      const bool alike = metric.part == Part::host || (metric.part == Part::copies && same_copies);
      std::vector<Culprit> found;
      for (const auto& peers :
           alike ? std::vector<std::vector<std::size_t>>(1, all) : peer_groups()) {
        std::ranges::move(find_among(peers, metric), std::back_inserter(found));
      }
      take_turns(found);
      std::ranges::move(found, std::back_inserter(culprits_));
    }
    find_stages();
    merge_stages();
    find_links();
    for (Culprit& one : culprits_) {
      if (!one.in_turn) explain(one);
    }
    find_steps();
    return std::move(culprits_);
  }

 private:
  std::string label() const {
    return analysis_.devices.empty() ? std::string() : analysis_.devices.front().label;
  }

  // Whether all devices copy as many bytes.
  bool copies_are_equal() const {
    std::vector<std::int64_t> bytes(analysis_.devices.size());
    for (const Slice& slice : trace_.slices) {
      const std::size_t device = analysis_.device_of[slice.track];
      if (slice.kind != Kind::memory || slice.detail == kNoIndex || device >= bytes.size())
        continue;
      bytes[device] += std::max<std::int64_t>(0, trace_.details[slice.detail].bytes);
    }
    return !bytes.empty() && bytes[0] > 0 &&
           std::ranges::all_of(bytes, [&](std::int64_t one) { return one == bytes[0]; });
  }

  // The devices of each pipeline stage, or all devices.
  std::vector<std::vector<std::size_t>> peer_groups() const {
    std::map<std::size_t, std::vector<std::size_t>> stages;
    for (const auto& pipeline : analysis_.pipelines) {
      for (std::size_t stage = 0; stage < pipeline.size(); ++stage) {
        stages[stage].push_back(pipeline[stage]);
      }
    }
    std::vector<std::vector<std::size_t>> groups;
    groups.reserve(stages.size());
    for (auto& [stage, devices] : stages) groups.push_back(std::move(devices));
    if (groups.empty() || analysis_.pipelines.front().size() < 2) {
      groups.assign(1, std::vector<std::size_t>(analysis_.devices.size()));
      std::iota(groups[0].begin(), groups[0].end(), 0U);
    }
    return groups;
  }

  Culprit made(std::string kind, std::string name, Culprit::Part part, const Excess& excess,
               std::vector<std::size_t> devices) const {
    Culprit one{.kind = std::move(kind), .name = std::move(name), .cause = {}, .ranks = {}};
    one.part = part;
    one.since = number(excess.steps.front());
    one.excess = excess.size;
    one.steps = excess.steps;
    one.when = when(excess);
    one.devices = std::move(devices);
    for (const std::size_t device : one.devices) {
      one.ranks.push_back(analysis_.devices[device].rank);
    }
    return one;
  }

  std::int64_t number(std::size_t step) const { return analysis_.steps[step].number; }
  std::string when(const Excess& excess) const {
    const auto& steps = excess.steps;
    const bool all = steps.size() > 2 && steps.back() - steps.front() + 1 == steps.size();
    if (excess.lasting || all) {
      const bool still = steps.back() + 1 == analysis_.steps.size();
      return still ? fmt::format("since step {}", number(steps.front()))
                   : fmt::format("steps {} to {}", number(steps.front()), number(steps.back()));
    }
    if (steps.size() == 1) {
      return fmt::format("step {}{}", number(steps[0]), steps[0] == 0 ? ", the first" : "");
    }
    const std::size_t apart = steps[1] - steps[0];
    const auto other = std::ranges::adjacent_find(
        steps, [&](std::size_t a, std::size_t b) { return b - a != apart; });
    if (steps.size() > 2 && other == steps.end()) {
      return fmt::format("every {} steps from step {}", apart, number(steps[0]));
    }
    std::vector<std::int64_t> numbers;
    numbers.reserve(steps.size());
    for (const std::size_t step : steps) numbers.push_back(number(step));
    return "steps " + listed(numbers);
  }

  std::string name_of(const std::vector<std::size_t>& devices) const {
    std::vector<std::int32_t> ranks;
    std::vector<std::string> labels;
    for (const std::size_t device : devices) {
      ranks.push_back(analysis_.devices[device].rank);
      labels.push_back(analysis_.devices[device].label);
    }
    if (std::ranges::find(ranks, kNone) != ranks.end()) return listed(labels);
    return (ranks.size() == 1 ? "rank " : "ranks ") + listed(ranks);
  }

  static const char* others(const Culprit& culprit) {
    return culprit.itself ? "in its other steps" : "its peers";
  }
  void explain(Culprit& culprit) const {
    using Part = Culprit::Part;
    if (culprit.part == Part::host) {
      const bool transient = 3 * culprit.steps.size() <= analysis_.steps.size();
      const std::string did =
          transient && culprit.cause != "data loader"
              ? comparer_.host_in_gap(culprit.devices[0], culprit.steps[0], culprit.steps[0])
              : "";
      if (!did.empty()) culprit.cause += ", the host was in " + short_name(did);
      return;
    }
    if (culprit.part != Part::compute && culprit.part != Part::copies) return;
    constexpr double kMore = 1.02;
    const Compared compared = comparer_.compare(culprit);
    const bool copies = culprit.part == Part::copies;
    const std::string each =
        fmt::format("{} ({:+.3f} ms a step)", short_name(compared.worst),
                    millis(compared.excess) / static_cast<double>(culprit.steps.size()));
    std::string why;
    if (compared.work > kMore && compared.time < 1.1 * compared.work) {
      why = fmt::format(
          "more work than {}: the same {} have {:.2f} times {}", others(culprit),
          copies ? "copies" : "kernels", compared.work,
          copies ? "the bytes" : "the work (grid or FLOP: longer sequences, more tokens)");
    } else if (compared.time > kMore) {
      culprit.operation = compared.worst;
      why = fmt::format("{}: the same {} take {:.2f} times as long, most of it in {}",
                        copies                    ? "slow copies"
                        : culprit.kind == "stage" ? "slower work"
                                                  : "slow GPU",
                        copies ? "ones" : "kernels", compared.time, each);
    } else {
      why = fmt::format("more {} than {}", copies ? "copies" : "work", others(culprit));
    }
    culprit.cause = culprit.kind == "stage" ? culprit.cause + "; " + why : why;
  }

  // One for the ranks that are late in the same steps and as much.
  std::vector<Culprit> find_among(const std::vector<std::size_t>& devices,
                                  const Metric& metric) const {
    std::vector<Series> peers;
    peers.reserve(devices.size());
    for (const std::size_t device : devices) {
      peers.push_back(series_of(analysis_.devices[device], metric.time));
    }
    std::vector<Culprit> found;
    for (const auto& [peer, excess] : outliers(peers, step_, analysis_.kinds)) {
      const std::size_t device = devices[peer];
      const auto same = std::ranges::find_if(found, [&](const Culprit& one) {
        return one.when == when(excess) && 5 * std::abs(one.excess - excess.size) <= one.excess;
      });
      if (same == found.end()) {
        found.push_back(made("rank", name_of({device}), metric.part, excess, {device}));
        found.back().cause = metric.cause;
        found.back().itself = devices.size() == 1;
      } else {
        same->devices.push_back(device);
        same->ranks.push_back(analysis_.devices[device].rank);
        same->name = name_of(same->devices);
        same->excess = std::max(same->excess, excess.size);
      }
    }
    for (Culprit& one : found) name_host(devices, one);
    return found;
  }

  // All devices of one of several hosts are the host.
  void name_host(const std::vector<std::size_t>& devices, Culprit& one) const {
    const std::string& host = analysis_.devices[one.devices.front()].machine;
    const auto on_host = [&](std::size_t device) {
      return analysis_.devices[device].machine == host;
    };
    if (host.empty() || one.devices.size() < 2 || one.devices.size() == devices.size() ||
        !std::ranges::all_of(one.devices, on_host) ||
        static_cast<std::size_t>(std::ranges::count_if(devices, on_host)) != one.devices.size()) {
      return;
    }
    one.kind = "host";
    one.name = "host " + host;
  }

  // Makes one of those whose cause moves from rank to rank.
  void take_turns(std::vector<Culprit>& found) const {
    constexpr std::size_t kInTurn = 3;
    Excess together;
    std::vector<std::size_t> devices;
    devices.reserve(found.size());
    Series sizes;
    sizes.reserve(found.size());
    for (const Culprit& one : found) {
      if (3 * one.steps.size() > analysis_.steps.size() || one.devices.size() > 1) return;
      together.steps.insert(together.steps.end(), one.steps.begin(), one.steps.end());
      devices.push_back(one.devices.front());
      sizes.push_back(one.excess);
    }
    std::ranges::sort(together.steps);
    const bool at_once = std::ranges::adjacent_find(together.steps) != together.steps.end();
    if (found.size() < kInTurn || at_once) return;
    together.size = lower_median(sizes);
    std::ranges::sort(devices);
    Culprit all = made("rank", name_of(devices) + " in turn", found[0].part, together, devices);
    explain(found[0]);  // in the steps of this one
    all.cause = found[0].cause;
    all.operation = found[0].operation;
    all.in_turn = true;
    found.clear();
    found.push_back(std::move(all));
  }

  // The compute time of each stage: the mean over its devices.
  void find_stages() {
    const auto groups = peer_groups();
    if (groups.size() < 3) return;
    std::vector<Series> peers;
    for (const auto& devices : groups) {
      Series sum(analysis_.steps.size());
      for (const std::size_t device : devices) {
        for (std::size_t step = 0; step < sum.size(); ++step) {
          sum[step] +=
              analysis_.devices[device].steps[step].compute / static_cast<Nanos>(devices.size());
        }
      }
      peers.push_back(std::move(sum));
    }
    for (const auto& [stage, excess] : outliers(peers, step_, analysis_.kinds)) {
      culprits_.push_back(made("stage", fmt::format("stage {}", stage), Culprit::Part::compute,
                               excess, groups[stage]));
      culprits_.back().cause = "computes longer than the other stages";
    }
  }

  // The only rank of a stage is the stage; a stage with some slow ranks is told by its ranks.
  void merge_stages() {
    std::vector<Culprit> all = std::move(culprits_);
    culprits_.clear();
    for (const Culprit& one : all) {
      const auto told = std::ranges::any_of(all, [&](const Culprit& other) {
        const bool pair =
            (one.kind == "stage") != (other.kind == "stage") && one.part == other.part;
        const auto& [few, many] = one.kind == "stage" ? std::tie(other, one) : std::tie(one, other);
        return pair &&
               std::ranges::all_of(few.devices,
                                   [&](auto device) { return many.on_device(device); }) &&
               (few.devices.size() == many.devices.size()) == (one.kind != "stage");
      });
      if (!told) culprits_.push_back(one);
    }
  }

  // Steps longer than the median that no rank explains.
  void find_steps() {
    const Series& lengths = analysis_.lengths;
    const Series usual = usual_of(lengths, analysis_.kinds);
    std::map<std::string, Excess> causes;
    Series excess(lengths.size());
    // Where hosts run ahead, the last step lasts until all stages have drained.
    const bool drains =
        !analysis_.steps.empty() && analysis_.windows.back().end > analysis_.steps.back().end;
    const std::size_t compared = lengths.size() > 2 ? lengths.size() - (drains ? 1 : 0) : 0;
    for (std::size_t step = 0; step < compared; ++step) {
      // Where hosts run ahead, only their marks may be far apart.
      const Nanos behind = step > 0 && trace_.one_clock && !trace_.clocks_assumed
                               ? analysis_.windows[step].end - analysis_.windows[step - 1].end
                               : lengths[step];
      excess[step] = std::min(lengths[step], behind) - usual[step];
      if (3 * analysis_.pauses[step] > excess[step]) continue;  // told as a pause
      for (const Culprit& one : culprits_) {
        // A host that runs ahead delays the step behind it.
        const bool ahead = one.part == Culprit::Part::host && step > 0 && one.in_step(step - 1);
        if (one.in_step(step) || ahead) excess[step] -= one.excess;
      }
      if (4 * excess[step] > step_) causes[grown(step, excess[step])].steps.push_back(step);
    }
    for (auto& [cause, one] : causes) {
      if (2 * one.steps.size() > lengths.size()) continue;  // steps of two kinds
      one = excess_in(excess, std::move(one.steps), false);
      Culprit culprit = made("step", analysis_.devices.size() == 1 ? name_of({0}) : "all ranks",
                             Culprit::Part::step, one, {});
      const std::string did = analysis_.devices.empty()
                                  ? ""
                                  : comparer_.host_in_gap(0, one.steps.front(), one.steps.front());
      culprit.cause = cause;
      if (cause == "host" && !did.empty()) culprit.cause += ": it was in " + short_name(did);
      culprits_.push_back(std::move(culprit));
    }
  }

  // The part of the time that has grown most in a step, if it explains a fourth of the excess.
  std::string grown(std::size_t step, Nanos excess) {
    constexpr std::array<std::pair<const char*, TimePart>, 5> kParts{{{"compute", compute},
                                                                      {"communication", exposed},
                                                                      {"copies", copies},
                                                                      {"data loader", loading},
                                                                      {"host", launches}}};
    const auto devices = static_cast<Nanos>(analysis_.devices.size());
    std::pair<Nanos, const char*> most{devices * excess / 4, "time outside all GPU work"};
    for (std::size_t part = 0; part < kParts.size(); ++part) {
      if (growth_.size() == part) growth_.push_back(growth_of(kParts[part].second));
      if (growth_[part][step] > most.first) most = {growth_[part][step], kParts[part].first};
    }
    return most.second;
  }
  // By step, the time of all devices above the usual one.
  Series growth_of(TimePart time) const {
    Series more(analysis_.steps.size());
    for (const DeviceReport& device : analysis_.devices) {
      const Series own = series_of(device, time);
      const Series usual = usual_of(own, analysis_.kinds);
      for (std::size_t step = 0; step < more.size(); ++step) more[step] += own[step] - usual[step];
    }
    return more;
  }

  // Groups of ranks whose transfers take longer than those of equal groups with equal calls.
  void find_links() {
    const SliceSteps steps(trace_, analysis_);
    using Kind = std::tuple<std::string, std::int64_t, std::size_t>;
    std::map<Kind, std::map<std::vector<std::int32_t>, Series>> kinds;
    for (const CollectiveCall& call : collectives_.calls) {
      if (call.parts.size() < 2 || trace_.clocks_assumed) continue;
      std::vector<std::int32_t> ranks;
      ranks.reserve(call.parts.size());
      for (const CollectivePart& part : call.parts) ranks.push_back(part.rank);
      Series& times = kinds[{call.name, call.bytes, ranks.size()}][ranks];
      times.resize(analysis_.steps.size());
      const auto last = std::ranges::max_element(call.parts, {}, &CollectivePart::begin);
      const auto step = steps.of(trace_.slices[last->slice], last->begin);
      if (step) times[*step] += call.transfer;
    }
    for (const auto& [kind, groups] : kinds) {
      std::vector<Series> peers;
      std::vector<std::vector<std::int32_t>> names;
      for (const auto& [ranks, times] : groups) {
        peers.push_back(times);
        names.push_back(ranks);
      }
      for (const auto& [group, excess] : outliers(peers, step_, analysis_.kinds)) {
        Culprit one =
            made("link", "ranks " + listed(names[group]), Culprit::Part::transfer, excess, {});
        one.ranks = names[group];
        const auto same = std::ranges::find_if(culprits_, [&](const Culprit& other) {
          return other.part == one.part && other.ranks == one.ranks && other.when == one.when;
        });
        if (same != culprits_.end()) {  // other calls of the same ranks
          same->excess += one.excess;
          continue;
        }
        one.itself = groups.size() == 1;
        one.cause = fmt::format("slow link: {} of {} bytes", std::get<0>(kind), std::get<1>(kind));
        culprits_.push_back(std::move(one));
      }
    }
  }

  const Trace& trace_;
  const Analysis& analysis_;
  const CollectiveReport& collectives_;
  KernelComparison comparer_;
  Nanos step_ = 0;              // the median
  std::vector<Series> growth_;  // by part of grown()
  std::vector<Culprit> culprits_;
};

}  // namespace

std::vector<Culprit> culprits_of(const Trace& trace, const Analysis& analysis,
                                 const CollectiveReport& collectives) {
  return CulpritFinder(trace, analysis, collectives).find();
}

void keep_costly(const Analysis& analysis, std::vector<Culprit>& culprits) {
  const Nanos recorded = analysis.per_step(analysis.time());
  const auto cost = [&](const Culprit& one) {
    return analysis.per_step(one.excess * static_cast<Nanos>(one.steps.size()));
  };
  const Nanos usual = lower_median(analysis.lengths);
  std::erase_if(culprits, [&](const Culprit& one) {
    if (one.without != kNone) return recorded - one.without < cost(one) / 10;
    // Without a replay, single steps must be longer themselves.
    return 3 * one.steps.size() < analysis.steps.size() &&
           std::ranges::any_of(one.steps, [&](std::size_t step) {
             return analysis.lengths[step] < usual + one.excess / 2;
           });
  });
  std::ranges::stable_sort(culprits, std::greater{}, cost);
}

}  // namespace assay::timeline
