#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "base/statistics.h"
#include "timeline/analysis/collectives.h"
#include "timeline/clocks.h"

namespace assay::timeline {
namespace {

constexpr std::size_t kNoClock = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kFewestCalls = 3;
constexpr std::size_t kFewestForDrift = 6;
constexpr double kAgreement = 5e3;  // ns: clocks this close need no shift

// A clock's correction: common time = time + offset + drift * (time - origin).
struct Line {
  double offset = 0;
  double drift = 0;
  double at(double time) const { return offset + drift * time; }
};

struct Point {
  double time;
  double offset;
};

// Median of the slopes between points half a trace apart, then of the offsets: outliers, which are
// late leavers, do not matter.
Line fit(std::vector<Point>& points) {
  std::ranges::sort(points, {}, &Point::time);
  Line line;
  const std::size_t half = points.size() / 2;
  if (points.size() >= kFewestForDrift) {
    std::vector<double> slopes;
    for (std::size_t i = 0; i + half < points.size(); ++i) {
      const double apart = points[i + half].time - points[i].time;
      if (apart > 0) slopes.push_back((points[i + half].offset - points[i].offset) / apart);
    }
    if (!slopes.empty()) line.drift = upper_median(std::move(slopes));
  }
  std::vector<double> offsets;
  offsets.reserve(points.size());
  for (const Point& point : points) offsets.push_back(point.offset - line.drift * point.time);
  line.offset = upper_median(std::move(offsets));
  return line;
}

bool leaves_together(const CollectiveCall& call) {
  for (const char* name : {"allreduce", "allgather", "reducescatter", "alltoall", "barrier"}) {
    if (call.name == name) return true;
  }
  return call.name == "sendrecv" && call.group_size == 2;
}

// Whether all parts of most calls overlap in time.
bool parts_overlap(const std::vector<const CollectiveCall*>& calls) {
  std::size_t apart = 0;
  for (const CollectiveCall* call : calls) {
    const auto last = std::ranges::max_element(call->parts, {}, &CollectivePart::begin);
    const auto first = std::ranges::min_element(call->parts, {}, &CollectivePart::end);
    if (last->begin >= first->end) ++apart;
  }
  return 2 * apart <= calls.size();
}

class Relation {
 public:
  explicit Relation(Trace& trace) : trace_(trace) {
    const CollectiveReport report = collectives_of(trace);
    for (const CollectiveCall& call : report.calls) {
      if (call.parts.size() > 1 && leaves_together(call)) calls_.push_back(call);
    }
    clock_of_.resize(trace.sources.size());
    find_clocks(true);
    if (!contradicted_hosts().empty()) find_clocks(false);
  }

  void relate() {
    if (clocks_ < 2) return;
    gather();
    if (!solve()) {
      trace_.clocks_assumed = true;
      trace_.one_clock = parts_overlap(pointers());
      trace_.notes.push_back(fmt::format(
          "warning: nothing relates the clocks of {}; who waits for whom is not known{}", missing_,
          trace_.one_clock ? "" : ", and parts of one collective do not even overlap"));
      return;
    }
    refine();
    judge();
  }

 private:
  struct Sample {
    std::size_t clock;
    double end;
  };

  std::vector<const CollectiveCall*> pointers() const {
    std::vector<const CollectiveCall*> all;
    all.reserve(calls_.size());
    for (const CollectiveCall& call : calls_) all.push_back(&call);
    return all;
  }
  std::uint32_t source_of(const CollectivePart& part) const {
    return trace_.tracks[trace_.slices[part.slice].track].source;
  }

  // Sources of one host, or of one file, share a clock. Those without GPU work have none.
  void find_clocks(bool trust_hosts) {
    std::map<std::string, std::size_t> known;
    std::vector<bool> works(trace_.sources.size());
    for (const Track& track : trace_.tracks) {
      if (track.gpu && track.source < works.size()) works[track.source] = true;
    }
    for (std::size_t i = 0; i < trace_.sources.size(); ++i) {
      clock_of_[i] = kNoClock;
      if (!works[i]) continue;
      const Source& source = trace_.sources[i];
      std::string key = fmt::format("#{}", i);
      if (!source.path.empty() && !trace_.files.empty() && source.host.empty()) key = source.path;
      if (!source.host.empty() && trust_hosts) key = "@" + source.host;
      clock_of_[i] = known.try_emplace(key, known.size()).first->second;
    }
    clocks_ = known.size();
  }

  // Hosts whose ranks cannot have one clock: the parts of their collectives do not overlap.
  std::set<std::string> contradicted_hosts() const {
    std::map<std::string, std::vector<CollectiveCall>> by_host;
    for (const CollectiveCall& call : calls_) {
      std::map<std::string, CollectiveCall> parts;
      for (const CollectivePart& part : call.parts) {
        const std::string& host = trace_.sources[source_of(part)].host;
        if (!host.empty()) parts[host].parts.push_back(part);
      }
      for (auto& [host, some] : parts) {
        if (some.parts.size() > 1) by_host[host].push_back(std::move(some));
      }
    }
    std::set<std::string> hosts;
    for (const auto& [host, calls] : by_host) {
      std::vector<const CollectiveCall*> all;
      for (const CollectiveCall& call : calls) all.push_back(&call);
      if (!parts_overlap(all)) hosts.insert(host);
    }
    return hosts;
  }

  // One end for each clock and call: the median over its ranks.
  void gather() {
    if (!calls_.empty()) origin_ = calls_.front().parts.front().end;
    std::vector<double> lengths;
    for (const CollectiveCall& call : calls_) {
      std::map<std::size_t, std::vector<double>> ends;
      for (const CollectivePart& part : call.parts) {
        ends[clock_of_[source_of(part)]].push_back(static_cast<double>(part.end - origin_));
        lengths.push_back(static_cast<double>(part.end - part.begin));
      }
      if (ends.size() < 2) continue;
      std::vector<Sample> samples;
      samples.reserve(ends.size());
      for (auto& [clock, of_clock] : ends)
        samples.push_back({clock, upper_median(std::move(of_clock))});
      samples_.push_back(std::move(samples));
    }
    if (!lengths.empty()) usual_length_ = upper_median(std::move(lengths));
  }

  // First lines, from clock to clock: groups within a host agree on any drift that they share, so
  // the rounds of refine() alone would not find it. False if some clock has too few calls with
  // known ones.
  bool solve() {
    lines_.assign(clocks_, std::nullopt);
    lines_[0] = Line{};
    for (bool found = true; found;) {
      found = false;
      std::vector<std::vector<Point>> points(clocks_);
      for (const auto& samples : samples_) {
        const auto common = common_end(samples);
        if (!common) continue;
        for (const Sample& one : samples) {
          if (!lines_[one.clock]) points[one.clock].push_back({one.end, *common - one.end});
        }
      }
      for (std::size_t clock = 0; clock < clocks_; ++clock) {
        if (points[clock].size() < kFewestCalls) continue;
        lines_[clock] = fit(points[clock]);
        found = true;
      }
    }
    for (std::size_t i = 0; i < clock_of_.size() && missing_.empty(); ++i) {
      if (clock_of_[i] != kNoClock && !lines_[clock_of_[i]]) missing_ = name_of(i);
    }
    return missing_.empty();
  }

  std::string name_of(std::size_t source) const {
    const auto reference = std::ranges::find(clock_of_, std::size_t{0});
    const Source& first = trace_.sources[static_cast<std::size_t>(reference - clock_of_.begin())];
    const Source& other = trace_.sources[source];
    return first.rank != kNone && other.rank != kNone
               ? fmt::format("rank {} and rank {}", first.rank, other.rank)
               : fmt::format("{} and {}", first.path, other.path);
  }

  std::optional<double> common_end(const std::vector<Sample>& samples) const {
    std::vector<double> ends;
    for (const Sample& one : samples) {
      if (const auto& line = lines_[one.clock]) ends.push_back(one.end + line->at(one.end));
    }
    if (ends.empty()) return std::nullopt;
    return upper_median(std::move(ends));
  }

  void refine() {
    constexpr int kRounds = 4;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::vector<Point>> points(clocks_);
      for (const auto& samples : samples_) {
        const double common = *common_end(samples);
        for (const Sample& one : samples) points[one.clock].push_back({one.end, common - one.end});
      }
      for (std::size_t clock = 0; clock < clocks_; ++clock) {
        if (!points[clock].empty()) lines_[clock] = fit(points[clock]);
      }
      // The first clock is the reference.
      const Line reference = *lines_[0];
      for (auto& line : lines_) {
        line->offset -= reference.offset;
        line->drift -= reference.drift;
      }
    }
  }

  // Shifts the times, or reports that the ends contradict each other.
  void judge() {
    std::vector<double> residuals;
    double largest = 0;
    for (const auto& samples : samples_) {
      const double common = *common_end(samples);
      for (const Sample& one : samples) {
        const double shift = lines_[one.clock]->at(one.end);
        residuals.push_back(std::abs(one.end + shift - common));
        largest = std::max(largest, std::abs(shift));
      }
    }
    const double residual = upper_median(residuals);
    constexpr double kMostResidual = 1e5;
    if (residual > std::max(kMostResidual, usual_length_ / 2)) {
      trace_.one_clock = false;
      trace_.clocks_assumed = true;
      trace_.notes.push_back(fmt::format(
          "warning: the ends of {} collectives do not relate the clocks: they differ by {:.0f} us; "
          "who waits for whom is not known",
          samples_.size(), residual / 1e3));
      return;
    }
    std::ranges::sort(residuals);
    trace_.notes.push_back(fmt::format(
        "clocks: {} related by the ends of {} collectives; shifts up to {:.3f} ms, residual {:.1f} "
        "us (p95 {:.1f} us)",
        clocks_, samples_.size(), largest / 1e6, residual / 1e3,
        residuals[residuals.size() * 95 / 100] / 1e3));
    if (largest > kAgreement) shift();
  }

  void shift() {
    trace_.move_times([&](std::uint32_t source, Nanos time) {
      if (source >= clock_of_.size() || clock_of_[source] == kNoClock) return time;
      const Line& line = *lines_[clock_of_[source]];
      return time + static_cast<Nanos>(line.at(static_cast<double>(time - origin_)));
    });
    trace_.sort();
  }

  Trace& trace_;
  std::vector<CollectiveCall> calls_;
  std::vector<std::size_t> clock_of_;  // by source
  std::size_t clocks_ = 0;
  Nanos origin_ = 0;
  double usual_length_ = 0;
  std::vector<std::vector<Sample>> samples_;  // by call
  std::vector<std::optional<Line>> lines_;    // by clock
  std::string missing_;
};

}  // namespace

void relate_by_collectives(Trace& trace) {
  if (std::ranges::any_of(trace.sources, &Source::untimed)) {
    trace.one_clock = false;
    trace.clocks_assumed = true;
    return;
  }
  if (trace.sources.size() > 1) Relation(trace).relate();
}

}  // namespace assay::timeline
