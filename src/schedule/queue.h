#pragma once

// Which case runs next, and where: the new cases in the order of order.h, and the retries.
// Bookkeeping only, without processes or a clock.
//
// Retries go before new cases. A lane costs more than most retries, so retries that may share a
// process wait for each other, for a moment at most (hurry()). They then run one after another, in
// the reverse order of their first attempts: no retry follows a case that it followed before.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "schedule/memory_use.h"
#include "schedule/order.h"
#include "wire/job.h"

namespace assay {

class Queue {
 public:
  explicit Queue(const MemoryBudget& budget) : memory_(budget), order_(make_order(memory_)) {}

  void add(wire::JobT added);
  // Call once after the last add(), with the number of slots that will ask for leases.
  void sort(std::size_t slots = 1);
  // Adds a retry, or a case whose slot died.
  void put_back(const wire::JobT& again);
  // The same, before all others.
  void put_first(const wire::JobT& again);
  // Retries that may share a process have waited long enough.
  void hurry() { hurry_ = sharing_ > 0; }

  // Gives a waiting case the epoch of a newer lease of the store; false: it does not wait here.
  bool renew(std::uint64_t id, std::uint64_t epoch);

  // The next cases for a slot; none if the queue is empty or memory does not allow. `ahead`: the
  // slot still has cases to run, so it gets none that need much memory.
  std::vector<wire::JobT> lease(std::uint32_t slot, bool ahead = false);
  // A slot that holds this many cases, one of `slots`, needs no lease yet.
  std::size_t enough(std::size_t slots) const { return order_->enough(slots); }

  // A case of the slot has ended, or the slot died: its memory is free again. Returns whether the
  // case had all memory of the host (MemoryUse::release).
  bool release(std::uint32_t slot, const wire::JobT& ended) { return memory_.release(slot, ended); }

  // Whether the next lease of this slot is a case that has lost a slot before. Such a case needs a
  // slot for itself.
  bool next_is_suspect(std::uint32_t slot) const;

  bool empty() const { return size() == 0; }
  std::size_t size() const { return order_->size() + again_.size(); }
  std::uint64_t work_us() const { return work_us_; }  // expected, of all waiting cases

 private:
  using Again = std::deque<wire::JobT>::const_iterator;
  Again next_again(std::uint32_t slot, bool any_retry) const;
  void take_again(std::uint32_t slot, const Again& at, std::vector<wire::JobT>& leased);
  bool lease_again(std::uint32_t slot, bool any_retry, std::vector<wire::JobT>& leased);
  bool lease_sharing(std::uint32_t slot, std::size_t most, std::vector<wire::JobT>& leased);
  std::vector<wire::JobT> choose(std::uint32_t slot, bool ahead);

  MemoryUse memory_;
  std::unique_ptr<Order> order_;
  std::deque<wire::JobT> again_;
  std::size_t sharing_ = 0;  // of these, retries that may share a process
  bool hurry_ = false;       // they wait no longer
  std::uint64_t work_us_ = 0;
  std::uint64_t last_lease_ = 0;  // its number
};

}  // namespace assay
