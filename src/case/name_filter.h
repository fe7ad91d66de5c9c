#pragma once

// The expression of `-k`, as pytest has it: parts of names joined by `and`, `or`, `not` and
// parentheses.

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

class NameFilter {
 public:
  struct Node;

  // Reads "softmax and not (log or sparse)". A usage error names the column where it goes wrong.
  static Result<NameFilter> parse(std::string_view expression);

  // True when the expression holds for `name`. Each part of the expression stands for "the name
  // contains this part", in upper or lower case.
  bool matches(std::string_view name) const;

 private:
  explicit NameFilter(std::shared_ptr<const Node> root) : root_(std::move(root)) {}

  std::shared_ptr<const Node> root_;  // shared, so that a filter can be copied
};

}  // namespace assay
