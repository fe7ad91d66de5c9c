#include "schedule/queue.h"

#include <algorithm>

namespace assay {
namespace {

// Cases of a lease: enough that the supervisor is asked rarely, few enough that a slot's death
// costs little and the last leases end together.
constexpr std::size_t kLeaseCases = 64;
constexpr std::size_t kFirstLeaseCases = 8;
constexpr std::uint64_t kLeaseElements = 4'000'000;
// On GPUs cases of at most so many elements count as equally dear.
constexpr std::uint64_t kSmallOnGpu = 20'000;

// Whether so much more fits; what fits nowhere is let in where nothing else is.
bool fits(std::uint64_t bytes, std::uint64_t in_use, std::uint64_t budget) {
  return in_use == 0 || (bytes <= budget && in_use <= budget - bytes);
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
    return a.cost.elements < b.cost.elements;
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

bool Queue::admits(std::uint32_t slot, std::uint64_t bytes) const {
  return fits(bytes, in_use_, budget_.all) &&
         (on_gpu_.empty() || fits(bytes, on_gpu_[slot % on_gpu_.size()], budget_.each_gpu));
}

std::vector<QueuedCase> Queue::lease(std::uint32_t slot) {
  std::vector<QueuedCase> leased;
  const auto take = [&](const QueuedCase& taken) {
    in_use_ += taken.cost.bytes;
    work_us_ -= taken.cost.work_us;
    if (!on_gpu_.empty()) on_gpu_[slot % on_gpu_.size()] += taken.cost.bytes;
    leased.push_back(taken);
  };
  if (!again_.empty()) {
    if (!admits(slot, again_.front().cost.bytes)) return leased;
    // One at a time: each is suspected of something.
    take(again_.front());
    again_.pop_front();
    return leased;
  }
  const bool first = leases_[slot]++ == 0;
  const bool cheap = first || slot % 2 == 1;
  const std::size_t most = first ? kFirstLeaseCases : kLeaseCases;
  std::uint64_t elements = 0;
  while (!cases_.empty() && leased.size() < most) {
    const QueuedCase& next = cheap ? cases_.front() : cases_.back();
    if (!admits(slot, next.cost.bytes)) {
      if (!leased.empty() || cheap || !admits(slot, cases_.front().cost.bytes)) break;
      take(cases_.front());  // too large for now; a small one meanwhile
      cases_.pop_front();
      continue;
    }
    if (!leased.empty() && elements + next.cost.elements > kLeaseElements) break;
    elements += next.cost.elements;
    take(next);
    cheap ? cases_.pop_front() : cases_.pop_back();
  }
  return leased;
}

void Queue::release(std::uint32_t slot, std::uint64_t bytes) {
  in_use_ -= std::min(in_use_, bytes);
  if (on_gpu_.empty()) return;
  std::uint64_t& on_gpu = on_gpu_[slot % on_gpu_.size()];
  on_gpu -= std::min(on_gpu, bytes);
}

}  // namespace assay
