#include "report/issue_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "fill/fill.h"
#include "report/inputs.h"
#include "report/repro_script.h"
#include "report/run_report.h"
#include "verdict/messages.h"

namespace assay {
namespace {

constexpr std::string_view kSparse = "paddle.sparse.";  // APIs with sparse arguments
constexpr std::uint64_t kMostElements = 256;  // of all tensors, so that a person can read them

using Comparisons = flatbuffers::Vector<flatbuffers::Offset<wire::Comparison>>;
using Lines = std::vector<std::string>;

// A number as a Python literal.
std::string python_literal(DType dtype, double value, double second) {
  std::string text = element_text(dtype, value, second);
  if (info(dtype).kind != DTypeClass::complex) return text;
  return fmt::format("complex({}, {})", element_text(DType::float64, value),
                     element_text(DType::float64, second));
}

class ScriptWriter {
 public:
  ScriptWriter(const FaultyLane& lane, std::uint64_t seed, const Case& parsed, std::uint64_t id,
               const wire::Trial& trial, const Fault& fault)
      : lane_(lane),
        dialect_(*lane.dialect),
        seed_(seed),
        parsed_(parsed),
        id_(id),
        trial_(trial),
        fault_(fault),
        witness_(witness_of(trial, fault)) {}

  Result<std::string> write(const Tracer& tracer) {
    ASSAY_CHECK(check());
    if (std::string line = dialect_.on_device(lane_.device); !line.empty()) setup(std::move(line));
    ASSAY_CHECK(inputs());
    if (traces()) {
      ASSAY_TRY(traced_, tracer(lane_, std::string(parsed_.api()), trace_script()));
      body_ = traced_.lines;
    } else {
      call();
    }
    if (wants_gradient()) ASSAY_CHECK(gradients());
    ASSAY_CHECK(end());
    return whole();
  }

 private:
  void setup(std::string line) { setup_.push_back(std::move(line)); }
  void body(std::string line) { body_.push_back(std::move(line)); }
  void finish(std::string line) { end_.push_back(std::move(line)); }

  static std::string joined(const Lines& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }

  Status check() const {
    if (lane_.execution != "eager") {
      return fail(fmt::format("its lane runs under the execution {}", lane_.execution));
    }
    if (!lane_.tables && module_of(parsed_.api()) != dialect_.module) {
      return fail("its lane calls a function of another name");
    }
    if (fault_.outcome == Outcome::unstable) return fail("a single call does not show it");
    if (parsed_.total_elements() > kMostElements) {
      return fail(fmt::format("the case's tensors have more than {} elements", kMostElements));
    }
    if (parsed_.api().starts_with(kSparse) && parsed_.tensor_count() > 0) {
      return fail("the case has sparse tensors, which assay makes of dense ones");
    }
    if (parsed_.constructs()) return fail("the case is a layer, whose parameters assay fills");
    for (const TensorSpec spec : parsed_.tensors()) {
      if (!spec.strides.empty()) return fail("the case has tensors with strides");
    }
    return {};
  }

  // Whether the lane called a function of the tables for a name of another framework.
  bool traces() const { return lane_.tables && module_of(parsed_.api()) != dialect_.module; }

  bool wants_gradient() const { return fault_.gradient || fault_.phase == "backward"; }

  Status inputs() {
    for (std::size_t i = 0; i < parsed_.tensor_count(); ++i) {
      const TensorSpec spec = parsed_.tensor(i);
      std::vector<std::byte> elements(spec.bytes());
      ASSAY_CHECK(fill_again(filling_of(trial_, i), {seed_, id_, static_cast<std::uint32_t>(i)},
                             spec.dtype, elements));
      inputs_.push_back(
          fmt::format("x{} = {}", i, dialect_.tensor(spec.dtype, spec.shape, elements)));
      if (fault_.values == "layout" && dialect_.module == "paddle") as_layout(i, spec);
      names_.push_back(fmt::format("x{}", i));
      if (!wants_gradient() || !differentiable(spec.dtype)) continue;
      inputs_.push_back(fmt::format("x{}{}", i, dialect_.leaf));
      leaves_.push_back(fmt::format("x{}", i));
      largest_ = std::max(largest_, spec.elements());
    }
    if (works_in_place(parsed_.api()) && !leaves_.empty()) {
      inputs_.push_back(fmt::format("leaves = [{}]", fmt::join(leaves_, ", ")));
      inputs_.push_back(fmt::format("{}{} = map({}, leaves)  # a leaf may not be changed in place",
                                    fmt::join(leaves_, ", "), leaves_.size() == 1 ? "," : "",
                                    dialect_.copy));
      for (std::size_t i = 0; i < leaves_.size(); ++i) leaves_[i] = fmt::format("leaves[{}]", i);
    }
    setup_.insert(setup_.end(), inputs_.begin(), inputs_.end());
    return {};
  }

  // Moves the values to memory that is not contiguous, as as_layout() of
  // python/assay/frameworks/paddle_framework.py does.
  void as_layout(std::size_t i, const TensorSpec& spec) {
    if (spec.elements() < 2) return;
    const bool turned = i % 3 < 2 && spec.shape.size() > 1;
    const std::string turn = fmt::format("x{0} = x{0}.transpose(list(range(x{0}.ndim))[::-1])", i);
    if (turned) inputs_.push_back(turn + ".contiguous()");
    if (i % 3 > 0 || !turned) {
      inputs_.push_back(
          fmt::format("x{0} = paddle.stack([paddle.zeros_like(x{0}), x{0}], -1)[..., 1]", i));
    }
    if (turned) inputs_.push_back(turn);
  }

  // Calls the tables' function of the API under assay's eyes (python/assay/issue.py).
  std::string trace_script() const {
    Lines tensors;
    for (const std::string& x : names_) tensors.push_back(fmt::format("\"{0}\": {0}", x));
    return fmt::format(
        "from math import inf, nan\n\nimport {0}\n\nfrom assay.issue import trace\n\n{1}trace("
        "\"{2}\", {{{3}}}, lambda function: {4})\n",
        dialect_.module, joined(setup_), parsed_.api(), fmt::join(tensors, ", "),
        python_call(parsed_, "function", dialect_.module));
  }

  void call() {
    const std::string made = python_call(parsed_);
    for (const Argument argument : parsed_.arguments()) {
      if (!works_in_place(parsed_.api()) || !argument.value.is(ValueKind::tensor)) continue;
      body(made);
      body(fmt::format("result = x{}  # changed in place", argument.value.tensor_ordinal()));
      return;
    }
    body("result = " + made);
  }

  // Under the upstream gradients of the run, or ones where it had no results.
  Status gradients() {
    if (leaves_.empty()) return fail("it differentiates by what is no argument");
    Lines outputs;
    Lines upstream;
    if (const Comparisons* results = results_of_run(); results != nullptr) {
      for (std::uint32_t place = 0; place < results->size(); ++place) {
        ASSAY_CHECK(add_output(*results->Get(place), place, outputs, upstream));
      }
    }
    if (outputs.empty()) {
      outputs = traces() ? traced_.outputs : Lines{"result"};
      for (const std::string& output : outputs) {
        upstream.push_back(fmt::format("{}.ones_like({})", dialect_.module, output));
      }
    }
    body(fmt::format("outputs, upstream = [{}], [{}]", fmt::join(outputs, ", "),
                     fmt::join(upstream, ", ")));
    const std::string gradients =
        fmt::format("gradients = {}(outputs, [{}], upstream, allow_unused=True)",
                    dialect_.gradients, fmt::join(leaves_, ", "));
    // The framework refuses to differentiate outputs that depend on no input.
    if ((fault_.kinds & kStructure) == 0) {
      body(gradients);
      return {};
    }
    body(fmt::format("gradients = [None] * {}", leaves_.size()));
    body(fmt::format("if any({} for output in outputs):", dialect_.differentiates("output")));
    body("    " + gradients);
    return {};
  }

  const Comparisons* results_of_run() const {
    if (trial_.pairs() == nullptr || trial_.pairs()->size() == 0) return nullptr;
    return trial_.pairs()->Get(0)->outputs();
  }

  Status add_output(const wire::Comparison& comparison, std::uint32_t place, Lines& outputs,
                    Lines& upstream) {
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
    upstream.push_back(dialect_.tensor(dtype, {shape->data(), shape->size()}, elements));
    return {};
  }

  // What is printed, and how the script exits.
  Status end() {
    if (fault_.kinds == kInput) return end_of_change();
    if (witness_.comparison != nullptr) return end_of_comparison(*witness_.comparison);
    if (fault_.outcome == Outcome::crash || fault_.outcome == Outcome::timeout) {
      in_process_ = true;
    } else if (!fault_.raised.empty()) {
      catches_ = true;
    } else {
      return fail("nothing is compared");
    }
    return {};
  }

  Status end_of_change() {
    setup(fmt::format("tensors = [{}]", fmt::join(names_, ", ")));
    setup("before = [str(x.tolist()) for x in tensors]");
    finish("changed = [i for i, x in enumerate(tensors) if str(x.tolist()) != before[i]]");
    finish("print(\"got      changed inputs\", changed)");
    finish("print(\"expected changed inputs []\")");
    finish("sys.exit(bool(changed))");
    return {};
  }

  Status end_of_comparison(const wire::Comparison& comparison) {
    const std::string what =
        fault_.gradient ? fmt::format("gradients[{}]", witness_.place) : "result" + fault_.leaf;
    if (fault_.gradient && witness_.place >= leaves_.size()) {
      return fail("it differentiates by what is no argument");
    }
    const wire::Side& right = *comparison.right();
    if ((fault_.kinds & kStructure) != 0) {
      const bool lost = is_none(*comparison.left());
      if (lost == is_none(right)) return fail("the kind of its result differs");
      finish("got = " + what);
      return equal(lost ? "a tensor" : "None", lost ? "got is None" : "got is not None");
    }
    if (right.kind() != wire::LeafKind::tensor) return fail("its result is no tensor");
    if ((fault_.kinds & kShape) != 0) {
      const auto* shape = right.shape();
      finish(fmt::format("got = list({}.shape)", what));
      return equal(fmt::format("[{}]", fmt::join(*shape, ", ")), "got != expected");
    }
    if ((fault_.kinds & kDtype) != 0) {
      finish(fmt::format("got = str({}.dtype)", what));
      return equal(
          fmt::format("\"{}.{}\"", dialect_.module, name(static_cast<DType>(right.dtype()))),
          "got != expected");
    }
    return end_of_values(comparison, what);
  }

  static bool is_none(const wire::Side& side) {
    return side.missing() || side.kind() == wire::LeafKind::none;
  }

  Status end_of_values(const wire::Comparison& comparison, const std::string& what) {
    if (!witness_.element) return fail("one element does not show it");
    std::string flat = fmt::format("{}.flatten()", what);
    if (comparison.equality() == wire::Equality::sorted) {
      flat = fmt::format("{}.sort({})", dialect_.module, flat);
      if (dialect_.module == "torch") flat += "[0]";
    }
    std::string got = fmt::format("{}[{}].item()", flat, witness_.index);
    if (comparison.equality() == wire::Equality::sign) got = fmt::format("abs({})", got);
    finish("got = " + got);
    if (witness_.right == "nan") return equal("nan", "got == got");
    // Half way between both: a right build is on the other side.
    const bool close = std::isfinite(witness_.apart) && witness_.apart > 0;
    return equal(witness_.right,
                 close && !exact(comparison)
                     ? fmt::format("not abs(got - expected) <= {:.3g}", witness_.apart / 2)
                     : "got != expected");
  }

  static bool exact(const wire::Comparison& comparison) {
    const DTypeClass kind = info(static_cast<DType>(comparison.right()->dtype())).kind;
    return kind == DTypeClass::integer || kind == DTypeClass::boolean;
  }

  Status equal(const std::string& expected, const std::string& wrong) {
    const bool words = expected == "a tensor";
    finish(fmt::format("expected = {}", words ? "\"a tensor\"" : expected));
    finish("print(\"got     \", got)");
    finish("print(\"expected\", expected)");
    finish(fmt::format("sys.exit({})", wrong));
    return {};
  }

  static Lines indented(const Lines& lines) {
    Lines text;
    for (const std::string& line : lines) text.push_back("    " + line);
    return text;
  }

  static void append(Lines& lines, const Lines& more) {
    lines.insert(lines.end(), more.begin(), more.end());
  }

  Result<std::string> whole() const {
    Lines lines;
    if (in_process_) {
      append(lines, setup_);
      append(lines, {"", "", "def call():"});
      append(lines, indented(body_));
      append(lines, {"", "", "process = multiprocessing.get_context(\"fork\").Process(target=call)",
                     "process.start()", "process.join(60)",
                     "print(\"got      exit code\", process.exitcode)",
                     "print(\"expected exit code 0 or 1: a result or an exception\")",
                     "process.kill()", "sys.exit(process.exitcode not in (0, 1))"});
    } else if (catches_) {
      Lines all = body_;
      if (fault_.phase == "build") {
        all.insert(all.begin(), setup_.begin(), setup_.end());
      } else {
        append(lines, setup_);
      }
      lines.emplace_back("try:");
      append(lines, indented(all));
      append(
          lines,
          {"except Exception as error:", "    print(f\"got      {type(error).__name__}: {error}\")",
           "    print(\"expected a result\")", "    sys.exit(1)", "print(\"got      a result\")"});
    } else {
      append(lines, setup_);
      append(lines, body_);
      append(lines, end_);
    }
    std::string text = joined(lines);
    std::string head = in_process_ ? "import multiprocessing\n" : "";
    head += "import sys\n";
    if (text.find("inf") != std::string::npos || text.find("nan") != std::string::npos) {
      head += "from math import inf, nan\n";
    }
    head += fmt::format("\nimport {}  # {}\n", dialect_.module, lane_.build);
    for (const std::string& module : lane_.modules) {
      head += fmt::format("import {}  # as the lane of assay.toml does\n", module);
    }
    head += '\n';
    text.insert(0, head);
    if (static_cast<std::size_t>(std::ranges::count(text, '\n')) > kIssueLines) {
      return fail(fmt::format("it would have more than {} lines", kIssueLines));
    }
    return text;
  }

  const FaultyLane& lane_;
  const Dialect& dialect_;
  std::uint64_t seed_;
  const Case& parsed_;
  std::uint64_t id_;
  const wire::Trial& trial_;
  const Fault& fault_;
  Witness witness_;
  TracedCall traced_;
  Lines inputs_;  // lines that make the tensors
  Lines setup_;
  Lines body_;
  Lines end_;
  bool in_process_ = false;    // the call ends its process
  bool catches_ = false;       // the call raises
  Lines names_;                // of the tensors
  Lines leaves_;               // differentiated by
  std::uint64_t largest_ = 0;  // elements of the largest of them
};

const wire::Comparison* comparison_of(const wire::Pair& pair, const Fault& fault,
                                      std::size_t& place) {
  const Comparisons* comparisons = fault.gradient ? pair.gradients() : pair.outputs();
  for (std::uint32_t i = 0; comparisons != nullptr && i < comparisons->size(); ++i) {
    const wire::Comparison* comparison = comparisons->Get(i);
    if (comparison->path() == nullptr || comparison->path()->string_view() != fault.leaf) continue;
    place = i;
    return comparison;
  }
  return nullptr;
}

void read_bar(const wire::Comparison& comparison, bool of_reference, Witness& witness) {
  const wire::Bar& bar = *comparison.bar();
  const wire::Distance* worst = of_reference ? bar.reference() : bar.test();
  const wire::Measurement* measured = comparison.measurement();
  const auto dtype = static_cast<DType>(comparison.left()->dtype());
  witness.index = worst->index();
  witness.element = measured != nullptr && witness.index < measured->count();
  const double got = of_reference ? bar.reference_value() : bar.test_value();
  witness.got = python_literal(dtype, got, 0);
  witness.right = python_literal(info(dtype).kind == DTypeClass::floating ? DType::float64 : dtype,
                                 bar.true_value(), 0);
  witness.by_reference = python_literal(dtype, bar.reference_value(), 0);
  witness.apart = std::abs(got - bar.true_value());
  if (info(dtype).kind == DTypeClass::complex) witness.element = false;  // bars keep moduli
}

void read_measurement(const wire::Comparison& comparison, Witness& witness) {
  const wire::Offender& first = *comparison.measurement()->first();
  const auto left = static_cast<DType>(comparison.left()->dtype());
  const auto right = static_cast<DType>(comparison.right()->dtype());
  witness.index = first.index();
  witness.element = true;
  witness.got = python_literal(left, first.left(), first.left_imaginary());
  witness.right = python_literal(right, first.right(), first.right_imaginary());
  witness.by_reference = witness.right;
  witness.apart =
      std::hypot(first.left() - first.right(), first.left_imaginary() - first.right_imaginary());
}

// A script imports it, and nothing else that a run's database may hold.
bool is_module_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.';
  });
}

}  // namespace

Witness witness_of(const wire::Trial& trial, const Fault& fault) {
  Witness witness;
  if (fault.kinds == 0 || trial.pairs() == nullptr || trial.pairs()->size() == 0) return witness;
  const wire::Comparison* comparison = comparison_of(*trial.pairs()->Get(0), fault, witness.place);
  if (comparison == nullptr) return witness;
  witness.comparison = comparison;
  const bool of_reference = fault.outcome == Outcome::reference_error;
  const wire::Bar* bar = comparison->bar();
  const wire::Distance* side =
      bar == nullptr ? nullptr : (of_reference ? bar->reference() : bar->test());
  if (side != nullptr && comparison->left() != nullptr)
    read_bar(*comparison, of_reference, witness);
  const wire::Measurement* measured = comparison->measurement();
  if (!witness.element && measured != nullptr && measured->first() != nullptr) {
    read_measurement(*comparison, witness);
  }
  return witness;
}

FaultyLane faulty_lane(const std::map<std::string, std::string>& properties, const Fault& fault) {
  const bool of_reference = fault.lane == "reference" || fault.outcome == Outcome::reference_error;
  const auto property = [&](const std::string& key) {
    const auto found = properties.find(key);
    return found == properties.end() ? std::string() : found->second;
  };
  const std::string role = of_reference ? "reference" : "test";
  FaultyLane lane;
  lane.framework = property(role + ".framework");
  lane.dialect = find_dialect(lane.framework);
  lane.label = property(role + ".lane");
  const std::string build = build_of(properties, lane.label);
  lane.build = build.substr(0, build.find(", files "));
  lane.device = property(role + ".device");
  lane.execution = property(role + ".execution");
  lane.tables = property(role + ".functions") == "tables";
  lane.environment = property(role + ".environment");
  const std::string modules = property(role + ".modules");
  for (const std::string& module : split_at(modules, ':')) {
    if (is_module_name(module)) lane.modules.push_back(module);
  }
  return lane;
}

Result<std::string> issue_script(const FaultyLane& lane, std::uint64_t seed, const Case& parsed,
                                 std::uint64_t id, const wire::Trial& trial, const Fault& fault,
                                 const Tracer& tracer) {
  if (lane.dialect == nullptr) {
    return fail(fmt::format("assay writes no scripts for {}", lane.framework));
  }
  ScriptWriter writer(lane, seed, parsed, id, trial, fault);
  return writer.write(tracer);
}

}  // namespace assay
