#include "schedule/gpu_order.h"

#include <algorithm>
#include <iterator>

namespace assay {
namespace {

// Cases with at most this many elements are small, unless they take long.
constexpr std::uint64_t kSmallElements = 20'000;
// Small cases of a lease: a slot runs some hundred at a time.
constexpr std::size_t kSmallLeaseCases = 256;
// A slot leases half of its own range, so that others can help, but all of it if it is this short.
constexpr std::size_t kSmallLast = 32;
// In the time in which a slot makes lanes for retries, another one that has them runs this many.
constexpr std::size_t kRetriesPerSlot = 8;

bool is_small(const wire::JobT& job) {
  return job.test_case.elements <= kSmallElements && job.test_case.work_us < kLongUs;
}

}  // namespace

void GpuOrder::sort(std::size_t slots, std::uint64_t work_us) {
  deal_out_small(std::max<std::size_t>(slots, 1));
  CpuOrder::sort(slots, work_us);
}

void GpuOrder::deal_out_small(std::size_t slots) {
  for (Cases& of_slot : small_) {
    std::move(of_slot.begin(), of_slot.end(), std::back_inserter(cases_));
  }
  const auto small = std::stable_partition(cases_.begin(), cases_.end(),
                                           [](const wire::JobT& job) { return !is_small(job); });
  std::stable_sort(small, cases_.end(), [](const wire::JobT& a, const wire::JobT& b) {
    return a.test_case.text < b.test_case.text;
  });
  small_left_ = static_cast<std::size_t>(std::distance(small, cases_.end()));
  small_.assign(slots, {});
  for (std::size_t i = 0; i < small_left_; ++i) {
    small_[i * slots / small_left_].push_back(std::move(small[static_cast<std::ptrdiff_t>(i)]));
  }
  cases_.erase(small, cases_.end());
}

wire::JobT* GpuOrder::find(std::uint64_t id) {
  for (Cases& of_slot : small_) {
    for (wire::JobT& job : of_slot) {
      if (job.test_case.id == id) return &job;
    }
  }
  return CpuOrder::find(id);
}

std::size_t GpuOrder::enough(std::size_t slots) const {
  return std::clamp(small_left_ / (2 * std::max<std::size_t>(slots, 1)), CpuOrder::enough(slots),
                    kSmallLeaseCases);
}

bool GpuOrder::takes_retries(std::uint32_t slot, std::size_t waiting) const {
  return with_lanes_.contains(slot) || waiting >= kRetriesPerSlot * with_lanes_.size();
}

void GpuOrder::count_retry(std::uint32_t slot, const wire::JobT& retry) {
  CpuOrder::count_retry(slot, retry);
  if (retry.attempt.isolation != wire::Isolation::shared) with_lanes_.insert(slot);
}

CpuOrder::Position GpuOrder::next_of_slot(std::uint32_t slot, const Allowed& allowed) {
  if (small_left_ == 0) return {};
  if (const Position own = first_allowed(small_[slot % small_.size()], allowed);
      own.list != nullptr) {
    return own;
  }
  std::vector<Cases*> others;
  others.reserve(small_.size());
  for (Cases& list : small_) others.push_back(&list);
  std::stable_sort(others.begin(), others.end(),
                   [](const Cases* a, const Cases* b) { return a->size() > b->size(); });
  for (Cases* list : others) {
    if (const Position last = last_allowed(*list, allowed); last.list != nullptr) return last;
  }
  return {};
}

// Half of a range, so that a helping slot finishes at the same time as its owner.
std::size_t GpuOrder::share_of(std::uint32_t slot, const Cases& list) const {
  if (small_.empty() || &list == &cases_) return CpuOrder::share_of(slot, list);
  const std::size_t half = (list.size() + 1) / 2;
  const bool own = &list == &small_[slot % small_.size()];
  return std::min(own ? std::max(half, kSmallLast) : half, kSmallLeaseCases);
}

void GpuOrder::took(const Position& position) {
  if (position.list != &cases_) --small_left_;
}

std::unique_ptr<Order> make_order(const MemoryUse& memory) {
  if (memory.on_gpus()) return std::make_unique<GpuOrder>();
  return std::make_unique<CpuOrder>();
}

}  // namespace assay
