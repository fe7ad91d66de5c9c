#pragma once

// A case as a tree that can be changed, and written again as text.

#include <cstdint>
#include <string>
#include <vector>

#include "case/case.h"

namespace assay {

struct TreeNode {
  ValueKind kind = ValueKind::none;
  std::string keyword;              // of an argument
  std::string text;                 // what is written of a leaf that is no number and no tensor
  std::int64_t integer = 0;         // of an integer
  double floating = 0;              // of a float
  std::vector<std::int64_t> shape;  // of a tensor
  std::string dtype;                // likewise
  std::string rest;                 // likewise: place and strides, as they are written
  std::vector<TreeNode> children;   // of a list, tuple or slice
};

struct CaseTree {
  std::string api;
  std::vector<TreeNode> arguments;
  bool constructs = false;
  std::size_t construction = 0;  // arguments that make the layer
};

CaseTree tree_of(const Case& parsed);

// A line of a corpus; not yet canonical.
std::string text_of(const CaseTree& tree);

// How large and how complicated a case is: what shrinking makes less.
double weight_of(const CaseTree& tree);

}  // namespace assay
