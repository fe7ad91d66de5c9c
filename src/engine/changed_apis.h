#pragma once

// The APIs that a change of a framework's sources touches: the names in a unified diff.

#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

class ChangedApis {
 public:
  // Reads a diff from a file, or from standard input ("-").
  static Result<ChangedApis> read(const std::string& file);
  // Takes names from changed lines, from the names of changed files, and from the function that a
  // hunk shows behind its @@: log_softmax, LogSoftmaxGradKernel, log_softmax_kernel.cc.
  static ChangedApis parse(std::string_view diff);

  // Whether the diff has the last part of an API's name: log_softmax of
  // "paddle.nn.functional.log_softmax", add of "paddle.Tensor.add_" and "paddle.Tensor.__add__".
  bool have(std::string_view api) const;
  bool empty() const { return names_.empty(); }

 private:
  void take_words(std::string_view line);

  std::set<std::string, std::less<>> names_;
};

}  // namespace assay
