#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "timeline/analysis/replay_operations.h"

namespace assay::timeline {
namespace {

constexpr Nanos kStart = 10'000;  // at most from the launch of an operation to its begin

using Edge = std::pair<std::uint32_t, std::uint32_t>;  // an operation, and what it waits for

struct Stream {
  std::uint32_t device = 0;
  std::vector<std::uint32_t> operations;  // by begin
  std::vector<std::uint32_t> first;       // by step: the first of `operations` in it or behind it
  std::uint32_t count(std::uint32_t step) const { return first[step + 1] - first[step]; }
};

class WaitFinder {
 public:
  WaitFinder(const Trace& trace, std::size_t steps, const std::vector<Operation>& operations)
      : trace_(trace), operations_(operations) {
    std::map<std::uint32_t, std::size_t> stream_of;  // by track
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      const std::uint32_t track = trace.slices[operations[i].slice].track;
      const auto [entry, is_new] = stream_of.try_emplace(track, streams_.size());
      if (is_new) {
        streams_.push_back({operations[i].device, {}, std::vector<std::uint32_t>(steps + 1)});
      }
      Stream& stream = streams_[entry->second];
      stream.operations.push_back(i);
      ++stream.first[operations[i].step + 1];
    }
    for (Stream& stream : streams_) {
      std::partial_sum(stream.first.begin(), stream.first.end(), stream.first.begin());
    }
  }

  std::vector<Edge> find() {
    std::map<std::uint32_t, std::vector<std::size_t>> of_device;
    for (std::size_t i = 0; i < streams_.size(); ++i) of_device[streams_[i].device].push_back(i);
    for (const auto& [device, mine] : of_device) {
      for (const std::size_t own : mine) {
        const auto seen = waits_seen(streams_[own], mine);
        for (const std::size_t other : mine) {
          if (own != other) compare(streams_[own], streams_[other], seen.contains(other));
        }
      }
    }
    for (const Stream& stream : streams_) {
      for (std::size_t i = 1; i < stream.operations.size(); ++i) {
        edges_.emplace_back(stream.operations[i], stream.operations[i - 1]);
      }
    }
    return std::move(edges_);
  }

 private:
  const Slice& slice_of(std::uint32_t operation) const {
    return trace_.slices[operations_[operation].slice];
  }
  Nanos launched(const Slice& slice) const {
    const Launch* launch = trace_.launch_of(slice);
    return launch == nullptr ? Nanos{0} : launch->begin;
  }

  // Whether the host had launched it long before it began.
  bool in_time(const Slice& slice) const {
    const Launch* const launch = trace_.launch_of(slice);
    return launch != nullptr && slice.begin - launch->end >= kStart;
  }

  // The streams for which `own` waits in at least every other step: what its host and its own
  // stream left free begins when one of their operations has ended.
  std::set<std::size_t> waits_seen(const Stream& own, const std::vector<std::size_t>& all) const {
    constexpr Nanos kSoon = 50'000;
    constexpr Nanos kRounding = 1'000;
    std::map<std::size_t, std::size_t> seen;  // how often, by stream
    for (std::size_t i = 1; i < own.operations.size(); ++i) {
      const Slice& slice = slice_of(own.operations[i]);
      if (slice.begin - slice_of(own.operations[i - 1]).end < kStart || !in_time(slice)) continue;
      Nanos latest = slice.begin - kSoon;
      std::size_t waited_for = kNoIndex;
      for (const std::size_t at : all) {
        const auto& others = streams_[at].operations;
        const auto behind =
            std::ranges::upper_bound(others, slice.begin + kRounding, {},
                                     [&](std::uint32_t one) { return slice_of(one).end; });
        if (&streams_[at] == &own || behind == others.begin()) continue;
        const Nanos end = slice_of(*std::prev(behind)).end;
        if (end <= latest) continue;
        latest = end;
        waited_for = at;
      }
      if (waited_for != kNoIndex) ++seen[waited_for];
    }
    std::set<std::size_t> streams;
    for (const auto& [at, times] : seen) {
      if (2 * times >= own.first.size() - 1) streams.insert(at);
    }
    return streams;
  }

  // By operation of `own`: the place in `other` of the last one that had ended when it began, and
  // that was launched before it; kNoIndex without one.
  std::vector<std::uint32_t> ended_before(const Stream& own, const Stream& other) const {
    constexpr Nanos kTolerance = 50'000;  // of times that are not of the GPU itself
    constexpr Nanos kPart = 10;
    constexpr std::size_t kMostLooks = 64;
    std::vector<std::uint32_t> places(own.operations.size(), kNoIndex);
    std::size_t begun = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Slice& slice = slice_of(own.operations[i]);
      while (begun < other.operations.size() &&
             slice_of(other.operations[begun]).begin < slice.begin) {
        ++begun;
      }
      for (std::size_t at = begun; at > 0 && begun - at < kMostLooks; --at) {
        const Slice& one = slice_of(other.operations[at - 1]);
        const Nanos tolerance = std::min(kTolerance, (one.end - one.begin) / kPart);
        if (one.end > slice.begin + tolerance || launched(one) > launched(slice)) continue;
        places[i] = static_cast<std::uint32_t>(at - 1);
        break;
      }
    }
    return places;
  }

  // What `own` waits for on `other`. Steps are alike if both streams have as many operations. What
  // is launched in time waits only where that is seen; the rest follows its host, which may wait.
  void compare(const Stream& own, const Stream& other, bool seen) {
    const auto places = ended_before(own, other);
    const auto steps = static_cast<std::uint32_t>(own.first.size() - 1);
    const auto behind = [&](std::uint32_t i, std::uint32_t step) {  // places after the step's first
      const bool free = !seen && in_time(slice_of(own.operations[i]));
      if (free || places[i] == kNoIndex) return std::int64_t{-1} - other.first[step];
      return std::int64_t{places[i]} - other.first[step];
    };
    std::map<std::tuple<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> least;
    for (std::uint32_t step = 0; step < steps; ++step) {
      auto& here = least[{own.count(step), other.count(step)}];
      here.resize(own.count(step), std::numeric_limits<std::int64_t>::max());
      for (std::uint32_t i = 0; i < own.count(step); ++i) {
        here[i] = std::min(here[i], behind(own.first[step] + i, step));
      }
    }
    std::int64_t last = -1;
    for (std::uint32_t step = 0; step < steps; ++step) {
      const auto& here = least[{own.count(step), other.count(step)}];
      for (std::uint32_t i = 0; i < own.count(step); ++i) {
        const std::int64_t place = here[i] + other.first[step];
        if (place <= last) continue;  // its predecessor waits for it, too
        last = place;
        edges_.emplace_back(own.operations[own.first[step] + i],
                            other.operations[static_cast<std::size_t>(place)]);
      }
    }
  }

  const Trace& trace_;
  const std::vector<Operation>& operations_;
  std::vector<Stream> streams_;
  std::vector<Edge> edges_;
};

}  // namespace

std::vector<std::uint32_t> find_waits(const Trace& trace, std::size_t steps,
                                      const std::unordered_map<std::uint32_t, std::uint32_t>& links,
                                      std::vector<Operation>& operations) {
  auto edges = WaitFinder(trace, steps, operations).find();
  if (!links.empty()) {
    std::unordered_map<std::uint32_t, std::uint32_t> operation_of;  // by slice
    for (std::uint32_t i = 0; i < operations.size(); ++i) operation_of[operations[i].slice] = i;
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      const auto link = links.find(operations[i].slice);
      if (link == links.end()) continue;
      const auto before = operation_of.find(link->second);
      if (before != operation_of.end() && before->second < i) edges.emplace_back(i, before->second);
    }
  }
  for (const auto& [operation, other] : edges) ++operations[operation].count_before;
  std::uint32_t first = 0;
  for (Operation& one : operations) {
    one.first_before = first;
    first += std::exchange(one.count_before, 0);
  }
  std::vector<std::uint32_t> before(first);
  for (const auto& [operation, other] : edges) {
    Operation& one = operations[operation];
    before[one.first_before + one.count_before++] = other;
  }
  return before;
}

}  // namespace assay::timeline
