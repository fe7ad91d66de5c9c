#include "timeline/analysis/flops.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "timeline/analysis/slice_steps.h"
#include "timeline/cpu_work.h"

namespace assay::timeline {
namespace {

constexpr double kNanosTera = 1e3;  // operations by nanosecond in a TFLOP/s

// Operators call operators. Chooses the outermost one whose operations are known; instead of a
// composite one, those that it calls.
class Outermost {
 public:
  explicit Outermost(const Trace& trace) : trace_(trace) {
    std::vector<OperatorCall> calls = trace.operator_calls;
    std::ranges::stable_sort(calls, [](const OperatorCall& a, const OperatorCall& b) {
      return std::tie(a.track, a.begin, b.end) < std::tie(b.track, b.begin, a.end);
    });
    for (const OperatorCall& call : calls) take(call);
    settle();
  }

  std::vector<OperatorCall> chosen;   // by track and time; none overlaps another
  std::vector<OperatorCall> unknown;  // their operations are not known

 private:
  const OperatorKind& kind_of(const OperatorCall& call) const {
    return trace_.operator_kinds[call.kind];
  }
  void take(const OperatorCall& call) {
    const auto within = [&](const OperatorCall& other) {
      return call.track == other.track && call.begin < other.end;
    };
    const OperatorKind& kind = kind_of(call);
    if (last_ && within(*last_)) return;
    if (waiting_ && within(*waiting_)) {
      if (kind.flop < 0) return;
      waiting_.reset();
    }
    settle();
    if (kind.flop < 0 || kind.composite) {
      waiting_ = call;
    } else {
      chosen.push_back(call);
      last_ = call;
    }
  }
  void settle() {
    if (waiting_) (kind_of(*waiting_).flop < 0 ? unknown : chosen).push_back(*waiting_);
    waiting_.reset();
  }

  const Trace& trace_;
  std::optional<OperatorCall> last_;     // chosen
  std::optional<OperatorCall> waiting_;  // for what it calls
};

// The time of each call: of the kernels launched within it.
struct Times {
  std::vector<Nanos> of_call;
  std::vector<bool> tf32;  // by kind of operator: its kernels round fp32 to tf32
};

bool names_tf32(std::string_view kernel) {
  return kernel.find("tf32") != std::string_view::npos ||
         kernel.find("s1688gemm") != std::string_view::npos;
}

Times times_of(const Trace& trace, const std::vector<OperatorCall>& calls, FlopReport& report) {
  Times times{std::vector<Nanos>(calls.size()), std::vector<bool>(trace.operator_kinds.size())};
  std::set<std::uint32_t> with_gpu;
  for (const Track& track : trace.tracks) {
    if (track.gpu && !is_cpu(track.label)) with_gpu.insert(track.source);
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (with_gpu.contains(trace.tracks[calls[i].track].source)) continue;
    times.of_call[i] = calls[i].end - calls[i].begin;
    report.kernel_time += times.of_call[i];
  }
  for (const Slice& slice : trace.slices) {
    const Track& track = trace.tracks[slice.track];
    if (!track.gpu || track.jobs || !is_gpu_work(slice.kind) || is_cpu(track.label)) continue;
    report.kernel_time += slice.end - slice.begin;
    const Launch* const launch = trace.launch_of(slice);
    if (launch == nullptr) continue;
    const auto after = std::ranges::partition_point(calls, [&](const OperatorCall& call) {
      return std::tie(call.track, call.begin) <= std::tie(launch->track, launch->begin);
    });
    if (after == calls.begin()) continue;
    const auto call = std::prev(after);
    if (call->track != launch->track || launch->begin >= call->end) continue;
    times.of_call[static_cast<std::size_t>(call - calls.begin())] += slice.end - slice.begin;
    if (names_tf32(trace.strings.text(slice.name))) times.tf32[call->kind] = true;
  }
  return times;
}

double share(double part, double whole) { return part > 0 && whole > 0 ? part / whole : 0; }

}  // namespace

double OperatorRow::tflops() const {
  return share(flop * static_cast<double>(calls), static_cast<double>(total)) / kNanosTera;
}
double OperatorRow::mfu() const { return share(ideal, static_cast<double>(total)); }
double OperatorRow::roof() const {
  if (bytes <= 0 || peak.tflops <= 0 || peak.gbps <= 0) return 0;
  return share(tflops(), std::min(peak.tflops, flop / bytes * peak.gbps / kNanosTera));
}
double StepFlops::tflops() const { return share(flop, time) / kNanosTera; }
double StepFlops::mfu() const { return share(ideal, time); }

StepFlops FlopReport::all_steps() const {
  StepFlops all;
  for (const StepFlops& step : steps) {
    all.flop += step.flop;
    all.time += step.time;
    all.ideal += step.ideal;
  }
  return all;
}

namespace {

void add_unknown(const Trace& trace, const std::vector<OperatorCall>& calls, FlopReport& report) {
  std::set<std::string> names;
  for (const OperatorCall& call : calls) {
    names.emplace(trace.strings.text(trace.operator_kinds[call.kind].name));
  }
  report.without_shapes = calls.size();
  report.without_shapes_names.assign(names.begin(), names.end());
}

// The row of a call, but its sums.
OperatorRow row_of(const Trace& trace, const OperatorCall& call, bool tf32, double given_peak) {
  const OperatorKind& kind = trace.operator_kinds[call.kind];
  OperatorRow row{.name = std::string(trace.strings.text(kind.name)),
                  .dtype = std::string(trace.strings.text(kind.dtype)),
                  .shapes = std::string(trace.strings.text(kind.shapes)),
                  .flop = kind.flop,
                  .bytes = kind.bytes};
  if (row.dtype == "fp32" && tf32) row.dtype = "tf32";
  row.peak = peak_of(trace.sources[trace.tracks[call.track].source].device, row.dtype);
  if (given_peak > 0) row.peak.tflops = given_peak;
  return row;
}

void add_calls(const Trace& trace, const Analysis& analysis, const std::vector<OperatorCall>& calls,
               FlopReport& report) {
  const SliceSteps steps(trace, analysis);
  const bool whole = trace.steps.empty() && report.steps.size() == 1;
  const Times times = times_of(trace, calls, report);
  std::map<std::tuple<std::string, std::string, std::string>, OperatorRow> rows;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (times.of_call[i] == 0) {
      ++report.without_kernels;
      continue;
    }
    const OperatorRow one = row_of(trace, calls[i], times.tf32[calls[i].kind], report.given_peak);
    const double ideal = one.peak.tflops > 0 ? one.flop / one.peak.tflops / kNanosTera
                                             : std::numeric_limits<double>::quiet_NaN();
    const std::uint32_t source = trace.tracks[calls[i].track].source;
    if (report.device.empty()) report.device = trace.sources[source].device;
    OperatorRow& row = rows.try_emplace({one.name, one.dtype, one.shapes}, one).first->second;
    ++row.calls;
    row.total += times.of_call[i];
    row.ideal += ideal;
    if (const auto at =
            whole ? std::optional(std::size_t{0}) : steps.at_host(source, calls[i].begin)) {
      report.steps[*at].flop += one.flop;
      report.steps[*at].ideal += ideal;
    }
  }
  for (auto& [key, row] : rows) report.rows.push_back(std::move(row));
  std::ranges::stable_sort(report.rows, std::greater{}, &OperatorRow::total);
}

}  // namespace

FlopReport flops_of(const Trace& trace, const Analysis& analysis, double given_peak) {
  FlopReport report;
  report.given_peak = given_peak;
  for (std::size_t i = 0; i < analysis.steps.size(); ++i) {
    const double time =
        static_cast<double>(analysis.lengths[i]) * static_cast<double>(analysis.devices.size());
    report.steps.push_back({.number = analysis.steps[i].number, .time = time});
  }
  const Outermost outermost(trace);
  add_unknown(trace, outermost.unknown, report);
  add_calls(trace, analysis, outermost.chosen, report);
  return report;
}

}  // namespace assay::timeline
