#include "timeline/analysis/windows.h"

#include <algorithm>

#include "base/statistics.h"

namespace assay::timeline {
namespace {

// The usual time from the end of a step's mark to the next mark. It belongs to the loop, so the
// last step has it, too. 0 if it is more than a twentieth of a step: then it is no overhead of the
// loop.
Nanos usual_pause(const std::vector<Step>& marks) {
  std::vector<Nanos> pauses;
  std::vector<Nanos> lengths;
  for (std::size_t i = 0; i + 1 < marks.size(); ++i) {
    if (marks[i + 1].number != marks[i].number + 1) continue;
    pauses.push_back(std::max<Nanos>(0, marks[i + 1].begin - marks[i].end));
    lengths.push_back(marks[i].end - marks[i].begin);
  }
  const Nanos pause = upper_median(std::move(pauses));
  return 20 * pause <= upper_median(std::move(lengths)) ? pause : 0;
}

}  // namespace

Windows::Windows(const Trace& trace, const std::vector<Device>& devices)
    : one_clock_(trace.one_clock && !trace.clocks_assumed) {
  for (const Device& device : devices) {
    if (device.launched) add(device, windows_[clock(device)]);
  }
  for (auto& [name, windows] : windows_) {
    for (auto it = windows.begin(); it != windows.end(); ++it) {
      const auto next = std::next(it);
      if (next == windows.end() || next->first != it->first + 1) continue;
      it->second.end = std::max(it->second.end, next->second.begin);
    }
  }
}

void Windows::add(const Device& device, ByStep& windows) const {
  const Nanos pause = usual_pause(device.marks);
  Nanos done = device.carried;  // the end of earlier work
  for (std::size_t i = 0; i < device.marks.size(); ++i) {
    const Step& mark = device.marks[i];
    const Busy& busy = device.work_of(mark.number);
    const Span own = busy.span();
    const bool works = own.begin <= own.end;
    Span window{mark.begin, mark.begin};
    if (done > mark.begin) {
      const bool later = !works || busy.begins_at(done, i == 0 ? 2 : 20);
      window.begin = window.end = later ? done : std::min(done, own.begin);
    }
    if (works) widen(window, Span{std::max(own.begin, window.begin), own.end});
    const bool last = i + 1 == device.marks.size() || device.marks[i + 1].number != mark.number + 1;
    window.end = std::max(window.end, last ? mark.end + pause : window.begin);
    widen(windows[mark.number], window);
    if (works) done = std::max(done, own.end);
  }
}

std::string Windows::clock(const Device& device) const {
  if (one_clock_) return "";
  return device.machine.empty() ? "\n" + std::to_string(device.source) : device.machine;
}

Interval Windows::of(const Device& device, const Step& step) const {
  if (!device.launched) return {step.begin, step.end};
  const auto windows = windows_.find(clock(device));
  if (windows == windows_.end()) return {};
  const auto window = windows->second.find(step.number);
  if (window == windows->second.end()) return {};
  return {window->second.begin, window->second.end};
}

Interval Windows::of_all(const std::vector<Device>& devices, const Step& step) const {
  Span all;
  for (const Device& device : devices) {
    const Interval window = of(device, step);
    if (window.begin >= window.end) continue;
    if (one_clock_) {
      widen(all, window);
    } else if (all.begin > all.end || window.end - window.begin > all.end - all.begin) {
      all = {window.begin, window.end};
    }
  }
  return all.begin < all.end ? Interval{all.begin, all.end} : Interval{};
}

Nanos Windows::length(const std::vector<Device>& devices, const Step& step) const {
  Nanos longest = 0;
  for (const Device& device : devices) {
    const Interval here = of(device, step);
    const Step after{step.number + 1, 0, 0};
    const Interval next = device.launched ? of(device, after) : Interval{};
    const bool followed = next.begin < next.end && next.begin >= here.begin;
    longest = std::max(longest, (followed ? next.begin : here.end) - here.begin);
  }
  return longest;
}

}  // namespace assay::timeline
