#pragma once

// The formats that `assay timeline` reads into memory. To add one, write a file with an Importer
// and add a line to importer.cc.

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

// The evidence for recognising a format: the first decompressed bytes; for JSON also the members
// around the events and the categories of the first events, wherever these are in the file.
struct Sniff {
  std::string head;                  // up to 4 KiB
  bool json = false;                 // starts with an object or an array
  std::set<std::string> keys;        // of the top object, up to the events
  std::set<std::string> categories;  // of the first events
  std::set<std::string> tables;      // of a database
  std::set<std::string> processes;   // names of processes, up to the first events
  bool events = false;               // has an event
};

struct ImportOptions {
  // Import only GPU work, launches and annotations. Most of a trace is not these: operators, Python
  // calls, args, arrows.
  bool analysis = false;
  KernelKinds kinds;
};

struct Importer {
  std::string_view format;
  std::string_view sign;  // the recognised property, for the message that refuses a file
  bool (*recognises)(const Sniff& sniff);
  Result<Trace> (*import)(const std::filesystem::path& path, const ImportOptions& options);
};

extern const Importer kKineto;
extern const Importer kPaddleProfiler;
extern const Importer kMerged;
extern const Importer kNsysSqlite;
extern const Importer kRecording;
extern const Importer kFlightRecorder;
extern const Importer kMemorySnapshot;
extern const Importer kPerfetto;
extern const Importer kRocpd;
extern const Importer kNcclInspector;
extern const Importer kNcclProfiler;
extern const Importer kDevices;
extern const Importer kPipelineOperations;
extern const Importer kChrome;  // any other Chrome trace, such as our own merge of logs

std::span<const Importer* const> importers();

// Reads the evidence. An error for an unreadable file.
Result<Sniff> sniff(const std::filesystem::path& path);

// What a file that nobody recognises seems to be: "an ELF program".
std::string seems_to_be(const std::filesystem::path& path, const Sniff& sniff);

// Imports a file with the first importer that recognises it. A usage error when none does.
Result<Trace> import_trace(const std::filesystem::path& path, const ImportOptions& options = {});

}  // namespace assay::timeline
