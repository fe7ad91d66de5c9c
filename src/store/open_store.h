#pragma once

// Which store a run is kept in.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "store/store.h"

namespace assay {

// The store of the run in this folder, or at this address of a database (postgresql://…).
Result<std::unique_ptr<Store>> open_store(const std::filesystem::path& folder, StoreMode mode);
// Whether that is the address of a database instead of a folder.
bool is_store_address(std::string_view where);
// Whether an address of a database has a password in it, which everybody can read who lists the
// processes of the machine.
bool has_password(std::string_view address);
// The address as it may be shown.
std::string without_password(std::string_view address);
// Whether the folder holds a run.
bool has_store(const std::filesystem::path& folder);

}  // namespace assay
