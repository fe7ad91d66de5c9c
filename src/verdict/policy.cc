#include "verdict/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "base/toml.h"
#include "base/values.h"
#include "case/canonical.h"

namespace assay {
namespace {
constexpr std::int64_t kVersion = 1;

// Reads a finite number of at least 0.
bool read_tolerance(const std::string& text, double& number) {
  return read_number(text, number) && std::isfinite(number) && number >= 0;
}

Result<Policy> read_policy(const std::string& api, TomlTable& entry, std::string_view where,
                           Policy policy) {
  ASSAY_CHECK(entry.read("atol", policy.atol, "rtol", policy.rtol, "exact_integers",
                         policy.exact_integers, "outliers", policy.outliers, "reason",
                         policy.reason));
  if (policy.reason.empty()) {
    return usage_error(
        fmt::format("{}: {} has no reason; add a line `reason = \"…\"` that explains why the API "
                    "needs its own tolerance",
                    where, api));
  }
  return policy;
}

}  // namespace

Result<Policies> Policies::parse(std::string_view toml, std::string_view where,
                                 Policy run_default) {
  Policies policies;
  policies.version_ = fmt::format("{}-{:016x}", kVersion, case_id(toml));  // used as a hash
  policies.default_ = run_default;
  ASSAY_TRY(TomlTable file, TomlTable::parse(toml, where, kVersion));
  const auto read = [&](const std::string& api, TomlTable& entry) -> Status {
    ASSAY_TRY(Policy policy, read_policy(api, entry, where, run_default));
    policies.entries_.emplace(api, std::move(policy));
    return {};
  };
  ASSAY_CHECK(file.each_table(read));
  ASSAY_CHECK(file.refuse_others());
  return policies;
}

Status Policies::add(std::string_view thresholds) {
  for (const std::string& entry : split_at(thresholds, ';')) {
    if (entry.empty()) continue;
    const std::vector<std::string> parts = split_at(entry, ' ');
    Policy policy;
    if (parts.size() != 3 || !read_tolerance(parts[1], policy.atol) ||
        !read_tolerance(parts[2], policy.rtol)) {
      return fail(fmt::format("the run's thresholds are damaged: {}", entry));
    }
    policy.reason = "--manual_threshold_config_file";
    entries_.insert_or_assign(parts[0], std::move(policy));
  }
  if (!thresholds.empty()) version_ += fmt::format("-{:016x}", case_id(thresholds));
  return {};
}

const Policy& Policies::of_case(std::string_view text) const {
  const std::string_view api = text.substr(0, text.find('('));
  if (!api.ends_with("._run_custom_op")) return find(api);
  const std::size_t start = api.size() + 2;  // after ("
  const std::size_t end = std::min(text.find('"', std::min(start, text.size())), text.size());
  const auto found = entries_.find(text.substr(std::min(start, end), end - std::min(start, end)));
  return found == entries_.end() ? find(api) : found->second;
}

const Policy& Policies::find(std::string_view api) const {
  const auto found = entries_.find(api);
  return found == entries_.end() ? default_ : found->second;
}

}  // namespace assay
