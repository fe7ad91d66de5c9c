#include "report/issue.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/values.h"
#include "case/canonical.h"
#include "case/parser.h"
#include "report/inputs.h"
#include "report/run_report.h"

namespace assay {
namespace {

using Properties = std::map<std::string, std::string>;

constexpr std::uint64_t kMostElements = 256;  // of all tensors, so that a person can read them

// What a script compares to show the fault.
std::string_view compared_by(const Fault& fault) {
  if (fault.kinds == kInput) return "input";
  if ((fault.kinds & kStructure) != 0) return "structure";
  if ((fault.kinds & kShape) != 0) return "shape";
  return (fault.kinds & kDtype) != 0 ? "dtype" : "value";
}

nlohmann::json fault_facts(const Fault& fault) {
  return {{"outcome", name(fault.outcome)},  {"values", fault.values},
          {"gradient", fault.gradient},      {"leaf", fault.leaf},
          {"compares", compared_by(fault)},  {"phase", fault.phase},
          {"raises", !fault.raised.empty()}, {"lane", fault.lane},
          {"by_truth", fault.by_truth}};
}

bool is_none(const wire::Side* side) {
  return side == nullptr || side->missing() || side->kind() == wire::LeafKind::none;
}

std::vector<std::int64_t> shape_of(const wire::Side& side) {
  if (side.shape() == nullptr) return {};
  return {side.shape()->begin(), side.shape()->end()};
}

// The element that shows the fault; null if no comparison does.
nlohmann::json witness_facts(const Witness& witness) {
  if (witness.comparison == nullptr) return nullptr;
  const wire::Comparison& comparison = *witness.comparison;
  nlohmann::json right = {{"kind", "none"}, {"dtype", ""}, {"shape", nlohmann::json::array()}};
  if (const wire::Side* side = comparison.right(); !is_none(side)) {
    right = {{"kind", wire::EnumNameLeafKind(side->kind())},
             {"dtype", name(static_cast<DType>(side->dtype()))},
             {"shape", shape_of(*side)}};
  }
  return {{"place", witness.place},
          {"element", witness.element},
          {"index", witness.index},
          {"right", witness.right},
          {"by_reference", witness.by_reference},
          {"apart", witness.apart},
          {"equality", wire::EnumNameEquality(comparison.equality())},
          {"lost", is_none(comparison.left())},
          {"right_side", right}};
}

// Makes the values of a case again, as literals.
class Values {
 public:
  Values(const Case& parsed, const wire::Trial& trial, std::uint64_t seed, std::uint64_t id)
      : parsed_(parsed), trial_(trial), seed_(seed), id_(id) {}

  // Of each tensor.
  Result<nlohmann::json> inputs() const {
    if (parsed_.total_elements() > kMostElements) {
      return fail(fmt::format("the case's tensors have more than {} elements", kMostElements));
    }
    nlohmann::json tensors = nlohmann::json::array();
    for (std::size_t i = 0; i < parsed_.tensor_count(); ++i) {
      const TensorSpec spec = parsed_.tensor(i);
      std::vector<std::byte> elements(spec.bytes());
      ASSAY_CHECK(fill_again(filling_of(trial_, i), {seed_, id_, static_cast<std::uint32_t>(i)},
                             spec.dtype, elements));
      tensors.push_back(python_numbers(spec.dtype, elements));
    }
    return tensors;
  }

  // The results of the run that have gradients, with their upstream gradients.
  Result<nlohmann::json> outputs() const {
    nlohmann::json outputs = nlohmann::json::array();
    if (trial_.pairs() == nullptr || trial_.pairs()->size() == 0) return outputs;
    const auto* results = trial_.pairs()->Get(0)->outputs();
    for (std::uint32_t i = 0; results != nullptr && i < results->size(); ++i) {
      ASSAY_CHECK(add_output(*results->Get(i), i, outputs));
    }
    return outputs;
  }

 private:
  // Float8 has no kernels for gradients.
  static bool differentiable(DType dtype) {
    const DTypeClass kind = info(dtype).kind;
    return (kind == DTypeClass::floating && size_of(dtype) > 1) || kind == DTypeClass::complex;
  }

  Status add_output(const wire::Comparison& comparison, std::uint32_t place,
                    nlohmann::json& outputs) const {
    const wire::Side* side = comparison.left();
    if (is_none(side) || side->kind() != wire::LeafKind::tensor) return {};
    const auto dtype = static_cast<DType>(side->dtype());
    if (!differentiable(dtype) || side->shape() == nullptr) return {};
    const std::vector<std::int64_t> shape = shape_of(*side);
    std::uint64_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::uint64_t>(extent);
    if (count > kMostElements) {
      return fail(fmt::format("a result has more than {} elements", kMostElements));
    }
    std::uint64_t largest = 0;
    for (const TensorSpec spec : parsed_.tensors()) {
      if (differentiable(spec.dtype)) largest = std::max(largest, spec.elements());
    }
    std::vector<std::byte> elements(count * size_of(dtype));
    fill(upstream_rule(dtype, count, largest), {seed_, id_, kUpstream + place}, dtype, elements);
    outputs.push_back({{"path", comparison.path() == nullptr ? "" : comparison.path()->str()},
                       {"dtype", name(dtype)},
                       {"shape", shape},
                       {"numbers", python_numbers(dtype, elements)}});
    return {};
  }

  const Case& parsed_;
  const wire::Trial& trial_;
  std::uint64_t seed_;
  std::uint64_t id_;
};

// Sets what is known, or "unknown": why it is not.
void set(nlohmann::json& request, const char* key, Result<nlohmann::json> made) {
  made ? request[key] = std::move(*made) : request["unknown"] = made.error().message;
}

// The verdict with the fault of this key first.
Verdict about(const FaultKey& key, Verdict verdict) {
  const auto found =
      std::find_if(verdict.faults.begin(), verdict.faults.end(), [&](const Fault& fault) {
        return location_of(fault) == key.where && manifestation_of(fault) == key.how;
      });
  if (found != verdict.faults.end()) std::rotate(verdict.faults.begin(), found, found + 1);
  verdict.message = message_of(key, verdict);
  return verdict;
}

}  // namespace

Result<nlohmann::json> script_request(const Properties& properties, const FoundCase& found,
                                      const Case& parsed, const wire::Trial& trial,
                                      const Fault& fault) {
  const bool of_reference = fault.lane == "reference" || fault.outcome == Outcome::reference_error;
  const std::string role = of_reference ? "reference" : "test";
  const std::string build = build_of(properties, value_at(properties, role + ".lane"));
  ASSAY_TRY(const std::uint64_t seed, run_seed(properties));
  const Values values(parsed, trial, seed, found.id);
  nlohmann::json request = {{"case", found.text},
                            {"properties", properties},
                            {"role", role},
                            {"build", build.substr(0, build.find(", files "))},
                            {"fault", fault_facts(fault)},
                            {"shown", witness_facts(witness_of(trial, fault))},
                            {"limit", 0},
                            {"unknown", ""},
                            {"outputs", nlohmann::json::array()}};
  if (fault.gradient || fault.phase == "backward") set(request, "outputs", values.outputs());
  return request;
}

Result<nlohmann::json> issue_request(const Properties& properties, const Finding& finding,
                                     const FoundCase& shown) {
  ASSAY_TRY(const wire::Record* record, wire::open<wire::Record>(shown.record));
  if (!has_lanes(*record)) return fail("the record of this case has no lanes");
  Case parsed;
  if (const auto status = parse_case(shown.text, parsed); !status) {
    return fail("a stored case does not parse: " + status.error().message);
  }
  ASSAY_TRY(const std::uint64_t seed, run_seed(properties));
  const Verdict verdict = about(finding.key, shown.verdict);
  const Fault& fault = verdict.fault();
  const wire::Trial& trial = trial_under(*record, fault.values);
  ASSAY_TRY(nlohmann::json request, script_request(properties, shown, parsed, trial, fault));
  request.update({{"do", "issue"},
                  {"message", verdict.message},
                  {"rerun", rerun_command(shown.text, properties)},
                  {"run", false},
                  {"finding",
                   {{"api", finding.key.api},
                    {"outcome", name(finding.key.outcome)},
                    {"where", finding.key.where},
                    {"how", finding.key.how},
                    {"cases", finding.cases},
                    {"circumstances", circumstances(finding)}}}});
  set(request, "tensors", Values(parsed, trial, seed, shown.id).inputs());
  return request;
}

}  // namespace assay
