#include "engine/retries.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace assay {
namespace {

// Attempts after which a lane that someone keeps killing counts as crashed.
constexpr int kKills = 10;

// Where another lane took more than this part of the limit, a case that ran out of time is a slow
// one. (The slot gives a lane that comes after one that ran out of time no more either.)
constexpr std::uint64_t kSlowPart = 10;

// What needs more memory takes so long that a lane of its own costs little beside it.
constexpr std::uint64_t kCompanyBytes = std::uint64_t{64} << 20;

// Whether it would run out of time again.
bool is_slow(const Answer& answer, std::uint64_t limit_ms) {
  return answer.verdict.outcome == Outcome::timeout &&
         (!answer.beside_overdue_us || *answer.beside_overdue_us / 1000 > limit_ms / kSlowPart);
}

// A call that takes another time than it should is measured anew, whichever is the faster.
bool about_speed(Outcome outcome) { return outcome == Outcome::slow || outcome == Outcome::fast; }

// What ends no lane may have company: a lane's death has to have one cause.
bool leaves_lanes_alive(Outcome outcome) {
  return outcome == Outcome::mismatch || outcome == Outcome::test_error ||
         outcome == Outcome::reference_error || outcome == Outcome::unstable;
}

bool same_failure(const Verdict& first, const Verdict& second) {
  const auto shown = [](const Verdict& verdict) {
    const Fault& fault = verdict.fault;
    return std::tie(verdict.outcome, verdict.mismatch, verdict.lane, verdict.message, fault.values,
                    fault.gradient, fault.leaf, fault.kinds, fault.dtype, fault.special,
                    fault.phase);
  };
  return shown(first) == shown(second);
}

// A case that failed only in a used lane was made to fail by another; one that failed in a fresh
// lane, and not again, does as it likes.
void tell_of_first(const Verdict& first, bool fresh, Verdict& verdict) {
  if (first.outcome == verdict.outcome) return;
  verdict.flags |= fresh ? std::uint8_t{kFlaky} : std::uint8_t{kContaminated};
  verdict.message = fmt::format("first {} ({}), then: {}", name(first.outcome), first.message,
                                verdict.message.empty() ? name(verdict.outcome) : verdict.message);
}

}  // namespace

std::optional<wire::Isolation> Retries::again(const Answer& answer, const wire::JobT& ran,
                                              Verdict& verdict, bool had_all_memory) {
  const auto first = firsts_.find(answer.id);
  if (first == firsts_.end()) return first_failure(answer, ran, had_all_memory);
  const Verdict& before = first->second.verdict;
  if (answer.killed_from_outside && ++first->second.kills < kKills)
    return wire::Isolation::own_process;
  // It had failed otherwise, and now perhaps lacks what a neighbour has.
  if (answer.verdict.outcome == Outcome::oom && !had_all_memory)
    return wire::Isolation::own_process;
  if (ran.attempt.isolation == wire::Isolation::shared_retry &&
      !same_failure(before, answer.verdict))
    return wire::Isolation::own_process;
  // Lanes that are timed have all run little before.
  const bool fresh = first->second.fresh || about_speed(before.outcome);
  if (about_speed(before.outcome) && about_speed(verdict.outcome) &&
      before.outcome != verdict.outcome) {
    verdict.outcome = Outcome::unsure;  // the two measurements contradict each other
  }
  tell_of_first(before, fresh, verdict);
  firsts_.erase(first);
  return std::nullopt;
}

std::optional<wire::Isolation> Retries::first_failure(const Answer& answer, const wire::JobT& ran,
                                                      bool had_all_memory) {
  const Outcome outcome = answer.verdict.outcome;
  if (!info(outcome).failed && !about_speed(outcome)) return std::nullopt;
  if (is_slow(answer, ran.attempt.limit_ms)) return std::nullopt;
  // What ran out of all the memory that there is would do so again.
  if (outcome == Outcome::oom && had_all_memory) return std::nullopt;
  firsts_.emplace(answer.id, First{answer.verdict, answer.fresh, 0});
  const bool company = company_ && leaves_lanes_alive(outcome) && ran.attempt.slots_lost == 0 &&
                       ran.test_case.bytes <= kCompanyBytes;
  return company ? wire::Isolation::shared_retry : wire::Isolation::own_process;
}

std::uint64_t Retries::limit_ms(const Answer& answer, std::uint64_t limit) {
  if (answer.verdict.outcome != Outcome::timeout) return limit;
  constexpr std::uint64_t kAtLeastMs = 10'000;
  const std::uint64_t hundred_times_ms = answer.beside_overdue_us.value_or(0) / 10;
  return std::min(limit, std::max(kAtLeastMs, hundred_times_ms));
}

}  // namespace assay
