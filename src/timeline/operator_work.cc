#include "timeline/operator_work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>

#include "timeline/names.h"

namespace assay::timeline {
namespace {

using Family = OperatorFormula::Family;

// A damaged trace may hold any numbers.
constexpr std::int64_t kMaxSize = std::int64_t{1} << 40U;
constexpr std::int64_t kMaxStep = std::int64_t{1} << 20U;

constexpr std::array<OperatorFormula, 29> kFormulas{{
    {"aten::mm", Family::product},
    {"aten::bmm", Family::product},
    {"aten::addmm", Family::product, 1},
    {"aten::_addmm_activation", Family::product, 1},
    {"aten::baddbmm", Family::product, 1},
    {"aten::_scaled_mm", Family::product},
    {"aten::_int_mm", Family::product},
    {"aten::_grouped_mm", Family::grouped},
    {"aten::_scaled_grouped_mm", Family::grouped},
    {.name = "aten::matmul", .family = Family::product, .composite = true},
    {.name = "aten::linear", .family = Family::linear, .composite = true},
    {"aten::convolution", Family::convolution},
    {"aten::_convolution", Family::convolution},
    {"aten::convolution_backward", Family::convolution_backward},
    {.name = "aten::scaled_dot_product_attention",
     .family = Family::attention,
     .causal = 5,
     .composite = true},
    {"aten::_scaled_dot_product_flash_attention", Family::attention, 0, 4},
    {"aten::_scaled_dot_product_efficient_attention", Family::attention, 0, 6},
    {"aten::_scaled_dot_product_cudnn_attention", Family::attention, 0, 6},
    {"aten::_scaled_dot_product_fused_attention_overrideable", Family::attention, 0, 5},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", Family::attention, 0, 4},
    {"aten::_flash_attention_forward", Family::attention, 0, 8, false},
    {"aten::_efficient_attention_forward", Family::attention, 0, 9, false},
    {"aten::_scaled_dot_product_flash_attention_backward", Family::attention_backward, 0, 11},
    {"aten::_scaled_dot_product_efficient_attention_backward", Family::attention_backward, 0, 11},
    {"aten::_scaled_dot_product_cudnn_attention_backward", Family::attention_backward, 0, 14},
    {"aten::_scaled_dot_product_fused_attention_overrideable_backward", Family::attention_backward,
     0, 13},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", Family::attention_backward, 0,
     7},
    {"aten::_flash_attention_backward", Family::attention_backward, 0, 11, false},
    {"aten::_efficient_attention_backward", Family::attention_backward, 0, 14, false},
}};

struct Type {
  std::string_view recorded;  // the begin of its name
  std::string_view name;
  double bytes;
};
constexpr std::array<Type, 7> kElementTypes{{{"c10::BFloat16", "bf16", 2},
                                             {"c10::Half", "fp16", 2},
                                             {"c10::Float8", "fp8", 1},
                                             {"float", "fp32", 4},
                                             {"double", "fp64", 8},
                                             {"signed char", "int8", 1},
                                             {"unsigned char", "int8", 1}}};

double product(std::span<const std::int64_t> sizes) {
  double all = 1;
  for (const std::int64_t size : sizes) all *= static_cast<double>(size);
  return all;
}

const std::string& value_at(const OperatorInputs& inputs, std::size_t place) {
  static const std::string kUnknown;
  return place < inputs.values.size() ? inputs.values[place] : kUnknown;
}

// How many keys all queries of a head see. A causal mask begins at the first query and key ("True",
// or kind "1"), or ends at the last ones ("2").
double visible(const OperatorFormula& formula, const OperatorInputs& inputs, std::int64_t queries,
               std::int64_t keys) {
  const auto k = static_cast<double>(keys);
  const auto q = static_cast<double>(queries);
  const double less = std::min(q, k);
  const std::string& mask = value_at(inputs, formula.causal);
  if (formula.causal > 0 && mask == "2") return less * k - less * less / 2;
  const bool causal = formula.causal > 0 && (mask == "True" || mask == "1");
  return causal ? less * less / 2 + (q - less) * k : q * k;
}

struct Cost {
  double flop = 0;
  double read = 0;  // elements
  double written = 0;
};
using Tensors = std::span<const Shape>;

// The batch of a product: each size is that of one side, or common to both.
std::optional<Shape> broadcast(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  if (a.size() < b.size()) std::swap(a, b);
  Shape sizes(a.begin(), a.end());
  const std::size_t ahead = a.size() - b.size();
  for (std::size_t i = 0; i < b.size(); ++i) {
    std::int64_t& size = sizes[ahead + i];
    if (size != b[i] && size != 1 && b[i] != 1) return std::nullopt;
    size = size == 1 ? b[i] : size;
  }
  return sizes;
}

std::optional<Cost> product_cost(Shape a, Shape b, Family family) {
  if (a.empty() || b.empty()) return std::nullopt;
  if (family == Family::linear) {
    if (b.size() != 2) return std::nullopt;
    std::swap(b[0], b[1]);
  }
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  const std::int64_t rows = a[a.size() - 2];
  const std::int64_t inner = a.back();
  if (inner != b[b.size() - 2]) return std::nullopt;
  // Each row, or part of the sum, belongs to one group: not every matrix meets every other one.
  const bool ragged = family == Family::grouped && (a.size() == 2 || b.size() == 2);
  const auto batch =
      ragged ? Shape{}
             : broadcast(std::span(a).first(a.size() - 2), std::span(b).first(b.size() - 2));
  if (!batch) return std::nullopt;
  const double out = product(*batch) * static_cast<double>(rows) * static_cast<double>(b.back());
  return Cost{2 * out * static_cast<double>(inner), product(a) + product(b), out};
}

// The size of a convolution's output, by dimension.
std::optional<Shape> convolved(const Shape& x, const Shape& w, const OperatorInputs& inputs) {
  const std::size_t dims = x.size() - 2;
  std::array<Shape, 3> lists;  // of "[2, 2]"
  for (std::size_t i = 0; i < lists.size(); ++i) {
    lists[i] = numbers_in<std::int64_t>(value_at(inputs, 3 + i));
  }
  for (Shape& list : lists) {
    if (list.size() == 1) list.resize(dims, list.front());
    if (list.size() != dims ||
        std::ranges::any_of(list, [](std::int64_t one) { return one < 0 || one > kMaxStep; }))
      return std::nullopt;
  }
  const auto& [stride, padding, dilation] = lists;
  Shape out;
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t reach = dilation[i] * (w[i + 2] - 1) + 1;
    if (stride[i] <= 0 || x[i + 2] + 2 * padding[i] < reach) return std::nullopt;
    out.push_back((x[i + 2] + 2 * padding[i] - reach) / stride[i] + 1);
  }
  return out;
}

// Each output, or each input of a transposed convolution, meets each element of the filter.
double convolution_flop(const Shape& points, const Shape& w, std::int64_t batch) {
  return 2 * product(points) * product(w) * static_cast<double>(batch);
}

Shape spatial(const Shape& tensor) { return {tensor.begin() + 2, tensor.end()}; }

std::optional<Cost> convolution_cost(Tensors tensors, const OperatorInputs& inputs) {
  const Shape& x = tensors[0];
  const Shape& w = tensors[1];
  if (x.size() < 3 || x.size() != w.size()) return std::nullopt;
  const std::string& transposed = value_at(inputs, 6);
  if (transposed == "True") {
    // The output's size depends on the padding: its traffic is left out.
    return Cost{convolution_flop(spatial(x), w, x[0]), product(x) + product(w), 0};
  }
  const auto out = convolved(x, w, inputs);
  if (!out || transposed.empty()) return std::nullopt;
  return Cost{convolution_flop(*out, w, x[0]), product(x) + product(w),
              product(*out) * static_cast<double>(x[0]) * static_cast<double>(w[0])};
}

std::optional<Cost> convolution_backward_cost(Tensors tensors, const OperatorInputs& inputs) {
  const Shape& gradient = tensors[0];
  const Shape& x = tensors[1];
  const Shape& w = tensors[2];
  if (x.size() < 3 || x.size() != w.size() || x.size() != gradient.size()) return std::nullopt;
  const bool transposed = value_at(inputs, 7) == "True";
  const double one = convolution_flop(spatial(transposed ? x : gradient), w, x[0]);
  const std::string& mask = value_at(inputs, 10);  // "[True, True, False]"
  const bool of_x = !mask.starts_with("[False");
  const bool of_w = mask.find(", True") == mask.find(',') || mask.empty();
  return Cost{one * ((of_x ? 1 : 0) + (of_w ? 1 : 0)), product(gradient) + product(x) + product(w),
              (of_x ? product(x) : 0) + (of_w ? product(w) : 0)};
}

std::optional<Cost> attention_cost(const OperatorFormula& formula, Tensors tensors,
                                   const OperatorInputs& inputs) {
  const bool backward = formula.family == Family::attention_backward;
  const Shape& q = tensors[backward ? 1 : 0];
  const Shape& k = tensors[backward ? 2 : 1];
  const Shape& v = tensors[backward ? 3 : 2];
  // The lengths of packed sequences are not recorded.
  const std::size_t offsets = backward ? 6 : 4;
  if (!formula.heads_second && inputs.shapes.size() > offsets && !inputs.shapes[offsets].empty()) {
    return std::nullopt;
  }
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || q[3] != k[3]) return std::nullopt;
  const std::size_t sequence = formula.heads_second ? 2 : 1;
  const double heads = static_cast<double>(q[0]) * static_cast<double>(q[3 - sequence]);
  const double scores = heads * visible(formula, inputs, q[sequence], k[sequence]);
  const auto size = static_cast<double>(q[3]);
  const auto value_size = static_cast<double>(v[3]);
  const double out = heads * static_cast<double>(q[sequence]) * value_size;
  const double read = product(q) + product(k) + product(v);
  if (!backward) return Cost{2 * scores * (size + value_size), read, out};
  // The scores again, then the gradients of the scores, v, q and k.
  return Cost{2 * scores * (3 * size + 2 * value_size), read + 2 * out, read};
}

std::optional<Cost> elements_of(const OperatorFormula& formula, Tensors tensors,
                                const OperatorInputs& inputs) {
  switch (formula.family) {
    case Family::product:
    case Family::linear:
    case Family::grouped:
      return product_cost(tensors[0], tensors[1], formula.family);
    case Family::convolution:
      return convolution_cost(tensors, inputs);
    case Family::convolution_backward:
      return convolution_backward_cost(tensors, inputs);
    case Family::attention:
    case Family::attention_backward:
      return attention_cost(formula, tensors, inputs);
  }
  return std::nullopt;
}

std::size_t tensors_of(Family family) {
  switch (family) {
    case Family::attention_backward:
      return 4;
    case Family::attention:
    case Family::convolution_backward:
      return 3;
    default:
      return 2;
  }
}

}  // namespace

const OperatorFormula* formula_of(std::string_view name) {
  const auto found = std::ranges::find(kFormulas, name, &OperatorFormula::name);
  return found == kFormulas.end() ? nullptr : &*found;
}

std::optional<OperatorCost> cost_of(const OperatorFormula& formula, const OperatorInputs& inputs) {
  const std::size_t count = tensors_of(formula.family);
  if (inputs.shapes.size() < formula.first + count) return std::nullopt;
  const Tensors tensors = Tensors(inputs.shapes).subspan(formula.first, count);
  for (const Shape& tensor : tensors) {
    if (std::ranges::any_of(tensor,
                            [](std::int64_t size) { return size < 0 || size > kMaxSize; })) {
      return std::nullopt;
    }
  }
  const auto cost = elements_of(formula, tensors, inputs);
  if (!cost) return std::nullopt;
  OperatorCost result{.flop = cost->flop, .bytes = 0, .dtype = {}, .shapes = {}};
  if (formula.first < inputs.types.size()) result.dtype = inputs.types[formula.first];
  for (const Type& type : kElementTypes) {
    if (!result.dtype.starts_with(type.recorded)) continue;
    result.dtype = type.name;
    // Products of one-byte numbers are written with two bytes.
    result.bytes = cost->read * type.bytes + cost->written * std::max(type.bytes, 2.0);
    break;
  }
  for (const Shape& tensor : tensors) {
    result.shapes += fmt::format("{}{}", result.shapes.empty() ? "" : ", ", fmt::join(tensor, "x"));
  }
  return result;
}

}  // namespace assay::timeline
