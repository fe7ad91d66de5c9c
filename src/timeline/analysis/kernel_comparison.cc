#include "timeline/analysis/kernel_comparison.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>

#include "base/statistics.h"

namespace assay::timeline {

KernelComparison::KernelComparison(const Trace& trace, const Analysis& analysis)
    : trace_(trace), analysis_(analysis), steps_(trace, analysis), activity_(trace) {}

Compared KernelComparison::compare(const Culprit& culprit) const {
  struct Sum {
    double time = 0;
    double count = 0;
    double work = 0;
    double mean_time() const { return time / count; }
    double mean_work() const { return work / count; }
  };
  const Kind kind = culprit.part == Culprit::Part::copies ? Kind::memory : Kind::compute;
  std::set<std::size_t> kinds;
  for (const std::size_t step : culprit.steps) kinds.insert(analysis_.kinds[step]);
  // By device; of one without peers, 1 are its steps and 0 the others.
  std::unordered_map<StringId, std::map<std::size_t, Sum>> kernels;
  for (const Slice& slice : trace_.slices) {
    const Track& track = trace_.tracks[slice.track];
    if (!track.gpu || track.jobs || slice.kind != kind) continue;
    const auto step = steps_.of(slice, slice.begin);
    const bool inside = step && culprit.in_step(*step);
    if (culprit.itself && (!step || !kinds.contains(analysis_.kinds[*step]))) continue;
    std::size_t device = analysis_.device_of[slice.track];
    if (culprit.itself ? device != culprit.devices[0] : !inside) continue;
    if (culprit.itself) device = inside ? 1 : 0;
    Sum& sum = kernels[slice.name][device];
    sum.time += static_cast<double>(slice.end - slice.begin);
    ++sum.count;
    if (slice.detail == kNoIndex) continue;
    const Detail& detail = trace_.details[slice.detail];
    sum.work += kind == Kind::memory ? static_cast<double>(std::max<std::int64_t>(0, detail.bytes))
                                     : static_cast<double>(detail.blocks);
  }
  double time = 0;
  double usual_time = 0;
  double work = 0;  // weighted by time
  double usual_work = 0;
  Compared result;
  for (const auto& [name, sums] : kernels) {
    if (sums.size() < 2) continue;
    const auto median = [&](double (Sum::*mean)() const) {
      std::vector<double> means;
      for (const auto& [device, sum] : sums) means.push_back((sum.*mean)());
      return lower_median(std::move(means));
    };
    const double usual = median(&Sum::mean_time);
    const double usual_blocks = median(&Sum::mean_work);
    for (const std::size_t device :
         culprit.itself ? std::vector<std::size_t>{1} : culprit.devices) {
      const auto own = sums.find(device);
      if (own == sums.end()) continue;
      const Sum& sum = own->second;
      time += sum.time;
      usual_time += usual * sum.count;
      if (sum.work > 0 && usual_blocks > 0) {
        work += sum.time * sum.work / sum.count / usual_blocks;
        usual_work += sum.time;
      }
      const auto excess = static_cast<Nanos>(sum.time - usual * sum.count);
      if (excess <= result.excess) continue;
      result.worst = trace_.strings.text(name);
      result.excess = excess;
    }
  }
  if (usual_time > 0) result.time = time / usual_time;
  if (usual_work > 0) result.work = work / usual_work;
  if (kind == Kind::compute) result.work = std::max(result.work, operations_of(culprit));
  return result;
}

std::string KernelComparison::host_in_gap(std::size_t device, std::size_t step,
                                          std::size_t last) const {
  const DeviceReport& report = analysis_.devices[device];
  for (const Interval& stall : report.stalls) {
    const Nanos middle = stall.begin + (stall.end - stall.begin) / 2;
    const auto here = steps_.begun_by_host(report.source, middle);
    if (here && *here >= step && *here <= last) {
      return std::string(activity_.in(report.source, stall));
    }
  }
  return {};
}

// Recorded floating-point operations of the whole trace over those of the median rank.
double KernelComparison::operations_of(const Culprit& culprit) const {
  std::map<std::int32_t, double> sums;  // by rank
  for (const OperatorCall& call : trace_.operator_calls) {
    sums[trace_.tracks[call.track].rank] += std::max(0.0, trace_.operator_kinds[call.kind].flop);
  }
  std::vector<double> all;
  all.reserve(sums.size());
  for (const auto& [rank, sum] : sums) all.push_back(sum);
  const double usual = lower_median(std::move(all));
  const auto own = sums.find(culprit.ranks.empty() ? kNone : culprit.ranks.front());
  const bool whole = culprit.steps.size() == analysis_.steps.size();
  return whole && usual > 0 && own != sums.end() ? own->second / usual : 1;
}

}  // namespace assay::timeline
