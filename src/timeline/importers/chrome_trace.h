#pragma once

// Chrome's trace event JSON as a trace: what PyTorch's profiler (Kineto), Paddle's profiler and our
// own merge write, each in a dialect.

#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"
#include "timeline/importers/chrome_events.h"
#include "timeline/importers/importer.h"
#include "timeline/model.h"

namespace assay::timeline {

// What an event stands for.
enum class EventKind : std::uint8_t {
  kernel,
  copy,
  gpu_range,   // a range shown on a GPU's stream: no work
  gpu_job,     // a pipeline's job on a GPU's track
  launch,      // a call of the host's driver or runtime
  annotation,  // a range that the program named
  host,
  other,
};

struct ChromeDialect {
  std::string_view format;
  // What events of this kind of category are; of its track, where the dialect says so.
  EventKind (*classify)(const ChromeEvent& event);
  bool by_track = false;
  // The number of the step that an annotation marks, or kNone.
  std::int64_t (*step)(std::string_view name) = nullptr;
  // Names carry their duration behind them ("forward[62.704 ms]"), which goes.
  bool durations_in_names = false;
};

// Builds a trace of complete (X) and paired (B, E) events, one track a (pid, tid).
Result<Trace> import_chrome_trace(const std::filesystem::path& path, const ChromeDialect& dialect,
                                  const ImportOptions& options);

// The number at the end of "ProfilerStep#12", or kNone.
std::int64_t step_number(std::string_view name, std::string_view prefix);

}  // namespace assay::timeline
