#include "verdict/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "case/dtype.h"
#include "verdict/within.h"

namespace assay {
namespace {

// What a case left behind in its lane's memory beyond this is called a leak.
constexpr std::int64_t kLeakKb = 512 * 1024;

std::string text(const flatbuffers::String* string) {
  return string == nullptr ? std::string() : string->str();
}

bool raised(const wire::LaneRecord& lane) { return lane.status() == wire::Status::raised; }

std::string lane_message(const wire::LaneRecord& lane) {
  const std::string phase = text(lane.phase());
  std::string error = text(lane.error());
  std::replace(error.begin(), error.end(), '\n', ' ');
  return phase.empty() || phase == "forward" ? error : fmt::format("in {}: {}", phase, error);
}

std::string signal_text(int number) {
  const char* abbreviation = ::sigabbrev_np(number);
  return abbreviation == nullptr ? fmt::format("signal {}", number)
                                 : fmt::format("SIG{}", abbreviation);
}

Verdict of_lane(Outcome outcome, const wire::LaneRecord& lane, std::string message) {
  Verdict verdict;
  verdict.outcome = outcome;
  verdict.lane = text(lane.name());
  verdict.message = std::move(message);
  return verdict;
}

Verdict dead(const wire::LaneRecord& lane) {
  const std::string who = text(lane.name());
  if (lane.status() == wire::Status::timed_out) {
    return of_lane(Outcome::timeout, lane, fmt::format("the {} lane ran out of time", who));
  }
  if (lane.exit_signal() == SIGKILL && lane.oom_killed()) {
    return of_lane(Outcome::oom, lane,
                   fmt::format("the kernel ran out of memory and killed the {} lane", who));
  }
  std::string how = lane.exit_signal() != 0 ? "died of " + signal_text(lane.exit_signal())
                                            : std::string("ended by itself");
  if (const std::string reason = text(lane.error()); !reason.empty()) how = "was ended: " + reason;
  return of_lane(Outcome::crash, lane, fmt::format("the {} lane {}", who, how));
}

// The outcome that lane states alone decide, in the order of Outcome.
bool decided_by_lanes(const wire::Trial& trial, Verdict& verdict) {
  const auto first_with = [&](wire::Status status) -> const wire::LaneRecord* {
    for (const wire::LaneRecord* lane : *trial.lanes()) {
      if (lane->status() == status) return lane;
    }
    return nullptr;
  };
  const auto first_raised = [&](wire::Role role) -> const wire::LaneRecord* {
    for (const wire::LaneRecord* lane : *trial.lanes()) {
      if (lane->role() == role && raised(*lane)) return lane;
    }
    return nullptr;
  };
  constexpr std::array kByStatus = {
      std::pair{wire::Status::refused, Outcome::invalid},
      std::pair{wire::Status::unsupported, Outcome::unsupported},
      std::pair{wire::Status::skipped, Outcome::skip},
      std::pair{wire::Status::no_kernel, Outcome::no_kernel},
  };
  for (const auto& [status, outcome] : kByStatus) {
    if (const wire::LaneRecord* lane = first_with(status)) {
      verdict = of_lane(outcome, *lane, lane_message(*lane));
      return true;
    }
  }
  if (const wire::LaneRecord* lane = first_with(wire::Status::timed_out)) {
    verdict = dead(*lane);
    return true;
  }
  if (const wire::LaneRecord* lane = first_with(wire::Status::out_of_memory)) {
    verdict = of_lane(Outcome::oom, *lane, lane_message(*lane));
    return true;
  }
  if (const wire::LaneRecord* lane = first_with(wire::Status::crashed)) {
    verdict = dead(*lane);
    return true;
  }
  const wire::LaneRecord* test = first_raised(wire::Role::test);
  const wire::LaneRecord* reference = first_raised(wire::Role::reference);
  if (test != nullptr && reference != nullptr) {
    verdict.outcome = Outcome::rejected;
    verdict.message = lane_message(*test);
    return true;
  }
  if (test != nullptr) {
    verdict = of_lane(Outcome::test_error, *test, lane_message(*test));
    return true;
  }
  if (reference != nullptr) {
    verdict = of_lane(Outcome::reference_error, *reference, lane_message(*reference));
    return true;
  }
  return false;
}

bool same_inputs(const wire::LaneRecord& test, const wire::LaneRecord& reference) {
  const auto* left = test.inputs();
  const auto* right = reference.inputs();
  if (left == nullptr || right == nullptr) return left == right;
  return std::equal(left->begin(), left->end(), right->begin(), right->end(),
                    [](const wire::Filling* a, const wire::Filling* b) {
                      return a->checksum() == b->checksum();
                    });
}

std::string shape_text(const flatbuffers::Vector<std::int64_t>* shape) {
  std::string joined;
  for (std::size_t i = 0; shape != nullptr && i < shape->size(); ++i) {
    joined +=
        fmt::format("{}{}", i == 0 ? "" : ", ", shape->Get(static_cast<flatbuffers::uoffset_t>(i)));
  }
  return "[" + joined + "]";
}

std::string side_text(const wire::Side* side) {
  if (side == nullptr || side->missing()) return "nothing";
  if (side->kind() == wire::LeafKind::tensor || side->kind() == wire::LeafKind::law) {
    const auto dtype = static_cast<DType>(side->dtype());
    return fmt::format("{}{}", name(dtype), shape_text(side->shape()));
  }
  return fmt::format("{} {}", wire::EnumNameLeafKind(side->kind()), text(side->text()));
}

// What is wrong with one leaf; 0 when nothing is.
struct Finding {
  std::uint8_t kinds = 0;
  std::string message;
  void add(std::uint8_t kind, std::string what) {
    kinds |= kind;
    if (message.empty()) message = std::move(what);
  }
};

bool is_exact(std::uint8_t dtype, const Policy& policy) {
  const DTypeClass kind = info(static_cast<DType>(dtype)).kind;
  const bool whole = kind == DTypeClass::boolean || kind == DTypeClass::integer;
  return whole && policy.exact_integers;
}

void judge_values(const wire::Comparison& comparison, const Policy& policy,
                  const wire::Record& record, Agreement agreement, Finding& finding) {
  const wire::Measurement* measured = comparison.measurement();
  if (measured == nullptr || measured->count() == 0) return;
  Policy strict = policy;
  if (agreement == Agreement::bits) {
    if (measured->bit_equal() == measured->count()) return;
  } else {
    if (is_exact(comparison.right()->dtype(), policy)) strict.atol = strict.rtol = 0;
    if (within(*measured, strict.atol, strict.rtol, record.atol(), record.rtol(),
               policy.outliers)) {
      return;
    }
  }
  const wire::Offender* worst =
      measured->first() != nullptr ? measured->first() : measured->worst();
  std::string where;
  if (worst != nullptr) {
    where = fmt::format("; first at element {}: {:.9g} against {:.9g}", worst->index(),
                        worst->left(), worst->right());
  }
  const bool same_wanted = agreement == Agreement::bits || (strict.atol == 0 && strict.rtol == 0);
  finding.add(
      kValue,
      fmt::format("{} of {} elements differ, by up to {:.3g} (relative {:.3g}){}",
                  same_wanted ? measured->count() - measured->bit_equal() : measured->beyond(),
                  measured->count(), measured->max_abs(), measured->max_rel(), where));
}

Finding judge_leaf(const wire::Comparison& comparison, const Policy& policy,
                   const wire::Record& record, Agreement agreement) {
  Finding finding;
  const wire::Side& left = *comparison.left();
  const wire::Side& right = *comparison.right();
  const auto is_tensor = [](const wire::Side& side) {
    return side.kind() == wire::LeafKind::tensor || side.kind() == wire::LeafKind::law;
  };
  const std::string both = fmt::format("{} against {}", side_text(&left), side_text(&right));
  if (left.missing() || right.missing() || is_tensor(left) != is_tensor(right)) {
    if (!comparison.scalar_equal()) finding.add(kStructure, both);
    return finding;
  }
  if (!is_tensor(left)) {
    if (left.kind() != right.kind()) {
      finding.add(kStructure, both);
    } else if (!comparison.scalar_equal()) {
      finding.add(kValue, both);
    }
    return finding;
  }
  const auto* left_shape = left.shape();
  const auto* right_shape = right.shape();
  if (left_shape != nullptr && right_shape != nullptr &&
      !std::equal(left_shape->begin(), left_shape->end(), right_shape->begin(),
                  right_shape->end())) {
    finding.add(kShape, both);
  }
  if (left.dtype() != right.dtype()) finding.add(kDtype, both);
  if (comparison.equality() == wire::Equality::shape) return finding;
  if (const wire::LawMeasurement* law = comparison.law(); law != nullptr && !law->holds()) {
    finding.add(kValue, text(law->statement()));
  }
  judge_values(comparison, policy, record, agreement, finding);
  return finding;
}

void judge_results(const flatbuffers::Vector<flatbuffers::Offset<wire::Comparison>>* comparisons,
                   bool gradients, const Policy& policy, const wire::Record& record,
                   Agreement agreement, Verdict& verdict) {
  if (comparisons == nullptr) return;
  for (const wire::Comparison* comparison : *comparisons) {
    const Finding finding = judge_leaf(*comparison, policy, record, agreement);
    if (finding.kinds == 0) continue;
    verdict.mismatch |= gradients ? std::uint8_t{kGradient} : finding.kinds;
    if (!verdict.message.empty()) continue;
    const std::string path = text(comparison->path());
    verdict.message = gradients ? fmt::format("gradient of {}: {}", path, finding.message)
                                : fmt::format("result{}: {}", path, finding.message);
  }
}

bool killed(const wire::LaneRecord* lane) {
  return lane != nullptr && lane->status() == wire::Status::crashed &&
         lane->exit_signal() == SIGKILL && !lane->oom_killed();
}

void flag_leaks(const wire::Trial& trial, Verdict& verdict) {
  for (const wire::LaneRecord* lane : *trial.lanes()) {
    if (lane->grown_kb() > kLeakKb) verdict.flags |= kLeaked;
  }
}

// What these two owe each other where the mode asks for stability.
Agreement owed(const wire::LaneRecord& left, const wire::LaneRecord& right, Agreement agreement) {
  if (agreement != Agreement::stable) return agreement;
  return left.role() == right.role() ? Agreement::bits : Agreement::within;
}

void judge_pair(const wire::Trial& trial, const wire::Pair& pair, const Policy& policy,
                const wire::Record& record, Agreement agreement, Verdict& verdict) {
  const wire::LaneRecord* left = trial.lanes()->Get(pair.left());
  const wire::LaneRecord* right = trial.lanes()->Get(pair.right());
  if (!same_inputs(*left, *right)) {
    verdict.outcome = Outcome::invalid;
    verdict.message =
        "the lanes did not have the same inputs; its value rule is not a pure function";
    return;
  }
  const Agreement due = owed(*left, *right, agreement);
  Verdict of_pair;
  judge_results(pair.outputs(), false, policy, record, due, of_pair);
  judge_results(pair.gradients(), true, policy, record, due, of_pair);
  if (of_pair.mismatch == 0) return;
  const Outcome outcome = due == Agreement::bits ? Outcome::unstable : Outcome::mismatch;
  // A framework that disagrees with itself says more than what it disagrees with besides.
  if (verdict.mismatch == 0 || (outcome == Outcome::unstable && verdict.outcome != outcome)) {
    verdict.outcome = outcome;
    verdict.message = trial.lanes()->size() < 3
                          ? of_pair.message
                          : fmt::format("{} against {}: {}", text(left->name()),
                                        text(right->name()), of_pair.message);
    if (due == Agreement::bits) verdict.lane = text(left->name());
  }
  verdict.mismatch |= of_pair.mismatch;
}

Verdict judge_trial(const wire::Trial& trial, const Policy& policy, const wire::Record& record,
                    Agreement agreement) {
  Verdict verdict;
  flag_leaks(trial, verdict);
  const std::uint8_t flags = verdict.flags;
  if (trial.pairs() == nullptr || trial.pairs()->size() == 0) {
    (void)decided_by_lanes(trial, verdict);
    verdict.flags = flags;
    return verdict;
  }
  for (const wire::Pair* pair : *trial.pairs()) {
    judge_pair(trial, *pair, policy, record, agreement, verdict);
    if (verdict.outcome == Outcome::invalid) return verdict;
  }
  if (verdict.mismatch == 0 && decided_by_lanes(trial, verdict) &&
      verdict.outcome == Outcome::rejected) {
    // The results agree, and so do the lanes that they cannot be differentiated.
    verdict = {};
  }
  verdict.flags = flags;
  return verdict;
}

// A record says enough to be judged: its lanes are there, and pairs name two of them.
bool is_whole(const wire::Record& record) {
  if (record.trials() == nullptr || record.trials()->size() == 0) return false;
  return std::all_of(record.trials()->begin(), record.trials()->end(),
                     [](const wire::Trial* trial) {
                       if (trial->lanes() == nullptr || trial->lanes()->size() == 0) return false;
                       if (trial->pairs() == nullptr) return true;
                       return std::all_of(trial->pairs()->begin(), trial->pairs()->end(),
                                          [&](const wire::Pair* pair) {
                                            return pair->left() < trial->lanes()->size() &&
                                                   pair->right() < trial->lanes()->size();
                                          });
                     });
}

}  // namespace

Verdict judge(const wire::Record& record, const Policy& policy, Agreement agreement) {
  Verdict verdict;
  if (!is_whole(record)) {
    verdict.outcome = Outcome::crash;
    verdict.lane = "slot";
    verdict.message = "the slot sent a record without lanes";
    return verdict;
  }
  for (const wire::Trial* trial : *record.trials()) {
    Verdict of_trial = judge_trial(*trial, policy, record, agreement);
    of_trial.flags |= verdict.flags;
    if (verdict.outcome == Outcome::pass) {
      verdict = std::move(of_trial);
    } else {
      verdict.mismatch |= of_trial.mismatch;
      verdict.flags = of_trial.flags;
    }
  }
  return verdict;
}

bool killed_from_outside(const wire::Record& record) {
  if (!is_whole(record)) return false;
  return std::any_of(record.trials()->begin(), record.trials()->end(),
                     [](const wire::Trial* trial) {
                       return std::any_of(trial->lanes()->begin(), trial->lanes()->end(), killed);
                     });
}

std::string describe_mismatch(std::uint8_t kinds) {
  std::string joined;
  const auto add = [&](MismatchKind kind, std::string_view word) {
    if ((kinds & kind) != 0) joined += fmt::format("{}{}", joined.empty() ? "" : ", ", word);
  };
  add(kStructure, "structure");
  add(kShape, "shape");
  add(kDtype, "dtype");
  add(kValue, "value");
  add(kGradient, "gradient");
  return joined;
}

std::string describe_flags(std::uint8_t flags) {
  std::string joined;
  const auto add = [&](OutcomeFlag flag, std::string_view word) {
    if ((flags & flag) != 0) joined += fmt::format("{}{}", joined.empty() ? "" : ", ", word);
  };
  add(kContaminated, "contaminated");
  add(kFlaky, "flaky");
  add(kLeaked, "leaked");
  return joined;
}

}  // namespace assay
