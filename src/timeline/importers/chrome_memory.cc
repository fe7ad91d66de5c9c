#include "timeline/importers/chrome_memory.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "timeline/importers/builder.h"
#include "timeline/names.h"

namespace assay::timeline {
namespace {

constexpr std::string_view kBackward = "autograd::engine::evaluate_function: ";

MemoryPoint point_in(const ChromeEvent& event) {
  constexpr std::int64_t kCpu = 0;
  std::int64_t device = event.number(Arg::device_id);
  bool cpu = event.number(Arg::device_type) == kCpu;
  // Paddle's "Place(gpu:0)", "Place(cpu)".
  if (const std::string_view place = event.arg(Arg::place); !place.empty()) {
    const std::size_t number = place.find(':') + 1;
    cpu = number == 0;
    if (!cpu) device = leading_number(place.substr(number), device);
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 52U;
  const std::int64_t bytes = event.arg(Arg::address).empty() ? 0 : event.number(Arg::bytes, 0);
  return {.time = event.begin,
          .allocated = event.number(Arg::allocated, 0),
          .reserved = event.number(Arg::reserved, 0),
          .source = 0,
          .device = cpu ? kNone : static_cast<std::int32_t>(device),
          .bytes = std::clamp(bytes, -kMost, kMost),
          .address = static_cast<std::uint64_t>(event.number(Arg::address, 0))};
}

}  // namespace

void MemoryReader::add(const ChromeEvent& event, std::uint32_t track, Trace& trace) {
  trace.memory.push_back(point_in(event));
  tracks_.push_back(track);
}

// Walks through the ranges of each thread in time, with those that are open on a stack. The
// outermost operator names an allocation; in the backward pass, the function of autograd.
void MemoryReader::finish(Trace& trace) {
  if (ranges_.empty() || tracks_.size() != trace.memory.size()) return;
  std::ranges::sort(ranges_, [](const Range& a, const Range& b) {
    return std::tie(a.track, a.begin, b.end) < std::tie(b.track, b.begin, a.end);
  });
  std::vector<std::size_t> order(trace.memory.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, {}, [&](std::size_t i) { return std::pair(tracks_[i], trace.memory[i].time); });
  std::vector<const Range*> open;
  auto next = ranges_.begin();
  for (const std::size_t i : order) {
    MemoryPoint& point = trace.memory[i];
    const auto here = std::pair(tracks_[i], point.time);
    for (; next != ranges_.end() && std::pair(next->track, next->begin) <= here; ++next) {
      std::erase_if(open, [&](const Range* range) {
        return range->track != next->track || range->end <= next->begin;
      });
      open.push_back(&*next);
    }
    std::erase_if(open, [&](const Range* range) {
      return range->track != here.first || range->end < point.time;
    });
    if (point.bytes <= 0) continue;
    point.phase = MemoryPhase::forward;
    for (const Range* range : open) {
      std::string_view name = trace.strings.text(range->name);
      if (name.starts_with("Optimizer.step")) point.phase = MemoryPhase::optimiser;
      if (name.starts_with(kBackward)) {
        point.phase = MemoryPhase::backward;
        name.remove_prefix(kBackward.size());
      } else if (!name.starts_with("aten::")) {
        continue;
      }
      point.where = trace.strings.intern(name);
      break;
    }
    if (point.where == kNoIndex && !open.empty()) point.where = open.back()->name;
  }
}

}  // namespace assay::timeline
