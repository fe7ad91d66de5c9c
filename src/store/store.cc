#include "store/store.h"

#include "store/postgres_store.h"
#include "store/sqlite_store.h"

namespace assay {

Result<std::unique_ptr<Store>> open_store(const std::filesystem::path& folder, StoreMode mode) {
  if (PostgresStore::is_address(folder.string())) {
    ASSAY_TRY(std::unique_ptr<Store> store, PostgresStore::open(folder.string(), mode));
    return store;
  }
  return SqliteStore::open(folder, mode);
}

bool has_store(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / SqliteStore::kFileName, error);
}

}  // namespace assay
