#pragma once

// The outcomes of a case, in the order in which a case could meet them.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

// Outcomes are stored by name, so the order may change.
enum class Outcome : std::uint8_t {
  invalid,          // does not parse, or names something private
  unsupported,      // no reference is known for it yet
  skip,             // not run, for a stated reason
  no_golden,        // the goldens lack the case, its seed or its value regime
  no_kernel,        // the framework reports that it has no kernel for this dtype or device
  timeout,          // a lane ran out of time
  oom,              // a lane ran out of memory
  crash,            // a lane died
  sanitizer,        // compute-sanitizer reports a fault in a kernel
  test_error,       // only the test lane raises
  reference_error,  // only the reference lane raises
  rejected,         // both raise: they agree that the call is wrong
  mismatch,         // the results differ
  unstable,         // the results of repeated runs differ
  slow,             // the test lane takes longer than the reference lane
  fast,             // the test lane takes less time than the reference lane
  same,             // both lanes take the same time, within the margin
  unsure,           // the timings vary too much to decide
  self_only,        // the results agree, but only with those of the same function
  pass,             // the results agree
};

struct OutcomeInfo {
  Outcome outcome;
  std::string_view name;
  bool failed;               // the case is retried, and the run's exit code is 1
  bool definite;             // a statement about the framework under test
  std::string_view log;      // name of engineV2's log file
  std::string_view meaning;  // for users
};

inline constexpr std::array<OutcomeInfo, 20> kOutcomes{{
    {Outcome::invalid, "invalid", true, false, "api_config_invalid.txt",
     "the line is not a case that can be run"},
    {Outcome::unsupported, "unsupported", false, false, "api_config_paddle_to_torch_failed.txt",
     "assay knows no reference for this API yet"},
    {Outcome::skip, "skip", false, false, "api_config_skip.txt", "not run, for a stated reason"},
    {Outcome::no_golden, "no_golden", false, false, "api_config_no_golden.txt",
     "the goldens lack this case, its seed or a value regime"},
    {Outcome::no_kernel, "no_kernel", false, true, "api_config_no_kernel.txt",
     "this build has no kernel for this dtype or device"},
    {Outcome::timeout, "timeout", true, true, "api_config_timeout.txt", "a lane ran out of time"},
    {Outcome::oom, "oom", true, true, "api_config_oom.txt", "a lane ran out of memory"},
    {Outcome::crash, "crash", true, true, "api_config_crash.txt", "a lane died"},
    {Outcome::sanitizer, "sanitizer", true, true, "api_config_sanitizer.txt",
     "compute-sanitizer reports a fault in a kernel"},
    {Outcome::test_error, "test_error", true, true, "api_config_paddle_error.txt",
     "only the framework under test raises"},
    {Outcome::reference_error, "reference_error", true, false, "api_config_torch_error.txt",
     "only the reference raises"},
    {Outcome::rejected, "rejected", false, true, "api_config_rejected.txt",
     "both raise: they agree that the call is wrong"},
    {Outcome::mismatch, "mismatch", true, true, "api_config_accuracy_error.txt",
     "the results differ"},
    {Outcome::unstable, "unstable", true, true, "api_config_unstable.txt",
     "repeated runs give different results"},
    {Outcome::slow, "slow", true, true, "api_config_slow.txt",
     "it takes longer than the reference"},
    {Outcome::fast, "fast", false, true, "api_config_fast.txt",
     "it takes less time than the reference"},
    {Outcome::same, "same", false, true, "api_config_same.txt", "both take the same time"},
    {Outcome::unsure, "unsure", false, false, "api_config_unsure.txt",
     "the timings vary too much to decide"},
    {Outcome::self_only, "self_only", false, false, "api_config_self_only.txt",
     "compared only with itself: it has no reference"},
    {Outcome::pass, "pass", false, true, "api_config_pass.txt", "the results agree"},
}};

constexpr const OutcomeInfo& info(Outcome outcome) {
  return kOutcomes[static_cast<std::size_t>(outcome)];
}
constexpr std::string_view name(Outcome outcome) { return info(outcome).name; }

// Whether the case has no verdict, for another reason than varying timings.
constexpr bool is_untested(Outcome outcome) {
  const OutcomeInfo& entry = info(outcome);
  return outcome == Outcome::no_kernel ||
         (!entry.failed && !entry.definite && outcome != Outcome::unsure);
}

// The outcome with this name, also by the names of engineV2 and V4; nullopt if there is
// none.
constexpr std::optional<Outcome> find_outcome(std::string_view text) {
  if (text == "paddle_error") return Outcome::test_error;
  if (text == "torch_error") return Outcome::reference_error;
  if (text == "accuracy_error" || text == "paddle_accuracy") return Outcome::mismatch;
  if (text == "paddle_crash" || text == "paddle_cuda") return Outcome::crash;
  if (text == "paddle_bitwise") return Outcome::unstable;
  if (text == "config_parse") return Outcome::invalid;
  if (text == "config_convert" || text == "config_input") return Outcome::unsupported;
  for (const OutcomeInfo& entry : kOutcomes) {
    if (entry.name == text) return entry.outcome;
  }
  return std::nullopt;
}

// Kinds of mismatch, as bits. A case may have several.
enum MismatchKind : std::uint8_t {
  kStructure = 1,
  kShape = 2,
  kDtype = 4,
  kValue = 8,
  kGradient = 16,
  kInput = 32,  // the call changed an input that it must not change
};

// Flags beside an outcome, as bits.
enum OutcomeFlag : std::uint8_t {
  kContaminated = 1,   // ran out of memory beside other cases, and not alone
  kFlaky = 2,          // failed before, and not when it ran again; why is not known
  kLeaked = 4,         // left much memory allocated in its lane
  kWeak = 8,           // for some result, only shape and dtype were compared
  kLeftRunning = 16,   // left processes running
  kChangedState = 32,  // changed the global state of its lane
};

// The names of these mismatch kinds, such as "shape, value"; empty for 0.
std::string describe_mismatch(std::uint8_t kinds);
// The names of these flags, such as "flaky"; empty for 0.
std::string describe_flags(std::uint8_t flags);
// The flag with this name, such as "weak"; nullopt if there is none.
std::optional<OutcomeFlag> find_flag(std::string_view name);

}  // namespace assay
