#include "verdict/policy.h"

#include <fmt/format.h>

#include "base/toml.h"
#include "case/canonical.h"

namespace assay {
namespace {
constexpr std::int64_t kVersion = 1;

Result<Policy> read_policy(const std::string& api, TomlTable& entry, std::string_view where,
                           Policy policy) {
  ASSAY_CHECK(entry.read("atol", policy.atol));
  ASSAY_CHECK(entry.read("rtol", policy.rtol));
  ASSAY_CHECK(entry.read("exact_integers", policy.exact_integers));
  ASSAY_CHECK(entry.read("outliers", policy.outliers));
  ASSAY_CHECK(entry.read("reason", policy.reason));
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

const Policy& Policies::find(std::string_view api) const {
  const auto found = entries_.find(api);
  return found == entries_.end() ? default_ : found->second;
}

}  // namespace assay
