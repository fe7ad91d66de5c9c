#pragma once

// Decides about retries. A first failure is not final: the case runs again in new lanes. If no lane
// ended, it may share them on a GPU with other retries of its API (schedule/queue.h). The same
// failure in a shared process, down to the last digit of its message, is final. Any other ending is
// decided by a retry in its own process.

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "schedule/queue.h"
#include "verdict/judge.h"

namespace assay {

// A case that a slot ran, with its verdict.
struct Judged {
  wire::JobT job;
  Verdict verdict = {};
  bool killed_from_outside = false;  // says nothing about the case
  // If a lane ran out of time: the time of another lane that did not.
  std::optional<std::uint64_t> beside_overdue_us = {};
  std::uint64_t device_bytes = 0;  // what a lane took, or needed, on its GPU; 0: not known
  std::uint64_t ran_from = 0;      // first of its trials, among all that its slot ran …
  std::uint64_t ran_to = 0;        // … and the last one
  std::span<const std::uint8_t> record = {};  // wire::Record; empty if the slot sent none
};

class Retries {
 public:
  // `share`: retries may share a process.
  explicit Retries(bool share = true) : share_(share) {}

  // The isolation of the case's retry; nullopt: its verdict is final, and mentions the first
  // attempt if that ended otherwise. `had_all_memory`: it cannot get more memory.
  std::optional<wire::Isolation> retry(Judged& judged, bool had_all_memory = false);
  // Time limit of that retry. If another lane needed a moment only, a hang need not take the whole
  // limit again.
  static std::uint64_t limit_ms(const Judged& judged);
  // The case ends without an answer.
  void forget(std::uint64_t id) { firsts_.erase(id); }

 private:
  struct First {
    Verdict verdict;
    int kills = 0;  // from outside
  };
  std::optional<wire::Isolation> first_failure(const Judged& judged, bool had_all_memory);

  bool share_;
  std::map<std::uint64_t, First> firsts_;  // failed attempts, by case
};

}  // namespace assay
