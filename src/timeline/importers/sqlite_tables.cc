#include "timeline/importers/sqlite_tables.h"

#include "timeline/input/byte_source.h"

namespace assay::timeline {
namespace {

std::set<std::string> texts(Result<Statement> rows) {
  std::set<std::string> result;
  for (Result<bool> row = rows ? rows->step() : false; row && *row; row = rows->step()) {
    result.emplace(rows->text(0));
  }
  return result;
}

}  // namespace

Result<Database> open_sqlite(const std::filesystem::path& path) {
  ASSAY_TRY(const Fd file, open_unpacked(path));
  return Database::open_foreign(file.get(), path);
}

std::set<std::string> table_names(Database& database) {
  return texts(database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'"));
}

std::set<std::string> table_columns(Database& database, const std::string& table) {
  auto rows = database.prepare("SELECT name FROM pragma_table_info(?1)");
  if (rows) rows->bind(1, std::string_view(table));
  return texts(std::move(rows));
}

}  // namespace assay::timeline
