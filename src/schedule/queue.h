#pragma once

// Decides which case runs next, and in which slot: the new cases in the order of order.h, and the
// retries. It uses neither processes nor a clock.
//
// Retries come before new cases. On a CPU each has a process of its own. On a GPU a process costs
// more than many retries, so those of one API may share one, and wait for each other until hurry()
// is called. They then run in the reverse order of their first attempts, so that no retry follows a
// case that it followed before. A case of another API that leaves its lane changed harms none.

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
  // `compiles`: the first call of a kernel may compile it.
  explicit Queue(const MemoryBudget& budget, bool compiles = false)
      : memory_(budget), order_(make_order(memory_, compiles)) {}

  // Adds a new case.
  void add(wire::JobT added);
  // Orders the new cases for this number of slots. Call it after the last add().
  void sort(std::size_t slots = 1);
  // Adds a retry, or a case whose slot died, after or before all others of these.
  void put_back(const wire::JobT& again);
  void put_first(const wire::JobT& again);
  // Whether retries of one API may share a process: where a new lane is expensive.
  bool shares_retries() const { return memory_.on_gpus(); }
  // Retries that may share a process wait no longer.
  void hurry() { hurry_ = sharing_ > 0; }

  // Gives a waiting case the epoch of a newer lease of the store. False if it does not wait here.
  bool renew(std::uint64_t id, std::uint64_t epoch);

  // The next cases for a slot; none if the queue is empty or memory does not allow any. `ahead`:
  // the slot still has cases to run, so it gets no case that needs much memory.
  std::vector<wire::JobT> lease(std::uint32_t slot, bool ahead = false);
  // One of `slots` slots that holds this many cases needs no lease yet.
  std::size_t enough(std::size_t slots) const { return order_->enough(slots); }

  // Frees the memory of a case that has ended or whose slot died. Returns whether the case had all
  // memory of the host (MemoryUse::release).
  bool release(std::uint32_t slot, const wire::JobT& ended) { return memory_.release(slot, ended); }

  // What a lane took on its GPU (MemoryUse::learn).
  void learn(const wire::JobT& ran, std::uint64_t bytes) { memory_.learn(ran, bytes); }

  // Whether the next lease of this slot would be a case whose slot died before. Such a case must
  // not share a slot.
  bool next_is_suspect(std::uint32_t slot) const;

  bool empty() const { return size() == 0; }
  std::size_t size() const { return order_->size() + again_.size(); }
  std::uint64_t work_us() const { return work_us_; }  // expected, of all waiting cases

 private:
  using Again = std::deque<wire::JobT>::const_iterator;
  Again next_again(std::uint32_t slot, bool any_retry) const;
  void take_again(std::uint32_t slot, const Again& at, std::vector<wire::JobT>& leased);
  bool lease_again(std::uint32_t slot, bool any_retry, std::vector<wire::JobT>& leased);
  bool lease_sharing(std::uint32_t slot, std::vector<wire::JobT>& leased);
  std::vector<wire::JobT> choose(std::uint32_t slot, bool ahead);

  MemoryUse memory_;
  std::unique_ptr<Order> order_;
  std::deque<wire::JobT> again_;  // retries, and cases whose slot died
  std::size_t sharing_ = 0;       // retries in again_ that may share a process
  bool hurry_ = false;            // these wait no longer
  std::uint64_t work_us_ = 0;
  std::uint64_t last_lease_ = 0;  // its number
};

}  // namespace assay
