#pragma once

// The script of an issue: the call with its inputs as literals, what came and what is right.

#include <map>
#include <string>

#include "base/result.h"
#include "case/case.h"
#include "report/repro.h"
#include "verdict/judge.h"
#include "wire/messages_generated.h"

namespace assay {

inline constexpr std::size_t kIssueLines = 20;

// The element that a fault is told of.
struct Witness {
  const wire::Comparison* comparison = nullptr;  // nullptr: the fault is no comparison's
  std::size_t place = 0;                         // among the outputs, or the gradients
  bool element = false;                          // the numbers below are known
  std::uint64_t index = 0;
  double got = 0;
  double right = 0;
  double by_reference = 0;
};

Witness witness_of(const wire::Trial& trial, const Fault& fault);

// An error says why there is no such script: too many lines or elements, a construct that it does
// not know.
Result<std::string> issue_script(const std::map<std::string, std::string>& properties,
                                 const Case& parsed, std::uint64_t id, const wire::Trial& trial,
                                 const Verdict& verdict);

}  // namespace assay
