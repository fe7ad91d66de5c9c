#pragma once

// Modes: what a run asks of the framework under test. A mode is one entry of the table in mode.cc:
// which lanes run a case, how each calls it, and what their results owe each other.

#include <span>
#include <string_view>

#include "verdict/outcome.h"
#include "wire/settings_generated.h"

namespace assay {

// ModeLane::device of a lane that does not sit on its slot's GPU.
inline constexpr std::string_view kNextDevice = "next";

// What the lanes of a mode owe each other.
enum class Agreement {
  within,  // the same results, within the policy
  bits,    // the same bits
  stable,  // runs of one role the same bits, the roles the same results within the policy
  runs,    // nothing: one lane, and it runs
  speed,   // to take as long; of one lane nothing
};

// One lane of a mode.
struct ModeLane {
  wire::Role role = wire::Role::test;       // of its records
  wire::Role framework = wire::Role::test;  // whose framework and interpreter it uses
  std::string_view execution = "eager";     // how it executes a call: python/assay/execution
  // "cpu": always there. "custom": on what this build has beside the CPU, if the lane says nothing
  // else. "next": where the lane says, but not on its slot's GPU, on the next if there are several.
  // Empty: where the lane says.
  std::string_view device = {};
};

struct ModeInfo {
  std::string_view name;  // its flag of the command line without the dashes
  std::string_view meaning;
  Agreement agreement = Agreement::within;
  std::span<const ModeLane> lanes;  // the test lane first
  bool backward = true;             // differentiates without being asked to
};

std::span<const ModeInfo> modes();

// What an outcome means in a run of this mode, for people.
std::string_view meaning_in(std::string_view mode, Outcome outcome);

// nullptr: no mode has this name.
const ModeInfo* find_mode(std::string_view name);

}  // namespace assay
