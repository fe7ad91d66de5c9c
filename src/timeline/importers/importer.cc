#include "timeline/importers/importer.h"

#include <fmt/format.h>

#include <array>

#include "timeline/importers/builder.h"
#include "timeline/importers/chrome_events.h"
#include "timeline/importers/sqlite_tables.h"
#include "timeline/input/byte_source.h"

namespace assay::timeline {
namespace {

// Events whose categories are collected; metadata may come first in any number.
constexpr std::size_t kSniffedEvents = 2000;

void sniff_json(const std::filesystem::path& path, Sniff& sniff) {
  const std::size_t first = sniff.head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string::npos || (sniff.head[first] != '{' && sniff.head[first] != '[')) return;
  std::size_t events = 0;
  ChromeHeader header;
  const auto report = read_chrome_events(path, header, [&](ChromeEvent& event) {
    if (event.phase != 0) sniff.events = true;
    if (!event.category.empty()) sniff.categories.emplace(event.category);
    if (event.name == kTrackMetadata) sniff.keys.emplace(kTrackMetadata);
    if (event.name == "process_name" && sniff.processes.size() < kSniffedEvents) {
      sniff.processes.emplace(event.arg(Arg::name));
    }
    if (event.phase != 'M') ++events;
    return events < kSniffedEvents;
  });
  if (!report) return;
  for (const auto& [key, value] : header) sniff.keys.insert(key);
  sniff.json = true;
}

void sniff_database(const std::filesystem::path& path, Sniff& sniff) {
  if (!sniff.head.starts_with("SQLite format 3")) return;
  auto database = open_sqlite(path);
  if (database) sniff.tables = table_names(*database);
}

}  // namespace

std::span<const Importer* const> importers() {
  static constexpr std::array<const Importer*, 14> kAll{
      &kNsysSqlite,     &kRocpd,         &kRecording,          &kPerfetto, &kFlightRecorder,
      &kMemorySnapshot, &kNcclInspector, &kNcclProfiler,       &kMerged,   &kPaddleProfiler,
      &kDevices,        &kKineto,        &kPipelineOperations, &kChrome};
  return kAll;
}

Result<Sniff> sniff(const std::filesystem::path& path) {
  constexpr std::size_t kHead = 4096;
  Sniff sniff;
  ASSAY_TRY(sniff.head, read_head(path, kHead));
  sniff_json(path, sniff);
  sniff_database(path, sniff);
  return sniff;
}

Result<Trace> import_trace(const std::filesystem::path& path, const ImportOptions& options) {
  ASSAY_TRY(const Sniff found, sniff(path));
  std::string looked_for;
  for (const Importer* importer : importers()) {
    if (importer->recognises(found)) return importer->import(path, options);
    looked_for += fmt::format("\n  {}: {}", importer->format, importer->sign);
  }
  return usage_error(
      fmt::format("{}: unknown format. The file seems to be {}. assay looked for:{}\n  (for job "
                  "logs use --log_dir; convert an .nsys-rep file with `nsys export --type sqlite`)",
                  path.string(), seems_to_be(path, found), looked_for));
}

}  // namespace assay::timeline
