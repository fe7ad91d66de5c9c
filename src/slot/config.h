#pragma once

// What the supervisor tells a slot before anything else.

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
  std::string log_dir;      // for what lanes print
  std::uint32_t slots = 1;  // of this run, on this machine
};

// As the first message to a slot.
wire::Bytes begin_message(const SlotConfig& config);
Result<SlotConfig> read_begin(const wire::Bytes& message);

}  // namespace assay
