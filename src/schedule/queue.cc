#include "schedule/queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace assay {
namespace {

// Cases of a lease: enough that the supervisor is asked rarely, few enough that a slot's death
// costs little and the last leases end together.
constexpr std::size_t kLeaseCases = 64;
constexpr std::size_t kFirstLeaseCases = 8;
constexpr std::uint64_t kLeaseElements = 4'000'000;
constexpr std::uint64_t kLeaseWorkUs = 1'000'000;
// On GPUs cases of at most so many elements count as equally expensive.
constexpr std::uint64_t kSmallOnGpu = 20'000;
// The part of the budget that is for what runs beside a case that fits no budget.
constexpr std::uint64_t kPartBeside = 8;
// What is larger than this part of the budget is not leased ahead.
constexpr std::uint64_t kPartAhead = 16;
// Cases that are looked at for one that memory allows.
constexpr std::ptrdiff_t kLooks = 1024;

// Whether so much more fits on a GPU; what fits nowhere is let in where nothing else is.
bool fits(std::uint64_t bytes, std::uint64_t in_use, std::uint64_t budget) {
  return in_use == 0 || (bytes <= budget && in_use <= budget - bytes);
}

// What a case takes, as far as it is known or estimated; those that take the same by their size.
std::pair<std::uint64_t, std::uint64_t> cost_order(const QueuedCase& queued) {
  return {queued.cost.work_us, queued.cost.elements};
}

}  // namespace

void Queue::add(const QueuedCase& added) {
  work_us_ += added.cost.work_us;
  cases_.push_back(added);
}

void Queue::sort() {
  // A kernel's first call in a process takes 10 to 50 ms, as long as some hundred small cases, and
  // each lane has to pay it: cases of one API go to few lanes.
  const auto small = [&](const QueuedCase& queued) {
    return !on_gpu_.empty() && queued.cost.elements <= kSmallOnGpu;
  };
  std::stable_sort(cases_.begin(), cases_.end(), [&](const QueuedCase& a, const QueuedCase& b) {
    if (small(a) && small(b)) return a.text < b.text;
    return cost_order(a) < cost_order(b);
  });
}

void Queue::put_back(const QueuedCase& again) {
  work_us_ += again.cost.work_us;
  again_.push_back(again);
}

void Queue::put_first(const QueuedCase& again) {
  work_us_ += again.cost.work_us;
  again_.push_front(again);
}

bool Queue::renew(std::uint64_t id, std::uint64_t epoch) {
  for (std::deque<QueuedCase>* waiting : {&cases_, &again_}) {
    for (QueuedCase& queued : *waiting) {
      if (queued.id != id) continue;
      queued.epoch = epoch;
      return true;
    }
  }
  return false;
}

bool Queue::has_room(const QueuedCase& queued) const {
  const std::uint64_t bytes = queued.cost.bytes;
  const std::uint64_t beside = short_of_memory_ > 0 ? 0 : budget_.all / kPartBeside;
  if (bytes > budget_.all) {
    return !over_budget_ && in_use_ <= (queued.short_of_memory ? 0 : beside);
  }
  if (over_budget_ && queued.short_of_memory) return false;
  const std::uint64_t most = over_budget_ ? beside : budget_.all;
  return bytes <= most && in_use_ <= most - bytes;
}

bool Queue::admits(std::uint32_t slot, const QueuedCase& queued) const {
  return has_room(queued) &&
         (on_gpu_.empty() ||
          fits(queued.cost.bytes, on_gpu_[slot % on_gpu_.size()], budget_.each_gpu));
}

std::deque<QueuedCase>::const_iterator Queue::next_again(std::uint32_t slot) const {
  return std::find_if(again_.begin(), again_.end(),
                      [&](const QueuedCase& queued) { return admits(slot, queued); });
}

bool Queue::next_is_suspect(std::uint32_t slot) const {
  const auto next = next_again(slot);
  return next != again_.end() && next->losses > 0;
}

std::deque<QueuedCase>::const_iterator Queue::next_case(std::uint32_t slot, bool cheap) const {
  const auto allowed = [&](const QueuedCase& queued) { return admits(slot, queued); };
  const std::ptrdiff_t looks = std::min(std::ssize(cases_), kLooks);
  if (!cheap) {
    const auto end = cases_.rbegin() + looks;
    const auto found = std::find_if(cases_.rbegin(), end, allowed);
    if (found != end) return std::prev(found.base());
  }
  const auto end = cases_.begin() + looks;
  const auto found = std::find_if(cases_.begin(), end, allowed);
  return found != end ? found : cases_.end();
}

std::vector<QueuedCase> Queue::lease(std::uint32_t slot, bool ahead) {
  std::vector<QueuedCase> leased;
  const auto take = [&](std::deque<QueuedCase>& waiting, const auto& taken) {
    if (taken->cost.bytes > budget_.all) {
      over_budget_ = true;
    } else {
      in_use_ += taken->cost.bytes;
    }
    short_of_memory_ += taken->short_of_memory ? 1 : 0;
    work_us_ -= taken->cost.work_us;
    if (!on_gpu_.empty()) on_gpu_[slot % on_gpu_.size()] += taken->cost.bytes;
    leased.push_back(*taken);
    waiting.erase(taken);
  };
  if (const auto again = next_again(slot); again != again_.end()) {
    take(again_, again);  // one at a time: each is suspected of something
    return leased;
  }
  const bool first = leases_[slot]++ == 0;
  const bool cheap = first || slot % 2 == 1;
  const std::size_t most = first ? kFirstLeaseCases : kLeaseCases;
  std::uint64_t elements = 0;
  std::uint64_t work_us = 0;
  while (leased.size() < most) {
    auto next = next_case(slot, cheap);
    // Of what takes long the longest comes first everywhere: it must not be what a run ends with.
    if (next != cases_.end() && next->cost.work_us >= kLeaseWorkUs) next = next_case(slot, false);
    if (next == cases_.end() || (ahead && next->cost.bytes > budget_.all / kPartAhead)) break;
    const std::uint64_t left = kLeaseElements - std::min(elements, kLeaseElements);
    const std::uint64_t work_left = kLeaseWorkUs - std::min(work_us, kLeaseWorkUs);
    if (!leased.empty() && (next->cost.elements > left || next->cost.work_us > work_left)) break;
    elements += next->cost.elements;
    work_us += next->cost.work_us;
    take(cases_, next);
  }
  return leased;
}

void Queue::release(std::uint32_t slot, std::uint64_t bytes, bool short_of_memory) {
  if (short_of_memory && short_of_memory_ > 0) --short_of_memory_;
  if (bytes > budget_.all) {
    over_budget_ = false;
  } else {
    in_use_ -= std::min(in_use_, bytes);
  }
  if (on_gpu_.empty()) return;
  std::uint64_t& on_gpu = on_gpu_[slot % on_gpu_.size()];
  on_gpu -= std::min(on_gpu, bytes);
}

}  // namespace assay
