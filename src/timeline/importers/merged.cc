// Imports merges of traces by `assay timeline merge`. A metadata event describes each track; events
// keep their categories and args.

#include "timeline/importers/builder.h"
#include "timeline/importers/chrome_trace.h"
#include "timeline/importers/gpu_categories.h"
#include "timeline/importers/importer.h"

namespace assay::timeline {
namespace {

EventKind classify(const ChromeEvent& event) {
  const std::string_view category = event.category;
  if (category == "compute" || category == "communication") return EventKind::kernel;
  if (category == "memory") return EventKind::copy;
  if (category == "step") return EventKind::annotation;
  if (category.starts_with("forward") || category.starts_with("backward") ||
      category.starts_with("weight")) {
    return EventKind::gpu_job;
  }
  return profiler_event_kind(category);
}

bool recognises(const Sniff& sniff) {
  return sniff.json && sniff.keys.contains(std::string(kTrackMetadata));
}

Result<Trace> import(const std::filesystem::path& path, const ImportOptions& options) {
  static constexpr ChromeDialect kDialect{.format = "merged trace",
                                          .classify = classify,
                                          .steps = {"ProfilerStep#", "ProfileStep#", "step"}};
  return import_chrome_trace(path, kDialect, options);
}

}  // namespace

const Importer kMerged{"merged trace", "JSON with the track descriptions of assay's merges",
                       recognises, import};

}  // namespace assay::timeline
