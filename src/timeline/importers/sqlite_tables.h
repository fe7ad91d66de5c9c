#pragma once

// A database that somebody else made, opened so that nothing in it can harm: only true tables are
// read, since a view of a hostile file could run for ever.

#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "base/result.h"

namespace assay::timeline {

struct CloseSqlite {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using SqliteFile = std::unique_ptr<sqlite3, CloseSqlite>;
using SqliteRows = std::unique_ptr<sqlite3_stmt, CloseSqlite>;

// The database in a file, packed or not, read only.
Result<SqliteFile> open_sqlite(const std::filesystem::path& path);

// Null, when the statement cannot be run.
SqliteRows prepare_rows(sqlite3* database, const std::string& sql);

std::set<std::string> table_names(sqlite3* database);
bool has_table(sqlite3* database, const std::string& table);
std::set<std::string> table_columns(sqlite3* database, const std::string& table);
std::string column_text(sqlite3_stmt* row, int column);

}  // namespace assay::timeline
