#include "timeline/analysis/culprits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <unordered_map>

#include "base/statistics.h"
#include "timeline/analysis/report_text.h"
#include "timeline/cpu_work.h"

namespace assay::timeline {
namespace {

using Series = std::vector<Nanos>;  // by step
using TimePart = Nanos (*)(const TimeShare&);
constexpr const char* kLate = "late launches";

Nanos host_time(const TimeShare& share) {
  return share.idle_by[static_cast<std::size_t>(IdleCause::host)] - share.loading;
}

// Last steps of a run, in which what is wrong is still wrong.
std::size_t late_steps(std::size_t steps) {
  return std::min(steps, std::max<std::size_t>(3, steps / 3));
}

struct Excess {
  Nanos size = 0;  // median over the last steps
  std::size_t since = 0;
};

// How much longer than the median one takes, step by step.
Excess excess_of(const Series& own, const Series& medians) {
  Series excess;
  for (std::size_t step = 0; step < own.size(); ++step) excess.push_back(own[step] - medians[step]);
  Excess result;
  const auto tail = static_cast<std::ptrdiff_t>(late_steps(excess.size()));
  result.size = lower_median(Series(excess.end() - tail, excess.end()));
  // The first step from which on three of four steps are as late.
  result.since = excess.size() - static_cast<std::size_t>(tail);
  std::size_t late = 0;
  for (std::size_t step = excess.size(); step-- > 0;) {
    if (2 * excess[step] <= result.size) continue;
    ++late;
    if (4 * late >= 3 * (excess.size() - step)) result.since = step;
  }
  return result;
}

// Finds those of the peers that stand out: by a thirtieth of a step, and by far more than the
// others differ among themselves.
std::map<std::size_t, Excess> outliers(const std::vector<const Series*>& peers, Nanos step) {
  Series medians;
  for (std::size_t i = 0; i < peers.front()->size(); ++i) {
    Series all;
    for (const Series* peer : peers) all.push_back((*peer)[i]);
    medians.push_back(lower_median(std::move(all)));
  }
  std::vector<Excess> all;
  Series sorted;
  for (const Series* own : peers) {
    all.push_back(excess_of(*own, medians));
    sorted.push_back(std::abs(all.back().size));
  }
  std::ranges::sort(sorted);
  std::map<std::size_t, Excess> found;
  for (std::size_t i = 0; i < all.size() && all.size() > 1; ++i) {
    // The lower median of the others: without this one, which has its place in the order.
    const auto own = std::ranges::lower_bound(sorted, std::abs(all[i].size)) - sorted.begin();
    const auto middle = static_cast<std::ptrdiff_t>((all.size() - 2) / 2);
    constexpr Nanos kSpreads = 6;
    const Nanos spread =
        kSpreads * sorted[static_cast<std::size_t>(middle >= own ? middle + 1 : middle)];
    if (30 * all[i].size > step && all[i].size > spread) found[i] = all[i];
  }
  return found;
}

// How many times longer a rank's compute kernels take than the same ones on the median rank.
struct Slowness {
  double factor = 1;
  StringId worst = 0;  // the kernel with the largest excess
  Nanos excess = 0;    // of its calls together
};

std::map<std::int32_t, Slowness> kernel_factors(const Trace& trace) {
  struct Sum {
    Nanos time = 0;
    Nanos count = 0;
  };
  std::unordered_map<StringId, std::map<std::int32_t, Sum>> kernels;
  for (const Slice& slice : trace.slices) {
    const Track& track = trace.tracks[slice.track];
    if (!track.gpu || track.jobs || slice.kind != Kind::compute || track.rank == kNone) continue;
    Sum& sum = kernels[slice.name][track.rank];
    sum.time += slice.end - slice.begin;
    ++sum.count;
  }
  std::map<std::int32_t, std::pair<double, double>> weighted;
  std::map<std::int32_t, Slowness> slow;
  for (const auto& [name, ranks] : kernels) {
    Series means;
    for (const auto& [rank, sum] : ranks) means.push_back(sum.time / sum.count);
    const Nanos median = lower_median(means);
    if (median <= 0 || ranks.size() < 2) continue;
    for (const auto& [rank, sum] : ranks) {
      const auto expected = static_cast<double>(median * sum.count);
      weighted[rank].first += static_cast<double>(sum.time);
      weighted[rank].second += expected;
      const Nanos excess = sum.time - median * sum.count;
      Slowness& own = slow[rank];
      if (excess <= own.excess) continue;
      own.worst = name;
      own.excess = excess;
    }
  }
  for (const auto& [rank, sums] : weighted) slow[rank].factor = sums.first / sums.second;
  return slow;
}

class CulpritFinder {
 public:
  CulpritFinder(const Trace& trace, const Analysis& analysis, const CollectiveReport& collectives)
      : trace_(trace), analysis_(analysis), collectives_(collectives) {
    Nanos sum = 0;
    for (const Nanos length : analysis.lengths) sum += length;
    if (!analysis.lengths.empty()) step_ = sum / static_cast<Nanos>(analysis.lengths.size());
  }

  std::vector<Culprit> find() {
    if (step_ <= 0) return {};
    if (analysis_.devices.size() > 1) {
      factors_ = kernel_factors(trace_);
      for (const auto& [metric, cause] :
           {std::pair<TimePart, const char*>{[](const TimeShare& share) { return share.loading; },
                                             "data loader"},
            {[](const TimeShare& share) { return share.compute; }, "compute"},
            {host_time, kLate}}) {
        for (const auto& peers : peer_groups()) find_among(peers, metric, cause);
      }
      find_stages();
    }
    find_links();
    std::ranges::stable_sort(culprits_, std::greater{}, &Culprit::excess);
    return std::move(culprits_);
  }

 private:
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

  Series series_of(const DeviceReport& device, TimePart metric) const {
    Series series;
    for (const TimeShare& share : device.steps) series.push_back(metric(share));
    return series;
  }

  // Sets the cause, and for a slow GPU the operation.
  void explain(std::int32_t rank, const std::string& cause, Culprit& culprit) const {
    constexpr double kSlow = 1.02;
    culprit.cause = cause;
    if (cause == kLate && is_cpu(analysis_.devices.front().label)) {
      culprit.cause = "more time outside operators";
    }
    const auto found = factors_.find(rank);
    if (cause != "compute" || found == factors_.end()) return;
    const Slowness& slow = found->second;
    culprit.cause = "more work than its peers";
    if (slow.factor <= kSlow) return;
    culprit.operation = trace_.strings.text(slow.worst);
    culprit.cause = fmt::format(
        "slow GPU: the same kernels take {:.2f} times as long, most of it in {} ({:+.3f} ms a "
        "step)",
        slow.factor, short_name(culprit.operation),
        millis(slow.excess) / static_cast<double>(analysis_.steps.size()));
  }

  void find_among(const std::vector<std::size_t>& devices, TimePart metric, const char* cause) {
    std::vector<Series> series;
    std::vector<const Series*> peers;
    series.reserve(devices.size());
    peers.reserve(devices.size());
    for (const std::size_t device : devices) {
      series.push_back(series_of(analysis_.devices[device], metric));
    }
    for (const Series& one : series) peers.push_back(&one);
    const auto found = outliers(peers, step_);
    std::map<std::string, std::vector<std::size_t>> hosts;  // found, by host
    for (const auto& [peer, excess] : found) {
      hosts[analysis_.devices[devices[peer]].machine].push_back(peer);
    }
    for (const auto& [host, slow] : hosts) {
      const auto on_host = std::ranges::count_if(
          devices, [&](std::size_t device) { return analysis_.devices[device].machine == host; });
      const bool whole = !host.empty() && slow.size() > 1 &&
                         static_cast<std::size_t>(on_host) == slow.size() &&
                         slow.size() < devices.size();
      Culprit together{
          .kind = "host", .name = "host " + host, .cause = cause, .ranks = {}, .operation = {}};
      for (const std::size_t peer : slow) {
        const DeviceReport& device = analysis_.devices[devices[peer]];
        const Excess& excess = found.at(peer);
        const std::int64_t since = analysis_.steps[excess.since].number;
        if (!whole) {
          Culprit one{.kind = "rank",
                      .name = device.label,
                      .cause = {},
                      .ranks = {device.rank},
                      .operation = {}};
          if (device.rank != kNone) one.name = fmt::format("rank {}", device.rank);
          one.since = since;
          one.excess = excess.size;
          explain(device.rank, cause, one);
          culprits_.push_back(std::move(one));
          continue;
        }
        explain(device.rank, cause, together);
        together.ranks.push_back(device.rank);
        together.since = since;
        together.excess = std::max(together.excess, excess.size);
      }
      if (whole) culprits_.push_back(std::move(together));
    }
  }

  // The compute time of each stage: the mean over its devices.
  void find_stages() {
    const auto groups = peer_groups();
    if (groups.size() < 3) return;
    std::vector<Series> series;
    for (const auto& devices : groups) {
      Series sum(analysis_.steps.size());
      for (const std::size_t device : devices) {
        for (std::size_t step = 0; step < sum.size(); ++step) {
          sum[step] +=
              analysis_.devices[device].steps[step].compute / static_cast<Nanos>(devices.size());
        }
      }
      series.push_back(std::move(sum));
    }
    std::vector<const Series*> peers;
    peers.reserve(series.size());
    for (const Series& one : series) peers.push_back(&one);
    for (const auto& [stage, excess] : outliers(peers, step_)) {
      Culprit culprit{.kind = "stage",
                      .name = fmt::format("stage {}", stage),
                      .cause = "computes longer than the other stages",
                      .ranks = {},
                      .since = analysis_.steps[excess.since].number,
                      .operation = {},
                      .excess = excess.size};
      for (const std::size_t device : groups[stage]) {
        culprit.ranks.push_back(analysis_.devices[device].rank);
      }
      culprits_.push_back(std::move(culprit));
    }
  }

  std::size_t step_at(Nanos time) const {
    const auto after = std::ranges::upper_bound(analysis_.windows, time, {}, &Interval::begin);
    return after == analysis_.windows.begin()
               ? 0
               : static_cast<std::size_t>(after - analysis_.windows.begin()) - 1;
  }

  // Groups of ranks whose transfers take longer than those of equal groups with equal calls.
  void find_links() {
    using Kind = std::tuple<std::string, std::int64_t, std::size_t>;
    std::map<Kind, std::map<std::vector<std::int32_t>, Series>> kinds;
    for (const CollectiveCall& call : collectives_.calls) {
      if (call.parts.size() < 2 || trace_.clocks_assumed) continue;
      std::vector<std::int32_t> ranks;
      ranks.reserve(call.parts.size());
      for (const CollectivePart& part : call.parts) ranks.push_back(part.rank);
      Series& times = kinds[{call.name, call.bytes, ranks.size()}][ranks];
      times.resize(analysis_.steps.size());
      times[step_at(call.parts.front().begin)] += call.transfer;
    }
    for (const auto& [kind, groups] : kinds) {
      if (groups.size() < 3) continue;
      std::vector<const Series*> peers;
      std::vector<const std::vector<std::int32_t>*> names;
      for (const auto& [ranks, times] : groups) {
        peers.push_back(&times);
        names.push_back(&ranks);
      }
      for (const auto& [group, excess] : outliers(peers, step_)) {
        culprits_.push_back(
            {"link",
             fmt::format("ranks {}", fmt::join(*names[group], ", ")),
             fmt::format("slow link: {} of {} bytes", std::get<0>(kind), std::get<1>(kind)),
             *names[group],
             analysis_.steps[excess.since].number,
             {},
             excess.size});
      }
    }
  }

  const Trace& trace_;
  const Analysis& analysis_;
  const CollectiveReport& collectives_;
  Nanos step_ = 0;
  std::map<std::int32_t, Slowness> factors_;
  std::vector<Culprit> culprits_;
};

}  // namespace

std::vector<Culprit> culprits_of(const Trace& trace, const Analysis& analysis,
                                 const CollectiveReport& collectives) {
  return CulpritFinder(trace, analysis, collectives).find();
}

}  // namespace assay::timeline
