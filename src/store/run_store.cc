#include "store/run_store.h"

#include <fmt/format.h>

#include <bit>

#include "base/clock.h"

namespace assay {
namespace {

constexpr std::int64_t kSchemaVersion = 2;
// "assa" in ASCII: tells a run of assay from any other SQLite file.
constexpr std::int64_t kApplicationId = 0x61737361;

// Tables only grow at their ends; what is random, the ids, is kept apart in narrow indexes, so that
// a large run writes each page about once.
constexpr const char* kSchema = R"sql(
CREATE TABLE property (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE planned (number INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE, text TEXT NOT NULL);
CREATE TABLE started (id INTEGER NOT NULL, attempt INTEGER NOT NULL, slot INTEGER NOT NULL,
                      at_ms INTEGER NOT NULL);
CREATE TABLE finished (sequence INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE,
                       outcome TEXT NOT NULL, mismatch INTEGER NOT NULL, flags INTEGER NOT NULL,
                       lane TEXT NOT NULL, message TEXT NOT NULL, attempts INTEGER NOT NULL,
                       at_ms INTEGER NOT NULL, record BLOB);
CREATE TABLE invalid (place TEXT, text TEXT, message TEXT);
)sql";

// Version 1 had the same columns, in trees that were ordered by id.
constexpr const char* kFromVersion1 = R"sql(
DROP INDEX IF EXISTS finished_order;
ALTER TABLE property RENAME TO old_property;
ALTER TABLE planned RENAME TO old_planned;
ALTER TABLE started RENAME TO old_started;
ALTER TABLE finished RENAME TO old_finished;
ALTER TABLE invalid RENAME TO old_invalid;
)sql";
constexpr const char* kRowsOfVersion1 = R"sql(
INSERT INTO property SELECT key, value FROM old_property;
INSERT INTO planned (id, text) SELECT id, text FROM old_planned;
INSERT INTO started SELECT id, attempt, slot, at_ms FROM old_started;
INSERT INTO finished SELECT sequence, id, outcome, mismatch, flags, lane, message, attempts, at_ms,
                            record FROM old_finished;
INSERT INTO invalid SELECT place, text, message FROM old_invalid;
DROP TABLE old_property;
DROP TABLE old_planned;
DROP TABLE old_started;
DROP TABLE old_finished;
DROP TABLE old_invalid;
)sql";

// SQLite's integers are signed; the bits are what counts.
std::int64_t key_of(std::uint64_t id) { return std::bit_cast<std::int64_t>(id); }

Result<bool> is_empty(Database& database) {
  ASSAY_TRY(Statement tables, database.prepare("SELECT count(*) FROM sqlite_schema"));
  ASSAY_TRY([[maybe_unused]] const bool counted, tables.step());
  return tables.integer(0) == 0;
}

Status create_tables(Database& database) {
  ASSAY_TRY(Transaction transaction, Transaction::begin(database));
  ASSAY_CHECK(database.execute(kSchema));
  ASSAY_CHECK(database.execute(fmt::format("PRAGMA application_id = {}", kApplicationId)));
  ASSAY_CHECK(database.set_schema_version(kSchemaVersion));
  return transaction.commit();
}

Status upgrade_from_version_1(Database& database) {
  ASSAY_TRY(Transaction transaction, Transaction::begin(database));
  ASSAY_CHECK(database.execute(kFromVersion1));
  ASSAY_CHECK(database.execute(kSchema));
  ASSAY_CHECK(database.execute(kRowsOfVersion1));
  ASSAY_CHECK(database.set_schema_version(kSchemaVersion));
  return transaction.commit();
}

Status check_identity(Database& database, const std::filesystem::path& file, OpenMode mode) {
  ASSAY_TRY(Statement identity, database.prepare("PRAGMA application_id"));
  ASSAY_TRY(const bool row, identity.step());
  const std::int64_t found = row ? identity.integer(0) : 0;
  identity.reset();
  ASSAY_TRY(const std::int64_t version, database.schema_version());
  if (found == 0 && version == 0 && mode == OpenMode::create) {
    ASSAY_TRY(const bool empty, is_empty(database));
    if (empty) return create_tables(database);
  }
  if (found != kApplicationId) {
    return usage_error(
        fmt::format("{} is not a run of assay; choose another --log_dir", file.string()));
  }
  if (version > kSchemaVersion) {
    return usage_error(
        fmt::format("{} was written by a newer assay (store version {}, this one "
                    "knows {}); use that one, or another --log_dir",
                    file.string(), version, kSchemaVersion));
  }
  return version < kSchemaVersion ? upgrade_from_version_1(database) : Status();
}

void read_finished(const Statement& row, FinishedCase& finished) {
  finished.id = std::bit_cast<std::uint64_t>(row.integer(0));
  finished.text = row.text(1);
  finished.verdict.outcome = find_outcome(row.text(2)).value_or(Outcome::invalid);
  finished.verdict.mismatch = static_cast<std::uint8_t>(row.integer(3));
  finished.verdict.flags = static_cast<std::uint8_t>(row.integer(4));
  finished.verdict.lane = row.text(5);
  finished.verdict.message = row.text(6);
  finished.attempts = static_cast<std::uint32_t>(row.integer(7));
  finished.finished_ms = row.integer(8);
  finished.record = row.blob(9);
}

}  // namespace

Result<RunStore> RunStore::open(const std::filesystem::path& folder, OpenMode mode) {
  const std::filesystem::path file = folder / kFileName;
  if (mode != OpenMode::create && !std::filesystem::exists(file)) {
    return usage_error(fmt::format("{} holds no run of assay (no {})", folder.string(), kFileName));
  }
  ASSAY_TRY(Database database, Database::open(file, mode));
  ASSAY_CHECK(check_identity(database, file, mode));
  RunStore store(std::move(database));
  ASSAY_CHECK(store.prepare_statements());
  return store;
}

Status RunStore::prepare_statements() {
  ASSAY_TRY(insert_case_,
            database_.prepare("INSERT OR IGNORE INTO planned (id, text) VALUES (?, ?)"));
  ASSAY_TRY(
      insert_started_,
      database_.prepare("INSERT INTO started (id, attempt, slot, at_ms) VALUES (?, ?, ?, ?)"));
  ASSAY_TRY(insert_finished_,
            database_.prepare("INSERT OR IGNORE INTO finished (id, outcome, mismatch, flags, lane, "
                              "message, attempts, at_ms, record) "
                              "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  return {};
}

Status RunStore::write(Statement& statement) {
  if (!transaction_) {
    ASSAY_TRY(Transaction begun, Transaction::begin(database_));
    transaction_.emplace(std::move(begun));
  }
  return statement.run();
}

Status RunStore::commit() {
  if (!transaction_) return {};
  Status status = transaction_->commit();
  transaction_.reset();
  return status;
}

Result<std::map<std::string, std::string>> RunStore::properties() {
  std::map<std::string, std::string> found;
  ASSAY_TRY(Statement rows, database_.prepare("SELECT key, value FROM property"));
  while (true) {
    ASSAY_TRY(const bool row, rows.step());
    if (!row) return found;
    found.emplace(rows.text(0), rows.text(1));
  }
}

Status RunStore::set_property(std::string_view key, std::string_view value) {
  ASSAY_TRY(Statement insert, database_.prepare("INSERT OR REPLACE INTO property VALUES (?, ?)"));
  insert.bind(1, key);
  insert.bind(2, value);
  return write(insert);
}

Status RunStore::add_case(const StoredCase& added) {
  insert_case_.bind(1, key_of(added.id));
  insert_case_.bind(2, added.text);
  return write(insert_case_);
}

Status RunStore::add_invalid(const InvalidLine& line) {
  ASSAY_TRY(Statement insert, database_.prepare("INSERT INTO invalid VALUES (?, ?, ?)"));
  insert.bind(1, std::string_view(line.where));
  insert.bind(2, std::string_view(line.text));
  insert.bind(3, std::string_view(line.message));
  return write(insert);
}

Status RunStore::forget_invalid() { return database_.execute("DELETE FROM invalid"); }

Status RunStore::record_started(std::uint64_t id, std::uint32_t attempt, std::uint32_t slot) {
  insert_started_.bind(1, key_of(id));
  insert_started_.bind(2, std::int64_t{attempt});
  insert_started_.bind(3, std::int64_t{slot});
  insert_started_.bind(4, wall_ms());
  return write(insert_started_);
}

Status RunStore::record_finished(const FinishedCase& finished) {
  const Verdict& verdict = finished.verdict;
  insert_finished_.bind(1, key_of(finished.id));
  insert_finished_.bind(2, name(verdict.outcome));
  insert_finished_.bind(3, std::int64_t{verdict.mismatch});
  insert_finished_.bind(4, std::int64_t{verdict.flags});
  insert_finished_.bind(5, std::string_view(verdict.lane));
  insert_finished_.bind(6, std::string_view(verdict.message));
  insert_finished_.bind(7, std::int64_t{finished.attempts});
  insert_finished_.bind(8, finished.finished_ms);
  insert_finished_.bind(9, finished.record);
  return write(insert_finished_);
}

Result<std::int64_t> RunStore::forget_finished(std::span<const Outcome> outcomes) {
  std::int64_t forgotten = 0;
  for (const Outcome outcome : outcomes) {
    ASSAY_TRY(Statement remove,
              database_.prepare("DELETE FROM finished WHERE outcome = ? RETURNING 1"));
    remove.bind(1, name(outcome));
    while (true) {
      ASSAY_TRY(const bool row, remove.step());
      if (!row) break;
      ++forgotten;
    }
  }
  return forgotten;
}

Status RunStore::each_finished_id(const std::function<void(std::uint64_t)>& visit) {
  ASSAY_TRY(Statement rows, database_.prepare("SELECT id FROM finished"));
  while (true) {
    ASSAY_TRY(const bool row, rows.step());
    if (!row) return {};
    visit(std::bit_cast<std::uint64_t>(rows.integer(0)));
  }
}

Status RunStore::each_finished(const std::function<Status(const FinishedCase&)>& visit) {
  ASSAY_TRY(Statement rows,
            database_.prepare("SELECT f.id, p.text, outcome, mismatch, flags, lane, message, "
                              "attempts, at_ms, record FROM finished f JOIN planned p USING (id) "
                              "ORDER BY sequence"));
  FinishedCase finished;
  while (true) {
    ASSAY_TRY(const bool row, rows.step());
    if (!row) return {};
    read_finished(rows, finished);
    ASSAY_CHECK(visit(finished));
  }
}

Status RunStore::each_unfinished(const std::function<Status(const StoredCase&)>& visit) {
  ASSAY_TRY(Statement rows, database_.prepare("SELECT id, text FROM planned WHERE id NOT IN "
                                              "(SELECT id FROM finished) ORDER BY text"));
  while (true) {
    ASSAY_TRY(const bool row, rows.step());
    if (!row) return {};
    ASSAY_CHECK(visit({std::bit_cast<std::uint64_t>(rows.integer(0)), rows.text(1)}));
  }
}

Status RunStore::each_invalid(const std::function<Status(const InvalidLine&)>& visit) {
  ASSAY_TRY(Statement rows, database_.prepare("SELECT place, text, message FROM invalid"));
  while (true) {
    ASSAY_TRY(const bool row, rows.step());
    if (!row) return {};
    ASSAY_CHECK(
        visit({std::string(rows.text(0)), std::string(rows.text(1)), std::string(rows.text(2))}));
  }
}

Result<std::optional<std::string>> RunStore::case_text(std::uint64_t id) {
  ASSAY_TRY(Statement rows, database_.prepare("SELECT text FROM planned WHERE id = ?"));
  rows.bind(1, key_of(id));
  ASSAY_TRY(const bool row, rows.step());
  if (!row) return std::optional<std::string>();
  return std::optional<std::string>(std::string(rows.text(0)));
}

}  // namespace assay
