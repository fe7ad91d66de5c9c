#include "schedule/queue.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "case/case_traits.h"

namespace assay {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

bool is_retry(const wire::JobT& job) { return job.attempt.isolation != wire::Isolation::shared; }

bool may_share(const wire::JobT& job) {
  return job.attempt.isolation == wire::Isolation::shared_retry;
}

}  // namespace

void Queue::add(wire::JobT added) {
  work_us_ += added.test_case.work_us;
  order_->add(std::move(added));
}

void Queue::sort(std::size_t slots) { order_->sort(slots, work_us_); }

void Queue::put_back(const wire::JobT& again) {
  work_us_ += again.test_case.work_us;
  if (may_share(again)) ++sharing_;
  again_.push_back(again);
}

void Queue::put_first(const wire::JobT& again) {
  work_us_ += again.test_case.work_us;
  again_.push_front(again);
}

bool Queue::renew(std::uint64_t id, std::uint64_t epoch) {
  wire::JobT* waiting = order_->find(id);
  for (wire::JobT& job : again_) {
    if (job.test_case.id == id) waiting = &job;
  }
  if (waiting != nullptr) waiting->attempt.epoch = epoch;
  return waiting != nullptr;
}

Queue::Again Queue::next_again(std::uint32_t slot, bool any_retry) const {
  return std::find_if(again_.begin(), again_.end(), [&](const wire::JobT& job) {
    return !may_share(job) && (any_retry || !is_retry(job)) && memory_.admits(slot, job);
  });
}

bool Queue::next_is_suspect(std::uint32_t slot) const {
  const auto next = next_again(slot, order_->takes_retries(slot, again_.size()));
  return next != again_.end() && next->attempt.slots_lost > 0;
}

void Queue::take_again(std::uint32_t slot, const Again& at, std::vector<wire::JobT>& leased) {
  wire::JobT& taken = leased.emplace_back(*at);
  memory_.take(slot, taken);
  order_->count_retry(slot, taken);
  if (may_share(taken)) --sharing_;
  again_.erase(at);
}

// Leases one retry that runs alone, or one case whose slot died.
bool Queue::lease_again(std::uint32_t slot, bool any_retry, std::vector<wire::JobT>& leased) {
  const auto next = next_again(slot, any_retry);
  if (next == again_.end()) return false;
  take_again(slot, next, leased);
  return true;
}

// Leases retries of one API that share a process, in the order in which they run.
bool Queue::lease_sharing(std::uint32_t slot, std::vector<wire::JobT>& leased) {
  std::map<std::uint32_t, std::uint64_t> earliest;  // first attempt of a taken case, by slot
  for (std::size_t i = again_.size(); i-- > 0 && leased.size() < kMostSharedRetries;) {
    const auto at = again_.cbegin() + static_cast<std::ptrdiff_t>(i);
    const wire::Ran& first_ran = at->attempt.first_ran;
    if (!may_share(*at) || !memory_.admits(slot, *at)) continue;
    if (!leased.empty() && api_of(at->test_case.text) != api_of(leased.front().test_case.text))
      continue;
    std::uint64_t& of_slot = earliest.try_emplace(first_ran.slot(), kNever).first->second;
    if (first_ran.to() >= of_slot) continue;
    of_slot = first_ran.from();
    take_again(slot, at, leased);
  }
  hurry_ = hurry_ && sharing_ > 0;
  return !leased.empty();
}

std::vector<wire::JobT> Queue::choose(std::uint32_t slot, bool ahead) {
  std::vector<wire::JobT> leased;
  const bool takes_retries = order_->takes_retries(slot, again_.size());
  const bool gathered = hurry_ || sharing_ >= kMostSharedRetries;
  if (lease_again(slot, takes_retries, leased)) return leased;
  if (takes_retries && gathered && lease_sharing(slot, leased)) return leased;
  leased = order_->lease({slot, ahead, size()}, memory_);
  if (!leased.empty() || ahead) return leased;
  (void)(lease_again(slot, true, leased) || lease_sharing(slot, leased));
  return leased;
}

std::vector<wire::JobT> Queue::lease(std::uint32_t slot, bool ahead) {
  std::vector<wire::JobT> leased = choose(slot, ahead);
  ++last_lease_;
  for (wire::JobT& job : leased) {
    job.attempt.lease = last_lease_;
    work_us_ -= job.test_case.work_us;
  }
  return leased;
}

}  // namespace assay
