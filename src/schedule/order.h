#pragma once

// The new cases that wait, and the order in which slots get them. There is one policy for CPUs
// (cpu_order), and one for GPUs and lanes that compile (group_order). Queue adds the retries.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/memory_use.h"
#include "wire/job.h"

namespace assay {

// A case with this expected time does not wait behind others.
inline constexpr std::uint64_t kLongUs = 1'000'000;
// The elements of a lease, unless it is one larger case.
inline constexpr std::uint64_t kLeaseElements = 4'000'000;
// The largest number of retries that share a process.
inline constexpr std::size_t kMostSharedRetries = 32;

class Order {
 public:
  struct Request {
    std::uint32_t slot = 0;
    bool ahead = false;       // the slot still has cases to run
    std::size_t waiting = 0;  // cases, retries included
  };

  Order() = default;
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;
  virtual ~Order() = default;

  // Adds a waiting case.
  virtual void add(wire::JobT added) = 0;
  // Orders the cases. Call it after the last add(). `work_us`: expected work of all waiting cases.
  virtual void sort(std::size_t slots, std::uint64_t work_us) = 0;
  // The next cases for a slot that `memory` admits. They are counted in `memory`.
  virtual std::vector<wire::JobT> lease(const Request& request, MemoryUse& memory) = 0;
  // The waiting case with this id; nullptr if there is none.
  virtual wire::JobT* find(std::uint64_t id) = 0;
  virtual std::size_t size() const = 0;
  // One of `slots` slots that holds this many cases needs no lease yet.
  virtual std::size_t enough(std::size_t slots) const = 0;

  // Whether a slot may start retries while `waiting` retries wait.
  virtual bool takes_retries(std::uint32_t slot, std::size_t waiting) const = 0;
  // Counts a retry that this slot gets.
  virtual void count_retry(std::uint32_t slot, const wire::JobT& retry) = 0;
};

// The policy for lanes on CPUs or on GPUs, as `memory` says. `compiles`: they compile kernels.
std::unique_ptr<Order> make_order(const MemoryUse& memory, bool compiles);

}  // namespace assay
