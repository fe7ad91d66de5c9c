#pragma once

// The order of new cases on CPUs.
//
// The first twelfth of the expected work is leased cheapest first. So a run that is stopped early
// has most of its verdicts. After that, slots with even numbers take the most expensive case first,
// because an expensive case at the end keeps all other slots waiting. Slots with odd numbers
// continue from the cheap end. So large tensors stay with half of the slots: these have touched
// their memory already (a first touch is ten times as slow as reuse), and fewer slots compete for
// the memory budget. All slots take cases of a second or more longest first. The first lease of a
// slot is a short one from the cheap end.

#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "schedule/order.h"

namespace assay {

class CpuOrder : public Order {
 public:
  void add(wire::JobT added) override;
  void sort(std::size_t slots, std::uint64_t work_us) override;
  std::vector<wire::JobT> lease(const Request& request, MemoryUse& memory) override;
  wire::JobT* find(std::uint64_t id) override;
  std::size_t size() const override { return cases_.size(); }
  std::size_t enough(std::size_t slots) const override;
  bool takes_retries(std::uint32_t slot, std::size_t waiting) const override;
  void count_retry(std::uint32_t slot, const wire::JobT& retry) override;

 protected:
  using Cases = std::deque<wire::JobT>;
  using Allowed = std::function<bool(const wire::JobT&)>;
  // The position of a waiting case; `list` is null if there is none.
  struct Position {
    Cases* list = nullptr;
    Cases::const_iterator at;
  };

  // A case from the slot's own list, if the policy has such lists.
  virtual Position next_of_slot(std::uint32_t slot, const Allowed& allowed);
  // Whether any slot's own list has cases.
  virtual bool lists_of_slots_wait() const { return false; }
  // The largest number of cases from this list in a lease.
  virtual std::size_t share_of(std::uint32_t slot, const Cases& list) const;
  // Called before a case is removed from its list.
  virtual void took(const Position&) {}

  static Position first_allowed(Cases& list, const Allowed& allowed);
  static Position last_allowed(Cases& list, const Allowed& allowed);
  std::size_t part_of(std::size_t cases) const;

  Cases cases_;  // cheapest first
  std::size_t slots_ = 1;

 private:
  bool cheap_for_all() const;
  Position next(std::uint32_t slot, bool cheap, const Allowed& allowed);
  void spend(std::uint64_t work_us);

  // Work that is still leased before the expensive cases. Only the first claim sets it; otherwise
  // each claim would postpone the expensive cases again.
  std::optional<std::uint64_t> cheap_left_us_;
  std::map<std::uint32_t, std::size_t> leases_;  // number of leases of each slot
};

}  // namespace assay
