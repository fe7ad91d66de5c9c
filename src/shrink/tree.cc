#include "shrink/tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "case/dtype.h"
#include "case/value_text.h"

namespace assay {
namespace {

TreeNode node_of(const Value& value) {
  TreeNode node;
  node.kind = value.kind();
  switch (value.kind()) {
    case ValueKind::integer:
      node.integer = value.integer();
      break;
    case ValueKind::floating:
      node.floating = value.floating();
      break;
    case ValueKind::tensor: {
      if (value.repeats()) {  // stays as it is written
        node.kind = ValueKind::place;
        append_canonical(value, node.text);
        break;
      }
      const TensorSpec spec = value.tensor();
      node.shape.assign(spec.shape.begin(), spec.shape.end());
      node.dtype = name(spec.dtype);
      if (!spec.place.empty()) node.rest += fmt::format(", place=Place({})", spec.place);
      if (!spec.strides.empty()) {
        node.rest +=
            fmt::format(", is_contiguous=False, strides=[{}]", fmt::join(spec.strides, ", "));
      }
      break;
    }
    case ValueKind::list:
    case ValueKind::tuple:
    case ValueKind::slice:
      for (const Value child : value.children()) node.children.push_back(node_of(child));
      break;
    default:
      append_canonical(value, node.text);
  }
  return node;
}

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-math.inf" : "math.inf";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string joined(const std::vector<TreeNode>& nodes);

std::string text_of(const TreeNode& node) {
  switch (node.kind) {
    case ValueKind::integer:
      return fmt::format("{}", node.integer);
    case ValueKind::floating:
      return float_text(node.floating);
    case ValueKind::tensor:
      return fmt::format("Tensor([{}], \"{}\"{})", fmt::join(node.shape, ", "), node.dtype,
                         node.rest);
    case ValueKind::list:
      return fmt::format("list[{}]", joined(node.children));
    case ValueKind::tuple:
      return fmt::format("tuple({})", joined(node.children));
    case ValueKind::slice:
      return fmt::format("slice({})", joined(node.children));
    default:
      return node.text;
  }
}

std::string joined(const std::vector<TreeNode>& nodes) {
  std::string text;
  for (const TreeNode& node : nodes) {
    if (!text.empty()) text += ", ";
    if (!node.keyword.empty()) text += node.keyword + "=";
    text += text_of(node);
  }
  return text;
}

// Numbers with fewer digits are simpler; 0 and 1 cost least.
double weight_of(double number) {
  if (number == 0) return 0;
  if (!std::isfinite(number)) return 4;
  const double digits = static_cast<double>(float_text(number).size());
  return number == 1 ? 0.5 : 0.5 + digits / 4 + std::log2(1 + std::abs(number)) / 8;
}

double weight_of(const TreeNode& node) {
  double weight = 2;
  switch (node.kind) {
    case ValueKind::none:
      return 1;
    case ValueKind::integer:
      return weight + weight_of(static_cast<double>(node.integer));
    case ValueKind::floating:
      return weight + weight_of(node.floating);
    case ValueKind::tensor:
      weight += node.rest.empty() ? 1 : 4;
      // An extent of 0 is no simpler than 1.
      for (const std::int64_t extent : node.shape) {
        weight += 0.5 + 2 * std::log2(static_cast<double>(extent < 1 ? 2 : extent));
      }
      return weight;
    case ValueKind::list:
    case ValueKind::tuple:
    case ValueKind::slice:
      for (const TreeNode& child : node.children) weight += weight_of(child);
      return weight;
    default:
      return weight + static_cast<double>(node.text.size()) / 32;
  }
}

}  // namespace

CaseTree tree_of(const Case& parsed) {
  CaseTree tree;
  tree.api = parsed.api();
  tree.constructs = parsed.constructs();
  tree.construction = parsed.construction_count();
  for (const Argument argument : parsed.arguments()) {
    TreeNode node = node_of(argument.value);
    node.keyword = argument.keyword;
    tree.arguments.push_back(std::move(node));
  }
  return tree;
}

std::string text_of(const CaseTree& tree) {
  const auto middle = tree.arguments.begin() + static_cast<std::ptrdiff_t>(tree.construction);
  if (!tree.constructs) return fmt::format("{}({})", tree.api, joined(tree.arguments));
  return fmt::format("{}({})({})", tree.api, joined({tree.arguments.begin(), middle}),
                     joined({middle, tree.arguments.end()}));
}

double weight_of(const CaseTree& tree) {
  double weight = 0;
  for (const TreeNode& argument : tree.arguments) weight += weight_of(argument);
  return weight;
}

}  // namespace assay
