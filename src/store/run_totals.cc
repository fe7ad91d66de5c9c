#include "store/run_totals.h"

namespace assay {

void RunTotals::count(const Tally& tally) {
  for (const auto& [key, sums] : tally.cases()) {
    outcomes[std::string(assay::name(key.outcome))] += static_cast<std::uint64_t>(sums.cases);
  }
  for (const auto& [key, sums] : tally.faults()) faults.insert(key.digest());
  if (tally.minutes().empty()) return;
  last_ms = tally.minutes().rbegin()->first * kMinuteMs;
  duration_ms = last_ms - tally.minutes().begin()->first * kMinuteMs + kMinuteMs;
}

}  // namespace assay
