#pragma once

// Opens the store of a run: SQLite in a folder, or PostgreSQL at an address.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "store/store.h"

namespace assay {

// The store of the run in this folder, or at this database address (postgresql://…).
Result<std::unique_ptr<Store>> open_store(const std::filesystem::path& folder, StoreMode mode);
// Whether `where` is a database address and not a folder.
bool is_store_address(std::string_view where);
// Whether a database address contains a password. Every user of the machine could read it in the
// list of processes.
bool has_password(std::string_view address);
// The address without its password, for messages.
std::string without_password(std::string_view address);
// Whether the folder holds a run.
bool has_store(const std::filesystem::path& folder);

}  // namespace assay
