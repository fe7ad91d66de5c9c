// Traces of PyTorch's profiler (Kineto's chrome export). GPU work has the categories below, its
// pid the device and its tid the stream; "ProfilerStep#N" marks steps.

#include "timeline/importers/chrome_trace.h"
#include "timeline/importers/importer.h"

namespace assay::timeline {
namespace {

ChromeDialect::Meaning read_event(ChromeEvent& event) {
  ChromeDialect::Meaning meaning;
  if (event.category == "kernel") {
    meaning = {.kind = kind_of_kernel(event.name), .gpu = true};
  } else if (event.category == "gpu_memcpy" || event.category == "gpu_memset") {
    meaning = {.kind = Kind::memory, .gpu = true};
  } else if (event.category == "gpu_user_annotation") {
    meaning = {.kind = Kind::other, .gpu = true};
  } else if (event.category == "user_annotation") {
    meaning.step = step_number(event.name, "ProfilerStep#");
  } else if (event.category == "Trace" || event.category == "overhead") {
    meaning.kind = Kind::other;
  }
  return meaning;
}

bool recognises(std::string_view head) {
  return head.find("\"traceEvents\"") != std::string_view::npos
             ? head.find("baseTimeNanoseconds") != std::string_view::npos ||
                   head.find("deviceProperties") != std::string_view::npos
             : head.find("\"deviceProperties\"") != std::string_view::npos;
}

Result<Trace> import(const std::filesystem::path& path) {
  return import_chrome_trace(path, {.format = "PyTorch profiler", .read = read_event});
}

}  // namespace

const Importer kKineto{"PyTorch profiler", recognises, import};

}  // namespace assay::timeline
