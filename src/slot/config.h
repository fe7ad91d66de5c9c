#pragma once

// What the supervisor tells a slot when it starts it, as one line of JSON on its command line.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

struct LaneSetup {
  std::string framework;   // its name in records: "paddle", "torch"
  std::string address;     // of its fork server
  std::string device;      // "cpu", "gpu:0"
  bool reference = false;  // calls the reference functions instead of the framework's own APIs
};

struct SlotConfig {
  std::uint32_t index = 0;
  LaneSetup test;
  std::optional<LaneSetup> reference;
  std::uint64_t seed = 0;
  bool backward = true;
  bool known_only = false;
  double atol = 0.01;
  double rtol = 0.01;
  std::string log_dir;  // for what lanes print

  std::string to_json() const;
  static Result<SlotConfig> from_json(std::string_view text);
};

}  // namespace assay
