#include "shrink/shrink_claims.h"

#include "base/clock.h"
#include "case/canonical.h"
#include "case/parser.h"
#include "schedule/cost.h"

namespace assay {

void ShrinkClaims::collect() {
  const bool late = monotonic_ns() > deadline_ns_;
  for (std::size_t i = 0; i < searches_.size(); ++i) {
    if (late) searches_[i].give_up();
    for (std::string& text : searches_[i].ask()) {
      const std::uint64_t id = case_id(text);
      if (waiting_[id].empty()) wanted_[id] = std::move(text);
      waiting_[id].insert(i);
    }
  }
  if (late) wanted_.clear();
}

Result<Supply> ShrinkClaims::claim(std::size_t most, const VisitJob& visit) {
  collect();
  Case parsed;
  for (std::size_t claimed = 0; claimed < most && !wanted_.empty(); ++claimed) {
    const auto first = wanted_.extract(wanted_.begin());
    Cost cost;
    if (parse_case(first.mapped(), parsed)) cost = estimate_cost(parsed);
    wire::JobT job;
    job.test_case = wire::planned_case(first.key(), first.mapped(), cost.elements, cost.bytes);
    ASSAY_CHECK(visit(std::move(job)));
  }
  for (const ShrinkSearch& search : searches_) {
    if (!search.done()) return Supply::held_elsewhere;
  }
  return Supply::none;
}

Result<bool> ShrinkClaims::finish(const FinishedCase& finished) {
  const auto waiting = waiting_.extract(finished.id);
  if (waiting.empty()) return false;
  for (const std::size_t search : waiting.mapped()) searches_[search].tell(finished);
  return true;
}

}  // namespace assay
