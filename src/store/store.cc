#include "store/store.h"

#include "store/sqlite_store.h"

namespace assay {

Result<std::unique_ptr<Store>> open_store(const std::filesystem::path& folder, StoreMode mode) {
  return SqliteStore::open(folder, mode);
}

bool has_store(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / SqliteStore::kFileName, error);
}

}  // namespace assay
