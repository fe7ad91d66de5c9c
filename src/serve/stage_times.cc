#include "serve/stage_times.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "case/parser.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay {
namespace {

// Places in a lane's nanoseconds: STAGES of python/assay/call.py.
enum LaneStage : std::size_t { kBuild, kForward, kCopy, kBackward, kLaneStages };
// Places in kStages.
enum Stage : std::size_t {
  kFill,
  kTestForward,
  kTestBackward,
  kReference,
  kCopied,
  kCompare,
  kWait
};

using LaneSeconds = std::array<double, kLaneStages>;

LaneSeconds seconds_of(const wire::LaneRecord& lane) {
  LaneSeconds seconds{};
  if (lane.nanoseconds() == nullptr) return seconds;
  const std::size_t count = std::min<std::size_t>(seconds.size(), lane.nanoseconds()->size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto place = static_cast<flatbuffers::uoffset_t>(i);
    seconds[i] = static_cast<double>(lane.nanoseconds()->Get(place)) / 1e9;
  }
  return seconds;
}

double sum_of(const LaneSeconds& seconds) {
  double sum = 0;
  for (const double each : seconds) sum += each;
  return sum;
}

void add_trial(const wire::Trial& trial, StageTimes& times) {
  if (trial.lanes() == nullptr) return;
  double longest = 0;
  double shortest = 0;
  bool first = true;
  for (const wire::LaneRecord* lane : *trial.lanes()) {
    const LaneSeconds seconds = seconds_of(*lane);
    times.seconds[kFill] += seconds[kBuild];
    times.seconds[kCopied] += seconds[kCopy];
    if (lane->role() == wire::Role::test) {
      times.seconds[kTestForward] += seconds[kForward];
      times.seconds[kTestBackward] += seconds[kBackward];
    } else {
      times.seconds[kReference] += seconds[kForward] + seconds[kBackward];
    }
    const double all = sum_of(seconds);
    longest = std::max(longest, all);
    shortest = first ? all : std::min(shortest, all);
    first = false;
  }
  times.seconds[kWait] += longest - shortest;
}

}  // namespace

void StageTimes::add(const StageTimes& other) {
  for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] += other.seconds[i];
  cases += other.cases;
}

nlohmann::json StageTimes::json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const double each : seconds) {
    list.push_back(cases > 0 ? 1000 * each / static_cast<double>(cases) : 0.0);
  }
  return list;
}

StageTimes stage_times(const FinishedCase& finished) {
  StageTimes times;
  if (finished.record.empty()) return times;
  const auto record = wire::open<wire::Record>(finished.record);
  if (!record || (*record)->trials() == nullptr) return times;
  times.cases = 1;
  times.seconds[kCompare] = static_cast<double>((*record)->compare_ns()) / 1e9;
  for (const wire::Trial* trial : *(*record)->trials()) add_trial(*trial, times);
  return times;
}

std::size_t size_of_case(std::string_view case_text) {
  Case parsed;
  if (!parse_case(case_text, parsed)) return 0;
  const std::uint64_t elements = parsed.total_elements();
  std::size_t size = elements > 0 ? 1 : 0;
  for (std::uint64_t most = 100; elements > most && size + 1 < kSizes.size(); most *= 100) ++size;
  return size;
}

}  // namespace assay
