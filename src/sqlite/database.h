#pragma once

// A thin wrapper of SQLite. A run has one file, which one process at a time opens for writing;
// files that other programs made are only read.
//
// Write-ahead logging (WAL) with exclusive locking keeps the WAL index in memory. The usual index
// is a shared-memory file, which network and cluster file systems do not support. Exclusive locking
// also refuses a second writer.
//
// Other processes may read meanwhile. A reader holds a shared lock on one byte, behind those of
// SQLite. The writer appends to the log, and what it has committed to the log never changes. It
// copies the log into the file, and empties it, only while it holds that byte alone.

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace assay {

class Database;

// A prepared statement. Parameters count from 1, columns from 0, as in SQLite. Bound text and blobs
// must outlive the next step(); a parameter that is not bound is NULL. Text and blobs that are read
// are valid until the next step().
class Statement {
 public:
  void bind(int parameter, std::int64_t value);
  void bind(int parameter, double value);
  void bind(int parameter, std::string_view text);
  void bind(int parameter, std::span<const std::uint8_t> blob);

  // True if there is a row to read. False after the last row: the statement can then be bound and
  // stepped again.
  Result<bool> step();
  // Binds the parameters in order.
  template <typename... Values>
  void bind_all(const Values&... values) {
    int parameter = 0;
    (bind(++parameter, values), ...);
  }

  // Runs a statement that gives no rows.
  Status run();
  // The same with its parameters in order.
  template <typename... Values>
    requires(sizeof...(Values) > 0)
  Status run(const Values&... values) {
    bind_all(values...);
    return run();
  }
  // Calls `visit` for each row that is left.
  template <typename Visit>
  Status each(const Visit& visit) {
    while (true) {
      ASSAY_TRY(const bool row, step());
      if (!row) return {};
      ASSAY_CHECK(visit());
    }
  }
  // Stops reading before the last row.
  void reset();

  // The value in this column of the current row, converted by SQLite's rules.
  std::int64_t integer(int column) const;
  double number(int column) const;
  std::string_view text(int column) const;
  std::span<const std::uint8_t> blob(int column) const;
  bool is_null(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

enum class OpenMode {
  create,    // the file is made if it is missing
  checked,   // the same; a new file has checksums of its pages (sqlite/checked_pages.h)
  existing,  // a missing file is an error
};

// Closes a file. A writer's log is copied into it, or stays if somebody reads it.
struct CloseDatabase {
  const Fd* readers = nullptr;
  void operator()(sqlite3* handle) const;
};

// A connection to one file.
class Database {
 public:
  // Opens a file for reading and writing. An error if it is no database, or in use by another
  // process.
  static Result<Database> open(const std::filesystem::path& path, OpenMode mode);
  // A file that somebody else made: it is only read, nobody writes to it meanwhile, and nothing in
  // it (triggers, functions of its schema, texts of gigabytes) can harm. A view could still run for
  // ever: read true tables only.
  // `file` may have lost its name; then it is changed in memory. `path` is its name.
  static Result<Database> open_foreign(int file, const std::filesystem::path& path);
  // One of assay's that is only read, as it is now: nothing is written, so it may be another user's
  // or on a disk without write access. What its writer adds later is not seen, and the log grows
  // until this reader is gone. A process that has the file open to write must not call it: closing
  // a second descriptor would drop the process's locks.
  static Result<Database> open_to_read(const std::filesystem::path& path);

  // Compiles one statement.
  Result<Statement> prepare(std::string_view sql);
  // Runs statements without parameters and results, separated by ';'.
  Status execute(const std::string& sql);
  // The first column of the query's first row; 0 if there is no row.
  Result<std::int64_t> read_integer(std::string_view query);
  // The number of rows that the last INSERT, UPDATE or DELETE changed.
  std::int64_t changes() const { return sqlite3_changes64(handle_.get()); }
  // Whether its file was removed, renamed or replaced since it was opened.
  bool has_moved() const;
  // Whether its pages have checksums.
  bool is_checked() const;
  // A copy in memory, which may be changed.
  Result<Database> copy() const;

  // PRAGMA user_version, in which each schema keeps its version; 0 in a new file.
  Result<std::int64_t> schema_version();
  Status set_schema_version(std::int64_t version);

 private:
  static Result<Database> open_read(const std::filesystem::path& path, std::string_view how);
  static Result<Database> open_nameless(int file);
  Status share(const std::filesystem::path& path);
  // These outlive the handle: a file without a name, and the descriptor whose byte readers share.
  Mapping memory_;
  std::unique_ptr<Fd> readers_;
  std::unique_ptr<sqlite3, CloseDatabase> handle_;
};

// A transaction. The destructor rolls it back unless commit() has succeeded.
class Transaction {
 public:
  // Starts a transaction with the write lock (BEGIN IMMEDIATE).
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  Status commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace assay
