#include "store/run_totals.h"

namespace assay {

void RunTotals::count(const Tally& tally) {
  for (const auto& [key, sums] : tally.cases()) {
    outcomes[std::string(assay::name(key.outcome))] += static_cast<std::uint64_t>(sums.cases);
  }
  for (const auto& [key, sums] : tally.faults()) faults.insert(key.digest());
  if (!tally.minutes().empty()) last_ms = tally.minutes().rbegin()->first * kMinuteMs;
}

}  // namespace assay
