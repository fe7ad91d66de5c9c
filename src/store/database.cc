#include "store/database.h"

#include <fmt/format.h>

#include <utility>

namespace assay {
namespace {

tl::unexpected<Error> sqlite_error(sqlite3* handle, std::string_view doing) {
  const int code = sqlite3_extended_errcode(handle);
  std::string message = std::string(doing) + ": " + sqlite3_errmsg(handle);
  if ((code & 0xff) == SQLITE_BUSY) {
    message = "the run's database is in use by another process; wait for it to end, or stop it";
  } else if ((code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_WRITE) {
    message =
        "the disk is full: the run's database cannot grow; free some space and start again "
        "(no recorded result is lost)";
  }
  return fail(std::move(message));
}

// The file as a URI for SQLite, in which ?, # and % must be escaped.
std::string uri_of(const std::filesystem::path& path, std::string_view how) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(path).string()) {
    uri += c == '?' || c == '#' || c == '%' ? fmt::format("%{:02x}", static_cast<unsigned>(c))
                                            : std::string(1, c);
  }
  return uri + "?" + std::string(how);
}

constexpr std::string_view kUnchanging = "immutable=1";
// SQLite's file layer for Unix without file locks.
constexpr std::string_view kUnlocked = "vfs=unix-none";

}  // namespace

void Statement::bind(int parameter, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), parameter, value);
}
void Statement::bind(int parameter, double value) {
  sqlite3_bind_double(statement_.get(), parameter, value);
}
void Statement::bind(int parameter, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), parameter, text.data(), text.size(), nullptr, SQLITE_UTF8);
}
void Statement::bind(int parameter, std::span<const std::uint8_t> blob) {
  sqlite3_bind_blob64(statement_.get(), parameter, blob.data(), blob.size(), nullptr);
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  sqlite3* handle = sqlite3_db_handle(statement_.get());
  if (code == SQLITE_DONE) {
    sqlite3_reset(statement_.get());
    return false;
  }
  auto error = sqlite_error(handle, "database");
  sqlite3_reset(statement_.get());
  return error;
}

Status Statement::run() {
  ASSAY_TRY(const bool row, step());
  if (row) reset();
  return {};
}

void Statement::reset() { sqlite3_reset(statement_.get()); }

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}
double Statement::number(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}
std::string_view Statement::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  const int bytes = sqlite3_column_bytes(statement_.get(), column);
  return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(bytes)};
}
std::span<const std::uint8_t> Statement::blob(int column) const {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const int bytes = sqlite3_column_bytes(statement_.get(), column);
  return {static_cast<const std::uint8_t*>(data), static_cast<std::size_t>(bytes)};
}
bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

Result<Database> Database::open(const std::filesystem::path& path, OpenMode mode) {
  int flags = SQLITE_OPEN_READWRITE;
  if (mode == OpenMode::create) flags |= SQLITE_OPEN_CREATE;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database;
  database.handle_.reset(handle);  // also when opening failed
  if (code != SQLITE_OK) return sqlite_error(handle, "cannot open " + path.string());
  // Exclusive locking must come before WAL, or SQLite makes a shared-memory index.
  ASSAY_CHECK(database.execute("PRAGMA locking_mode = EXCLUSIVE;"));
  // Pages of 16 KiB in new files: a record has about 2 KB, so pages of 4 KiB would stay half empty.
  // A checkpoint every 32 MB instead of every 4 MB: most pages are then written only twice.
  ASSAY_CHECK(
      database.execute("PRAGMA page_size = 16384; PRAGMA journal_mode = WAL; "
                       "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 2048;"));
  ASSAY_CHECK(
      database.execute("PRAGMA user_version;"));  // fails if the file is no database, or locked
  return database;
}

Result<Database> Database::open_read(const std::filesystem::path& path, std::string_view how) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(uri_of(path, how).c_str(), &handle,
                                   SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  Database database;
  database.handle_.reset(handle);  // also when opening failed
  if (code != SQLITE_OK) return sqlite_error(handle, "cannot open " + path.string());
  return database;
}

Result<Database> Database::open_foreign(const std::filesystem::path& path) {
  ASSAY_TRY(Database database, open_read(path, kUnchanging));
  sqlite3* handle = database.handle_.get();
  constexpr int kMaxText = 1 << 20;
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kMaxText);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  return database;
}

Result<Database> Database::open_unchanging(const std::filesystem::path& path) {
  return open_read(path, kUnchanging);
}

Result<Database> Database::open_unlocked(const std::filesystem::path& path) {
  ASSAY_TRY(Database database, open_read(path, kUnlocked));
  // The log belongs to its writer. This reader must not checkpoint it on close, and must keep the
  // log's index in memory.
  sqlite3_db_config(database.handle_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  ASSAY_CHECK(database.execute("PRAGMA locking_mode = EXCLUSIVE;"));
  return database;
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK) return sqlite_error(handle_.get(), "database");
  Statement statement;
  statement.statement_.reset(raw);
  return statement;
}

Status Database::execute(const std::string& sql) {
  if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return sqlite_error(handle_.get(), "database");
  }
  return {};
}

Result<std::int64_t> Database::read_integer(std::string_view query) {
  ASSAY_TRY(Statement statement, prepare(query));
  ASSAY_TRY(const bool row, statement.step());
  return row ? statement.integer(0) : 0;
}

Result<std::int64_t> Database::schema_version() { return read_integer("PRAGMA user_version"); }

Status Database::set_schema_version(std::int64_t version) {
  return execute("PRAGMA user_version = " + std::to_string(version));
}

Result<Transaction> Transaction::begin(Database& database) {
  ASSAY_CHECK(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  if (database_ != nullptr) (void)database_->execute("ROLLBACK");
}

Status Transaction::commit() {
  ASSAY_CHECK(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace assay
