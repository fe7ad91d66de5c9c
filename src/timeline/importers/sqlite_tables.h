#pragma once

// What is in a database that somebody else made.

#include <filesystem>
#include <set>
#include <string>

#include "base/result.h"
#include "store/database.h"

namespace assay::timeline {

// The database in a file, packed or not, read only.
Result<Database> open_sqlite(const std::filesystem::path& path);

// True tables, no views; empty for a file that is no database.
std::set<std::string> table_names(Database& database);
std::set<std::string> table_columns(Database& database, const std::string& table);

}  // namespace assay::timeline
