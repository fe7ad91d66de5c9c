// Any other Chrome trace; above all what `assay timeline merge` and Paddle's script make of job
// logs, whose tracks GPU0, GPU1(machine:2) hold pipeline jobs and whose track Step holds steps.

#include "timeline/importers/chrome_trace.h"
#include "timeline/importers/importer.h"

namespace assay::timeline {
namespace {

EventKind classify(const ChromeEvent& event) {
  if (event.category == "step") return EventKind::annotation;
  if (event.tid.starts_with("GPU")) return EventKind::gpu_job;
  return EventKind::host;
}

std::int64_t step_of(std::string_view name) { return step_number(name, "step"); }

bool recognises(const Sniff& sniff) {
  return sniff.json && (sniff.events || sniff.keys.contains("traceEvents"));
}

Result<Trace> import(const std::filesystem::path& path, const ImportOptions& options) {
  static constexpr ChromeDialect kDialect{
      .format = "Chrome trace", .classify = classify, .by_track = true, .step = step_of};
  // Whether a track is a GPU's may be known at the end of the file only: all of it is kept.
  ImportOptions whole = options;
  whole.analysis = false;
  return import_chrome_trace(path, kDialect, whole);
}

}  // namespace

const Importer kChrome{"Chrome trace", "a JSON array of events, or an object with traceEvents",
                       recognises, import};

}  // namespace assay::timeline
