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
  bool has_module(const std::string& python, const std::string& module);
  std::map<std::string, bool> modules_;  // by "python module"
};

}  // namespace assay::chain::stage
