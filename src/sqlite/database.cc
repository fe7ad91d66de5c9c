#include "sqlite/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "base/atomic_file.h"
#include "sqlite/checked_pages.h"

namespace assay {
namespace {

constexpr const char* kInUse =
    "the run's database is in use by another process; wait for it to end, or stop it";

bool limits_files() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

tl::unexpected<Error> sqlite_error(sqlite3* handle, std::string_view doing) {
  const int code = sqlite3_extended_errcode(handle);
  const int cause = sqlite3_system_errno(handle);
  const char* file = sqlite3_db_filename(handle, "main");
  std::string message = std::string(doing) + ": " + sqlite3_errmsg(handle);
  if ((code & 0xff) == SQLITE_BUSY) {
    message = kInUse;
  } else if (code == SQLITE_IOERR_DATA || (code & 0xff) == SQLITE_CORRUPT) {
    message = fmt::format(
        "{} is damaged ({}): a disk or another program has changed it; run it again in another "
        "folder",
        file == nullptr ? "the database" : file,
        code == SQLITE_IOERR_DATA ? "the checksum of a page is wrong" : sqlite3_errmsg(handle));
  } else if ((code & 0xff) == SQLITE_NOTADB) {
    message = fmt::format("{} is not a database of assay", file == nullptr ? "this file" : file);
  } else if ((code & 0xff) == SQLITE_CANTOPEN && cause != 0) {
    message = std::string(doing) + ": " + std::generic_category().message(cause);
  } else if ((code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_WRITE) {
    // SQLite does not keep the cause of a failed write.
    message = fmt::format(
        "the disk is full{}: the run's database cannot grow; free some space and start again (no "
        "recorded result is lost)",
        limits_files() ? ", or `ulimit -f` is too small" : "");
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

// Readers share this byte. It follows SQLite's own (sqlite3.c, PENDING_BYTE).
constexpr off_t kReadersByte = 0x40000000 + 512;
constexpr int kTries = 200;
constexpr std::chrono::milliseconds kPause{10};

// Takes or releases the byte: F_RDLCK, F_WRLCK or F_UNLCK.
bool lock_readers_byte(const Fd& file, short kind) {
  struct flock lock {};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = kReadersByte;
  lock.l_len = 1;
  return ::fcntl(file.get(), F_OFD_SETLK, &lock) == 0;
}

// The same, with about two seconds of patience: readers and writers hold it for milliseconds.
bool wait_for_readers_byte(const Fd& file, short kind) {
  for (int tries = 0; tries < kTries; ++tries) {
    if (tries > 0) std::this_thread::sleep_for(kPause);
    if (lock_readers_byte(file, kind)) return true;
  }
  return false;
}

// SQLite calls it after each commit. The log is copied into the file every 32 MB, not every 4, so
// most pages are written twice only. While somebody reads, the log grows.
int copy_log_if_long(void* readers, sqlite3* handle, const char* name, int pages) {
  constexpr int kLongLog = 2048;
  const Fd& file = *static_cast<const Fd*>(readers);
  if (pages < kLongLog || !lock_readers_byte(file, F_WRLCK)) return SQLITE_OK;
  // After an error the log keeps everything, and the next commit tries again.
  sqlite3_wal_checkpoint_v2(handle, name, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  lock_readers_byte(file, F_UNLCK);
  return SQLITE_OK;
}

// Closing then does not copy the log into the file, and keeps it.
void leave_the_log(sqlite3* handle) {
  sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

}  // namespace

void CloseDatabase::operator()(sqlite3* handle) const {
  if (readers != nullptr && !wait_for_readers_byte(*readers, F_WRLCK)) leave_the_log(handle);
  sqlite3_close_v2(handle);
}

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
  ASSAY_CHECK(check_links(path));
  int flags = SQLITE_OPEN_READWRITE;
  if (mode != OpenMode::existing) flags |= SQLITE_OPEN_CREATE;
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, checked_pages());
  Database database;
  database.handle_.reset(handle);  // also when opening failed
  if (code != SQLITE_OK) return sqlite_error(handle, "cannot open " + path.string());
  if (sqlite3_db_readonly(handle, "main") == 1) {
    return usage_error(path.string() + ": you may not write to it");
  }
  // Exclusive before WAL: then no shared-memory index is ever made.
  ASSAY_CHECK(database.execute("PRAGMA locking_mode = EXCLUSIVE;"));
  // Pages of 16 KiB (a file that is there keeps its own): records have 2 KB, and two in 4 KiB leave
  // much of them empty.
  ASSAY_CHECK(database.execute("PRAGMA page_size = 16384;"));
  if (int reserved = kReservedBytes; mode == OpenMode::checked) {
    sqlite3_file_control(handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
  }
  ASSAY_CHECK(database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"));
  ASSAY_CHECK(
      database.execute("PRAGMA user_version;"));  // fails if the file is no database, or locked
  ASSAY_CHECK(database.share(path));
  return database;
}

// Lets readers in from now on.
Status Database::share(const std::filesystem::path& path) {
  readers_ = std::make_unique<Fd>(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!*readers_) return errno_error("cannot open " + path.string());
  handle_.get_deleter().readers = readers_.get();
  sqlite3_wal_hook(handle_.get(), copy_log_if_long, readers_.get());
  return {};
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

Result<Database> Database::open_to_read(const std::filesystem::path& path) {
  auto byte = std::make_unique<Fd>(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat file {};
  if (!*byte || ::fstat(byte->get(), &file) != 0)
    return errno_error("cannot open " + path.string());
  if (!S_ISREG(file.st_mode)) return usage_error(path.string() + " is no regular file");
  if (!wait_for_readers_byte(*byte, F_RDLCK)) {
    return fail(path.string() + " is being copied by the process that writes it; try again");
  }
  struct stat log {};
  const bool has_log = ::stat((path.string() + "-wal").c_str(), &log) == 0 && log.st_size > 0;
  const std::string_view how = has_log ? "vfs=" : "immutable=1&vfs=";
  ASSAY_TRY(Database database,
            open_read(path, fmt::format("{}{}", how,
                                        has_log ? checked_pages_unlocked() : checked_pages())));
  if (has_log) {
    leave_the_log(database.handle_.get());
    ASSAY_CHECK(database.execute("PRAGMA locking_mode = EXCLUSIVE;"));  // its index is in memory
  }
  database.readers_ = std::move(byte);
  return database;
}

bool Database::has_moved() const {
  int moved = 0;
  sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return moved != 0;
}

bool Database::is_checked() const {
  int reserved = -1;
  sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
  return reserved == kReservedBytes;
}

Result<Database> Database::copy() const {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE, nullptr);
  Database made;
  made.handle_.reset(handle);
  if (code != SQLITE_OK) return sqlite_error(handle, "database");
  sqlite3_backup* backup = sqlite3_backup_init(handle, "main", handle_.get(), "main");
  if (backup != nullptr) sqlite3_backup_step(backup, -1);
  if (backup == nullptr || sqlite3_backup_finish(backup) != SQLITE_OK) {
    return sqlite_error(handle, "cannot copy the database");
  }
  return made;
}

// SQLite opens files by name and follows no link to one, so a file without a name is read from
// memory.
Result<Database> Database::open_nameless(int file) {
  struct stat found {};
  if (::fstat(file, &found) != 0) return errno_error("cannot read the database");
  Database database;
  ASSAY_TRY(database.memory_,
            Mapping::map(file, static_cast<std::size_t>(found.st_size), /*writable=*/true));
  std::byte* const bytes = database.memory_.data();
  // In memory SQLite reads no file that says it has a write-ahead log.
  constexpr std::size_t kWriteVersion = 18;
  constexpr std::byte kRollbackJournal{1};
  if (database.memory_.size() > kWriteVersion + 1) {
    bytes[kWriteVersion] = bytes[kWriteVersion + 1] = kRollbackJournal;
  }
  sqlite3* handle = nullptr;
  int code = sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE, nullptr);
  database.handle_.reset(handle);
  const auto size = static_cast<sqlite3_int64>(database.memory_.size());
  if (code == SQLITE_OK) {
    code = sqlite3_deserialize(handle, "main", reinterpret_cast<unsigned char*>(bytes), size, size,
                               SQLITE_DESERIALIZE_READONLY);
  }
  if (code != SQLITE_OK) return sqlite_error(handle, "cannot open the database");
  return database;
}

Result<Database> Database::open_foreign(int file, const std::filesystem::path& path) {
  struct stat found {};
  const bool has_name = ::fstat(file, &found) != 0 || found.st_nlink > 0;
  auto opened = has_name ? open_read(path, "immutable=1") : open_nameless(file);
  if (!opened) return usage_error(path.string() + ": " + opened.error().message);
  Database database = std::move(*opened);
  sqlite3* handle = database.handle_.get();
  constexpr int kMaxText = 1 << 20;
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kMaxText);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
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
