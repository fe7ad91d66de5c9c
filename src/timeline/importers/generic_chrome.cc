// Any other Chrome trace; above all what `assay timeline merge` and Paddle's script write, whose
// tracks GPU0, GPU1(machine:2) hold pipeline jobs and whose track Step holds steps.

#include "timeline/importers/chrome_trace.h"
#include "timeline/importers/importer.h"

namespace assay::timeline {
namespace {

ChromeDialect::Meaning read_event(ChromeEvent& event) {
  if (event.category == "step") {
    return {.kind = Kind::other, .gpu = false, .step = step_number(event.name, "step")};
  }
  if (event.tid.starts_with("GPU")) return {.kind = kind_of_job(event.category), .gpu = true};
  return {};
}

bool recognises(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  return head[first] == '[' ||
         (head[first] == '{' && head.find("\"traceEvents\"") != std::string_view::npos);
}

Result<Trace> import(const std::filesystem::path& path) {
  return import_chrome_trace(path, {.format = "Chrome trace", .read = read_event});
}

}  // namespace

const Importer kChrome{"Chrome trace", recognises, import};

}  // namespace assay::timeline
