#pragma once

// Times a case: the lanes of a slot take turns, one at work while the others wait, until their
// times can be compared or more turns would tell nothing new.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "slot/batch.h"
#include "slot/record.h"

namespace assay {

// Whether this run times its cases.
bool is_timed(const wire::CaseSettingsT& settings);

// The cores of one slot, if `slots` slots share `cores`. Empty if there are more slots than cores.
std::vector<int> cores_of_slot(std::span<const int> cores, std::uint32_t slot, std::uint32_t slots);

class TimedCase {
 public:
  TimedCase(const SlotConfig& config, std::span<LaneSeat> seats, const wire::JobT& entry);

  // Blocks until the case has been timed, or until a lane has shown that it cannot be.
  Status run();
  // Whether run() failed because no lanes can be had. No case is to blame for that.
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
  std::size_t turns_of_lane_ = 1;  // of the lanes that come next
  bool gave_up_ = false;
};

}  // namespace assay
