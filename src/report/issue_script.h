#pragma once

// The script of an issue: the call with its inputs as literals, its result and the right result.

#include <map>
#include <string>

#include "base/result.h"
#include "case/case.h"
#include "report/repro.h"
#include "verdict/judge.h"
#include "wire/messages_generated.h"

namespace assay {

inline constexpr std::size_t kIssueLines = 20;

// The comparison and the element that show a fault.
struct Witness {
  const wire::Comparison* comparison = nullptr;  // nullptr: no comparison shows the fault
  std::size_t place = 0;                         // index among the outputs, or the gradients
  bool element = false;                          // whether the numbers below are known
  std::uint64_t index = 0;
  double got = 0;
  double right = 0;
  double by_reference = 0;
};

// The witness of a fault in this trial.
Witness witness_of(const wire::Trial& trial, const Fault& fault);

// The script. An error explains why there is none: too many lines or elements, or a construct that
// it cannot express.
Result<std::string> issue_script(const std::map<std::string, std::string>& properties,
                                 const Case& parsed, std::uint64_t id, const wire::Trial& trial,
                                 const Verdict& verdict);

}  // namespace assay
