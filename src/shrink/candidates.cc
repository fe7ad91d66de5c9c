#include "shrink/candidates.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace assay {
namespace {

using Edit = std::function<void(TreeNode&)>;

void each_node(std::vector<TreeNode>& nodes, const Edit& edit) {
  for (TreeNode& node : nodes) {
    edit(node);
    each_node(node.children, edit);
  }
}

void each_tensor(CaseTree& tree, const Edit& edit) {
  each_node(tree.arguments, [&](TreeNode& node) {
    if (node.kind == ValueKind::tensor) edit(node);
  });
}

// Strides only fit their shape, so a new shape has none.
void set_shape(TreeNode& tensor, std::vector<std::int64_t> shape) {
  if (shape == tensor.shape) return;
  tensor.shape = std::move(shape);
  tensor.rest.clear();
}

class Maker {
 public:
  explicit Maker(const CaseTree& tree) : tree_(tree), weight_(weight_of(tree)) {}

  std::vector<CaseTree> make() {
    drop_arguments();
    shrink_all_extents();
    shrink_equal_extents();
    lower_ranks();
    shorten_sequences();
    shrink_single_extents();
    simplify_leaves();
    return std::move(made_);
  }

 private:
  void add(CaseTree smaller) {
    if (weight_of(smaller) < weight_) made_.push_back(std::move(smaller));
  }

  void drop(const std::function<bool(const TreeNode&, std::size_t)>& unwanted) {
    CaseTree smaller = tree_;
    smaller.arguments.clear();
    for (std::size_t i = 0; i < tree_.arguments.size(); ++i) {
      if (!unwanted(tree_.arguments[i], i)) {
        smaller.arguments.push_back(tree_.arguments[i]);
      } else if (i < tree_.construction) {
        --smaller.construction;
      }
    }
    add(std::move(smaller));
  }

  void drop_arguments() {
    drop([](const TreeNode& node, std::size_t) { return !node.keyword.empty(); });
    for (std::size_t i = 0; i < tree_.arguments.size(); ++i) {
      if (!tree_.arguments[i].keyword.empty()) {
        drop([i](const TreeNode&, std::size_t at) { return at == i; });
      }
    }
    // Positional arguments are dropped from the end of their call.
    for (std::size_t i = 1; i < tree_.arguments.size(); ++i) {
      if (tree_.arguments[i].keyword.empty() && i != tree_.construction) {
        drop([&](const TreeNode& node, std::size_t at) {
          return at >= i && node.keyword.empty() &&
                 (at < tree_.construction) == (i < tree_.construction);
        });
      }
    }
    for (std::size_t i = 1; i < tree_.arguments.size(); ++i) {
      if (i == tree_.construction || !tree_.arguments[i].keyword.empty()) continue;
      CaseTree smaller = tree_;
      TreeNode& node = smaller.arguments[i];
      node = {ValueKind::none, "", "None", 0, 0, {}, {}, {}, {}};
      add(std::move(smaller));
    }
  }

  // Limits every extent of every tensor to the same maximum.
  void shrink_all_extents() {
    for (const std::int64_t most : {1, 2, 3, 4, 8, 16, 64}) {
      CaseTree smaller = tree_;
      each_tensor(smaller, [most](TreeNode& tensor) {
        std::vector<std::int64_t> shape = tensor.shape;
        for (std::int64_t& extent : shape) extent = std::min(extent, most);
        set_shape(tensor, std::move(shape));
      });
      add(std::move(smaller));
    }
  }

  // An extent that occurs several times, also as a number, often must be equal everywhere: changes
  // all occurrences together.
  void shrink_equal_extents() {
    std::set<std::int64_t, std::greater<>> extents;
    CaseTree copy = tree_;
    each_tensor(
        copy, [&](TreeNode& tensor) { extents.insert(tensor.shape.begin(), tensor.shape.end()); });
    for (const std::int64_t extent : extents) {
      if (extent <= 1) continue;
      for (const std::int64_t less : {std::int64_t{1}, std::int64_t{2}, extent / 2, extent - 1}) {
        if (less < 1 || less >= extent) continue;
        replace_extent(extent, less, /*numbers=*/false);
        replace_extent(extent, less, /*numbers=*/true);
      }
    }
  }

  void replace_extent(std::int64_t extent, std::int64_t less, bool numbers) {
    CaseTree smaller = tree_;
    bool any = !numbers;
    each_node(smaller.arguments, [&](TreeNode& node) {
      if (node.kind == ValueKind::tensor) {
        std::vector<std::int64_t> shape = node.shape;
        std::replace(shape.begin(), shape.end(), extent, less);
        set_shape(node, std::move(shape));
      } else if (numbers && node.kind == ValueKind::integer && node.integer == extent) {
        node.integer = less;
        any = true;
      }
    });
    if (any) add(std::move(smaller));
  }

  // Removes an axis from all tensors of the highest rank, and from each tensor alone.
  void lower_ranks() {
    CaseTree copy = tree_;
    std::size_t rank = 0;
    std::size_t tensors = 0;
    each_tensor(copy, [&](TreeNode& tensor) {
      rank = std::max(rank, tensor.shape.size());
      ++tensors;
    });
    for (std::size_t axis = 0; axis < rank; ++axis) {
      CaseTree smaller = tree_;
      each_tensor(smaller, [&](TreeNode& tensor) {
        if (tensor.shape.size() == rank) erase_axis(tensor, axis);
      });
      add(std::move(smaller));
    }
    for (std::size_t which = 0; tensors > 1 && which < tensors; ++which) {
      CaseTree smaller = tree_;
      std::size_t at = 0;
      each_tensor(smaller, [&](TreeNode& tensor) {
        if (at++ == which && !tensor.shape.empty()) erase_axis(tensor, 0);
      });
      add(std::move(smaller));
    }
  }

  static void erase_axis(TreeNode& tensor, std::size_t axis) {
    std::vector<std::int64_t> shape = tensor.shape;
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    set_shape(tensor, std::move(shape));
  }

  // Tries each change of each node, one at a time, in order.
  void change_each(const std::function<std::vector<TreeNode>(const TreeNode&)>& simpler) {
    CaseTree copy = tree_;
    std::size_t count = 0;
    each_node(copy.arguments, [&](TreeNode& node) {
      const std::size_t place = count++;
      for (const TreeNode& other : simpler(node)) {
        CaseTree smaller = tree_;
        std::size_t at = 0;
        bool done = false;
        each_node(smaller.arguments, [&](TreeNode& candidate) {
          if (!done && at++ == place) {
            candidate = other;
            done = true;
          }
        });
        add(std::move(smaller));
      }
    });
  }

  void shorten_sequences() {
    change_each([](const TreeNode& node) {
      std::vector<TreeNode> shorter;
      const std::size_t size = node.children.size();
      if (node.kind == ValueKind::slice || size < 2) return shorter;
      const auto keep = [&](std::size_t from, std::size_t to) {
        TreeNode part = node;
        part.children.assign(node.children.begin() + static_cast<std::ptrdiff_t>(from),
                             node.children.begin() + static_cast<std::ptrdiff_t>(to));
        shorter.push_back(std::move(part));
      };
      keep(0, 1);
      if (size > 2) keep(0, size / 2);
      if (size > 2) keep(size / 2, size);
      keep(1, size);
      if (size > 2) keep(0, size - 1);
      return shorter;
    });
  }

  void shrink_single_extents() {
    change_each([](const TreeNode& node) {
      std::vector<TreeNode> smaller;
      if (node.kind != ValueKind::tensor) return smaller;
      for (std::size_t axis = 0; axis < node.shape.size(); ++axis) {
        const std::int64_t extent = node.shape[axis];
        for (const std::int64_t less : {std::int64_t{1}, extent / 2, extent - 1}) {
          if (less < 1 || less >= extent) continue;
          std::vector<std::int64_t> shape = node.shape;
          shape[axis] = less;
          smaller.push_back(node);
          set_shape(smaller.back(), std::move(shape));
        }
      }
      return smaller;
    });
  }

  void simplify_leaves() {
    change_each([](const TreeNode& node) {
      std::vector<TreeNode> simpler;
      const auto integer = [&](std::int64_t number) {
        simpler.push_back(node);
        simpler.back().integer = number;
      };
      const auto floating = [&](double number) {
        simpler.push_back(node);
        simpler.back().floating = number;
      };
      if (node.kind == ValueKind::integer) {
        for (const std::int64_t number : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2},
                                          node.integer / 2, node.integer - 1}) {
          integer(number);
        }
      } else if (node.kind == ValueKind::floating && std::isfinite(node.floating)) {
        for (const double number : {0.0, 1.0, 2.0, 0.5, std::round(node.floating)})
          floating(number);
      } else if (node.kind == ValueKind::tensor && !node.rest.empty()) {
        simpler.push_back(node);
        simpler.back().rest.clear();
      }
      return simpler;
    });
  }

  const CaseTree& tree_;
  double weight_;
  std::vector<CaseTree> made_;
};

}  // namespace

std::vector<CaseTree> smaller_cases(const CaseTree& tree) { return Maker(tree).make(); }

}  // namespace assay
