#pragma once

// Modes: what a run tests. A mode is one entry of the table in mode.cc: which lanes run a case, how
// each lane calls it, and how their results must agree.

#include <span>
#include <string_view>

#include "verdict/outcome.h"
#include "wire/settings_generated.h"

namespace assay {

// ModeLane::device of a lane that uses another GPU than its slot.
inline constexpr std::string_view kNextDevice = "next";

// How the lanes of a mode must agree.
enum class Agreement {
  within,  // equal results within the policy
  bits,    // equal bits
  stable,  // equal bits in lanes of one role, equal results within the policy across roles
  runs,    // one lane: the call must run
  speed,   // two lanes must take equal time; one lane is only timed
};

// One lane of a mode.
struct ModeLane {
  wire::Role role = wire::Role::test;       // in records
  wire::Role framework = wire::Role::test;  // the role whose framework and interpreter it uses
  std::string_view execution = "eager";     // how it executes a call: python/assay/execution
  // Empty: the device that the lane is configured for. "cpu": the CPU. "custom": as configured;
  // otherwise the build's device beside the CPU. "next": as configured, but on the GPU after the
  // slot's GPU if there are several.
  std::string_view device = {};
};

struct ModeInfo {
  std::string_view name;  // of its command-line flag, without the dashes
  std::string_view meaning;
  Agreement agreement = Agreement::within;
  std::span<const ModeLane> lanes;  // the test lane first
  bool backward = true;             // computes gradients by default
};

// All modes, the default first.
std::span<const ModeInfo> modes();

// The meaning of an outcome in a run of this mode, for users.
std::string_view meaning_in(std::string_view mode, Outcome outcome);

// The mode with this name; nullptr if there is none.
const ModeInfo* find_mode(std::string_view name);

}  // namespace assay
