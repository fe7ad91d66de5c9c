#pragma once

// New cases that wait, and the order in which slots get them. There is one policy for CPUs
// (cpu_order) and one for GPUs (gpu_order); Queue adds the retries.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/memory_use.h"
#include "wire/job.h"

namespace assay {

// A case that is expected to take this long does not wait behind others.
inline constexpr std::uint64_t kLongUs = 1'000'000;
// Retries that share a process, at most.
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

  virtual void add(wire::JobT added) = 0;
  // Call after the last add(). `work_us`: expected work of all cases that wait.
  virtual void sort(std::size_t slots, std::uint64_t work_us) = 0;
  // The next cases for a slot, as far as `memory` admits them; it counts them as taken.
  virtual std::vector<wire::JobT> lease(const Request& request, MemoryUse& memory) = 0;
  // A waiting case; nullptr: it does not wait here.
  virtual wire::JobT* find(std::uint64_t id) = 0;
  virtual std::size_t size() const = 0;
  // A slot that holds this many cases, one of `slots`, needs no lease yet.
  virtual std::size_t enough(std::size_t slots) const = 0;

  // Whether a slot may start retries while `waiting` of them wait.
  virtual bool takes_retries(std::uint32_t slot, std::size_t waiting) const = 0;
  // A retry goes to this slot.
  virtual void count_retry(std::uint32_t slot, const wire::JobT& retry) = 0;
  // Retries that share a process when nothing else waits, of `waiting` that may.
  virtual std::size_t shared_retries(std::size_t waiting) const = 0;
};

std::unique_ptr<Order> make_order(const MemoryUse& memory);

}  // namespace assay
