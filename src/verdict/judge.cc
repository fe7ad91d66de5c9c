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
bool decided_by_lanes(const wire::LaneRecord& test, const wire::LaneRecord* reference,
                      Verdict& verdict) {
  const std::array<const wire::LaneRecord*, 2> lanes{&test, reference};
  const auto first_with = [&](wire::Status status) -> const wire::LaneRecord* {
    for (const wire::LaneRecord* lane : lanes) {
      if (lane != nullptr && lane->status() == status) return lane;
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
  if (raised(test) && reference != nullptr && raised(*reference)) {
    verdict.outcome = Outcome::rejected;
    verdict.message = lane_message(test);
    return true;
  }
  if (raised(test)) {
    verdict = of_lane(Outcome::paddle_error, test, lane_message(test));
    return true;
  }
  if (reference != nullptr && raised(*reference)) {
    verdict = of_lane(Outcome::torch_error, *reference, lane_message(*reference));
    return true;
  }
  return false;
}

// A lane that computed the result and then could not differentiate: its outputs are there.
bool only_backward(const wire::LaneRecord& lane) {
  const flatbuffers::String* phase = lane.phase();
  return phase != nullptr && phase->string_view() == "backward";
}

bool has_outputs(const wire::LaneRecord& lane) {
  return lane.status() == wire::Status::ok || only_backward(lane);
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
                  const wire::Record& record, Mode mode, Finding& finding) {
  const wire::Measurement* measured = comparison.measurement();
  if (measured == nullptr || measured->count() == 0) return;
  Policy strict = policy;
  if (mode == Mode::stable) {
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
  const bool same_wanted = mode == Mode::stable || (strict.atol == 0 && strict.rtol == 0);
  finding.add(
      kValue,
      fmt::format("{} of {} elements differ, by up to {:.3g} (relative {:.3g}){}",
                  same_wanted ? measured->count() - measured->bit_equal() : measured->beyond(),
                  measured->count(), measured->max_abs(), measured->max_rel(), where));
}

Finding judge_leaf(const wire::Comparison& comparison, const Policy& policy,
                   const wire::Record& record, Mode mode) {
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
  judge_values(comparison, policy, record, mode, finding);
  return finding;
}

void judge_results(const flatbuffers::Vector<flatbuffers::Offset<wire::Comparison>>* comparisons,
                   bool gradients, const Policy& policy, const wire::Record& record, Mode mode,
                   Verdict& verdict) {
  if (comparisons == nullptr) return;
  for (const wire::Comparison* comparison : *comparisons) {
    const Finding finding = judge_leaf(*comparison, policy, record, mode);
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

void flag_leaks(const wire::Record& record, Verdict& verdict) {
  for (const wire::LaneRecord* lane : {record.test(), record.reference()}) {
    if (lane != nullptr && lane->grown_kb() > kLeakKb) verdict.flags |= kLeaked;
  }
}

Verdict judge_lanes_and_results(const wire::Record& record, const Policy& policy, Mode mode) {
  const wire::LaneRecord& test = *record.test();
  const wire::LaneRecord* reference = record.reference();
  Verdict verdict;
  const bool comparable =
      mode != Mode::alone && reference != nullptr && has_outputs(test) && has_outputs(*reference);
  if (!comparable) {
    (void)decided_by_lanes(test, reference, verdict);
    return verdict;
  }
  if (!same_inputs(test, *reference)) {
    verdict.outcome = Outcome::invalid;
    verdict.message =
        "the lanes did not have the same inputs; its value rule is not a pure function";
    return verdict;
  }
  judge_results(record.outputs(), false, policy, record, mode, verdict);
  judge_results(record.gradients(), true, policy, record, mode, verdict);
  if (verdict.mismatch != 0) {
    verdict.outcome = mode == Mode::stable ? Outcome::unstable : Outcome::mismatch;
  } else if (decided_by_lanes(test, reference, verdict) && verdict.outcome == Outcome::rejected) {
    // The results agree, and so do the lanes that they cannot be differentiated.
    verdict.outcome = Outcome::pass;
  }
  return verdict;
}

}  // namespace

Verdict judge(const wire::Record& record, const Policy& policy, Mode mode) {
  Verdict verdict = judge_lanes_and_results(record, policy, mode);
  flag_leaks(record, verdict);
  return verdict;
}

bool killed_from_outside(const wire::Record& record) {
  return killed(record.test()) || killed(record.reference());
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
