#pragma once

// Tells communication kernels from compute by name: a table of libraries' names, and patterns that
// the user adds.

#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "timeline/model.h"

namespace assay::timeline {

class KernelKinds {
 public:
  KernelKinds() = default;  // the table alone
  // Adds the user's patterns (`--comm`, then `--compute`): ECMAScript regular expressions that
  // match anywhere in a kernel's name. The first match decides. A usage error for an invalid
  // pattern.
  static Result<KernelKinds> with(const std::vector<std::string>& communication,
                                  const std::vector<std::string>& compute = {});

  Kind kind(std::string_view kernel) const;

 private:
  std::vector<std::pair<std::regex, Kind>> patterns_;
};

}  // namespace assay::timeline
