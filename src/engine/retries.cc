#include "engine/retries.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {

// Attempts after which a lane that someone keeps killing counts as crashed.
constexpr int kKills = 10;

// Where another lane took more than this part of the limit, a case that ran out of time is a slow
// one. (The slot gives a lane that comes after one that ran out of time no more either.)
constexpr std::uint64_t kSlowPart = 10;

// Whether it would run out of time again.
bool is_slow(const Answer& answer, std::uint64_t limit_ms) {
  return answer.verdict.outcome == Outcome::timeout &&
         (!answer.beside_overdue_us || *answer.beside_overdue_us / 1000 > limit_ms / kSlowPart);
}

// A call that takes another time than it should is measured anew, whichever is the faster.
bool about_speed(Outcome outcome) { return outcome == Outcome::slow || outcome == Outcome::fast; }

// A case that failed only in a used lane was made to fail by another; one that failed in a fresh
// lane, and not again, does as it likes.
void tell_of_first(const Verdict& first, bool fresh, Verdict& verdict) {
  if (first.outcome == verdict.outcome) return;
  verdict.flags |= fresh ? std::uint8_t{kFlaky} : std::uint8_t{kContaminated};
  verdict.message = fmt::format("first {} ({}), then: {}", name(first.outcome), first.message,
                                verdict.message.empty() ? name(verdict.outcome) : verdict.message);
}

}  // namespace

bool Retries::again(const Answer& answer, std::uint64_t limit_ms, Verdict& verdict,
                    bool had_all_memory) {
  const auto first = firsts_.find(answer.id);
  const Outcome outcome = answer.verdict.outcome;
  if (first == firsts_.end()) {
    if (!info(outcome).failed && !about_speed(outcome)) return false;
    if (is_slow(answer, limit_ms)) return false;
    // What ran out of all the memory that there is would do so again.
    if (outcome == Outcome::oom && had_all_memory) return false;
    firsts_.emplace(answer.id, First{answer.verdict, answer.fresh, 0});
    return true;
  }
  if (answer.killed_from_outside && ++first->second.kills < kKills) return true;
  // It had failed otherwise, and now perhaps lacks what a neighbour has.
  if (outcome == Outcome::oom && !had_all_memory) return true;
  // Lanes that are timed have all run little before.
  const bool fresh = first->second.fresh || about_speed(first->second.verdict.outcome);
  const Outcome before = first->second.verdict.outcome;
  if (about_speed(before) && about_speed(verdict.outcome) && before != verdict.outcome) {
    verdict.outcome = Outcome::unsure;  // the two measurements contradict each other
  }
  tell_of_first(first->second.verdict, fresh, verdict);
  firsts_.erase(first);
  return false;
}

std::uint64_t Retries::limit_ms(const Answer& answer, std::uint64_t limit) {
  if (answer.verdict.outcome != Outcome::timeout) return limit;
  constexpr std::uint64_t kAtLeastMs = 10'000;
  const std::uint64_t hundred_times_ms = answer.beside_overdue_us.value_or(0) / 10;
  return std::min(limit, std::max(kAtLeastMs, hundred_times_ms));
}

}  // namespace assay
