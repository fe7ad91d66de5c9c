#include "engine/run_config.h"

namespace assay {

std::string fact_of(const GoldensConfig& goldens, const std::string& key) {
  const auto found = goldens.facts.find(key);
  return found == goldens.facts.end() ? std::string() : found->second;
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
