#pragma once

// What is tried a second time. A first failure is not believed at once: the case runs again, in
// lanes that have run nothing before, or, where no lane had ended, only other second attempts that
// did not run before it the first time. A failure that then shows in the same way, to the last
// digit that is told, is no neighbour's; any other ending is settled alone.

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "schedule/queue.h"
#include "verdict/judge.h"

namespace assay {

// What a slot says came of a case, judged.
struct Answer {
  std::uint64_t id = 0;
  std::uint32_t attempt = 1;
  Verdict verdict;
  bool fresh = false;                // it ran in lanes that had run nothing before
  bool killed_from_outside = false;  // which says nothing of the case
  // Where a lane ran out of time: how long another took that did not.
  std::optional<std::uint64_t> beside_overdue_us;
  std::uint64_t ran_from = 0;  // among what its slot had run: the first of its trials, …
  std::uint64_t ran_to = 0;    // … and the last
  std::span<const std::uint8_t> record;  // wire::Record
};

class Retries {
 public:
  // `company`: whether second attempts may share a lane.
  explicit Retries(bool company = true) : company_(company) {}

  // How isolated the case, as it was leased, has to run again; nullopt: its verdict is final, and
  // tells of the first attempt where that ended otherwise. `had_all_memory`: nothing ran beside it.
  std::optional<wire::Isolation> again(const Answer& answer, const wire::JobT& ran,
                                       Verdict& verdict, bool had_all_memory = false);
  // The time limit of that further run, of a case with this one so far: what hangs where another
  // lane needed a moment does not take the whole limit to hang again.
  static std::uint64_t limit_ms(const Answer& answer, std::uint64_t limit);
  // The case ends without an answer.
  void forget(std::uint64_t id) { firsts_.erase(id); }

 private:
  struct First {
    Verdict verdict;
    bool fresh = false;
    int kills = 0;  // from outside
  };
  std::optional<wire::Isolation> first_failure(const Answer& answer, const wire::JobT& ran,
                                               bool had_all_memory);

  bool company_;
  std::map<std::uint64_t, First> firsts_;  // attempts that failed, by case
};

}  // namespace assay
