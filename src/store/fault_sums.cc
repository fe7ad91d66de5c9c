#include "store/fault_sums.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "case/canonical.h"
#include "store/sum_lines.h"

namespace assay {
namespace {

constexpr double kStepsOfDecade = 8;
constexpr int kMostSteps = 4000;  // above the step of the largest double; the step of infinity

}  // namespace

std::string FaultKey::digest() const {
  const std::string all = fmt::format("{}\n{}\n{}\n{}", api, name(outcome), where, how);
  return format_case_id(case_id(all)).substr(0, 8);
}

void FaultExtent::add(const FaultExtent& other) {
  values.insert(other.values.begin(), other.values.end());
  dtypes.insert(other.dtypes.begin(), other.dtypes.end());
  error_step = std::max(error_step, other.error_step);
}

std::map<FaultKey, FaultExtent> faults_of_case(const CaseTraits& traits, const Verdict& verdict) {
  if (verdict.faults.empty()) {
    Verdict complete = verdict;
    complete_faults(complete);
    return complete.faults.empty() ? std::map<FaultKey, FaultExtent>()
                                   : faults_of_case(traits, complete);
  }
  std::map<FaultKey, FaultExtent> found;
  for (const Fault& fault : verdict.faults) {
    FaultExtent& extent = found[{as_field(traits.api), fault.outcome, as_field(location_of(fault)),
                                 as_field(manifestation_of(fault))}];
    const std::string& dtype = fault.dtype.empty() ? traits.dtype : fault.dtype;
    if (!fault.values.empty()) extent.values.insert(as_field(fault.values));
    if (!dtype.empty()) extent.dtypes.insert(as_field(dtype));
    extent.error_step = std::max(extent.error_step, error_step_of(fault.error));
  }
  return found;
}

int error_step_of(double error) {
  if (std::isnan(error) || error <= 0) return 0;
  if (std::isinf(error)) return kMostSteps;
  const double steps = std::floor(kStepsOfDecade * std::log10(error));
  return 1 + static_cast<int>(std::clamp<double>(steps, 0, kMostSteps - 1));
}

double error_of_step(int step) { return std::pow(10, (step - 1) / kStepsOfDecade); }

std::string join_names(const std::set<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ","));
}

std::set<std::string> split_names(std::string_view names) {
  std::set<std::string> found;
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    if (end > 0) found.emplace(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return found;
}

}  // namespace assay
