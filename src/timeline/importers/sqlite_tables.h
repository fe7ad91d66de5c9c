#pragma once

// Reads the tables of another program's database.

#include <filesystem>
#include <set>
#include <string>
#include <tuple>

#include "base/result.h"
#include "sqlite/database.h"
#include "timeline/importers/builder.h"
#include "timeline/importers/importer.h"

namespace assay::timeline {

// Opens the database read-only; decompresses the file first if needed.
Result<Database> open_sqlite(const std::filesystem::path& path);

// Tables without views; empty for a file that is not a database.
std::set<std::string> table_names(Database& database);
std::set<std::string> table_columns(Database& database, const std::string& table);

// Makes a trace of the rows of a database.
class SqliteReader {
 protected:
  using Row = const Statement&;

  SqliteReader(Database database, const ImportOptions& options)
      : database_(std::move(database)), options_(options) {}
  FileReport& report() { return builder_.report(); }
  Strings& strings() { return builder_.trace().strings; }

  // Calls take(row) for each row; notes what fails, after `what`.
  template <typename Take>
  void each_row(std::string_view what, const std::string& sql, Take take) {
    auto rows = database_.prepare(sql);
    Result<bool> row = rows ? rows->step() : tl::unexpected(rows.error());
    for (; row && *row; row = rows->step()) take(*rows);
    if (row) return;
    if (rows) ++report().truncated;
    report().notes.push_back(std::string(what) + ": " + row.error().message);
  }
  // Reads begin and end from the first two columns, and moves them by `base`; false for invalid
  // times.
  bool span_of(Row row, Nanos base, Slice& slice);
  void add_launch(const Slice& slice, std::int64_t correlation);
  // If the slice's name marks a step of a training loop.
  void add_step(std::string_view name, const Slice& slice);
  void add_with_detail(Slice& slice, std::int64_t correlation, std::int64_t bytes = kNone,
                       std::int64_t blocks = 0);
  std::uint32_t gpu_track(std::uint32_t source, std::int64_t device, std::int64_t stream,
                          const std::string& process);
  // "thread 17"; `what` is "thread".
  std::uint32_t host_track(std::uint32_t source, std::int64_t thread, const std::string& process,
                           std::string_view what = "thread");

  Database database_;
  const ImportOptions& options_;
  TraceBuilder builder_;

 private:
  TrackTable<std::tuple<std::uint32_t, std::int64_t, std::int64_t, std::string_view>> tracks_{
      builder_};  // by source, device, stream or thread, and what it is
};

}  // namespace assay::timeline
