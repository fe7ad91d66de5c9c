#pragma once

// The order of new cases where the first call of a kernel is expensive: on GPUs, and in lanes that
// compile.
//
// On a GPU, the first call of a kernel in a process takes as long as hundreds of small cases, and
// each lane pays for it. So small cases are sorted by their text, and thus by API, and each slot
// gets a contiguous range of them. A slot that has finished its range takes cases from the end of
// the longest range. Large cases are ordered as on CPUs.
//
// A kernel that is compiled at its first call takes seconds. There, cases of one API and dtype are
// a group, which stays in one range and is taken by one slot, also from another's range, unless it
// is the last of its range. Leases are short, since a slot keeps what it has leased.
//
// On a GPU, the first retry of a slot makes new lanes, and the whole machine waits for them. So few
// slots run retries. Another slot joins only if many retries wait or it has nothing else to do.

#include <set>

#include "schedule/cpu_order.h"

namespace assay {

class GroupOrder final : public CpuOrder {
 public:
  GroupOrder(bool on_gpus, bool compiles) : on_gpus_(on_gpus), compiles_(compiles) {}
  void sort(std::size_t slots, std::uint64_t work_us) override;
  wire::JobT* find(std::uint64_t id) override;
  std::size_t size() const override { return CpuOrder::size() + small_left_; }
  std::size_t enough(std::size_t slots) const override;
  bool takes_retries(std::uint32_t slot, std::size_t waiting) const override;
  void count_retry(std::uint32_t slot, const wire::JobT& retry) override;

 private:
  Position next_of_slot(std::uint32_t slot, const Allowed& allowed) override;
  bool lists_of_slots_wait() const override { return small_left_ > 0; }
  std::size_t share_of(std::uint32_t slot, const Cases& list) const override;
  void took(const Position& position) override;
  void deal_out_small(std::size_t slots);
  bool is_small(const wire::JobT& job) const;
  // The part of a range that a slot leases at a time: half, or an eighth if its cases compile.
  std::size_t parts() const { return compiles_ ? 8 : 2; }

  bool on_gpus_;
  bool compiles_;
  std::vector<Cases> small_;            // the range of each slot
  std::size_t small_left_ = 0;          // cases in all ranges
  std::set<std::uint32_t> with_lanes_;  // slots that have made lanes for retries
};

}  // namespace assay
