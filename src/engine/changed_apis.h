#pragma once

// Which APIs a change of a framework's sources is about: the names in a unified diff.

#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

class ChangedApis {
 public:
  // Reads a diff from a file, or from standard input ("-").
  static Result<ChangedApis> read(const std::string& file);
  // Names stand in changed lines, in the names of changed files and behind the @@ of a hunk, where
  // diff tells the function that it is in: log_softmax, LogSoftmaxGradKernel,
  // log_softmax_kernel.cc.
  static ChangedApis parse(std::string_view diff);

  // Whether the last part of an API's name is one of them: log_softmax of
  // "paddle.nn.functional.log_softmax", add of "paddle.Tensor.add_" and "paddle.Tensor.__add__".
  bool have(std::string_view api) const;
  bool empty() const { return names_.empty(); }

 private:
  void take_words(std::string_view line);

  std::set<std::string, std::less<>> names_;
};

}  // namespace assay
