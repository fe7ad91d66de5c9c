#include "store/open_store.h"

#include "store/postgres_errors.h"
#include "store/postgres_store.h"
#include "store/sqlite_store.h"

namespace assay {

Result<std::unique_ptr<Store>> open_store(const std::filesystem::path& folder, StoreMode mode) {
  if (is_store_address(folder.string())) {
    PostgresStore::Options options;
    options.read_only = mode == StoreMode::read;
    ASSAY_TRY(std::unique_ptr<Store> store, PostgresStore::open(folder.string(), mode, options));
    return store;
  }
  return SqliteStore::open(folder, mode);
}

bool is_store_address(std::string_view where) { return PostgresStore::is_address(where); }

bool has_password(std::string_view address) { return postgres::has_password(std::string(address)); }

std::string without_password(std::string_view address) {
  return postgres::without_password(address);
}

bool has_store(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / SqliteStore::kFileName, error);
}

}  // namespace assay
