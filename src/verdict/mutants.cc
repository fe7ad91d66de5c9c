#include "verdict/mutants.h"

#include <algorithm>
#include <string_view>

#include "verdict/endings.h"
#include "verdict/messages.h"

namespace assay {
namespace {

// Start of the reason that a lane gives if no bit differs (python/assay/mutation).
constexpr std::string_view kEquivalent = "equivalent:";

// The value regimes in which the case passes without a fault.
std::vector<std::string> judged_values(const wire::Record& record, const Policy& policy,
                                       const Rules& rules) {
  std::vector<std::string> found;
  for (const wire::Trial* trial : *record.trials()) {
    if (is_mutant(*trial)) continue;
    const std::optional<Verdict> verdict = judge_trial(*trial, policy, record, rules);
    if (verdict && verdict->outcome == Outcome::pass) found.push_back(text(trial->values()));
  }
  return found;
}

bool is_drawn(const wire::Trial& trial) {
  if (trial.pairs() == nullptr || trial.pairs()->size() == 0) return false;
  const auto* outputs = trial.pairs()->Get(0)->outputs();
  if (outputs == nullptr) return false;
  return std::any_of(outputs->begin(), outputs->end(), [](const wire::Comparison* comparison) {
    return comparison->right()->kind() == wire::LeafKind::distribution;
  });
}

// A call that raises or dies with a planted fault does so because of the planting. This is no
// success of the judge.
Fate fate_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::mismatch:
    case Outcome::unstable:
    case Outcome::no_kernel:
      return Fate::killed;
    case Outcome::pass:
    case Outcome::reference_error:  // blames the wrong lane
      return Fate::survived;
    default:
      return Fate::unjudged;
  }
}

}  // namespace

std::vector<Mutant> judge_mutants(const wire::Record& record, const Policy& policy,
                                  const Rules& rules) {
  std::vector<Mutant> mutants;
  if (!is_whole(record)) return mutants;
  const std::vector<std::string> judged = judged_values(record, policy, rules);
  for (const wire::Trial* trial : *record.trials()) {
    if (!is_mutant(*trial)) continue;
    Mutant& mutant = mutants.emplace_back();
    mutant.fault = text(trial->mutant());
    mutant.values = text(trial->values());
    if (std::find(judged.begin(), judged.end(), mutant.values) == judged.end()) continue;
    if (const std::string reason = text(trial->skipped()); !reason.empty()) {
      mutant.fate = reason.starts_with(kEquivalent) ? Fate::equivalent : Fate::inapplicable;
      mutant.message = reason;
      continue;
    }
    const std::optional<Verdict> verdict = judge_trial(*trial, policy, record, rules);
    if (!verdict) continue;
    mutant.fate = fate_of(verdict->outcome);
    mutant.weak = (verdict->flags & kWeak) != 0 || is_drawn(*trial);
    mutant.planted = text(trial->lanes()->Get(0)->error());
    mutant.message = verdict->message;
  }
  return mutants;
}

}  // namespace assay
