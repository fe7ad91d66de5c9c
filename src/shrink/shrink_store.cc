#include "shrink/shrink_store.h"

#include "base/clock.h"
#include "case/canonical.h"
#include "case/parser.h"
#include "schedule/cost.h"

namespace assay {

ShrinkStore::ShrinkStore(std::vector<ShrinkSearch>& searches, std::int64_t deadline_ns)
    : searches_(searches), deadline_ns_(deadline_ns) {
  collect();
}

void ShrinkStore::collect() {
  const bool late = monotonic_ns() > deadline_ns_;
  for (std::size_t i = 0; i < searches_.size(); ++i) {
    if (late) searches_[i].give_up();
    for (std::string& text : searches_[i].ask()) {
      const std::uint64_t id = case_id(text);
      if (waiting_[id].empty()) wanted_[id] = text;
      waiting_[id].insert(i);
      texts_[id] = std::move(text);
    }
  }
  if (late) wanted_.clear();
}

Status ShrinkStore::each_unfinished(const std::function<Status(const StoredCase&)>& visit) {
  for (const auto& [id, text] : wanted_) ASSAY_CHECK(visit({id, text}));
  return {};
}

Result<Supply> ShrinkStore::claim(std::size_t most,
                                  const std::function<Status(const ClaimedCase&)>& visit) {
  collect();
  Case parsed;
  for (std::size_t claimed = 0; claimed < most && !wanted_.empty(); ++claimed) {
    const auto first = wanted_.extract(wanted_.begin());
    Cost cost;
    if (parse_case(first.mapped(), parsed)) cost = estimate_cost(parsed);
    ASSAY_CHECK(
        visit({{first.key(), 1}, {first.key(), first.mapped(), cost.elements, cost.bytes}}));
  }
  for (const ShrinkSearch& search : searches_) {
    if (!search.done()) return Supply::held_elsewhere;
  }
  return Supply::none;
}

Result<bool> ShrinkStore::finish(const Lease& lease, const FinishedCase& finished) {
  const auto waiting = waiting_.extract(lease.id);
  const auto text = texts_.extract(lease.id);
  if (waiting.empty() || text.empty()) return false;
  FinishedCase told = finished;
  told.id = lease.id;
  told.text = text.mapped();
  for (const std::size_t search : waiting.mapped()) searches_[search].tell(told);
  return true;
}

}  // namespace assay
