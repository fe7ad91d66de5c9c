#pragma once

// A recipe's statements as a tree: one a line, nested by their indentation.

#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::chain::plan {

struct Statement {
  int line = 0;  // in the dialect's file
  std::string_view word;
  std::string_view rest;
  std::vector<Statement> body;
};

// `first_line` is the line before the text's first one.
Result<std::vector<Statement>> read_statements(std::string_view text, int first_line);

}  // namespace assay::chain::plan
