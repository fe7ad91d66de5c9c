#include "verdict/policy.h"

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "case/canonical.h"

namespace assay {
namespace {
constexpr std::int64_t kVersion = 1;
}

Result<Policies> Policies::parse(std::string_view toml, std::string_view where,
                                 Policy run_default) {
  Policies policies;
  policies.version_ = fmt::format("{}-{:016x}", kVersion, case_id(toml));  // a hash of any text
  policies.default_ = run_default;
  const toml::parse_result parsed = toml::parse(toml, where);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return usage_error(
        fmt::format("{}:{}: {}", where, error.source().begin.line, error.description()));
  }
  if (parsed.table()["version"].value_or<std::int64_t>(0) != kVersion) {
    return usage_error(fmt::format("{}: version = {} is wanted", where, kVersion));
  }
  for (const auto& [key, node] : parsed.table()) {
    const toml::table* entry = node.as_table();
    if (entry == nullptr) continue;
    Policy policy = run_default;
    policy.atol = (*entry)["atol"].value_or(run_default.atol);
    policy.rtol = (*entry)["rtol"].value_or(run_default.rtol);
    policy.exact_integers = (*entry)["exact_integers"].value_or(true);
    policy.outliers = (*entry)["outliers"].value_or(0.0);
    policy.reason = (*entry)["reason"].value_or(std::string());
    if (policy.reason.empty()) {
      return usage_error(fmt::format("{}: {} has no reason; say why it needs its own tolerance",
                                     where, key.str()));
    }
    policies.entries_.emplace(std::string(key.str()), std::move(policy));
  }
  return policies;
}

const Policy& Policies::find(std::string_view api) const {
  const auto found = entries_.find(api);
  return found == entries_.end() ? default_ : found->second;
}

}  // namespace assay
