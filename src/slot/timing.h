#pragma once

// A case whose speed is asked for: the lanes of a slot take turns on it, one at work and the others
// waiting, until it is known how their times compare or nothing more is to be learnt.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "slot/batch.h"
#include "slot/record.h"

namespace assay {

// Whether the lanes of this run are timed.
bool is_timed(const wire::CaseSettingsT& settings);

// Which of these cores are this slot's, where so many slots share them. None where there are more
// slots than cores.
std::vector<int> cores_of_slot(std::span<const int> cores, std::uint32_t slot, std::uint32_t slots);

class TimedCase {
 public:
  TimedCase(const SlotConfig& config, std::span<LaneSeat> seats, const wire::JobT& entry);

  // Blocks until the case has been timed, or until a lane has shown that it cannot be.
  Status run();
  // Whether run() failed for want of lanes, which no case is to blame for.
  bool gave_up() const { return gave_up_; }

  const std::vector<TimedLane>& lanes() const { return lanes_; }

 private:
  Status take_turn(std::size_t turn, std::size_t seat);
  std::size_t turns_of_lane(std::int64_t first_turn_ns, std::int64_t most_ns) const;
  void begin_anew(std::size_t turn, LaneSeat& at) const;
  bool all_well() const;
  bool enough_known(std::size_t turns) const;

  const SlotConfig& config_;
  std::span<LaneSeat> seats_;
  wire::JobT entry_;
  std::vector<int> cores_;  // of this slot
  std::vector<TimedLane> lanes_;
  std::size_t turns_of_lane_ = 1;  // of the next lanes
  bool gave_up_ = false;
};

}  // namespace assay
