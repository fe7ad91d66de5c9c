#pragma once

// Who makes steps longer: ranks, hosts, pipeline stages and links that are slower than their peers,
// with the cause and the steps in which they are.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/collectives.h"
#include "timeline/model.h"

namespace assay::timeline {

struct Culprit {
  // What takes longer. `step`: a step of all ranks, without a rank that stands out.
  enum class Part : std::uint8_t { compute, copies, host, transfer, step };

  std::string kind;                 // "rank", "host", "stage", "link", "step"
  std::string name;                 // "rank 3", "ranks 1, 4", "host node2", "stage 1"
  std::string cause;                // "slow GPU", "data loader", …
  std::vector<std::int32_t> ranks;  // whom it concerns
  std::int64_t since = 0;           // number of the first step
  std::string operation = {};       // of a slow GPU: the kernel that costs most; else empty
  Nanos excess = 0;                 // longer than its peers, by step, in the steps where it is
  Part part = Part::compute;
  std::string when = {};                  // "since step 3", "step 14", "every 4th step from 2"
  std::vector<std::size_t> devices = {};  // indices into Analysis::devices
  std::vector<std::size_t> steps = {};    // indices into Analysis::steps, ascending
  bool in_turn = false;                   // moves from device to device
  bool itself = false;                    // has no peers: compared with its other steps
  Nanos without = kNone;      // the mean step without it, by replay; kNone: not confirmed
  Nanos without_one = kNone;  // of several ranks: without one of them

  bool in_step(std::size_t step) const { return std::ranges::binary_search(steps, step); }
  bool on_device(std::size_t device) const {
    return std::ranges::find(devices, device) != devices.end();
  }
};

// The largest cost first. Peers are the ranks of one pipeline stage, or all ranks; a rank without
// peers is compared with itself over steps; a stage's peers are the other stages; a link's are the
// groups of equal size with equal calls. Nobody is named for less than a thirtieth of a step (a
// tenth in single steps), or for less than several times the spread of the peers.
std::vector<Culprit> culprits_of(const Trace& trace, const Analysis& analysis,
                                 const CollectiveReport& collectives);

// Drops those whose steps would not be shorter without them, as the replay found.
void keep_costly(const Analysis& analysis, std::vector<Culprit>& culprits);

}  // namespace assay::timeline
