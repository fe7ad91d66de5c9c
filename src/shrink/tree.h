#pragma once

// A case as a tree that can be changed and written as text.

#include <cstdint>
#include <string>
#include <vector>

#include "case/case.h"

namespace assay {

struct TreeNode {
  ValueKind kind = ValueKind::none;
  std::string keyword;              // of an argument
  std::string text;                 // the text of a leaf that is neither a number nor a tensor
  std::int64_t integer = 0;         // of an integer
  double floating = 0;              // of a float
  std::vector<std::int64_t> shape;  // of a tensor
  std::string dtype;                // of a tensor
  std::string rest;                 // of a tensor: place and strides as written
  std::vector<TreeNode> children;   // of a list, tuple or slice
};

struct CaseTree {
  std::string api;
  std::vector<TreeNode> arguments;
  bool constructs = false;
  std::size_t construction = 0;  // number of arguments that construct the layer
};

// Converts a parsed case to a tree.
CaseTree tree_of(const Case& parsed);

// Writes the tree as a corpus line, which may not be canonical.
std::string text_of(const CaseTree& tree);

// The size and complexity of a case, which shrinking reduces.
double weight_of(const CaseTree& tree);

}  // namespace assay
