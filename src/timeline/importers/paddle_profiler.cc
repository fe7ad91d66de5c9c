// Traces of Paddle's profiler. Names carry their duration ("forward[62.704 ms]"), which goes;
// "ProfileStep#N" marks steps.

#include "timeline/importers/chrome_trace.h"
#include "timeline/importers/importer.h"

namespace assay::timeline {
namespace {

ChromeDialect::Meaning read_event(ChromeEvent& event) {
  if (event.name.ends_with("s]")) event.name.resize(event.name.rfind('['));
  ChromeDialect::Meaning meaning;
  if (event.category == "Kernel") {
    meaning = {.kind = kind_of_kernel(event.name), .gpu = true};
  } else if (event.category == "Memcpy" || event.category == "Memset") {
    meaning = {.kind = Kind::memory, .gpu = true};
  } else if (event.category == "ProfileStep") {
    meaning.step = step_number(event.name, "ProfileStep#");
  }
  return meaning;
}

bool recognises(std::string_view head) {
  return head.find("\"span_index\"") != std::string_view::npos &&
         head.find("\"traceEvents\"") != std::string_view::npos;
}

Result<Trace> import(const std::filesystem::path& path) {
  return import_chrome_trace(path, {.format = "Paddle profiler", .read = read_event});
}

}  // namespace

const Importer kPaddleProfiler{"Paddle profiler", recognises, import};

}  // namespace assay::timeline
