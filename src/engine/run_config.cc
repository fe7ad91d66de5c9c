#include "engine/run_config.h"

#include "base/values.h"

namespace assay {

std::string fact_of(const GoldensConfig& goldens, const std::string& key) {
  return value_at(goldens.facts, key);
}

std::filesystem::path store_of(const RunConfig& config) {
  return config.store.empty() ? config.folder : std::filesystem::path(config.store);
}

bool joins(const RunConfig& config) {
  return !config.store.empty() && config.sources.configs.empty() &&
         config.sources.patterns.empty() && config.retest.empty();
}

const ModeInfo& mode_of(const RunConfig& config) {
  const ModeInfo* mode = find_mode(config.settings.mode);
  return mode != nullptr ? *mode : modes().front();
}

const LaneConfig& lane_config(const RunConfig& config, const ModeLane& lane) {
  return lane.framework == wire::Role::test ? config.test : config.reference;
}

}  // namespace assay
