#include "schedule/cpu_order.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace assay {
namespace {

// Cases of a lease: many, so that slots ask rarely; not more, so that the death of a slot costs
// little and the last leases end together.
constexpr std::size_t kLeaseCases = 64;
constexpr std::size_t kFirstLeaseCases = 8;
// A slot that holds this many cases need not ask for more.
constexpr std::size_t kEnough = 32;
// This part of the expected work, without the longest case, is leased before the expensive cases.
// The run of two or more slots becomes longer by less than a twentieth of the other work.
constexpr std::uint64_t kPartCheap = 12;
// The search for a case that memory admits looks at this many cases.
constexpr std::ptrdiff_t kLooks = 1024;

// Sorts by expected time, then by size; equal cases keep their order. A case is larger than its
// key, so keys are sorted and each case moves once.
void sort_by_cost(std::deque<wire::JobT>& cases) {
  struct Key {
    std::uint64_t work_us, elements;
    std::size_t from;
  };
  std::vector<Key> keys;
  keys.reserve(cases.size());
  for (const wire::JobT& job : cases) {
    keys.push_back({job.test_case.work_us, job.test_case.elements, keys.size()});
  }
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    return std::tie(a.work_us, a.elements, a.from) < std::tie(b.work_us, b.elements, b.from);
  });
  for (std::size_t first = 0; first < keys.size(); ++first) {
    if (keys[first].from == first) continue;
    wire::JobT kept = std::move(cases[first]);
    std::size_t to = first;
    while (keys[to].from != first) {
      cases[to] = std::move(cases[keys[to].from]);
      to = std::exchange(keys[to].from, to);
    }
    cases[to] = std::move(kept);
    keys[to].from = to;
  }
}

}  // namespace

void CpuOrder::add(wire::JobT added) { cases_.push_back(std::move(added)); }

void CpuOrder::sort(std::size_t slots, std::uint64_t work_us) {
  slots_ = std::max<std::size_t>(slots, 1);
  sort_by_cost(cases_);
  if (cheap_left_us_ || cases_.empty()) return;
  const std::uint64_t longest_us = std::min(cases_.back().test_case.work_us, work_us);
  cheap_left_us_ = (work_us - longest_us) / kPartCheap;
}

wire::JobT* CpuOrder::find(std::uint64_t id) {
  const auto found = std::find_if(cases_.begin(), cases_.end(),
                                  [id](const wire::JobT& job) { return job.test_case.id == id; });
  return found != cases_.end() ? &*found : nullptr;
}

std::size_t CpuOrder::enough(std::size_t) const { return kEnough; }

bool CpuOrder::takes_retries(std::uint32_t, std::size_t) const { return true; }

void CpuOrder::count_retry(std::uint32_t, const wire::JobT& retry) {
  spend(retry.test_case.work_us);
}

void CpuOrder::spend(std::uint64_t work_us) {
  if (cheap_left_us_) *cheap_left_us_ -= std::min(*cheap_left_us_, work_us);
}

bool CpuOrder::cheap_for_all() const {
  const std::uint64_t left_us = cheap_left_us_.value_or(0);
  if (cases_.empty() || left_us == 0) return false;
  return lists_of_slots_wait() || cases_.front().test_case.work_us <= left_us;
}

CpuOrder::Position CpuOrder::first_allowed(Cases& list, const Allowed& allowed) {
  const auto end = list.cbegin() + std::min(std::ssize(list), kLooks);
  const auto found = std::find_if(list.cbegin(), end, allowed);
  return found != end ? Position{&list, found} : Position{};
}

CpuOrder::Position CpuOrder::last_allowed(Cases& list, const Allowed& allowed) {
  const auto end = list.crbegin() + std::min(std::ssize(list), kLooks);
  const auto found = std::find_if(list.crbegin(), end, allowed);
  return found != end ? Position{&list, std::prev(found.base())} : Position{};
}

CpuOrder::Position CpuOrder::next_of_slot(std::uint32_t, const Allowed&) { return {}; }

CpuOrder::Position CpuOrder::next(std::uint32_t slot, bool cheap, const Allowed& allowed) {
  if (!cheap) {
    if (const Position last = last_allowed(cases_, allowed); last.list != nullptr) return last;
  }
  if (const Position own = next_of_slot(slot, allowed); own.list != nullptr) return own;
  return first_allowed(cases_, allowed);
}

// An equal part of the cases for each slot: a case that hangs delays the cases behind it in its
// slot.
std::size_t CpuOrder::part_of(std::size_t cases) const {
  return std::max<std::size_t>((cases + slots_ - 1) / slots_, 1);
}

std::size_t CpuOrder::share_of(std::uint32_t, const Cases& list) const {
  return std::min(part_of(list.size()), kLeaseCases);
}

std::vector<wire::JobT> CpuOrder::lease(const Request& request, MemoryUse& memory) {
  const std::uint32_t slot = request.slot;
  const Allowed allowed = [&](const wire::JobT& job) { return memory.admits(slot, job); };
  const bool first = leases_[slot]++ == 0;
  const bool all_cheap = cheap_for_all();
  const bool cheap = first || all_cheap || slot % 2 == 1;
  std::vector<wire::JobT> leased;
  std::size_t most = std::min(part_of(request.waiting), kFirstLeaseCases);
  const Cases* from = nullptr;
  std::uint64_t elements = 0;
  std::uint64_t work_us = 0;
  while (leased.size() < most) {
    Position found = next(slot, cheap, allowed);
    // Every slot takes long cases longest first: the run must not end with one.
    if (!all_cheap && found.list != nullptr && found.at->test_case.work_us >= kLongUs) {
      found = next(slot, false, allowed);
    }
    if (found.list == nullptr || (!leased.empty() && found.list != from)) break;
    if (leased.empty()) {
      const std::size_t share = share_of(slot, *found.list);
      most = first ? std::min(most, share) : share;
    }
    from = found.list;
    const wire::CaseT& cost = found.at->test_case;
    if (request.ahead && !memory.may_wait_in_slot(*found.at)) break;
    const std::uint64_t left = kLeaseElements - std::min(elements, kLeaseElements);
    const std::uint64_t work_left = kLongUs - std::min(work_us, kLongUs);
    if (!leased.empty() && (cost.elements > left || cost.work_us > work_left)) break;
    elements += cost.elements;
    work_us += cost.work_us;
    spend(cost.work_us);
    const auto position = found.at - found.list->cbegin();
    memory.take(slot,
                leased.emplace_back(std::move((*found.list)[static_cast<std::size_t>(position)])));
    took(found);
    found.list->erase(found.at);
  }
  return leased;
}

}  // namespace assay
