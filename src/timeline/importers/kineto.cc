// Imports traces of PyTorch's profiler (Kineto's Chrome export). The args of GPU work have its
// device and stream; "ProfilerStep#N" marks steps.

#include "timeline/importers/chrome_source.h"
#include "timeline/importers/chrome_trace.h"
#include "timeline/importers/gpu_categories.h"
#include "timeline/importers/importer.h"

namespace assay::timeline {
namespace {

EventKind classify(const ChromeEvent& event) { return profiler_event_kind(event.category); }

std::int64_t step_of(std::string_view name) { return step_number(name, "ProfilerStep#"); }

bool recognises(const Sniff& sniff) {
  if (!sniff.json) return false;
  for (const char* key : {"baseTimeNanoseconds", "deviceProperties", "distributedInfo"}) {
    if (sniff.keys.contains(key)) return true;
  }
  for (const char* category :
       {"kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cpu_op", "user_annotation", "ac2g",
        "python_function", "Kernel", "Memcpy", "Operator", "Runtime"}) {
    if (sniff.categories.contains(category)) return true;
  }
  return false;
}

Result<Trace> import(const std::filesystem::path& path, const ImportOptions& options) {
  static constexpr ChromeDialect kDialect{
      .format = "PyTorch profiler", .classify = classify, .step = step_of};
  return import_profile(path, kDialect, options);
}

}  // namespace

const Importer kKineto{"PyTorch profiler",
                       "JSON with deviceProperties, baseTimeNanoseconds or events of category "
                       "kernel, cpu_op, cuda_runtime",
                       recognises, import};

}  // namespace assay::timeline
