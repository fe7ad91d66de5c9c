#pragma once

// The formats that `assay timeline` reads into memory. A new one is a file with a sniffer and an
// importer, and a line in importer.cc.

#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "timeline/kernel_kinds.h"
#include "timeline/model.h"

namespace assay::timeline {

// What a format is recognised by: a file's first bytes (unpacked), and for JSON what stands around
// its events and in the first of them, wherever in the file that is.
struct Sniff {
  std::string head;                  // 4 KiB at most
  bool json = false;                 // an object or an array
  std::set<std::string> keys;        // of the top object, up to the events
  std::set<std::string> categories;  // of the first events
  std::set<std::string> tables;      // of a database
  bool events = false;               // there is an event at all
};

struct ImportOptions {
  // Only what the analysis reads: GPU work, launches and annotations. Everything else of a trace
  // (operators, Python's calls, args, arrows) is most of it.
  bool analysis = false;
  KernelKinds kinds;
};

struct Importer {
  std::string_view format;
  std::string_view sign;  // what it looks for, in a sentence that refuses a file
  bool (*recognises)(const Sniff& sniff);
  Result<Trace> (*import)(const std::filesystem::path& path, const ImportOptions& options);
};

extern const Importer kKineto;
extern const Importer kPaddleProfiler;
extern const Importer kMerged;
extern const Importer kNsysSqlite;
extern const Importer kRecording;
extern const Importer kFlightRecorder;
extern const Importer kChrome;  // any other Chrome trace, our own merges of logs included

std::span<const Importer* const> importers();

Result<Sniff> sniff(const std::filesystem::path& path);

// Reads a file by the first importer that recognises it; a usage error when none does.
Result<Trace> import_trace(const std::filesystem::path& path, const ImportOptions& options = {});

}  // namespace assay::timeline
