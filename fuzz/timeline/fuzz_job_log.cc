// Any bytes as a job log: every record that comes back must be well-formed.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/fd.h"
#include "timeline/importers/job_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace assay::timeline;
  auto file = assay::make_memory_file("log");
  if (!file || !assay::write_all(file->get(), std::as_bytes(std::span(data, size)))) return 0;
  auto reader = JobLogReader::open("/proc/self/fd/" + std::to_string(file->get()));
  if (!reader) return 0;
  JobLogRecord record;
  for (;;) {
    const auto more = reader->next(record);
    if (!more || !*more) break;
    if (record.what != JobLogRecord::What::job) continue;
    if (record.end < record.begin || record.type.empty() || record.number < 0) std::abort();
  }
  if (reader->report().bytes != size) std::abort();
  return 0;
}
