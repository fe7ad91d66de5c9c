#include "schedule/queue.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace assay {
namespace {

// Cases of a lease: enough that the supervisor is asked rarely, few enough that a slot's death
// costs little and the last leases end together.
constexpr std::size_t kLeaseCases = 64;
constexpr std::size_t kFirstLeaseCases = 8;
// Small cases on a GPU, whose slots run some hundred at a time.
constexpr std::size_t kSmallLeaseCases = 256;
// Of its own small cases a slot leaves half to those that might help it, but for so many.
constexpr std::size_t kSmallLast = 32;
// With so many cases a slot need not ask for more.
constexpr std::size_t kEnough = 32;
constexpr std::uint64_t kLeaseElements = 4'000'000;
constexpr std::uint64_t kLeaseWorkUs = 1'000'000;
// On GPUs cases of at most so many elements count as equally expensive, unless they take long.
constexpr std::uint64_t kSmallOnGpu = 20'000;
// The part of the budget that is for what runs beside a case that fits no budget.
constexpr std::uint64_t kPartBeside = 8;
// What is larger than this part of the budget is not leased ahead.
constexpr std::uint64_t kPartAhead = 16;
// On GPUs: to begin as many second attempts as these takes a slot that has lanes for them about as
// long as another slot needs to make its own.
constexpr std::size_t kWaitForFreshLanes = 8;
// Second attempts that share a lane, and what of them the last ones are shared out in.
constexpr std::size_t kCompany = 32;
constexpr std::size_t kLeastCompany = 8;
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
// The part of the expected work, without the longest case, that comes from the cheap end before
// what is expensive begins. Two slots or more then end later by less than a twentieth of the rest.
constexpr std::uint64_t kPartCheap = 12;
// Cases that are looked at for one that memory allows.
constexpr std::ptrdiff_t kLooks = 1024;

// What a case takes, as far as it is known or estimated; those that take the same by their size.
std::pair<std::uint64_t, std::uint64_t> cost_order(const wire::JobT& queued) {
  return {queued.test_case.work_us, queued.test_case.elements};
}

// Whether it ran out of memory before.
bool wants_all(const wire::JobT& queued) {
  return queued.attempt.memory == wire::MemoryNeed::whole_device;
}

bool is_small(const wire::JobT& queued) {
  return queued.test_case.elements <= kSmallOnGpu && queued.test_case.work_us < kLeaseWorkUs;
}

}  // namespace

void Queue::add(wire::JobT added) {
  work_us_ += added.test_case.work_us;
  cases_.push_back(std::move(added));
}

void Queue::sort(std::size_t slots) {
  slots_ = std::max<std::size_t>(slots, 1);
  if (!on_gpu_.empty()) share_out_small(slots_);
  std::stable_sort(cases_.begin(), cases_.end(), [](const wire::JobT& a, const wire::JobT& b) {
    return cost_order(a) < cost_order(b);
  });
  if (cheap_left_us_ || cases_.empty()) return;
  const std::uint64_t longest_us = std::min(cases_.back().test_case.work_us, work_us_);
  cheap_left_us_ = (work_us_ - longest_us) / kPartCheap;
}

void Queue::share_out_small(std::size_t slots) {
  for (std::deque<wire::JobT>& of_slot : small_) {
    cases_.insert(cases_.end(), of_slot.begin(), of_slot.end());
  }
  const auto small = std::stable_partition(
      cases_.begin(), cases_.end(), [](const wire::JobT& queued) { return !is_small(queued); });
  std::stable_sort(small, cases_.end(), [](const wire::JobT& a, const wire::JobT& b) {
    return a.test_case.text < b.test_case.text;
  });
  small_left_ = static_cast<std::size_t>(std::distance(small, cases_.end()));
  small_.assign(slots, {});
  for (std::size_t i = 0; i < small_left_; ++i) {
    small_[i * slots / small_left_].push_back(small[static_cast<std::ptrdiff_t>(i)]);
  }
  cases_.erase(small, cases_.end());
}

void Queue::put_back(const wire::JobT& again) {
  work_us_ += again.test_case.work_us;
  if (again.attempt.isolation == wire::Isolation::shared_retry) ++company_;
  again_.push_back(again);
}

void Queue::put_first(const wire::JobT& again) {
  work_us_ += again.test_case.work_us;
  again_.push_front(again);
}

bool Queue::renew(std::uint64_t id, std::uint64_t epoch) {
  std::vector<std::deque<wire::JobT>*> lists{&cases_, &again_};
  lists.reserve(small_.size() + 2);
  for (std::deque<wire::JobT>& of_slot : small_) lists.push_back(&of_slot);
  for (std::deque<wire::JobT>* waiting : lists) {
    for (wire::JobT& queued : *waiting) {
      if (queued.test_case.id != id) continue;
      queued.attempt.epoch = epoch;
      return true;
    }
  }
  return false;
}

// Whether cases take the host's memory: those that are on GPUs in all of their lanes do not.
bool Queue::on_host() const { return budget_.all < std::numeric_limits<std::uint64_t>::max(); }

bool Queue::has_room(const wire::JobT& queued) const {
  const std::uint64_t bytes = queued.test_case.bytes;
  if (short_of_memory_) return false;
  if (wants_all(queued) && on_host()) return running_ == 0;
  const std::uint64_t beside = budget_.all / kPartBeside;
  if (bytes > budget_.all) return !over_budget_ && in_use_ <= beside;
  const std::uint64_t most = over_budget_ ? beside : budget_.all;
  return bytes <= most && in_use_ <= most - bytes;
}

// What fits nowhere is let in where nothing else is.
bool Queue::gpu_admits(const OnGpu& gpu, const wire::JobT& queued) const {
  if (gpu.cases == 0) return true;
  const std::uint64_t bytes = queued.test_case.bytes;
  return !gpu.short_of_memory && !wants_all(queued) && bytes <= budget_.each_gpu &&
         gpu.bytes <= budget_.each_gpu - bytes;
}

bool Queue::admits(std::uint32_t slot, const wire::JobT& queued) const {
  return has_room(queued) &&
         (on_gpu_.empty() || gpu_admits(on_gpu_[slot % on_gpu_.size()], queued));
}

bool Queue::takes_second_attempts(std::uint32_t slot) const {
  return on_gpu_.empty() || with_fresh_lanes_.contains(slot) ||
         again_.size() >= kWaitForFreshLanes * with_fresh_lanes_.size();
}

std::deque<wire::JobT>::const_iterator Queue::next_again(std::uint32_t slot, bool any_fresh) const {
  return std::find_if(again_.begin(), again_.end(), [&](const wire::JobT& queued) {
    return queued.attempt.isolation != wire::Isolation::shared_retry &&
           (any_fresh || queued.attempt.isolation == wire::Isolation::shared) &&
           admits(slot, queued);
  });
}

bool Queue::next_is_suspect(std::uint32_t slot) const {
  const auto next = next_again(slot, takes_second_attempts(slot));
  return next != again_.end() && next->attempt.slots_lost > 0;
}

bool Queue::cheap_for_all() const {
  const std::uint64_t left_us = cheap_left_us_.value_or(0);
  if (cases_.empty() || left_us == 0) return false;
  return small_left_ > 0 || cases_.front().test_case.work_us <= left_us;
}

Queue::Place Queue::next_case(std::uint32_t slot, bool cheap) {
  const auto allowed = [&](const wire::JobT& queued) { return admits(slot, queued); };
  const std::ptrdiff_t looks = std::min(std::ssize(cases_), kLooks);
  if (!cheap) {
    const auto end = cases_.rbegin() + looks;
    const auto found = std::find_if(cases_.rbegin(), end, allowed);
    if (found != end) return {&cases_, std::prev(found.base())};
  }
  if (const Place small = next_small(slot); small.list != nullptr) return small;
  const auto end = cases_.begin() + looks;
  const auto found = std::find_if(cases_.begin(), end, allowed);
  return found != end ? Place{&cases_, found} : Place{};
}

Queue::Place Queue::next_small(std::uint32_t slot) {
  if (small_left_ == 0) return {};
  const auto allowed = [&](const wire::JobT& queued) { return admits(slot, queued); };
  std::deque<wire::JobT>& own = small_[slot % small_.size()];
  const auto end = own.cbegin() + std::min(std::ssize(own), kLooks);
  const auto found = std::find_if(own.cbegin(), end, allowed);
  if (found != end) return {&own, found};
  std::vector<std::deque<wire::JobT>*> others;
  others.reserve(small_.size());
  for (std::deque<wire::JobT>& list : small_) others.push_back(&list);
  std::stable_sort(others.begin(), others.end(),
                   [](const auto* a, const auto* b) { return a->size() > b->size(); });
  for (std::deque<wire::JobT>* list : others) {
    const auto last = list->crbegin() + std::min(std::ssize(*list), kLooks);
    const auto taken = std::find_if(list->crbegin(), last, allowed);
    if (taken != last) return {list, std::prev(taken.base())};
  }
  return {};
}

// Of few cases each slot has its part: what hangs holds up those behind it.
std::size_t Queue::part_of(std::size_t cases) const {
  return std::max<std::size_t>((cases + slots_ - 1) / slots_, 1);
}

// How many cases of a list make a lease: of small ones half, so that who helps ends with the slot
// whose they are.
std::size_t Queue::share_of(std::uint32_t slot, const std::deque<wire::JobT>& list) const {
  if (small_.empty() || &list == &cases_) return std::min(part_of(list.size()), kLeaseCases);
  const std::size_t half = (list.size() + 1) / 2;
  const bool own = &list == &small_[slot % small_.size()];
  return std::min(own ? std::max(half, kSmallLast) : half, kSmallLeaseCases);
}

std::size_t Queue::enough(std::size_t slots) const {
  return std::clamp(small_left_ / (2 * std::max<std::size_t>(slots, 1)), kEnough, kSmallLeaseCases);
}

void Queue::take(std::uint32_t slot, const Place& place, std::vector<wire::JobT>& leased) {
  wire::JobT& taken =
      leased.emplace_back(std::move(place.list->at(place.at - place.list->cbegin())));
  const std::uint64_t bytes = taken.test_case.bytes;
  wire::AttemptT& attempt = taken.attempt;
  const bool over_budget = bytes > budget_.all;
  attempt.lease = last_lease_;
  if (!wants_all(taken)) {
    const bool nothing_else = running_ == 0 && on_gpu_.empty();
    attempt.memory =
        over_budget && nothing_else ? wire::MemoryNeed::over_budget : wire::MemoryNeed::estimated;
  }
  if (over_budget) {
    over_budget_ = true;
    beside_it_ = running_ > 0;
  } else {
    in_use_ += bytes;
    beside_it_ = true;
  }
  ++running_;
  short_of_memory_ = wants_all(taken) && on_host();
  work_us_ -= taken.test_case.work_us;
  if (cheap_left_us_) *cheap_left_us_ -= std::min(*cheap_left_us_, taken.test_case.work_us);
  if (!on_gpu_.empty()) {
    OnGpu& gpu = on_gpu_[slot % on_gpu_.size()];
    gpu.bytes += bytes;
    gpu.short_of_memory = wants_all(taken);
    ++gpu.cases;
  }
  if (place.list != &cases_ && place.list != &again_) --small_left_;
  if (attempt.isolation != wire::Isolation::shared) with_fresh_lanes_.insert(slot);
  if (attempt.isolation == wire::Isolation::shared_retry) --company_;
  place.list->erase(place.at);
}

// One at a time: each is suspected of something.
bool Queue::take_again(std::uint32_t slot, bool any_fresh, std::vector<wire::JobT>& leased) {
  const auto again = next_again(slot, any_fresh);
  if (again == again_.end()) return false;
  take(slot, {&again_, again}, leased);
  return true;
}

bool Queue::take_company(std::uint32_t slot, std::size_t most, std::vector<wire::JobT>& leased) {
  std::map<std::uint32_t, std::uint64_t> earliest;  // first attempt of what is taken, by slot
  for (std::size_t place = again_.size(); place-- > 0 && leased.size() < most;) {
    const auto at = again_.cbegin() + static_cast<std::ptrdiff_t>(place);
    const wire::Ran& first_ran = at->attempt.first_ran;
    if (at->attempt.isolation != wire::Isolation::shared_retry || !admits(slot, *at)) continue;
    std::uint64_t& of_slot = earliest.try_emplace(first_ran.slot(), kNever).first->second;
    if (first_ran.to() >= of_slot) continue;
    of_slot = first_ran.from();
    take(slot, {&again_, at}, leased);
  }
  hurry_ = hurry_ && company_ > 0;
  return !leased.empty();
}

bool Queue::take_new(std::uint32_t slot, bool ahead, std::vector<wire::JobT>& leased) {
  const bool first = leases_[slot]++ == 0;
  const bool all_cheap = cheap_for_all();
  const bool cheap = first || all_cheap || slot % 2 == 1;
  std::size_t most = std::min(part_of(size()), kFirstLeaseCases);
  const std::deque<wire::JobT>* from = nullptr;
  std::uint64_t elements = 0;
  std::uint64_t work_us = 0;
  while (leased.size() < most) {
    Place next = next_case(slot, cheap);
    // Of what takes long the longest comes first everywhere: it must not be what a run ends with.
    if (!all_cheap && next.list != nullptr && next.at->test_case.work_us >= kLeaseWorkUs) {
      next = next_case(slot, false);
    }
    if (next.list == nullptr || (!leased.empty() && next.list != from)) break;
    if (leased.empty() && !first) most = share_of(slot, *next.list);
    from = next.list;
    const wire::CaseT& cost = next.at->test_case;
    if (ahead && cost.bytes > budget_.all / kPartAhead) break;
    const std::uint64_t left = kLeaseElements - std::min(elements, kLeaseElements);
    const std::uint64_t work_left = kLeaseWorkUs - std::min(work_us, kLeaseWorkUs);
    if (!leased.empty() && (cost.elements > left || cost.work_us > work_left)) break;
    elements += cost.elements;
    work_us += cost.work_us;
    take(slot, next, leased);
  }
  return !leased.empty();
}

std::vector<wire::JobT> Queue::lease(std::uint32_t slot, bool ahead) {
  std::vector<wire::JobT> leased;
  ++last_lease_;
  const bool second_attempts = takes_second_attempts(slot);
  const bool gathered = hurry_ || company_ >= kCompany;
  if (take_again(slot, second_attempts, leased)) return leased;
  if (second_attempts && gathered && take_company(slot, kCompany, leased)) return leased;
  if (take_new(slot, ahead, leased) || ahead) return leased;
  // Nothing else is left. On GPUs a lane of its own would take a slot longer than its part of them.
  const std::size_t part = (company_ + slots_ - 1) / slots_;
  const std::size_t most = on_gpu_.empty() ? std::max(part, kLeastCompany) : kCompany;
  (void)(take_again(slot, true, leased) || take_company(slot, most, leased));
  return leased;
}

bool Queue::release(std::uint32_t slot, const wire::JobT& ended) {
  const std::uint64_t bytes = ended.test_case.bytes;
  if (running_ > 0) --running_;
  short_of_memory_ = short_of_memory_ && !wants_all(ended);
  if (!on_gpu_.empty()) {
    OnGpu& gpu = on_gpu_[slot % on_gpu_.size()];
    gpu.bytes -= std::min(gpu.bytes, bytes);
    if (gpu.cases > 0) --gpu.cases;
    gpu.short_of_memory = gpu.short_of_memory && !wants_all(ended);
  }
  if (bytes <= budget_.all) {
    in_use_ -= std::min(in_use_, bytes);
    return false;
  }
  over_budget_ = false;
  return on_gpu_.empty() && !beside_it_;  // a GPU has others' work on it, too
}

}  // namespace assay
