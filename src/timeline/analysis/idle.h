#pragma once

// Why a GPU was idle: splits each gap in its work into causes.

#include <map>
#include <optional>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/devices.h"

namespace assay::timeline {

// What the stages of pipelines wait for.
class Dependencies {
 public:
  Dependencies(const std::vector<Device>& devices,
               const std::vector<std::vector<std::size_t>>& pipelines);

  // The end of the job that produced a job's input: the same micro batch on the previous stage for
  // a forward, on the next stage for a backward.
  std::optional<Nanos> ready(std::size_t device, const PipelineJob& job) const;
  // When all stages of the device's pipeline have ended their work of the step; none for a device
  // outside of pipelines.
  std::optional<Nanos> end_of_work(std::size_t device, std::int64_t step) const;
  // When a stage of it ended work last, up to the gap's end.
  std::optional<Nanos> end_within(std::size_t device, const Interval& gap) const;
  bool in_pipeline(std::size_t device) const { return pipeline_of_.contains(device); }

 private:
  static constexpr std::ptrdiff_t kMaxLook = 10'000;
  static constexpr Nanos kMaxAge = 60'000'000'000;
  const std::vector<Device>& devices_;
  const std::vector<std::vector<std::size_t>>& pipelines_;
  std::map<std::size_t, std::size_t> before_, behind_;  // the neighbouring stage, by device
  std::map<std::size_t, std::size_t> pipeline_of_;      // by device; of several stages only
};

// The shares of a device's time in `window`. `mine` is the work of the step; the device's other
// work counts as other steps'. Adds each wait to `waits`, if given.
TimeShare share_of(const Device& device, std::size_t index, std::int64_t step, const Busy& mine,
                   const Interval& window, const Dependencies& dependencies,
                   std::vector<Wait>* waits = nullptr);

// The waits for the host of a whole device with known launches, regardless of steps.
std::vector<Wait> host_waits(const Device& device, std::size_t index,
                             const Dependencies& dependencies);

}  // namespace assay::timeline
