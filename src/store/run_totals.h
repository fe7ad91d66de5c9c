#pragma once

// A run in a few numbers, for those who set it beside others.

#include <cstdint>
#include <map>
#include <string>

#include "store/tally.h"

namespace assay {

struct RunTotals {
  std::string name;  // of its folder, or of its schema in a database
  std::map<std::string, std::string> properties;
  std::map<std::string, std::uint64_t> outcomes;  // cases by the outcome's name
  std::int64_t last_ms = 0;                       // when the last of them finished, since 1970
  bool sampled = false;                           // the numbers are estimates from a sample

  // What the sums of a run say of it; to the minute.
  void count(const Tally& tally);
};

}  // namespace assay
