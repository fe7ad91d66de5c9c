#pragma once

// Which devices are the stages of which pipeline. A run has one for each of its data-parallel
// groups; devices that share a stage's work (tensor parallel ones) make several that look the same.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "timeline/schedule.h"

namespace assay::timeline {

struct Pipelines {
  std::vector<std::vector<std::size_t>> devices;  // of each pipeline, in the order of its stages
  std::string reason;                             // where there is none: why
};

struct StageDevice {
  std::int32_t rank = kNone;
  StageJobs jobs;  // of one step
};

// `groups` are ranks of process groups that call themselves pipelines. Without any, devices that do
// the same forwards at the same time are one stage, and a stage follows another when forwards pass
// from one to the other and backwards the other way. Of `logs` of pipeline jobs forwards are
// enough.
Pipelines find_pipelines(std::span<const StageDevice> devices,
                         std::span<const std::vector<std::int32_t>> groups, bool logs);

// The ranks of process groups whose descriptions say that they are pipelines ("mesh_pp",
// "PIPELINE_MODEL_PARALLEL_GROUP"), each once.
std::vector<std::vector<std::int32_t>> pipeline_groups(std::span<const Source> sources);

}  // namespace assay::timeline
