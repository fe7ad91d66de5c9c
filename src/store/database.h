#pragma once

// SQLite, as assay uses it: one file per run, opened by one process at a time; and files that
// others made, which are only read.
//
// WAL with exclusive locking keeps the WAL index in memory instead of a shared-memory file, which
// network and cluster file systems do not support. It also refuses a second opener.

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

// A prepared statement. Parameters count from 1, columns from 0, as in SQLite. Text and blobs that
// are bound must outlive the next step(); those that are read hold until it.
class Statement {
 public:
  void bind(int parameter, std::int64_t value);
  void bind(int parameter, double value);
  void bind(int parameter, std::string_view text);
  void bind(int parameter, std::span<const std::uint8_t> blob);
  void bind_null(int parameter);

  // True: a row is there to read. False: done, and ready to be bound and stepped again.
  Result<bool> step();
  // For a statement without rows: one step.
  Status run();
  // Stops reading rows before the last one.
  void reset();

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
  checked,   // the same; a new file has checksums of its pages (store/checked_pages.h)
  existing,  // a missing file is an error
};

class Database {
 public:
  static Result<Database> open(const std::filesystem::path& path, OpenMode mode);
  // A file that somebody else made: it is only read, nobody writes to it meanwhile, and nothing in
  // it (triggers, functions of its schema, texts of gigabytes) can harm. A view could still run for
  // ever: read true tables only.
  // `file` may have no name; SQLite opens it again. `path` is its name for messages.
  static Result<Database> open_foreign(int file, const std::filesystem::path& path);
  // One of assay's that is only read: nothing is written, so it may be another user's or on a disk
  // without write access. Nobody writes to it while it is open, and it is in use while somebody
  // does.
  static Result<Database> open_to_read(const std::filesystem::path& path);
  // One that is only read, and that nobody writes to meanwhile.
  static Result<Database> open_unchanging(const std::filesystem::path& path);
  // One that another process has open and locked, with its log: only read, without a lock. What is
  // read is true only if that process has not copied its log meanwhile (store/beside_writer.h).
  static Result<Database> open_unlocked(const std::filesystem::path& path);

  Result<Statement> prepare(std::string_view sql);
  // Statements without parameters and results, separated by ';'.
  Status execute(const std::string& sql);
  // Rows that the last INSERT, UPDATE or DELETE has changed.
  std::int64_t changes() const { return sqlite3_changes64(handle_.get()); }
  // Whether its pages have checksums.
  bool is_checked() const;
  // A copy in memory, which may be changed.
  Result<Database> copy() const;

  // PRAGMA user_version, which each schema uses for its own version.
  Result<std::int64_t> schema_version();
  Status set_schema_version(std::int64_t version);

 private:
  static Result<Database> open_read(const std::filesystem::path& path, std::string_view how);
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  std::unique_ptr<sqlite3, Close> handle_;
  Fd lock_;  // of a reader
};

// Everything between its making and commit() happens whole or not at all.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();  // rolls back what was not committed
  Status commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace assay
