#include "timeline/importers/sqlite_tables.h"

#include <fmt/format.h>
#include <unistd.h>

#include "timeline/input/byte_source.h"

namespace assay::timeline {

namespace {

// The file's name as it stands in SQLite's file: addresses, where ?, # and % mean something.
std::string uri_of(const std::filesystem::path& path) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(path).string()) {
    uri += c == '?' || c == '#' || c == '%' ? fmt::format("%{:02x}", static_cast<unsigned>(c))
                                            : std::string(1, c);
  }
  return uri + "?immutable=1";
}

}  // namespace

Result<SqliteFile> open_sqlite(const std::filesystem::path& path) {
  ASSAY_TRY(const TemporaryCopy copy, unpack(path));
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(uri_of(copy.path.empty() ? path : copy.path).c_str(), &opened,
                                   SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  SqliteFile database(opened);
  // SQLite has the file open now: its name is not needed any more.
  if (!copy.path.empty()) ::unlink(copy.path.c_str());
  if (code != SQLITE_OK) {
    return usage_error(fmt::format("{}: {}", path.string(), sqlite3_errstr(code)));
  }
  // A text longer than this is no kernel's name.
  constexpr int kMaxText = 1 << 20;
  sqlite3_limit(database.get(), SQLITE_LIMIT_LENGTH, kMaxText);
  sqlite3_db_config(database.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database.get(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  return database;
}

SqliteRows prepare_rows(sqlite3* database, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    return nullptr;
  }
  return SqliteRows(statement);
}

std::set<std::string> table_names(sqlite3* database) {
  std::set<std::string> names;
  const SqliteRows rows =
      prepare_rows(database, "SELECT name FROM sqlite_master WHERE type = 'table'");
  while (rows && sqlite3_step(rows.get()) == SQLITE_ROW) names.insert(column_text(rows.get(), 0));
  return names;
}

bool has_table(sqlite3* database, const std::string& table) {
  return table_names(database).contains(table);
}

std::set<std::string> table_columns(sqlite3* database, const std::string& table) {
  std::set<std::string> names;
  const SqliteRows rows = prepare_rows(database, "SELECT name FROM pragma_table_info(?1)");
  if (!rows) return names;
  sqlite3_bind_text(rows.get(), 1, table.c_str(), -1, SQLITE_TRANSIENT);
  while (sqlite3_step(rows.get()) == SQLITE_ROW) names.insert(column_text(rows.get(), 0));
  return names;
}

std::string column_text(sqlite3_stmt* row, int column) {
  const auto* text = sqlite3_column_text(row, column);
  return text == nullptr ? std::string()
                         : std::string(reinterpret_cast<const char*>(text),
                                       static_cast<std::size_t>(sqlite3_column_bytes(row, column)));
}

}  // namespace assay::timeline
