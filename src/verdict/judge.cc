#include "verdict/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "case/dtype.h"
#include "measure/measurement.h"
#include "verdict/bar.h"
#include "verdict/endings.h"
#include "verdict/lane_verdict.h"
#include "verdict/messages.h"
#include "verdict/speed_verdict.h"
#include "verdict/within.h"
#include "wire/shared.h"

namespace assay {
namespace {

// A case that leaves more than this allocated in its lane has leaked memory.
constexpr std::int64_t kLeakKb = 512 * 1024;

bool same_inputs(const wire::LaneRecord& test, const wire::LaneRecord& reference) {
  const auto* left = test.inputs();
  const auto* right = reference.inputs();
  if (left == nullptr || right == nullptr) return left == right;
  return std::equal(left->begin(), left->end(), right->begin(), right->end(),
                    [](const wire::Filling* a, const wire::Filling* b) {
                      return a->checksum() == b->checksum();
                    });
}

// What is wrong with one leaf of the results.
struct Finding {
  std::uint8_t kinds = 0;  // MismatchKind bits; 0: nothing
  std::string message;
  std::string reference_fault;  // not empty: only the reference is beyond the error bar
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

// Judges by the error bar. False if it cannot decide; then the tolerance does.
bool judged_by_bar(const wire::Comparison& comparison, Finding& finding) {
  const wire::Measurement& measured = *comparison.measurement();
  if (comparison.equality() == wire::Equality::bits) {
    if (measured.bit_equal() == measured.count()) return true;
    return false;  // judge_values() reports the difference, with a tolerance of 0
  }
  if (const wire::Bar* bar = comparison.bar(); bar != nullptr) {
    if (bar->test() == nullptr || bar->reference() == nullptr) return false;
    const BarVerdict verdict = judge_bar(*bar);
    if (verdict == BarVerdict::test_wrong) finding.add(kValue, bar_text(comparison));
    if (verdict == BarVerdict::reference_wrong) finding.reference_fault = bar_text(comparison);
    return true;
  }
  if (comparison.apart() <= kUnitsApart) return true;
  const auto* ulps = measured.ulps();
  if (ulps == nullptr) return false;
  const DTypeClass kind = info(static_cast<DType>(comparison.right()->dtype())).kind;
  return looks_alike({ulps->data(), ulps->size()}, measured.nan_both(), measured.count(),
                     kind == DTypeClass::boolean || kind == DTypeClass::integer);
}

// How the results of two lanes must agree.
struct Due {
  Agreement agreement;
  const Policy& policy;
  const wire::CaseSettingsT& settings;
  const wire::Record& record;
};

void judge_values(const wire::Comparison& comparison, const Due& due, Finding& finding) {
  const wire::Measurement* measured = comparison.measurement();
  if (measured == nullptr || measured->count() == 0) return;
  Policy strict = due.policy;
  // A policy with outliers applies only to results that were too large for an error bar.
  const bool own_tolerance = !strict.reason.empty() && strict.outliers == 0;
  const bool by_bar =
      due.agreement == Agreement::within && due.settings.error_bar && !own_tolerance;
  if (by_bar && judged_by_bar(comparison, finding)) return;
  const bool same_bits = by_bar && comparison.equality() == wire::Equality::bits;
  if (same_bits) strict.atol = strict.rtol = 0;
  // Two NaN may have different bits.
  if (due.agreement == Agreement::bits || (same_bits && measured->nan_both() == 0)) {
    if (measured->bit_equal() == measured->count()) return;
  } else {
    if (is_exact(comparison.right()->dtype(), strict)) strict.atol = strict.rtol = 0;
    if (within(*measured, strict.atol, strict.rtol, due.record.atol(), due.record.rtol(),
               strict.outliers)) {
      return;
    }
  }
  const bool same_wanted =
      due.agreement == Agreement::bits || (strict.atol == 0 && strict.rtol == 0);
  finding.add(kValue, difference_text(comparison, same_wanted));
}

// Whether the path ends with a sentence that must be true of both results. One of them breaks it.
bool is_statement(const wire::Comparison& comparison) {
  return comparison.left()->kind() == wire::LeafKind::boolean &&
         text(comparison.path()).find(' ') != std::string::npos;
}

Finding judge_leaf(const wire::Comparison& comparison, const Due& due) {
  Finding finding;
  const wire::Side& left = *comparison.left();
  const wire::Side& right = *comparison.right();
  const auto is_tensor = [](const wire::Side& side) {
    return side.kind() == wire::LeafKind::tensor || side.kind() == wire::LeafKind::distribution;
  };
  const std::string both = fmt::format("got {}, expected {}", side_text(&left), side_text(&right));
  if (left.missing() || right.missing() || is_tensor(left) != is_tensor(right)) {
    if (!comparison.scalar_equal()) finding.add(kStructure, both);
    return finding;
  }
  if (!is_tensor(left)) {
    if (left.kind() != right.kind()) {
      finding.add(kStructure, both);
    } else if (!comparison.scalar_equal()) {
      const bool ours = text(left.text()) == "False";
      finding.add(kValue, !is_statement(comparison) ? both
                          : ours                    ? "this does not hold"
                                                    : "this does not hold for the reference");
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
  if (const wire::DrawMeasurement* distribution = comparison.distribution();
      distribution != nullptr && !distribution->holds()) {
    finding.add(kValue, text(distribution->statement()));
  }
  judge_values(comparison, due, finding);
  return finding;
}

// Whether there is a NaN or infinity on one side only, or where the truth is a number.
bool is_special(const wire::Comparison& comparison) {
  if (const wire::Bar* bar = comparison.bar(); bar != nullptr && bar->test() != nullptr) {
    return bar->test()->specials() > 0;
  }
  const wire::Measurement* measured = comparison.measurement();
  return measured != nullptr &&
         (measured->nan_left() > 0 || measured->nan_right() > 0 || measured->inf_disagree() > 0);
}

Fault fault_of(const wire::Comparison& comparison, bool gradient, std::uint8_t kinds) {
  Fault fault;
  fault.gradient = gradient;
  fault.leaf = text(comparison.path());
  fault.kinds = kinds;
  const wire::Side& right = *comparison.right();
  if (right.kind() == wire::LeafKind::tensor && !right.missing()) {
    fault.dtype = name(static_cast<DType>(right.dtype()));
  }
  fault.special = is_special(comparison);
  const wire::Bar* bar = comparison.bar();
  fault.by_truth = bar != nullptr;
  if (bar != nullptr && bar->test() != nullptr) fault.error = bar->test()->errors() / kBarUnits;
  return fault;
}

// The findings about a pair of lanes.
struct PairFindings {
  std::uint8_t mismatch = 0;
  std::string message;        // about the first fault of the left lane
  std::vector<Fault> faults;  // of the left lane
  std::string reference_message;
  std::optional<Fault> reference_fault;  // the first fault of the right lane

  void add(Fault fault, std::uint8_t kinds, const std::string& what) {
    mismatch |= kinds;
    if (faults.empty()) message = what;
    fault.message = what;
    faults.push_back(std::move(fault));
  }
};

void judge_results(const flatbuffers::Vector<flatbuffers::Offset<wire::Comparison>>* comparisons,
                   bool gradients, const Due& due, PairFindings& found) {
  if (comparisons == nullptr) return;
  for (const wire::Comparison* comparison : *comparisons) {
    const Finding finding = judge_leaf(*comparison, due);
    const std::string where =
        fmt::format("{}{}", gradients ? "gradient of " : "result", text(comparison->path()));
    if (!finding.reference_fault.empty() && !found.reference_fault) {
      found.reference_fault = fault_of(*comparison, gradients, kValue);
      found.reference_message = fmt::format("{}: {}", where, finding.reference_fault);
    }
    if (finding.kinds == 0) continue;
    found.add(fault_of(*comparison, gradients, finding.kinds),
              gradients ? std::uint8_t{kGradient} : finding.kinds,
              fmt::format("{}: {}", where, finding.message));
  }
}

void flag_leaks(const wire::Trial& trial, Verdict& verdict) {
  for (const wire::LaneRecord* lane : *trial.lanes()) {
    if (lane->grown_kb() > kLeakKb) verdict.flags |= kLeaked;
    if (lane->left_running()) verdict.flags |= kLeftRunning;
    if (lane->changed_state()) verdict.flags |= kChangedState;
  }
}

// Whether only the shape of some result is compared.
bool is_weak(const wire::Pair& pair) {
  if (pair.outputs() == nullptr) return false;
  return std::any_of(
      pair.outputs()->begin(), pair.outputs()->end(), [](const wire::Comparison* comparison) {
        if (comparison->equality() == wire::Equality::shape) return true;
        const wire::DrawMeasurement* distribution = comparison->distribution();
        return distribution != nullptr && text(distribution->distribution()) == "anything";
      });
}

// How these two lanes must agree, in particular for Agreement::stable.
Agreement owed(const wire::LaneRecord& left, const wire::LaneRecord& right, Agreement agreement) {
  if (agreement != Agreement::stable) return agreement;
  return left.role() == right.role() ? Agreement::bits : Agreement::within;
}

void refuse_inputs(const wire::LaneRecord& reference, Verdict& verdict) {
  verdict.outcome = Outcome::invalid;
  const std::string by = text(reference.goldens());
  verdict.message =
      by.empty() ? "the lanes had different inputs: the API's value rule is not a pure function"
                 : fmt::format(
                       "the inputs are not those of the goldens, which {} recorded: record "
                       "this case again",
                       by);
}

void blame_reference(const std::string& lane, PairFindings& found, Verdict& verdict) {
  verdict.outcome = Outcome::reference_error;
  verdict.lane = lane;
  verdict.message = std::move(found.reference_message);
  found.reference_fault->outcome = Outcome::reference_error;
  found.reference_fault->message = verdict.message;
  verdict.faults.push_back(std::move(*found.reference_fault));
}

void judge_pair(const wire::Trial& trial, const wire::Pair& pair, const Policy& policy,
                const wire::Record& record, const Rules& rules, Verdict& verdict) {
  const wire::LaneRecord* left = trial.lanes()->Get(pair.left());
  const wire::LaneRecord* right = trial.lanes()->Get(pair.right());
  if (!same_inputs(*left, *right)) return refuse_inputs(*right, verdict);
  const Due due{owed(*left, *right, rules.agreement), policy, rules.settings, record};
  PairFindings found;
  const auto* overwritten = left->overwritten();
  if (overwritten != nullptr && overwritten->size() > 0) {
    Fault fault;
    fault.kinds = kInput;
    fault.leaf = overwritten->Get(0)->str();
    found.add(fault, kInput,
              fmt::format("the call changed its input {}, which it must not change", fault.leaf));
  }
  judge_results(pair.outputs(), false, due, found);
  judge_results(pair.gradients(), true, due, found);
  if (is_weak(pair)) verdict.flags |= kWeak;
  if (found.mismatch == 0) {
    if (found.reference_fault && verdict.outcome == Outcome::pass) {
      blame_reference(text(right->name()), found, verdict);
    }
    return;
  }
  const Outcome outcome = due.agreement == Agreement::bits ? Outcome::unstable : Outcome::mismatch;
  for (Fault& fault : found.faults) fault.outcome = outcome;
  if (const std::string note = text(right->error());
      !note.empty() && right->role() == wire::Role::reference) {
    found.message += "; " + note;
  }
  // Unstable takes precedence over mismatch.
  if (verdict.mismatch == 0 || (outcome == Outcome::unstable && verdict.outcome != outcome)) {
    // A mismatch of the test lane replaces an error of the reference.
    if (verdict.outcome == Outcome::reference_error) verdict.faults.clear();
    verdict.outcome = outcome;
    verdict.faults.insert(verdict.faults.begin(), found.faults.begin(), found.faults.end());
    verdict.message = trial.lanes()->size() < 3
                          ? found.message
                          : fmt::format("{} against {}: {}", text(left->name()),
                                        text(right->name()), found.message);
    if (due.agreement == Agreement::bits) verdict.lane = text(left->name());
  } else {
    verdict.faults.insert(verdict.faults.end(), found.faults.begin(), found.faults.end());
  }
  verdict.mismatch |= found.mismatch;
}

// Judges the times of lanes that all finished.
void judge_timed(const wire::Trial& trial, const Rules& rules, Verdict& verdict) {
  if (trial.lanes()->size() < 2) return;
  const wire::LaneRecord& test = *trial.lanes()->Get(0);
  const wire::LaneRecord& reference = *trial.lanes()->Get(1);
  if (!same_inputs(test, reference)) return refuse_inputs(reference, verdict);
  judge_speed(test, reference, rules.settings.speed_margin, verdict);
}

Verdict judge_lanes(const wire::Trial& trial, const Policy& policy, const wire::Record& record,
                    const Rules& rules) {
  Verdict verdict;
  flag_leaks(trial, verdict);
  const std::uint8_t flags = verdict.flags;
  if (trial.pairs() == nullptr || trial.pairs()->size() == 0) {
    const bool ended = decided_by_lanes(trial, verdict);
    if (!ended && rules.agreement == Agreement::speed) judge_timed(trial, rules, verdict);
    verdict.flags = flags;
    return verdict;
  }
  for (const wire::Pair* pair : *trial.pairs()) {
    judge_pair(trial, *pair, policy, record, rules, verdict);
    if (verdict.outcome == Outcome::invalid) return verdict;
  }
  const std::uint8_t all_flags = verdict.flags;
  // Lanes with equal results may still have failed later, for example in the backward pass.
  if (verdict.mismatch == 0) (void)decided_by_lanes(trial, verdict);
  verdict.flags = all_flags;
  return verdict;
}

// Whether the reference rejects the values of a regime other than the usual one. Such a trial is
// not judged.
bool refused_by_reference(const wire::Trial& trial) {
  if (text(trial.values()) == "usual" || trial.lanes()->size() < 2) return false;
  const wire::LaneRecord& reference = *trial.lanes()->Get(1);
  return raised(reference) || reference.status() == wire::Status::unsupported ||
         reference.status() == wire::Status::no_kernel;
}

// Whether the later of two trials decides the verdict. The first failure decides, but a fault of
// the framework under test takes precedence over one of the reference, and any failure over a
// missing kernel.
bool says_more(const Verdict& later, const Verdict& first) {
  if (first.outcome == Outcome::reference_error) return later.mismatch != 0;
  return !info(first.outcome).failed &&
         (info(later.outcome).failed || first.outcome == Outcome::pass);
}

}  // namespace

Result<Rules> Rules::of(wire::CaseSettingsT settings) {
  const ModeInfo* mode = settings.mode.empty() ? &modes().front() : find_mode(settings.mode);
  if (mode == nullptr) {
    return usage_error(
        fmt::format("this assay knows no mode {}; use the assay that made the run", settings.mode));
  }
  return Rules{std::move(settings), mode->agreement};
}

std::optional<Verdict> judge_trial(const wire::Trial& trial, const Policy& policy,
                                   const wire::Record& record, const Rules& rules) {
  if (is_skipped(trial) || refused_by_reference(trial)) return std::nullopt;
  Verdict verdict = judge_lanes(trial, policy, record, rules);
  if (!info(verdict.outcome).failed) verdict.faults.clear();
  if (verdict.outcome == Outcome::pass) return verdict;
  const std::string values = text(trial.values());
  for (Fault& fault : verdict.faults) fault.values = values;
  if (values != "usual") {
    verdict.message = fmt::format("{} values: {}", values, verdict.message);
  }
  return verdict;
}

Verdict judge(const wire::Record& record, const Policy& policy, const Rules& rules) {
  Verdict verdict;
  if (!is_whole(record)) {
    verdict.outcome = Outcome::crash;
    verdict.lane = "slot";
    verdict.message = "the slot sent a record without lanes";
    return verdict;
  }
  for (const wire::Trial* trial : *record.trials()) {
    if (is_mutant(*trial)) continue;
    std::optional<Verdict> judged = judge_trial(*trial, policy, record, rules);
    if (!judged) continue;
    Verdict& of_trial = *judged;
    of_trial.flags |= verdict.flags;
    const bool first = says_more(of_trial, verdict);
    if (first) {
      std::swap(verdict, of_trial);
    } else {
      verdict.mismatch |= of_trial.mismatch;
      verdict.flags = of_trial.flags;
    }
    verdict.faults.insert(verdict.faults.end(), of_trial.faults.begin(), of_trial.faults.end());
  }
  complete_faults(verdict);
  const wire::LaneRecord& test = *record.trials()->Get(0)->lanes()->Get(0);
  if (verdict.outcome == Outcome::pass && test.self_only()) {
    verdict.outcome = Outcome::self_only;
    verdict.message = "compared only with itself";  // short: it stands in each record
  }
  return verdict;
}

}  // namespace assay
