#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "base/statistics.h"
#include "timeline/analysis/replay_operations.h"

namespace assay::timeline {
namespace {

// The items in the order of their keys, which are less than `keys`. Items of one key keep theirs.
template <typename Key>
std::vector<std::uint32_t> ordered(const std::vector<std::uint32_t>& items, std::size_t keys,
                                   Key key) {
  std::vector<std::uint32_t> next(keys + 1);
  for (const std::uint32_t item : items) ++next[key(item) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<std::uint32_t> result(items.size());
  for (const std::uint32_t item : items) result[next[key(item)]++] = item;
  return result;
}

// By operation: a number that peers share.
std::vector<std::uint32_t> number_peers(const Trace& trace, const Analysis& analysis,
                                        const CollectiveReport& collectives,
                                        const std::vector<Operation>& operations,
                                        const std::vector<std::uint32_t>& by_step) {
  std::vector<std::vector<std::uint32_t>> jobs(analysis.devices.size());  // slices, by begin
  for (std::uint32_t i = 0; i < trace.slices.size(); ++i) {
    const std::uint32_t track = trace.slices[i].track;
    if (trace.tracks[track].jobs) jobs[analysis.device_of[track]].push_back(i);
  }
  std::map<std::tuple<std::string, std::int64_t, std::int32_t>, std::uint32_t> of_calls;
  using Position = std::tuple<StringId, StringId, std::int32_t, std::uint32_t>;
  std::map<Position, std::uint32_t> positions;  // by name, job and device, in the step
  std::map<Position, std::uint32_t> of_work;    // by name, job and position
  std::uint32_t step = kNoIndex;
  std::uint32_t numbers = 0;
  const auto number = [&](auto& table, auto key) {
    const auto [entry, is_new] = table.try_emplace(std::move(key), numbers);
    if (is_new) ++numbers;
    return entry->second;
  };
  std::vector<std::uint32_t> peers(operations.size());
  for (const std::uint32_t i : by_step) {
    const Operation& operation = operations[i];
    if (operation.step != step) positions.clear();
    step = operation.step;
    const Slice& slice = trace.slices[operation.slice];
    if (operation.call != kNoIndex) {
      const CollectiveCall& call = collectives.calls[operation.call];
      peers[i] = number(of_calls, std::tuple(call.name, call.bytes, call.group_size));
      continue;
    }
    const auto& mine = jobs[operation.device];
    const auto behind = std::ranges::upper_bound(
        mine, slice.begin, {}, [&](std::uint32_t at) { return trace.slices[at].begin; });
    const Slice* const job = behind == mine.begin() ? nullptr : &trace.slices[*std::prev(behind)];
    const bool within = job != nullptr && slice.begin < job->end;
    Position place{slice.name, within ? job->category : 0, within ? job->micro_batch : kNone,
                   operation.device};
    const bool is_job = slice.micro_batch != kNone;
    std::get<3>(place) = is_job ? 0 : positions[place]++;
    peers[i] = number(of_work, place);
  }
  return peers;
}

}  // namespace

void settle_peers(const Trace& trace, const Analysis& analysis, const CollectiveReport& collectives,
                  std::vector<Operation>& operations) {
  std::vector<std::uint32_t> order(operations.size());
  std::iota(order.begin(), order.end(), 0U);
  order = ordered(order, analysis.steps.size(), [&](auto i) { return operations[i].step; });
  const auto peers = number_peers(trace, analysis, collectives, operations, order);
  order = ordered(order, operations.size(), [&](auto i) { return peers[i]; });
  const auto medians = [&](auto from, auto to) {
    std::vector<Nanos> durations;
    std::vector<Nanos> delays;
    for (auto it = from; it != to; ++it) {
      durations.push_back(operations[*it].duration);
      delays.push_back(operations[*it].delay);
    }
    return std::pair(lower_median(std::move(durations)), lower_median(std::move(delays)));
  };
  for (auto from = order.begin(); from != order.end();) {
    const auto to = std::find_if(from, order.end(),
                                 [&, first = *from](auto i) { return peers[i] != peers[first]; });
    const auto all = medians(from, to);
    while (from != to) {
      const std::uint32_t step = operations[*from].step;
      const auto end = std::find_if(from, to, [&](auto i) { return operations[i].step != step; });
      const bool alone = operations[*from].call != kNoIndex || end - from < 2;
      const auto [duration, delay] = alone ? all : medians(from, end);
      for (; from != end; ++from) {
        Operation& operation = operations[*from];
        operation.ideal = std::min(operation.duration, duration);
        operation.usual_delay = std::min(operation.delay, delay);
      }
    }
  }
}

}  // namespace assay::timeline
