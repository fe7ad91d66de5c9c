#include "shrink/shrink.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "base/clock.h"
#include "base/private_folder.h"
#include "case/canonical.h"
#include "shrink/shrink_claims.h"

namespace assay {
namespace {

constexpr std::int64_t kClaimAgainMs = 10;

}  // namespace

Result<ShrinkJob> plan_shrink(RunReader& run, const std::vector<std::uint64_t>& ids,
                              const ShrinkLimits& limits) {
  ShrinkJob job;
  std::set<std::uint64_t> wanted(ids.begin(), ids.end());
  std::set<std::string> values{"usual"};
  ASSAY_CHECK(run.each_finished([&](const FinishedCase& finished) -> Status {
    if (wanted.erase(finished.id) == 0) return {};
    if (!info(finished.verdict.outcome).failed) {
      return usage_error(fmt::format("{} did not fail, it is {}: there is nothing to shrink",
                                     format_case_id(finished.id), name(finished.verdict.outcome)));
    }
    const Verdict verdict = finished.verdict;
    if (!verdict.fault().values.empty()) values.insert(verdict.fault().values);
    job.searches.emplace_back(finished.id, finished.text, key_of(finished.text, verdict), limits);
    return {};
  }));
  if (!wanted.empty()) {
    return usage_error(
        fmt::format("the run has no finished case {}", format_case_id(*wanted.begin())));
  }
  job.values = fmt::format("{}", fmt::join(values, ","));
  return job;
}

Result<ShrunkCases> run_shrink(RunConfig config, ShrinkJob& job, std::chrono::nanoseconds budget,
                               const RunObserver& observer) {
  ShrunkCases found;
  if (job.searches.empty()) return found;
  ASSAY_TRY(const PrivateFolder folder, PrivateFolder::make("shrink"));
  config.folder = folder.path();
  config.store.clear();
  config.retest.clear();
  config.sources = {};
  config.settings.values = job.values;
  config.claim_again_ms = kClaimAgainMs;
  ShrinkClaims claims(job.searches, monotonic_ns() + budget.count());
  ASSAY_CHECK(run_claims(config, claims, observer));
  for (ShrinkSearch& search : job.searches) {
    search.give_up();
    if (search.smallest()) found[search.id()] = *search.smallest();
  }
  return found;
}

}  // namespace assay
