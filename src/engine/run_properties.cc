#include "engine/run_properties.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "case/canonical.h"
#include "engine/earlier_costs.h"
#include "engine/lane_plan.h"
#include "fill/fill.h"
#include "measure/measurement.h"
#include "wire/frame.h"
#include "wire/settings.h"

namespace assay {

std::map<std::string, std::string> case_settings(const RunConfig& config) {
  std::map<std::string, std::string> found;
  for (const wire::Setting& setting : wire::fields_of(config.settings)) {
    found.emplace(setting.name, wire::text_of(setting.value));
  }
  found.emplace("version.assay", ASSAY_VERSION);
  found.emplace("version.canonical", std::to_string(kCanonicalVersion));
  found.emplace("version.fill", std::to_string(kFillVersion));
  found.emplace("version.measurement", std::to_string(kMeasurementVersion));
  found.emplace("version.record", std::to_string(wire::kVersion));
  if (config.records) found.emplace("records", config.digest ? "digests" : "goldens");
  if (config.shard) found.emplace(kShardProperty, text_of(*config.shard));
  if (config.shard && config.earlier != nullptr) {
    found.emplace("cut by costs", fmt::format("{:016x}", config.earlier->digest()));
  }
  return found;
}

// What assay.toml sets for the lane's processes. Assay's own variables are none of it.
void add_environment(const FrameworkConfig& framework, const std::string& role,
                     std::map<std::string, std::string>& found) {
  std::vector<std::string> set;
  for (const std::string& entry : framework.environment) {
    for (const std::string_view modules : {kModules, kModulesInLane}) {
      if (!entry.starts_with(modules)) continue;
      std::string& all = found[role + ".modules"];
      all += (all.empty() ? "" : ":") + entry.substr(modules.size());
    }
    if (!entry.starts_with("ASSAY_")) set.push_back(entry);
  }
  if (!set.empty()) found[role + ".environment"] = fmt::format("{}", fmt::join(set, "; "));
}

std::map<std::string, std::string> verdict_settings(const RunConfig& config) {
  std::map<std::string, std::string> found = case_settings(config);
  for (const PlannedLane& lane : plan_lanes(config)) {
    const std::string role = wire::EnumNameRole(lane.spec.role);
    found.emplace(role + ".lane", lane.spec.label);
    const bool looked_at = !config.sanitizer.empty() && lane.spec.role == wire::Role::test;
    found.emplace(role + ".device",
                  lane.spec.device + (looked_at ? " under " + config.sanitizer : ""));
    found.emplace(role + ".execution", lane.spec.execution);
    found.emplace(role + ".framework", lane.spec.framework);
    found.emplace(role + ".functions", lane.spec.reference_functions ? "tables" : "own");
    add_environment(lane.framework, role, found);
  }
  return found;
}

}  // namespace assay
