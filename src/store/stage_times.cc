#include "store/stage_times.h"

#include <algorithm>

#include "store/finished_case.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay {
namespace {

// Indexes in kStages.
enum Stage : std::size_t { kFill, kTestForward, kTestBackward, kReference, kCopy, kCompare, kWait };

void add_trial(const wire::Trial& trial, StageTimes& times) {
  if (trial.lanes() == nullptr) return;
  std::int64_t longest = 0;
  std::int64_t shortest = 0;
  bool first = true;
  for (const wire::LaneRecord* lane : *trial.lanes()) {
    const LaneNanoseconds ns = lane_nanoseconds(*lane);
    const auto in = [&ns](wire::Stage stage) { return ns[static_cast<std::size_t>(stage)]; };
    times.ns[kFill] += in(wire::Stage::build);
    times.ns[kCopy] += in(wire::Stage::copy);
    if (lane->role() == wire::Role::test) {
      times.ns[kTestForward] += in(wire::Stage::forward);
      times.ns[kTestBackward] += in(wire::Stage::backward);
    } else {
      times.ns[kReference] += in(wire::Stage::forward) + in(wire::Stage::backward);
    }
    std::int64_t all = 0;
    for (const std::int64_t each : ns) all += each;
    longest = std::max(longest, all);
    shortest = first ? all : std::min(shortest, all);
    first = false;
  }
  times.ns[kWait] += longest - shortest;
}

}  // namespace

LaneNanoseconds lane_nanoseconds(const wire::LaneRecord& lane) {
  LaneNanoseconds ns{};
  if (lane.nanoseconds() == nullptr) return ns;
  const std::size_t count = std::min<std::size_t>(ns.size(), lane.nanoseconds()->size());
  std::copy_n(lane.nanoseconds()->begin(), count, ns.begin());
  return ns;
}

void StageTimes::add(const StageTimes& other) {
  for (std::size_t i = 0; i < ns.size(); ++i) ns[i] += other.ns[i];
  cases += other.cases;
}

std::int64_t StageTimes::in_lanes() const {
  return ns[kFill] + ns[kTestForward] + ns[kTestBackward] + ns[kReference] + ns[kCopy];
}

StageTimes stage_times(const wire::Record& record) {
  StageTimes times;
  if (record.trials() == nullptr) return times;
  times.cases = 1;
  times.ns[kCompare] = static_cast<std::int64_t>(record.compare_ns());
  for (const wire::Trial* trial : *record.trials()) add_trial(*trial, times);
  return times;
}

StageTimes stage_times(const FinishedCase& finished) {
  if (finished.record.empty()) return {};
  const auto record = wire::open<wire::Record>(finished.record);
  return record ? stage_times(**record) : StageTimes();
}

}  // namespace assay
