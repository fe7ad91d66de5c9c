#pragma once

// Whether a stage's tool is on this machine.

#include <map>
#include <string>

#include "chain/plan/plan.h"

namespace assay::chain::stage {

class Availability {
 public:
  // What is missing, as `needs X`; empty when everything is there.
  std::string missing(const plan::Stage& stage);

 private:
  // Whether the interpreter says yes to one question; asked once.
  bool says_yes(const std::string& python, const std::string& program, const std::string& about);
  std::map<std::string, bool> answers_;  // by "python program about"
};

}  // namespace assay::chain::stage
