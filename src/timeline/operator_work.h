#pragma once

// Floating-point operations and memory traffic of PyTorch's operators, from the shapes of their
// arguments. Formulas as in torch/utils/flop_counter.py: a multiply-add is two operations, the
// backward of a product is two products. Unlike there, causal attention counts what is seen, and
// the weight's gradient of a grouped convolution counts its own groups only.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::timeline {

using Shape = std::vector<std::int64_t>;

// The arguments of a call, as recorded.
struct OperatorInputs {
  std::vector<Shape> shapes;        // empty for other arguments than tensors
  std::vector<std::string> types;   // "c10::BFloat16"
  std::vector<std::string> values;  // "True", "[2, 2]"; empty where not recorded
};

struct OperatorFormula {
  std::string_view name;
  enum class Family : std::uint8_t {
    product,  // of two matrices, or of batches of them
    linear,
    grouped,  // of the groups of one matrix with a batch of matrices
    convolution,
    convolution_backward,
    attention,
    attention_backward,
  } family = Family::product;
  std::size_t first = 0;     // the place of its first tensor
  std::size_t causal = 0;    // the place of the argument that says so; 0: none
  bool heads_second = true;  // attention: [batch, heads, sequence, size], or heads third
  bool composite = false;    // calls other operators of the table
};

// Null for an operator without a formula.
const OperatorFormula* formula_of(std::string_view name);

struct OperatorCost {
  double flop = 0;
  double bytes = 0;    // each tensor read or written once; 0 if the size of the type is not known
  std::string dtype;   // "bf16"
  std::string shapes;  // "64x128, 128x32"
};

// Nothing if the arguments needed were not recorded.
std::optional<OperatorCost> cost_of(const OperatorFormula& formula, const OperatorInputs& inputs);

}  // namespace assay::timeline
