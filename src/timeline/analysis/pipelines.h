#pragma once

// Assigns devices to the stages of pipelines. A run has one pipeline for each data-parallel group.
// Tensor-parallel devices, which share the work of a stage, form several equal pipelines.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "timeline/schedule.h"

namespace assay::timeline {

struct Pipelines {
  std::vector<std::vector<std::size_t>> devices;  // by pipeline, in the order of the stages
  std::string reason;                             // why there is no pipeline
};

struct StageDevice {
  std::int32_t rank = kNone;
  StageJobs jobs;  // of one step
};

// `groups` are the ranks of the process groups of pipelines. Without groups, devices that do the
// same forwards at the same time are one stage; a stage follows another if forwards pass to it and
// backwards pass back. For `logs` of pipeline jobs, forwards are enough.
Pipelines find_pipelines(std::span<const StageDevice> devices,
                         std::span<const std::vector<std::int32_t>> groups, bool logs);

// The distinct ranks of process groups described as pipelines ("mesh_pp",
// "PIPELINE_MODEL_PARALLEL_GROUP").
std::vector<std::vector<std::int32_t>> pipeline_groups(std::span<const Source> sources);

}  // namespace assay::timeline
