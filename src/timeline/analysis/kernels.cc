#include "timeline/analysis/kernels.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/statistics.h"

namespace assay::timeline {
namespace {

struct Sum {
  Kind kind = Kind::compute;
  std::uint64_t count = 0;
  Nanos total = 0;
  Nanos longest = 0;
  std::map<std::pair<std::uint32_t, std::size_t>, Nanos> by_step;  // source, step's index
};

// The mean of the known values.
class Mean {
 public:
  void add(double value) {
    if (value < 0) return;
    sum_ += value;
    ++count_;
  }
  double value() const {
    return count_ == 0 ? KernelCounters::kUnknown : sum_ / static_cast<double>(count_);
  }

 private:
  double sum_ = 0;
  std::uint64_t count_ = 0;
};
struct Counted {
  Mean flop;
  Mean bytes;
  std::uint64_t calls = 0;
};

std::unordered_map<StringId, Counted> counters_by_kernel(const Trace& trace) {
  std::unordered_map<StringId, Counted> counted;
  for (const KernelCounters& one : trace.kernel_counters) {
    Counted& of = counted[one.kernel];
    of.flop.add(one.flop);
    of.bytes.add(one.bytes);
    ++of.calls;
  }
  return counted;
}

// Finds the step at a time: the last one that began.
class Begins {
 public:
  explicit Begins(const Trace& trace) {
    for (const RankStep& mark : trace.rank_steps) begins_[mark.source].push_back(mark.step.begin);
    for (auto& [source, begins] : begins_) std::ranges::sort(begins);
    for (const Step& step : trace.steps) common_.push_back(step.begin);
    std::ranges::sort(common_);
  }
  std::size_t place(std::uint32_t source, Nanos time) const {
    const auto own = begins_.find(source);
    const std::vector<Nanos>& begins = own == begins_.end() ? common_ : own->second;
    return static_cast<std::size_t>(std::ranges::upper_bound(begins, time) - begins.begin());
  }

 private:
  std::vector<Nanos> common_;  // for sources without own steps, such as recordings
  std::map<std::uint32_t, std::vector<Nanos>> begins_;
};

}  // namespace

double KernelRow::rate(double amount) const {
  if (amount < 0 || total <= 0 || count == 0) return 0;
  return amount * static_cast<double>(count) / static_cast<double>(total);
}

std::vector<KernelRow> kernels_of(const Trace& trace) {
  const Begins begins(trace);
  std::unordered_map<StringId, Sum> sums;
  for (const Slice& slice : trace.slices) {
    const Track& track = trace.tracks[slice.track];
    if (!track.gpu || track.jobs || !is_gpu_work(slice.kind)) continue;
    Sum& sum = sums[slice.name];
    const Nanos took = slice.end - slice.begin;
    sum.kind = slice.kind;
    ++sum.count;
    sum.total += took;
    sum.longest = std::max(sum.longest, took);
    const Launch* const launch = trace.launch_of(slice);
    const Nanos launched = launch == nullptr ? slice.begin : launch->begin;
    sum.by_step[{track.source, begins.place(track.source, launched)}] += took;
  }
  const auto counted = counters_by_kernel(trace);
  std::vector<KernelRow> rows;
  // A trace with counters has no kernel times.
  for (const auto& [name, of] : counted) {
    if (sums.contains(name)) continue;
    rows.push_back({.name = std::string(trace.strings.text(name)), .count = of.calls});
    rows.back().flop = of.flop.value();
    rows.back().bytes = of.bytes.value();
  }
  for (const auto& [name, sum] : sums) {
    std::vector<Nanos> times;
    times.reserve(sum.by_step.size());
    for (const auto& [step, time] : sum.by_step) times.push_back(time);
    rows.push_back({.name = std::string(trace.strings.text(name)),
                    .kind = sum.kind,
                    .count = sum.count,
                    .total = sum.total,
                    .longest = sum.longest,
                    .step_p50 = percentile(times, 50),
                    .step_p99 = percentile(times, 99)});
    if (const auto of = counted.find(name); of != counted.end()) {
      rows.back().flop = of->second.flop.value();
      rows.back().bytes = of->second.bytes.value();
    }
  }
  std::ranges::sort(rows, [](const KernelRow& a, const KernelRow& b) {
    return a.total != b.total ? a.total > b.total : a.name < b.name;
  });
  return rows;
}

}  // namespace assay::timeline
