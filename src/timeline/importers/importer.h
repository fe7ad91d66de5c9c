#pragma once

// The formats that `assay timeline` reads into memory. A new one is a file with a sniffer and an
// importer, and a line in importer.cc.

#include <filesystem>
#include <span>
#include <string_view>

#include "base/result.h"
#include "timeline/model.h"

namespace assay::timeline {

// What is beyond is counted as dropped: 1.1 GB of memory.
inline constexpr std::size_t kMaxImportedSlices = 20'000'000;

struct Importer {
  std::string_view format;
  // Whether a file that begins so (4 KiB at most) is of this format.
  bool (*recognises)(std::string_view head);
  Result<Trace> (*import)(const std::filesystem::path& path);
};

extern const Importer kKineto;
extern const Importer kPaddleProfiler;
extern const Importer kNsysSqlite;
extern const Importer kRecording;
extern const Importer kChrome;  // any other Chrome trace, our own merges included

std::span<const Importer* const> importers();

// Reads a file by the first importer that recognises its head; a usage error when none does.
Result<Trace> import_trace(const std::filesystem::path& path);

// Adds `other` to `trace`: tracks, slices, steps, reports.
void append_trace(Trace& trace, const Trace& other);

}  // namespace assay::timeline
