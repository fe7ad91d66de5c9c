// The SQLite file that `nsys export --type sqlite` writes. Tables that a capture lacks are left
// out.

#include <fmt/format.h>
#include <sqlite3.h>

#include <map>
#include <memory>
#include <optional>

#include "timeline/importers/importer.h"

namespace assay::timeline {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct CloseStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, CloseStatement>;

Statement prepare(sqlite3* database, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, sql, -1, &statement, nullptr) != SQLITE_OK) return nullptr;
  return Statement(statement);
}

// Only true tables are read: a view in a hostile file could run for ever.
bool has_table(sqlite3* database, const char* table) {
  const Statement found =
      prepare(database, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1");
  if (!found) return false;
  sqlite3_bind_text(found.get(), 1, table, -1, SQLITE_STATIC);
  return sqlite3_step(found.get()) == SQLITE_ROW;
}

std::string column_text(sqlite3_stmt* row, int column) {
  const auto* text = sqlite3_column_text(row, column);
  return text == nullptr ? std::string()
                         : std::string(reinterpret_cast<const char*>(text),
                                       static_cast<std::size_t>(sqlite3_column_bytes(row, column)));
}

class NsysReader {
 public:
  explicit NsysReader(sqlite3* database) : database_(database) { report_.format = "nsys"; }

  // Each query gives: begin, end, device, stream, name, category; kernels last decide their kind.
  void read(const char* table, const char* sql, std::optional<Kind> kind, bool gpu) {
    if (!has_table(database_, table)) return;
    const Statement rows = prepare(database_, sql);
    if (!rows) {
      report_.notes.push_back(fmt::format("{}: {}", table, sqlite3_errmsg(database_)));
      return;
    }
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(rows.get())) == SQLITE_ROW) take(rows.get(), kind, gpu);
    if (code != SQLITE_DONE) {
      ++report_.truncated;
      report_.notes.push_back(fmt::format("{}: {}", table, sqlite3_errmsg(database_)));
    }
  }

  // Times count from the session's start, which the file gives against UTC.
  void read_session() {
    if (!has_table(database_, "TARGET_INFO_SESSION_START_TIME")) return;
    const Statement row =
        prepare(database_, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME LIMIT 1");
    if (row && sqlite3_step(row.get()) == SQLITE_ROW) base_ = sqlite3_column_int64(row.get(), 0);
    if (base_ < 0 || base_ > kMaxTime) base_ = 0;
  }

  Trace finish(const std::filesystem::path& path) {
    report_.path = path.string();
    std::error_code ignored;
    report_.bytes = std::filesystem::file_size(path, ignored);
    trace_.files.push_back(std::move(report_));
    trace_.sort();
    return std::move(trace_);
  }

 private:
  static constexpr Nanos kMaxTime = std::numeric_limits<Nanos>::max() / 4;

  void take(sqlite3_stmt* row, std::optional<Kind> kind, bool gpu) {
    ++report_.records;
    const Nanos begin = sqlite3_column_int64(row, 0);
    const Nanos end = sqlite3_column_int64(row, 1);
    if (begin < 0 || end > kMaxTime || sqlite3_column_type(row, 1) == SQLITE_NULL) {
      ++report_.malformed;
      return;
    }
    if (end < begin) {
      ++report_.backwards;
      return;
    }
    if (trace_.slices.size() == kMaxImportedSlices) {
      ++report_.overlapping;
      return;
    }
    const std::string text = column_text(row, 4);
    trace_.slices.push_back(
        {.begin = begin + base_,
         .end = end + base_,
         .name = trace_.strings.intern(text),
         .category = trace_.strings.intern(column_text(row, 5)),
         .track = track_of(sqlite3_column_int64(row, 2), sqlite3_column_int64(row, 3), gpu),
         .kind = kind.value_or(kind_of_kernel(text))});
    ++report_.kept;
  }

  std::uint32_t track_of(std::int64_t device, std::int64_t stream, bool gpu) {
    constexpr std::size_t kMaxTracks = 1U << 16U;
    const auto key = std::tuple(gpu, device, stream);
    const auto known = tracks_.find(key);
    if (known != tracks_.end()) return known->second;
    if (trace_.tracks.size() >= kMaxTracks) return 0;
    const auto index = static_cast<std::uint32_t>(trace_.tracks.size());
    Track track;
    track.gpu = gpu;
    track.device = gpu ? static_cast<std::int32_t>(device) : kNone;
    track.label = gpu ? fmt::format("GPU {} stream {}", device, stream)
                      : fmt::format("NVTX of thread {}", stream);
    track.process = gpu ? fmt::format("GPU {}", device) : "host";
    trace_.tracks.push_back(std::move(track));
    tracks_.emplace(key, index);
    return index;
  }

  sqlite3* database_;
  Trace trace_;
  FileReport report_;
  Nanos base_ = 0;
  std::map<std::tuple<bool, std::int64_t, std::int64_t>, std::uint32_t> tracks_;
};

bool recognises(std::string_view head) { return head.starts_with("SQLite format 3"); }

Result<Trace> import(const std::filesystem::path& path) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  const Database database(opened);
  if (code != SQLITE_OK) {
    return usage_error(fmt::format("{}: {}", path.string(), sqlite3_errstr(code)));
  }
  // A text longer than this is no kernel's name.
  constexpr int kMaxText = 1 << 20;
  sqlite3_limit(database.get(), SQLITE_LIMIT_LENGTH, kMaxText);
  sqlite3_db_config(database.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database.get(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);

  NsysReader reader(database.get());
  reader.read_session();
  reader.read("CUPTI_ACTIVITY_KIND_KERNEL",
              "SELECT k.start, k.end, k.deviceId, k.streamId, s.value, 'kernel' FROM "
              "CUPTI_ACTIVITY_KIND_KERNEL k LEFT JOIN StringIds s ON s.id = k.demangledName",
              std::nullopt, true);
  reader.read("CUPTI_ACTIVITY_KIND_MEMCPY",
              "SELECT start, end, deviceId, streamId, 'Memcpy', 'memcpy' FROM "
              "CUPTI_ACTIVITY_KIND_MEMCPY",
              Kind::memory, true);
  reader.read("CUPTI_ACTIVITY_KIND_MEMSET",
              "SELECT start, end, deviceId, streamId, 'Memset', 'memset' FROM "
              "CUPTI_ACTIVITY_KIND_MEMSET",
              Kind::memory, true);
  reader.read("NVTX_EVENTS",
              "SELECT n.start, n.end, 0, n.globalTid, coalesce(n.text, s.value, ''), 'nvtx' FROM "
              "NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId WHERE n.end IS NOT NULL",
              Kind::host, false);
  return reader.finish(path);
}

}  // namespace

const Importer kNsysSqlite{"nsys", recognises, import};

}  // namespace assay::timeline
