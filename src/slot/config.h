#pragma once

// The first message of the supervisor to a slot.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay {

struct SlotConfig {
  std::uint32_t index = 0;
  std::vector<wire::LaneSpecT> lanes;  // the test lane first
  wire::CaseSettingsT settings;
  std::string log_dir;      // where lanes write their logs
  std::uint32_t slots = 1;  // of this run on this machine
};

// The first message to a slot, and the configuration in it.
wire::Bytes begin_message(const SlotConfig& config);
Result<SlotConfig> read_begin(const wire::Bytes& message);

}  // namespace assay
