// What must hold at every step of a simulation.

#include <algorithm>

#include "simulation.h"

namespace assay::testing {

// No retry in a shared process follows a case of another API, or one that it followed the first
// time. On CPUs none shares a process.
void Simulation::check_shared_process(const std::vector<wire::JobT>& cases) {
  for (auto later = cases.begin(); later != cases.end(); ++later) {
    if (later->attempt.isolation != wire::Isolation::shared_retry) continue;
    expect(later->attempt.number > 1, "a first attempt in a shared retry process");
    expect(budget_.gpus > 0, "a shared retry process on a CPU");
    for (auto before = cases.begin(); before != later; ++before) {
      const Ran& one = first_ran_.at(before->test_case.id);
      const Ran& other = first_ran_.at(later->test_case.id);
      expect(before->test_case.text == later->test_case.text, "it follows another API");
      expect(one.slot != other.slot || one.step > other.step, "it follows the same case again");
    }
  }
}

// Beside a case that fits no budget, an eighth of the budget may be in use. A case that ran out of
// memory is alone everywhere when it runs again.
void Simulation::check_memory() {
  std::uint64_t bytes = 0;
  std::size_t over_budget = 0;
  bool wants_room = false;
  for (const auto& [id, held] : in_use_) {
    held.bytes > budget_.all ? ++over_budget : bytes += held.bytes;
    // It has come to a slot again since.
    wants_room = wants_room || (short_of_memory_.contains(id) && held.attempt > 1);
  }
  expect(bytes <= budget_.all && over_budget <= 1, "more memory than the budget");
  expect(over_budget == 0 || bytes <= budget_.all / 8,
         "too much beside a case that fits no budget");
  expect(in_use_.size() == 1 || !wants_room, "a neighbour for what ran out of memory");
  for (std::size_t gpu = 0; gpu < budget_.gpus; ++gpu) {
    std::uint64_t on_gpu = 0;
    std::size_t giants = 0;
    for (const auto& [id, held] : in_use_) {
      if (held.slot % budget_.gpus != gpu) continue;
      held.bytes > budget_.each_gpu ? ++giants : on_gpu += held.bytes;
    }
    expect(giants <= 1 && on_gpu <= (giants > 0 ? budget_.each_gpu / 8 : budget_.each_gpu),
           "more memory than a GPU has");
  }
}

namespace {

// Whether a case fits a budget while others use `in_use` of it. `over`: one of them does not fit.
bool leaves(std::uint64_t bytes, std::uint64_t in_use, bool over, std::uint64_t budget) {
  if (bytes > budget) return !over && in_use <= budget / 8;
  return in_use + bytes <= (over ? budget / 8 : budget);
}

}  // namespace

// Whether a waiting case could start in this slot.
bool Simulation::has_room(std::size_t slot, std::uint64_t id) const {
  const std::uint64_t bytes = store_.rows.at(id).planned.test_case.bytes;
  std::uint64_t in_use = 0;
  std::uint64_t on_gpu = 0;
  bool over_budget = false;
  bool over_gpu = false;
  if (short_of_memory_.contains(id)) return in_use_.empty();
  for (const auto& [other, held] : in_use_) {
    if (held.attempt > 1 && short_of_memory_.contains(other)) return false;
    over_budget = over_budget || held.bytes > budget_.all;
    if (held.bytes <= budget_.all) in_use += held.bytes;
    if (budget_.gpus == 0 || held.slot % budget_.gpus != slot % budget_.gpus) continue;
    over_gpu = over_gpu || held.bytes > budget_.each_gpu;
    if (held.bytes <= budget_.each_gpu) on_gpu += held.bytes;
  }
  const bool on_host = leaves(bytes, in_use, over_budget, budget_.all);
  return on_host && (budget_.gpus == 0 || leaves(bytes, on_gpu, over_gpu, budget_.each_gpu));
}

// All slots must have given back memory, except the one whose case may need all of it.
void Simulation::check_given_back(std::size_t runs) {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    const bool keeps = slots_[slot].up && !slots_[slot].killed && !gave_back_.contains(slot);
    expect(slot == runs || !keeps, "an idle slot keeps memory");
  }
}

void Simulation::check_nobody_sleeps() {
  if (ended_ || wrong_ || core_->stop_reason() != StopReason::none) return;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    const bool holds = std::any_of(in_use_.begin(), in_use_.end(),
                                   [&](const auto& entry) { return entry.second.slot == slot; });
    const bool waits = !slots_[slot].up && slots_that_begin() >= begin_at_once_;
    if (holds || slots_[slot].killed || waits) continue;
    for (const std::uint64_t id : unended_) {
      expect(in_use_.contains(id) || !has_room(slot, id), "a slot sleeps beside work");
    }
  }
}

// A case that passes is not blamed, a failing case does not pass, and a slot's death is blamed on a
// case only after several slots ended while they held it.
void Simulation::check_verdict(const SimulatedStore::Row& row, const Judged& action) {
  const Verdict& verdict = action.verdict;
  if (verdict.lane == "slot") {
    expect(row.slots_lost >= 4, "a case is given up too early");
    return;
  }
  expect(answers(row.nature), "a verdict on a case that never answered");
  if (verdict.outcome == Outcome::crash) return;  // killed from outside, again and again
  expect((verdict.outcome == Outcome::pass) == (row.nature != Nature::fails), "a wrong verdict");
  const wire::AttemptT& attempt = action.job.attempt;
  expect(attempt.isolation != wire::Isolation::shared_retry ||
             (info(verdict.outcome).failed && verdict.message.empty()),
         "in a shared retry process another ending than the first is believed");
  if (info(verdict.outcome).failed) {
    const bool for_good =
        verdict.outcome == Outcome::oom && had_all_memory_.contains(row.planned.test_case.id);
    expect(for_good || (attempt.number >= 2 && attempt.isolation != wire::Isolation::shared),
           "a first failure is believed");
  }
}

}  // namespace assay::testing
