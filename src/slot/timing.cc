#include "slot/timing.h"

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

// Of a lane that is alone: what it will be compared with is not known yet.
constexpr std::size_t kTurnsAlone = kLooks[1];

// Appends the samples of one turn to those of the turns before it.
Status add_samples(const Ending& ending, std::size_t turn, TimedLane& lane) {
  const auto* leaves = ending.reply->outputs();
  for (flatbuffers::uoffset_t i = 0; leaves != nullptr && i < leaves->size(); ++i) {
    const wire::Leaf* leaf = leaves->Get(i);
    if (leaf->path() == nullptr) return fail("a lane sent timings of nothing");
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

// How many calls the samples of each part have, in the order of LaneJob.calls: those of one call
// and those of several are not comparable, since a sample's own cost is shared by its calls.
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

// Who begins a turn ends the next one, so that what slowly changes is on nobody's side.
Status TimedCase::run() {
  const std::int64_t until =
      monotonic_ns() + static_cast<std::int64_t>(config_.settings.timing_seconds * 1e9);
  for (std::size_t turn = 0; turn < kLooks.back(); ++turn) {
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      ASSAY_CHECK(take_turn(turn, turn % 2 == 0 ? i : seats_.size() - 1 - i));
    }
    // The first turn is everybody's, so that it is known of each lane whether it can.
    if (!all_well() || monotonic_ns() > until || enough_known(turn + 1)) return {};
  }
  return {};
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
  if (turn % kTurnsOfALane == 0 && !at.on_gpu()) at.lane.reset();
  const std::vector<SlotJob> jobs{entry_};
  BatchRun run(config_, seats_.subspan(seat, 1), jobs,
               [&](std::size_t, std::vector<Ending>& endings) -> Status {
                 Ending& ending = endings.front();
                 if (ending.reply != nullptr && ending.reply->status() == wire::Status::ok) {
                   ASSAY_CHECK(add_samples(ending, turn, lane));
                 }
                 (turn == 0 ? lane.first : lane.last) = std::move(ending);
                 return {};
               });
  Status ran = run.run();
  gave_up_ = run.gave_up();
  if (entry_.calls.empty() && !lane.series.empty()) entry_.calls = calls_of(lane);
  return ran;
}

bool TimedCase::enough_known(std::size_t turns) const {
  if (std::find(kLooks.begin(), kLooks.end(), turns) == kLooks.end()) return false;
  if (lanes_.size() < 2) return turns >= kTurnsAlone;
  const std::vector<SpeedRow> rows =
      speed_rows(lanes_[0].series, lanes_[1].series, config_.settings.speed_margin);
  return std::none_of(rows.begin(), rows.end(), [](const SpeedRow& row) {
    return row.decides && row.speed == Speed::unsure;
  });
}

}  // namespace assay
