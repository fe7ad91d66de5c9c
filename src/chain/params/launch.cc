#include "chain/params/launch.h"

#include <algorithm>

namespace assay::chain::params {

bool ReadLaunch::good() const {
  return std::all_of(problems.begin(), problems.end(),
                     [](const LaunchProblem& one) { return one.problem.warning; });
}

}  // namespace assay::chain::params
