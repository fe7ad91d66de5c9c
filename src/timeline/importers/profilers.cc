// Imports traces of PyTorch's profiler (Kineto's Chrome export): the args of GPU work have its
// device and stream. And those of Paddle's profiler: names end with their durations
// ("forward[62.704 ms]").

#include "timeline/importers/chrome_source.h"
#include "timeline/importers/chrome_trace.h"
#include "timeline/importers/gpu_categories.h"
#include "timeline/importers/importer.h"

namespace assay::timeline {
namespace {

EventKind classify(const ChromeEvent& event) { return profiler_event_kind(event.category); }

bool is_pytorch(const Sniff& sniff) {
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

Result<Trace> import_pytorch(const std::filesystem::path& path, const ImportOptions& options) {
  static constexpr ChromeDialect kDialect{
      .format = "PyTorch profiler", .classify = classify, .steps = {"ProfilerStep#"}};
  return import_profile(path, kDialect, options);
}

bool is_paddle(const Sniff& sniff) {
  return sniff.json &&
         (sniff.keys.contains("span_index") || sniff.categories.contains("ProfileStep"));
}

Result<Trace> import_paddle(const std::filesystem::path& path, const ImportOptions& options) {
  static constexpr ChromeDialect kDialect{.format = "Paddle profiler",
                                          .classify = classify,
                                          .steps = {"ProfileStep#"},
                                          .durations_in_names = true};
  return import_profile(path, kDialect, options);
}

}  // namespace

const Importer kKineto{"PyTorch profiler",
                       "JSON with deviceProperties, baseTimeNanoseconds or events of category "
                       "kernel, cpu_op, cuda_runtime",
                       is_pytorch, import_pytorch};
const Importer kPaddleProfiler{"Paddle profiler",
                               "JSON with span_index or events of category ProfileStep", is_paddle,
                               import_paddle};

}  // namespace assay::timeline
