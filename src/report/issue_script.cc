#include "report/issue_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "report/inputs.h"
#include "report/repro_script.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostElements = 256;  // of all tensors, so that a script is readable

using Comparisons = flatbuffers::Vector<flatbuffers::Offset<wire::Comparison>>;

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  return fmt::format("{:.9g}", number);
}

// The numbers as nested Python lists of this shape.
std::string nested(const std::vector<std::string>& numbers, std::span<const std::int64_t> shape,
                   std::size_t& at) {
  if (shape.empty()) return numbers[at++];
  std::string text;
  for (std::int64_t i = 0; i < shape.front(); ++i) {
    if (i > 0) text += ", ";
    text += nested(numbers, shape.subspan(1), at);
  }
  return "[" + text + "]";
}

std::string tensor_text(DType dtype, std::span<const std::int64_t> shape,
                        std::span<const std::byte> elements) {
  if (elements.empty()) {
    return fmt::format("paddle.empty([{}], \"{}\")", fmt::join(shape, ", "), name(dtype));
  }
  std::size_t at = 0;
  const std::string numbers = nested(python_numbers(dtype, elements), shape, at);
  // to_tensor() cannot make float8.
  if (info(dtype).kind == DTypeClass::floating && size_of(dtype) == 1) {
    return fmt::format("paddle.to_tensor({}, \"float32\").astype(\"{}\")", numbers, name(dtype));
  }
  return fmt::format("paddle.to_tensor({}, \"{}\")", numbers, name(dtype));
}

class ScriptWriter {
 public:
  ScriptWriter(const Case& parsed, std::uint64_t id, std::uint64_t seed, const wire::Trial& trial,
               const Verdict& verdict)
      : parsed_(parsed),
        id_(id),
        seed_(seed),
        trial_(trial),
        fault_(verdict.fault()),
        witness_(witness_of(trial, verdict.fault())) {}

  Result<std::string> write(const std::string& version) {
    ASSAY_CHECK(check());
    line(fmt::format("import paddle  # {}", version));
    ASSAY_CHECK(inputs());
    call();
    if (fault_.gradient || fault_.phase == "backward") {
      ASSAY_CHECK(gradients());
    } else if (witness_.comparison != nullptr) {
      look("result" + fault_.leaf);
    } else {
      line("print(result)");
    }
    if (text_.find("inf") != std::string::npos || text_.find("nan") != std::string::npos) {
      lines_.insert(lines_.begin(), "from math import inf, nan\n");
    }
    if (lines_.size() > kIssueLines) {
      return fail(fmt::format("it would have more than {} lines", kIssueLines));
    }
    return fmt::format("{}", fmt::join(lines_, ""));
  }

 private:
  void line(std::string text) {
    text_ += text;
    lines_.push_back(std::move(text) + "\n");
  }

  Status check() const {
    if (parsed_.total_elements() > kMostElements) {
      return fail(fmt::format("the case's tensors have more than {} elements", kMostElements));
    }
    if (parsed_.constructs()) return fail("the case is a layer, whose parameters assay fills");
    for (const TensorSpec spec : parsed_.tensors()) {
      if (!spec.strides.empty()) return fail("the case has tensors with strides");
    }
    return {};
  }

  Status inputs() {
    for (std::size_t i = 0; i < parsed_.tensor_count(); ++i) {
      const TensorSpec spec = parsed_.tensor(i);
      std::vector<std::byte> elements(spec.bytes());
      ASSAY_CHECK(fill_again(filling_of(trial_, i), {seed_, id_, static_cast<std::uint32_t>(i)},
                             spec.dtype, elements));
      line(fmt::format("x{} = {}", i, tensor_text(spec.dtype, spec.shape, elements)));
      if (fault_.values == "layout") as_layout(i, spec);
      if (!wants_gradient() || !differentiable(spec.dtype)) continue;
      line(fmt::format("x{}.stop_gradient = False", i));
      leaves_.push_back(fmt::format("x{}", i));
      largest_ = std::max(largest_, spec.elements());
    }
    if (works_in_place(parsed_.api()) && !leaves_.empty()) {
      line(fmt::format("leaves = [{}]", fmt::join(leaves_, ", ")));
      line(fmt::format("{}{} = map(paddle.assign, leaves)  # a leaf may not be changed in place",
                       fmt::join(leaves_, ", "), leaves_.size() == 1 ? "," : ""));
      for (std::size_t i = 0; i < leaves_.size(); ++i) leaves_[i] = fmt::format("leaves[{}]", i);
    }
    return {};
  }

  // Moves the values to memory that is not contiguous, as as_layout() of
  // python/assay/frameworks/paddle_framework.py does.
  void as_layout(std::size_t i, const TensorSpec& spec) {
    if (spec.elements() < 2) return;
    if (i % 3 == 0 && spec.shape.size() > 1) {
      line(
          fmt::format("x{0} = x{0}.transpose(list(range(x{0}.ndim))[::-1]).contiguous()"
                      ".transpose(list(range(x{0}.ndim))[::-1])",
                      i));
    } else if (i % 3 == 1 && !spec.shape.empty()) {
      line(fmt::format("x{0} = paddle.concat([x{0}[:1], x{0}])[1:]", i));
    } else {
      line(fmt::format("x{0} = paddle.stack([x{0}, paddle.zeros_like(x{0})], -1)[..., 0]", i));
    }
  }

  bool wants_gradient() const { return fault_.gradient || fault_.phase == "backward"; }

  void call() {
    const std::string made = python_call(parsed_);
    for (const Argument argument : parsed_.arguments()) {
      if (!works_in_place(parsed_.api()) || !argument.value.is(ValueKind::tensor)) continue;
      line(made);
      line(fmt::format("result = x{}  # changed in place", argument.value.tensor_ordinal()));
      return;
    }
    line("result = " + made);
  }

  // Differentiates with the upstream gradients of the run.
  Status gradients() {
    if (leaves_.empty()) return fail("no argument of the case has a gradient");
    std::vector<std::string> outputs;
    std::vector<std::string> upstream;
    if (const Comparisons* results = results_of_run(); results != nullptr) {
      for (std::uint32_t place = 0; place < results->size(); ++place) {
        ASSAY_CHECK(add_output(*results->Get(place), place, outputs, upstream));
      }
    }
    if (outputs.empty()) {
      line("outputs, upstream = [result], None");
    } else {
      line(fmt::format("outputs, upstream = [{}], [{}]", fmt::join(outputs, ", "),
                       fmt::join(upstream, ", ")));
    }
    line(fmt::format("gradients = paddle.grad(outputs, [{}], upstream, allow_unused=True)",
                     fmt::join(leaves_, ", ")));
    if (witness_.comparison != nullptr && witness_.place < leaves_.size()) {
      look(fmt::format("gradients[{}]", witness_.place));
    } else {
      line("print(gradients)");
    }
    return {};
  }

  const Comparisons* results_of_run() const {
    if (trial_.pairs() == nullptr || trial_.pairs()->size() == 0) return nullptr;
    return trial_.pairs()->Get(0)->outputs();
  }

  Status add_output(const wire::Comparison& comparison, std::uint32_t place,
                    std::vector<std::string>& outputs, std::vector<std::string>& upstream) {
    const wire::Side* side = comparison.left();
    if (side == nullptr || side->missing() || side->kind() != wire::LeafKind::tensor) return {};
    const auto dtype = static_cast<DType>(side->dtype());
    const auto* shape = side->shape();
    if (!differentiable(dtype) || shape == nullptr) return {};
    std::uint64_t count = 1;
    for (const std::int64_t extent : *shape) count *= static_cast<std::uint64_t>(extent);
    if (count > kMostElements) {
      return fail(fmt::format("a result has more than {} elements", kMostElements));
    }
    std::vector<std::byte> elements(count * size_of(dtype));
    const FillKey key{seed_, id_, kUpstream + place};
    fill(upstream_rule(dtype, count, largest_), key, dtype, elements);
    outputs.push_back("result" + (comparison.path() == nullptr ? "" : comparison.path()->str()));
    upstream.push_back(tensor_text(dtype, {shape->data(), shape->size()}, elements));
    return {};
  }

  // Prints the result and the right result.
  void look(const std::string& what) {
    const wire::Comparison& comparison = *witness_.comparison;
    const bool numbers = (fault_.kinds & kValue) != 0 && (fault_.kinds & kShape) == 0;
    if (numbers && witness_.element && comparison.equality() != wire::Equality::sorted) {
      line(fmt::format("print(\"got     \", {}.flatten()[{}].item())", what, witness_.index));
      line(fmt::format("print(\"expected\", {})", number_text(witness_.right)));
    } else {
      line(fmt::format("print({})", what));
    }
  }

  const Case& parsed_;
  std::uint64_t id_;
  std::uint64_t seed_;
  const wire::Trial& trial_;
  const Fault& fault_;
  Witness witness_;
  std::vector<std::string> lines_;
  std::string text_;
  std::vector<std::string> leaves_;  // inputs whose gradients are computed
  std::uint64_t largest_ = 0;        // elements of the largest of these
};

}  // namespace

Witness witness_of(const wire::Trial& trial, const Fault& fault) {
  Witness witness;
  if (fault.kinds == 0 || trial.pairs() == nullptr || trial.pairs()->size() == 0) return witness;
  const wire::Pair& pair = *trial.pairs()->Get(0);
  const Comparisons* comparisons = fault.gradient ? pair.gradients() : pair.outputs();
  for (std::uint32_t place = 0; comparisons != nullptr && place < comparisons->size(); ++place) {
    const wire::Comparison* comparison = comparisons->Get(place);
    if (comparison->path() == nullptr || comparison->path()->string_view() != fault.leaf) continue;
    witness.comparison = comparison;
    witness.place = place;
    if (const wire::Bar* bar = comparison->bar(); bar != nullptr && bar->test() != nullptr) {
      witness.index = bar->test()->index();
      const wire::Measurement* measured = comparison->measurement();
      witness.element = measured != nullptr && witness.index < measured->count();
      witness.got = bar->test_value();
      witness.right = bar->true_value();
      witness.by_reference = bar->reference_value();
    } else if (const wire::Measurement* measured = comparison->measurement();
               measured != nullptr && measured->first() != nullptr) {
      witness.index = measured->first()->index();
      witness.element = true;
      witness.got = measured->first()->left();
      witness.right = witness.by_reference = measured->first()->right();
    }
    break;
  }
  return witness;
}

Result<std::string> issue_script(const std::map<std::string, std::string>& properties,
                                 const Case& parsed, std::uint64_t id, const wire::Trial& trial,
                                 const Verdict& verdict) {
  ASSAY_TRY(const std::uint64_t seed, run_seed(properties));
  const auto version = properties.find("paddle");
  ScriptWriter writer(parsed, id, seed, trial, verdict);
  return writer.write(version == properties.end() ? "" : version->second);
}

}  // namespace assay
