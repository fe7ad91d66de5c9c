#include "timeline/analysis/kernels.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/statistics.h"
#include "timeline/analysis/slice_steps.h"

namespace assay::timeline {
namespace {

// The time in each step. Steps come nearly in order.
class StepTimes {
 public:
  void add(std::uint64_t step, Nanos took) {
    if (sums_.empty() || sums_.back().first != step) {
      if (sums_.size() == room_) fold();
      sums_.emplace_back(step, 0);
    }
    sums_.back().second += took;
  }

  std::vector<Nanos> times() {
    fold();
    std::vector<Nanos> times;
    times.reserve(sums_.size());
    for (const auto& [step, time] : sums_) times.push_back(time);
    return times;
  }

 private:
  void fold() {
    std::ranges::sort(sums_);
    auto last = sums_.begin();
    for (auto it = sums_.begin(); it != sums_.end(); ++it) {
      if (it == last) continue;
      if (it->first == last->first) {
        last->second += it->second;
      } else {
        *++last = *it;
      }
    }
    if (!sums_.empty()) sums_.erase(std::next(last), sums_.end());
    room_ = std::max(room_, 2 * sums_.size());
  }

  std::vector<std::pair<std::uint64_t, Nanos>> sums_;
  std::size_t room_ = 1024;
};

struct Sum {
  KernelRow row;
  StepTimes times;
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

}  // namespace

double KernelRow::rate(double amount) const {
  if (amount < 0 || total <= 0 || count == 0) return 0;
  return amount * static_cast<double>(count) / static_cast<double>(total);
}

std::vector<KernelRow> kernels_of(const Trace& trace) {
  const StepsOfSources steps(trace);
  std::unordered_map<StringId, Sum> sums;
  for (const Slice& slice : trace.slices) {
    const Track& track = trace.tracks[slice.track];
    if (!track.gpu || track.jobs || !is_gpu_work(slice.kind)) continue;
    auto& [row, times] = sums[slice.name];
    const Nanos took = slice.end - slice.begin;
    row.kind = slice.kind;
    ++row.count;
    row.total += took;
    row.longest = std::max(row.longest, took);
    const Launch* const launch = trace.launch_of(slice);
    const std::int64_t step =
        steps.begun_or_common(track.source, launch == nullptr ? slice.begin : launch->begin);
    times.add(std::uint64_t{track.source} << 40U ^ static_cast<std::uint64_t>(step), took);
  }
  for (const auto& [name, of] : counters_by_kernel(trace)) {
    auto& [row, times] = sums[name];
    if (row.count == 0) row.count = of.calls;  // a trace with counters has no kernel times
    row.flop = of.flop.value();
    row.bytes = of.bytes.value();
  }
  std::vector<KernelRow> rows;
  rows.reserve(sums.size());
  for (auto& [name, sum] : sums) {
    const std::vector<Nanos> times = sum.times.times();
    sum.row.name = trace.strings.text(name);
    sum.row.step_p50 = percentile(times, 50);
    sum.row.step_p99 = percentile(times, 99);
    rows.push_back(std::move(sum.row));
  }
  std::ranges::sort(rows, [](const KernelRow& a, const KernelRow& b) {
    return a.total != b.total ? a.total > b.total : a.name < b.name;
  });
  return rows;
}

}  // namespace assay::timeline
