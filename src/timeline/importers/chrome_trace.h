#pragma once

// Imports Chrome's trace event JSON in the dialects of PyTorch's profiler (Kineto), Paddle's
// profiler and our own merge.

#include <array>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.h"
#include "timeline/importers/chrome_events.h"
#include "timeline/importers/importer.h"
#include "timeline/model.h"

namespace assay::timeline {

enum class EventKind : std::uint8_t {
  kernel,
  copy,
  gpu_range,   // a range on a GPU's stream, not work
  gpu_job,     // a pipeline job on a GPU's track
  launch,      // a call of the CUDA driver or runtime
  annotation,  // a range named by the program
  host,
  other,
};

struct ChromeDialect {
  std::string_view format;
  EventKind (*classify)(const ChromeEvent& event);
  bool by_track = false;                       // classify once a track instead of once a category
  std::array<std::string_view, 3> steps = {};  // what the names of steps begin with
  // Names end with their duration ("forward[62.704 ms]"), which is removed.
  bool durations_in_names = false;
};

// Builds a trace from complete (X) and paired (B, E) events, with one track for each (pid, tid).
Result<Trace> import_chrome_trace(const std::filesystem::path& path, const ChromeDialect& dialect,
                                  const ImportOptions& options);

// The number at the end of "ProfilerStep#12", behind one of the prefixes; kNone for another name.
std::int64_t step_number(std::string_view name, std::span<const std::string_view> prefixes);

}  // namespace assay::timeline
