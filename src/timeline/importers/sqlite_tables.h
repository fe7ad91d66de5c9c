#pragma once

// Reads the tables of another program's database.

#include <filesystem>
#include <set>
#include <string>

#include "base/result.h"
#include "sqlite/database.h"

namespace assay::timeline {

// Opens the database read-only; decompresses the file first if needed.
Result<Database> open_sqlite(const std::filesystem::path& path);

// Tables without views; empty for a file that is not a database.
std::set<std::string> table_names(Database& database);
std::set<std::string> table_columns(Database& database, const std::string& table);

}  // namespace assay::timeline
