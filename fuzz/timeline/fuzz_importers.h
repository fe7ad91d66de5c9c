#pragma once

// What every importer of files promises of any bytes: no crash, no hang, and a sound trace.

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "base/fd.h"
#include "timeline/analysis/analysis.h"
#include "timeline/analysis/insights.h"
#include "timeline/importers/importer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace assay::timeline {

inline int fuzz_importer(const Importer& importer, std::span<const std::uint8_t> bytes) {
  auto file = make_memory_file("trace");
  if (!file || !write_all(file->get(), std::as_bytes(bytes))) return 0;
  const auto trace = importer.import("/proc/self/fd/" + std::to_string(file->get()), {});
  if (!trace) return 0;
  for (const Slice& slice : trace->slices) {
    if (slice.end < slice.begin || slice.track >= trace->tracks.size() ||
        slice.name >= trace->strings.size() || slice.category >= trace->strings.size()) {
      std::abort();
    }
  }
  insights_of(*trace, analyse(*trace));
  return 0;
}

}  // namespace assay::timeline
