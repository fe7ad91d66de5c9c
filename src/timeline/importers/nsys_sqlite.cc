// Imports the output of `nsys export --type sqlite`. Tables and columns may be missing.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include "timeline/importers/builder.h"
#include "timeline/importers/chrome_collectives.h"
#include "timeline/importers/chrome_trace.h"
#include "timeline/importers/importer.h"
#include "timeline/importers/sqlite_tables.h"

namespace assay::timeline {
namespace {

constexpr Nanos kMaxTime = std::numeric_limits<Nanos>::max() / 4;

// nsys packs machine, VM, process and thread into one number.
std::int64_t process_of(std::int64_t global) { return global >> 24 & 0xffffff; }
std::int64_t thread_of(std::int64_t global) { return global & 0xffffff; }

// CUPTI's kinds of copies and memory in the words of PyTorch's profiler.
std::string copy_name(std::int64_t kind, std::int64_t from, std::int64_t to) {
  constexpr std::array<const char*, 14> kKinds{"",     "HtoD", "DtoH", "HtoA", "AtoH",
                                               "AtoA", "AtoD", "DtoA", "DtoD", "HtoH",
                                               "PtoP", "HtoD", "DtoH", "DtoD"};
  constexpr std::array<const char*, 8> kPlaces{"Pageable", "Pinned", "Device",  "Array",
                                               "Managed",  "Device", "Managed", "Unknown"};
  const auto named = [](const auto& names, std::int64_t at) {
    return at >= 0 && at < static_cast<std::int64_t>(names.size())
               ? names[static_cast<std::size_t>(at)]
               : "";
  };
  std::string name = "Memcpy";
  if (*named(kKinds, kind) != 0) name += fmt::format(" {}", named(kKinds, kind));
  if (*named(kPlaces, from) != 0 && *named(kPlaces, to) != 0) {
    name += fmt::format(" ({} -> {})", named(kPlaces, from), named(kPlaces, to));
  }
  return name;
}

class NsysReader : private SqliteReader {
 public:
  NsysReader(Database database, const ImportOptions& options)
      : SqliteReader(std::move(database), options), tables_(table_names(database_)) {}

  Trace read(const std::filesystem::path& path) {
    path_ = path.string();
    read_session();
    read_kernels();
    read_graphs();
    read_copies();
    read_calls();
    read_ranges();
    read_diagnostics();
    builder_.describe(path, "nsys");
    return builder_.finish();
  }

 private:
  // Why there are no kernels, in nsys's own words.
  void read_diagnostics() {
    for (const char* table : {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"}) {
      if (tables_.contains(table)) return;
    }
    report().notes.emplace_back(
        "the export has no CUDA kernels: record with `nsys profile --trace=cuda,nvtx`");
    constexpr int kMostTexts = 5;
    each("DIAGNOSTIC_EVENT",
         fmt::format("SELECT DISTINCT text FROM DIAGNOSTIC_EVENT WHERE text LIKE '%CUDA%' OR text "
                     "LIKE '%CUPTI%' LIMIT {}",
                     kMostTexts),
         [&](Row row) { report().notes.push_back(fmt::format("nsys: {}", row.text(0))); });
  }

  // SELECT of columns, with NULL for missing ones. `name` is the column of a string id, whose text
  // is added as the last column.
  std::string select(const char* table, const std::vector<std::string>& names,
                     const char* name = nullptr) {
    const auto there = table_columns(database_, table);
    std::string list;
    for (const std::string& column : names) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ",
                          there.contains(column) ? fmt::format("t.\"{}\"", column) : "NULL");
    }
    if (name == nullptr) return fmt::format("SELECT {} FROM {} t", list, table);
    return fmt::format("SELECT {}, s.value FROM {} t LEFT JOIN StringIds s ON s.id = t.{}", list,
                       table, name);
  }

  // Calls take(row) for each row, if the database has the table.
  template <typename Take>
  void each(const char* table, const std::string& sql, Take take) {
    if (tables_.contains(table)) each_row(table, sql, take);
  }

  // Calls take(row, slice) for each row with valid times in the first two columns.
  template <typename Take>
  void each_slice(const char* table, const std::string& sql, Take take) {
    each(table, sql, [&](Row row) {
      Slice slice;
      if (span_of(row, base_, slice)) take(row, slice);
    });
  }

  // GPU work: columns 2 to 5 are device, stream, correlation and process, followed by `more`.
  template <typename Take>
  void each_work(const char* table, std::initializer_list<const char*> more, const char* name,
                 Take take) {
    std::vector<std::string> columns{"start",    "end",           "deviceId",
                                     "streamId", "correlationId", "globalPid"};
    columns.insert(columns.end(), more.begin(), more.end());
    each_slice(table, select(table, columns, name), take);
  }

  // Of three columns that are a grid.
  static std::int64_t product(Row row, int first) {
    constexpr std::int64_t kMost = 1U << 20U;  // three of these fit into 64 bits
    std::int64_t product = 1;
    for (int i = first; i < first + 3; ++i)
      product *= std::clamp<std::int64_t>(row.integer(i), 0, kMost);
    return product;
  }

  // Times are relative to the start of the session, which the file has in UTC.
  void read_session() {
    each("TARGET_INFO_SYSTEM_ENV",
         "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname' LIMIT 1",
         [&](Row row) { host_ = row.text(0); });
    each("TARGET_INFO_SESSION_START_TIME",
         "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME LIMIT 1",
         [&](Row row) { base_ = row.integer(0); });
    if (base_ < 0 || base_ > kMaxTime) base_ = 0;
  }

  void add_gpu(Row row, Slice& slice, std::string_view name, const char* category,
               std::int64_t bytes, std::int64_t blocks = 0) {
    slice.name = strings().intern(name);
    slice.category = strings().intern(category);
    const std::int64_t device = row.integer(2);
    const std::int64_t pid = process_of(row.integer(5));
    slice.track = gpu_track(source_of(pid), device, row.integer(3),
                            pid == 0 ? fmt::format("GPU {}", device)
                                     : fmt::format("GPU {} of process {}", device, pid));
    add_with_detail(slice, row.integer(4), bytes, blocks);
  }

  void read_kernels() {
    const char* const table = "CUPTI_ACTIVITY_KIND_KERNEL";
    const bool demangled = table_columns(database_, table).contains("demangledName");
    each_work(table, {"gridX", "gridY", "gridZ"}, demangled ? "demangledName" : "shortName",
              [&](Row row, Slice& slice) {
                const std::string_view text = row.text(9);
                slice.kind = options_.kinds.kind(text);
                add_gpu(row, slice, text, "kernel", kNone, product(row, 6));
              });
  }

  // CUDA graphs traced as a whole, without their kernels.
  void read_graphs() {
    each_work("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {"graphId"}, nullptr, [&](Row row, Slice& slice) {
      slice.kind = Kind::compute;
      add_gpu(row, slice, fmt::format("CUDA graph {}", row.integer(6)), "kernel", kNone);
    });
  }

  void read_copies() {
    each_work("CUPTI_ACTIVITY_KIND_MEMCPY", {"copyKind", "srcKind", "dstKind", "bytes"}, nullptr,
              [&](Row row, Slice& slice) {
                slice.kind = Kind::memory;
                const auto optional = [&](int column) {
                  return row.is_null(column) ? std::int64_t{kNone} : row.integer(column);
                };
                add_gpu(row, slice, copy_name(optional(6), optional(7), optional(8)), "gpu_memcpy",
                        optional(9));
              });
    each_work("CUPTI_ACTIVITY_KIND_MEMSET", {"bytes"}, nullptr, [&](Row row, Slice& slice) {
      slice.kind = Kind::memory;
      add_gpu(row, slice, "Memset", "gpu_memset", row.integer(6));
    });
  }

  void read_calls() {
    const char* const table = "CUPTI_ACTIVITY_KIND_RUNTIME";
    const std::string sql = select(table, {"start", "end", "globalTid", "correlationId"}, "nameId");
    each_slice(table, sql, [&](Row row, Slice& slice) {
      slice.track = track_of_thread(row.integer(2));
      slice.name = strings().intern(row.text(4));
      add_launch(slice, row.integer(3));
      if (options_.analysis) {
        ++report().ignored;
        return;
      }
      slice.category = strings().intern("cuda_runtime");
      slice.kind = Kind::host;
      add_with_detail(slice, row.integer(3));
    });
  }

  void read_ranges() {
    const char* const table = "NVTX_EVENTS";
    const bool registered = table_columns(database_, table).contains("textId");
    each_slice(table,
               registered
                   ? "SELECT n.start, n.end, n.globalTid, coalesce(n.text, s.value, '') FROM "
                     "NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId "
                     "WHERE n.end IS NOT NULL"
                   : "SELECT n.start, n.end, n.globalTid, coalesce(n.text, '') FROM NVTX_EVENTS n "
                     "WHERE n.end IS NOT NULL",
               [&](Row row, Slice& slice) {
                 const std::string_view text = row.text(3);
                 slice.name = strings().intern(text);
                 slice.category = strings().intern("nvtx");
                 slice.track = track_of_thread(row.integer(2), "NVTX of thread");
                 slice.kind = Kind::host;
                 if (calls_collective(text)) add_collective(text, slice, row.integer(2));
                 add_step(text, slice);
                 builder_.add(slice);
               });
  }

  // "nccl:all_reduce, seq = 3, sizes = [[1024]], …", by torch.autograd.profiler.emit_nvtx.
  void add_collective(std::string_view text, const Slice& slice, std::int64_t thread) {
    Collective collective;
    const std::string_view call = text.substr(0, text.find(','));
    collective.name = strings().intern(call.substr(call.find(':') + 1));
    collective.group = collective.description = collective.ranks = collective.dtype =
        strings().intern("");
    constexpr std::string_view kSizes = "sizes = ";
    if (const std::size_t at = text.find(kSizes); at != std::string_view::npos) {
      std::string_view sizes = text.substr(at + kSizes.size());
      sizes = sizes.substr(0, sizes.find("]]") + 2);
      if (const auto elements = elements_in(sizes); elements > 0) {
        collective.in_elements = elements;
      }
    }
    auto& trace = builder_.trace();
    trace.collective_ranges.push_back({slice.begin, slice.end, track_of_thread(thread),
                                       static_cast<std::uint32_t>(trace.collectives.size())});
    trace.collectives.push_back(collective);
  }

  std::uint32_t source_of(std::int64_t pid) {
    auto& sources = builder_.trace().sources;
    const auto [entry, is_new] =
        sources_.try_emplace(pid, static_cast<std::uint32_t>(sources.size()));
    if (is_new) sources.push_back({.path = path_, .host = host_, .pid = pid, .groups = {}});
    return entry->second;
  }

  std::uint32_t track_of_thread(std::int64_t global, std::string_view what = "thread") {
    const std::int64_t pid = process_of(global);
    return host_track(source_of(pid), thread_of(global),
                      pid == 0 ? "host" : fmt::format("process {}", pid), what);
  }

  std::set<std::string> tables_;
  std::map<std::int64_t, std::uint32_t> sources_;
  std::string path_;
  std::string host_;
  Nanos base_ = 0;
};

bool recognises(const Sniff& sniff) {
  for (const char* table :
       {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS",
        "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "META_DATA_EXPORT"}) {
    if (sniff.tables.contains(table)) return true;
  }
  return false;
}

Result<Trace> import(const std::filesystem::path& path, const ImportOptions& options) {
  ASSAY_TRY(Database database, open_sqlite(path));
  return NsysReader(std::move(database), options).read(path);
}

}  // namespace

const Importer kNsysSqlite{"nsys",
                           "an SQLite database with tables CUPTI_ACTIVITY_KIND_… or NVTX_EVENTS",
                           recognises, import};

}  // namespace assay::timeline
