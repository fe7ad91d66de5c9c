// Imports other Chrome traces, mainly the merges of job logs by `assay timeline merge` and Paddle's
// script: their tracks GPU0, GPU1(machine:2) contain pipeline jobs, and the track Step contains
// steps.

#include "timeline/importers/chrome_trace.h"
#include "timeline/importers/importer.h"

namespace assay::timeline {
namespace {

EventKind classify(const ChromeEvent& event) {
  if (event.category == "step") return EventKind::annotation;
  if (event.tid.starts_with("GPU")) return EventKind::gpu_job;
  return EventKind::host;
}

bool recognises(const Sniff& sniff) {
  return sniff.json && (sniff.events || sniff.keys.contains("traceEvents"));
}

Result<Trace> import(const std::filesystem::path& path, const ImportOptions& options) {
  static constexpr ChromeDialect kDialect{
      .format = "Chrome trace", .classify = classify, .by_track = true, .steps = {"step"}};
  // Keep all events: the metadata that tells GPU tracks may be at the end of the file.
  ImportOptions whole = options;
  whole.analysis = false;
  return import_chrome_trace(path, kDialect, whole);
}

}  // namespace

const Importer kChrome{"Chrome trace", "a JSON array of events, or an object with traceEvents",
                       recognises, import};

}  // namespace assay::timeline
