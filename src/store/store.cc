#include "store/store.h"

#include "store/case_traits.h"

namespace assay {

Result<Tally> RunReader::tally() {
  Tally tally;
  ASSAY_CHECK(each_finished([&](const FinishedCase& finished) -> Status {
    tally.add(traits_of(finished.text), finished);
    return {};
  }));
  return tally;
}

Status RunReader::each_of(Outcome outcome, std::uint64_t most,
                          const std::function<Status(const FinishedCase&)>& visit) {
  std::uint64_t seen = 0;
  return each_finished([&](const FinishedCase& finished) -> Status {
    if (finished.verdict.outcome != outcome || seen == most) return {};
    ++seen;
    return visit(finished);
  });
}

Status RunReader::each_failed(std::uint64_t most,
                              const std::function<Status(const FinishedCase&)>& visit) {
  for (const OutcomeInfo& outcome : kOutcomes) {
    if (outcome.failed) ASSAY_CHECK(each_of(outcome.outcome, most, visit));
  }
  return {};
}

Status RunReader::each_listed(const std::function<Status(const FinishedCase&)>& visit) {
  return each_finished([&](const FinishedCase& finished) -> Status {
    const Verdict& verdict = finished.verdict;
    const bool flagged = verdict.outcome == Outcome::pass && verdict.flags != 0;
    return flagged || info(verdict.outcome).failed ? visit(finished) : Status();
  });
}

Result<std::uint64_t> RunReader::unfinished() {
  ASSAY_TRY(const StoreCounts found, counts());
  return found.planned - found.finished;
}

}  // namespace assay
