#pragma once

// Checks whether this machine has the tools of a stage.

#include <map>
#include <string>

#include "chain/plan/plan.h"

namespace assay::chain::stage {

class Availability {
 public:
  // Returns `needs X` for the first missing tool, or "".
  std::string missing(const plan::Stage& stage);

 private:
  // Runs a question in the interpreter; caches the answer.
  bool says_yes(const std::string& python, const std::string& program, const std::string& about);
  std::map<std::string, bool> answers_;  // by "python program about"
};

}  // namespace assay::chain::stage
