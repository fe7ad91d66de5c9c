#include "engine/retries.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace assay {
namespace {

// After this many attempts, a lane that is killed from outside counts as crashed.
constexpr int kKills = 10;

// If another lane took more than this part of the limit, a case that ran out of time is slow, not
// hung. (A slot gives later lanes no more time either.)
constexpr std::uint64_t kSlowPart = 10;

// A case with more memory takes so long that a process of its own costs little.
constexpr std::uint64_t kMostSharedBytes = std::uint64_t{64} << 20;

// Whether it would run out of time again.
bool is_slow(const Judged& judged) {
  return judged.verdict.outcome == Outcome::timeout &&
         (!judged.beside_overdue_us ||
          *judged.beside_overdue_us / 1000 > judged.job.attempt.limit_ms / kSlowPart);
}

// A call with an unexpected time is measured anew, faster or slower.
bool about_speed(Outcome outcome) { return outcome == Outcome::slow || outcome == Outcome::fast; }

// A case that ends lanes must not share them: a lane's death needs one cause.
bool leaves_lanes_alive(Outcome outcome) {
  return outcome == Outcome::mismatch || outcome == Outcome::test_error ||
         outcome == Outcome::reference_error || outcome == Outcome::unstable;
}

bool same_failure(const Verdict& first, const Verdict& second) {
  const auto shown = [](const Verdict& verdict) {
    return std::tie(verdict.outcome, verdict.mismatch, verdict.lane, verdict.message,
                    verdict.fault());
  };
  return shown(first) == shown(second);
}

// The retry after a lack of memory had more of it. Of any other failure that does not come again
// the cause is not known: another case of its lane, or the case itself.
void mention_first(const Verdict& first, Verdict& verdict) {
  if (first.outcome == verdict.outcome) return;
  verdict.flags |= first.outcome == Outcome::oom ? kContaminated : kFlaky;
  verdict.message = fmt::format("first {} ({}), then: {}", name(first.outcome), first.message,
                                verdict.message.empty() ? name(verdict.outcome) : verdict.message);
}

}  // namespace

std::optional<wire::Isolation> Retries::retry(Judged& judged, bool had_all_memory) {
  const auto first = firsts_.find(judged.job.test_case.id);
  if (first == firsts_.end()) return first_failure(judged, had_all_memory);
  const Verdict& before = first->second.verdict;
  Verdict& verdict = judged.verdict;
  if (judged.killed_from_outside && ++first->second.kills < kKills)
    return wire::Isolation::own_process;
  // It failed otherwise before, and may now lack memory that a neighbour has.
  if (verdict.outcome == Outcome::oom && !had_all_memory) return wire::Isolation::own_process;
  if (judged.job.attempt.isolation == wire::Isolation::shared_retry &&
      !same_failure(before, verdict))
    return wire::Isolation::own_process;
  if (about_speed(before.outcome) && about_speed(verdict.outcome) &&
      before.outcome != verdict.outcome) {
    verdict.outcome = Outcome::unsure;  // the two measurements contradict each other
  }
  mention_first(before, verdict);
  firsts_.erase(first);
  return std::nullopt;
}

std::optional<wire::Isolation> Retries::first_failure(const Judged& judged, bool had_all_memory) {
  const Outcome outcome = judged.verdict.outcome;
  if (!info(outcome).failed && !about_speed(outcome)) return std::nullopt;
  if (is_slow(judged)) return std::nullopt;
  // A case that ran out of all memory would do so again.
  if (outcome == Outcome::oom && had_all_memory) return std::nullopt;
  const wire::JobT& job = judged.job;
  firsts_.emplace(job.test_case.id, First{judged.verdict, 0});
  const bool shares = share_ && leaves_lanes_alive(outcome) && job.attempt.slots_lost == 0 &&
                      job.test_case.bytes <= kMostSharedBytes;
  return shares ? wire::Isolation::shared_retry : wire::Isolation::own_process;
}

std::uint64_t Retries::limit_ms(const Judged& judged) {
  const std::uint64_t limit = judged.job.attempt.limit_ms;
  if (judged.verdict.outcome != Outcome::timeout) return limit;
  constexpr std::uint64_t kAtLeastMs = 10'000;
  const std::uint64_t hundred_times_ms = judged.beside_overdue_us.value_or(0) / 10;
  return std::min(limit, std::max(kAtLeastMs, hundred_times_ms));
}

}  // namespace assay
