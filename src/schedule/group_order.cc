#include "schedule/group_order.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "case/case_traits.h"

namespace assay {
namespace {

// Cases with at most this many elements are small, unless they take long.
constexpr std::uint64_t kSmallElements = 20'000;
// Small cases of a lease: a slot runs some hundred at a time.
constexpr std::size_t kSmallLeaseCases = 256;
// A slot leases a part of its own range, so that others can help. If nothing compiles, it leases
// all of a range that is this short.
constexpr std::size_t kSmallLast = 32;
// In the time in which a slot makes lanes for retries, another one that has them runs this many.
constexpr std::size_t kRetriesPerSlot = 8;

std::pair<std::string_view, std::string_view> group_of(const wire::JobT& job) {
  return {api_of(job.test_case.text), first_dtype(job.test_case.text)};
}

}  // namespace

bool GroupOrder::is_small(const wire::JobT& job) const {
  const std::uint64_t most = compiles_ ? kLeaseElements : kSmallElements;
  return job.test_case.elements <= most && job.test_case.work_us < kLongUs;
}

void GroupOrder::sort(std::size_t slots, std::uint64_t work_us) {
  deal_out_small(std::max<std::size_t>(slots, 1));
  CpuOrder::sort(slots, work_us);
}

void GroupOrder::deal_out_small(std::size_t slots) {
  for (Cases& of_slot : small_) {
    std::move(of_slot.begin(), of_slot.end(), std::back_inserter(cases_));
  }
  const auto small = std::stable_partition(cases_.begin(), cases_.end(),
                                           [&](const wire::JobT& job) { return !is_small(job); });
  std::stable_sort(small, cases_.end(), [&](const wire::JobT& a, const wire::JobT& b) {
    if (compiles_ && group_of(a) != group_of(b)) return group_of(a) < group_of(b);
    return a.test_case.text < b.test_case.text;
  });
  small_left_ = static_cast<std::size_t>(std::distance(small, cases_.end()));
  small_.assign(slots, {});
  std::size_t range = 0;
  for (std::size_t i = 0; i < small_left_; ++i) {
    wire::JobT& job = small[static_cast<std::ptrdiff_t>(i)];
    const bool continues =
        compiles_ && !small_[range].empty() && group_of(small_[range].back()) == group_of(job);
    if (!continues) range = i * slots / small_left_;
    small_[range].push_back(std::move(job));
  }
  cases_.erase(small, cases_.end());
}

wire::JobT* GroupOrder::find(std::uint64_t id) {
  for (Cases& of_slot : small_) {
    for (wire::JobT& job : of_slot) {
      if (job.test_case.id == id) return &job;
    }
  }
  return CpuOrder::find(id);
}

std::size_t GroupOrder::enough(std::size_t slots) const {
  const std::size_t least = compiles_ ? 1 : CpuOrder::enough(slots);
  return std::clamp(small_left_ / (parts() * std::max<std::size_t>(slots, 1)), least,
                    kSmallLeaseCases);
}

bool GroupOrder::takes_retries(std::uint32_t slot, std::size_t waiting) const {
  return !on_gpus_ || with_lanes_.contains(slot) || waiting >= kRetriesPerSlot * with_lanes_.size();
}

void GroupOrder::count_retry(std::uint32_t slot, const wire::JobT& retry) {
  CpuOrder::count_retry(slot, retry);
  if (retry.attempt.isolation != wire::Isolation::shared) with_lanes_.insert(slot);
}

CpuOrder::Position GroupOrder::next_of_slot(std::uint32_t slot, const Allowed& allowed) {
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

// Half of a range, so that a helping slot finishes at the same time as its owner. If cases compile,
// it takes a group, or half of the last one.
std::size_t GroupOrder::share_of(std::uint32_t slot, const Cases& list) const {
  if (small_.empty() || &list == &cases_) return CpuOrder::share_of(slot, list);
  const bool own = &list == &small_[slot % small_.size()];
  const std::size_t half = (list.size() + 1) / 2;
  if (!compiles_) return std::min(own ? std::max(half, kSmallLast) : half, kSmallLeaseCases);
  if (own) return std::clamp<std::size_t>(list.size() / parts(), 1, kSmallLeaseCases);
  const auto group = std::find_if(list.crbegin(), list.crend(), [&](const wire::JobT& job) {
    return group_of(job) != group_of(list.back());
  });
  const auto last = static_cast<std::size_t>(group - list.crbegin());
  return std::min(group == list.crend() ? half : last, kSmallLast);
}

void GroupOrder::took(const Position& position) {
  if (position.list != &cases_) --small_left_;
}

std::unique_ptr<Order> make_order(const MemoryUse& memory, bool compiles) {
  if (memory.on_gpus() || compiles) {
    return std::make_unique<GroupOrder>(memory.on_gpus(), compiles);
  }
  return std::make_unique<CpuOrder>();
}

}  // namespace assay
