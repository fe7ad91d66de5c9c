// Imports traces of Paddle's profiler. Removes the durations in names ("forward[62.704 ms]");
// "ProfileStep#N" marks steps.

#include "timeline/importers/chrome_source.h"
#include "timeline/importers/chrome_trace.h"
#include "timeline/importers/gpu_categories.h"
#include "timeline/importers/importer.h"

namespace assay::timeline {
namespace {

EventKind classify(const ChromeEvent& event) { return profiler_event_kind(event.category); }

std::int64_t step_of(std::string_view name) { return step_number(name, "ProfileStep#"); }

bool recognises(const Sniff& sniff) {
  return sniff.json &&
         (sniff.keys.contains("span_index") || sniff.categories.contains("ProfileStep"));
}

Result<Trace> import(const std::filesystem::path& path, const ImportOptions& options) {
  static constexpr ChromeDialect kDialect{.format = "Paddle profiler",
                                          .classify = classify,
                                          .step = step_of,
                                          .durations_in_names = true};
  return import_profile(path, kDialect, options);
}

}  // namespace

const Importer kPaddleProfiler{"Paddle profiler",
                               "JSON with span_index or events of category ProfileStep", recognises,
                               import};

}  // namespace assay::timeline
