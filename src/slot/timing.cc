#include "slot/timing.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/clock.h"
#include "slot/values.h"
#include "verdict/mode.h"
#include "verdict/speed.h"
#include "verdict/timings.h"

namespace assay {
namespace {

// Most turns of one lane on the CPU. The lanes alternate within milliseconds, so that a slow phase
// of the machine is in both.
constexpr std::size_t kMostTurnsOfLane = 8;

// Appends the samples of one turn to those of earlier turns.
Status add_samples(const LaneResult& ending, std::size_t turn, TimedLane& lane) {
  const auto* leaves = ending.reply->outputs();
  for (flatbuffers::uoffset_t i = 0; leaves != nullptr && i < leaves->size(); ++i) {
    const wire::Leaf* leaf = leaves->Get(i);
    if (leaf->path() == nullptr) return fail("a lane sent timings without a name");
    ASSAY_TRY(Tensor tensor, Tensor::of(*leaf, {ending.arena.get(), nullptr, nullptr}));
    ASSAY_TRY(const TensorBytes bytes, tensor.bytes());
    const std::string what = leaf->path()->str();
    auto found = std::find_if(lane.series.begin(), lane.series.end(),
                              [&](const TimeSeries& series) { return series.what == what; });
    if (found == lane.series.end()) {
      lane.series.push_back(
          {what, static_cast<std::uint32_t>(std::max(1.0, leaf->terms())), {}, {}});
      found = std::prev(lane.series.end());
    }
    const std::vector<double> samples = real_values(bytes);
    found->nanoseconds.insert(found->nanoseconds.end(), samples.begin(), samples.end());
    found->turns.resize(turn + 1, 0);
    found->turns.back() = static_cast<std::uint32_t>(samples.size());
  }
  return {};
}

// The cores that this process may run on; empty if the kernel cannot list them.
std::vector<int> cores_of_process() {
  cpu_set_t allowed;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

// Calls in a sample of each part, in the order of Attempt.calls. All lanes use the same number,
// because the calls of a sample share its overhead.
std::vector<std::uint32_t> calls_of(const TimedLane& lane) {
  std::vector<std::uint32_t> calls;
  for (const char* const part : {"forward host warm", "backward host warm"}) {
    const auto found = std::find_if(lane.series.begin(), lane.series.end(),
                                    [&](const TimeSeries& series) { return series.what == part; });
    calls.push_back(found != lane.series.end() ? found->calls : 0);
  }
  return calls;
}

}  // namespace

bool is_timed(const wire::CaseSettingsT& settings) {
  const ModeInfo* mode = find_mode(settings.mode);
  return mode != nullptr && mode->agreement == Agreement::speed;
}

std::vector<int> cores_of_slot(std::span<const int> cores, std::uint32_t slot,
                               std::uint32_t slots) {
  std::vector<int> mine;
  for (std::size_t i = slot; i < cores.size() && slots > 0; i += slots) mine.push_back(cores[i]);
  return mine;
}

TimedCase::TimedCase(const SlotConfig& config, std::span<LaneSeat> seats, const wire::JobT& entry)
    : config_(config),
      seats_(seats),
      entry_(entry),
      cores_(cores_of_slot(cores_of_process(), config.index, config.slots)),
      lanes_(seats.size()) {}

// The order of lanes alternates from turn to turn, so that slow changes favour no lane.
Status TimedCase::run() {
  const std::int64_t begun = monotonic_ns();
  const std::int64_t most = static_cast<std::int64_t>(config_.settings.timing_seconds * 1e9);
  for (std::size_t turn = 0; turn < kLooks.back() * turns_of_lane_; ++turn) {
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      ASSAY_CHECK(take_turn(turn, turn % 2 == 0 ? i : seats_.size() - 1 - i));
    }
    const std::int64_t past = monotonic_ns() - begun;
    if (turn == 0) turns_of_lane_ = turns_of_lane(past, most);
    // Every lane has its first turn, which shows whether it can run the case.
    if (!all_well() || past > most || enough_known(turn + 1)) return {};
  }
  return {};
}

// As many turns as leave time for the lanes of the second look, judged by the first turn, which is
// the slowest. A lane on a GPU stays, because a new context takes too long.
std::size_t TimedCase::turns_of_lane(std::int64_t first_turn_ns, std::int64_t most_ns) const {
  if (std::all_of(seats_.begin(), seats_.end(), [](const LaneSeat& at) { return at.on_gpu(); })) {
    return 1;
  }
  const std::int64_t of_lane = most_ns / static_cast<std::int64_t>(kLooks[1]);
  return std::clamp<std::size_t>(
      static_cast<std::size_t>(of_lane / std::max<std::int64_t>(1, first_turn_ns)), 1,
      kMostTurnsOfLane);
}

bool TimedCase::all_well() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const TimedLane& lane) {
    const wire::Reply* reply = lane.latest().reply;
    return reply != nullptr && reply->status() == wire::Status::ok;
  });
}

Status TimedCase::take_turn(std::size_t turn, std::size_t seat) {
  TimedLane& lane = lanes_[seat];
  LaneSeat& at = seats_[seat];
  if (turn % turns_of_lane_ == 0 && !at.on_gpu()) begin_anew(turn, at);
  const std::vector<wire::JobT> jobs{entry_};
  BatchRun run(config_, seats_.subspan(seat, 1), jobs,
               [&](std::size_t, std::vector<LaneResult>& endings) -> Status {
                 LaneResult& ending = endings.front();
                 if (ending.reply != nullptr && ending.reply->status() == wire::Status::ok) {
                   ASSAY_CHECK(add_samples(ending, turn, lane));
                 }
                 (turn == 0 ? lane.first : lane.last) = std::move(ending);
                 return {};
               });
  Status ran = run.run();
  gave_up_ = run.gave_up();
  for (TimeSeries& series : lane.series) {
    series.turns_of_lane = static_cast<std::uint32_t>(turns_of_lane_);
  }
  if (entry_.attempt.calls.empty() && !lane.series.empty()) entry_.attempt.calls = calls_of(lane);
  return ran;
}

// All lanes of a turn run on the same core, and the slot's cores alternate. The kernel would give
// each lane a core of its own, and a busy neighbour on one core would slow one lane only.
void TimedCase::begin_anew(std::size_t turn, LaneSeat& at) const {
  at.lane.reset();
  if (!cores_.empty()) at.core = cores_[turn / turns_of_lane_ % cores_.size()];
}

bool TimedCase::enough_known(std::size_t turns) const {
  const std::size_t observations = turns / turns_of_lane_;
  if (turns % turns_of_lane_ != 0 ||
      std::find(kLooks.begin(), kLooks.end(), observations) == kLooks.end()) {
    return false;
  }
  if (lanes_.size() < 2) return true;  // the comparison is with another run, which is not known yet
  const std::vector<SpeedRow> rows =
      speed_rows(lanes_[0].series, lanes_[1].series, config_.settings.speed_margin);
  return std::none_of(rows.begin(), rows.end(), [](const SpeedRow& row) {
    return row.decides && row.speed == Speed::unsure;
  });
}

}  // namespace assay
