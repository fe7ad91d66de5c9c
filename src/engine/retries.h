#pragma once

// What is tried a second time. A first failure is not believed at once: the case runs again, alone,
// in lanes that have run nothing before.

#include <cstdint>
#include <map>
#include <span>

#include "schedule/queue.h"
#include "verdict/judge.h"

namespace assay {

// What a slot says came of a case, judged.
struct Answer {
  std::uint64_t id = 0;
  std::uint32_t attempt = 1;
  Verdict verdict;
  bool fresh = false;                    // it ran in lanes that had run nothing before
  bool killed_from_outside = false;      // which says nothing of the case
  std::span<const std::uint8_t> record;  // wire::Record
};

class Retries {
 public:
  // Whether the case has to run again. If not, the verdict is the one that stands: it says so where
  // the first attempt came to something else.
  bool again(const Answer& answer, Verdict& verdict);
  // The case ends without an answer.
  void forget(std::uint64_t id) { firsts_.erase(id); }

 private:
  struct First {
    Verdict verdict;
    bool fresh = false;
    int kills = 0;  // from outside
  };
  std::map<std::uint64_t, First> firsts_;  // attempts that failed, by case
};

}  // namespace assay
