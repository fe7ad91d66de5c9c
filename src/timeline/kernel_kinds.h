#pragma once

// Which kernels are communication: the names that libraries give theirs, in one table, and those
// that a user adds.

#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "timeline/model.h"

namespace assay::timeline {

class KernelKinds {
 public:
  // The table alone, or with patterns of a user (`--comm`), ECMAScript regular expressions that
  // match anywhere in a kernel's name.
  KernelKinds() = default;
  static Result<KernelKinds> with(const std::vector<std::string>& patterns);

  Kind kind(std::string_view kernel) const;

 private:
  std::vector<std::regex> patterns_;
};

}  // namespace assay::timeline
