#pragma once

// A run in a few numbers, for a comparison with other runs.

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "store/tally.h"

namespace assay {

struct RunTotals {
  std::string name;  // of its folder, or of its schema in a database
  std::map<std::string, std::string> properties;
  std::map<std::string, std::uint64_t> outcomes;  // cases by the outcome's name
  std::int64_t last_ms = 0;                       // when the last case finished, since 1970
  std::int64_t duration_ms = 0;  // from the first case to the last, to the minute; 0: unknown
  std::set<std::string> faults;  // their digests; empty if `sampled`
  bool sampled = false;          // `outcomes` are estimates from a sample

  // Sets `outcomes`, `faults`, `last_ms` (to the minute) and `duration_ms` from a run's sums.
  void count(const Tally& tally);
};

}  // namespace assay
