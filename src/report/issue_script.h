#pragma once

// The script of an issue: the call with its inputs as literals, in Python that needs the framework
// alone. It prints what came and what is right, and exits with 1 as long as they differ.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "case/case.h"
#include "report/dialect.h"
#include "verdict/judge.h"
#include "wire/messages_generated.h"

namespace assay {

inline constexpr std::size_t kIssueLines = 30;

// The element that shows a fault, as Python literals.
struct Witness {
  const wire::Comparison* comparison = nullptr;  // nullptr: no comparison shows the fault
  std::size_t place = 0;                         // index among the outputs, or the gradients
  bool element = false;                          // whether the numbers below are known
  std::uint64_t index = 0;
  std::string got;
  std::string right;
  std::string by_reference;
  double apart = 0;  // |got - right|; not finite where one is not
};

// The witness of a fault in this trial.
Witness witness_of(const wire::Trial& trial, const Fault& fault);

// The lane that a fault is of.
struct FaultyLane {
  std::string label;                 // "torch", or the name of a lane of assay.toml
  const Dialect* dialect = nullptr;  // nullptr: assay writes no scripts for its framework
  std::string framework;             // "torch"
  std::string build;                 // its version and commit
  std::string device;                // "cpu", "gpu:0"
  std::string execution;             // "eager"
  std::string environment;           // of assay.toml: "NAME=VALUE; NAME=VALUE"
  std::vector<std::string> modules;  // that it imports after its framework
  bool tables = false;               // it calls the reference functions of assay's tables
};

FaultyLane faulty_lane(const std::map<std::string, std::string>& properties, const Fault& fault);

// What a function of assay's tables calls in its framework, as lines of Python. The last one
// assigns `result`.
struct TracedCall {
  std::vector<std::string> lines;
  std::vector<std::string> outputs;  // expressions of the result's differentiable tensors
};
// Runs a script that calls trace() of python/assay/issue.py in the interpreter of the lane.
using Tracer = std::function<Result<TracedCall>(const FaultyLane& lane, const std::string& api,
                                                const std::string& script)>;

// An error says why there is no such script: too many lines or elements, a construct that scripts
// do not have.
Result<std::string> issue_script(const FaultyLane& lane, std::uint64_t seed, const Case& parsed,
                                 std::uint64_t id, const wire::Trial& trial, const Fault& fault,
                                 const Tracer& tracer);

}  // namespace assay
