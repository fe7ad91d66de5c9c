#pragma once

// The host memory that a slot uses beside its lanes' own: inputs that lanes on the CPU share.

#include <cstdint>
#include <memory>

#include "device/shared_inputs.h"
#include "slot/config.h"
#include "wire/job.h"

namespace assay {

// Whether lanes with this specification compute on the CPU.
bool on_cpu(const wire::LaneSpecT& spec);

class SlotMemory {
 public:
  explicit SlotMemory(const SlotConfig& config);

  // Null where fewer than two lanes are on the CPU, where cases are timed, or where there is no
  // file.
  const std::shared_ptr<SharedInputs>& inputs() const { return inputs_; }

  // Makes room for the inputs of new cases, of which the first needs this many bytes.
  void begin_batch(std::uint64_t bytes);
  // Whether an idle slot should call trim_idle().
  bool keeps_much() const;
  void trim_idle() { trim(0); }
  void give_back();
  // Whether the case is estimated to need more memory than the host has.
  bool may_exceed_host(const wire::JobT& job) const;
  // Blocks while the lanes of other slots end and their memory comes back, for some seconds at
  // most.
  static void wait_for_others();

 private:
  void trim(std::uint64_t wanted);

  bool some_lane_on_cpu_;
  std::shared_ptr<SharedInputs> inputs_;
};

}  // namespace assay
