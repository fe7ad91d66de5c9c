#include "store/sqlite_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "store/case_traits.h"
#include "store/signed_bits.h"

namespace assay {
namespace {

constexpr std::int64_t kSchemaVersion = SqliteStore::kSchemaVersion;
constexpr std::int64_t kApplicationId = SqliteStore::kApplicationId;
// The file has one claimer: what has finished is the only thing that ends a lease.
constexpr std::uint64_t kOnlyEpoch = 1;

// Tables only grow at their ends; what is random, the ids, is kept apart in narrow indexes, so that
// a large run writes each page about once.
constexpr const char* kSchema = R"sql(
CREATE TABLE property (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE planned (number INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE, text TEXT NOT NULL,
                      elements INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0);
CREATE TABLE finished (sequence INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE,
                       outcome TEXT NOT NULL, mismatch INTEGER NOT NULL, flags INTEGER NOT NULL,
                       lane TEXT NOT NULL, message TEXT NOT NULL, attempts INTEGER NOT NULL,
                       at_ms INTEGER NOT NULL, record BLOB);
CREATE TABLE invalid (place TEXT, text TEXT, message TEXT);
)sql";

// What stands in `tally` is to be added up: each commit writes a row more (Tally::text()).
constexpr const char* kTallyTable = "CREATE TABLE tally (changes TEXT NOT NULL);";
constexpr std::size_t kMostTallyBytes = 8'000'000;  // then they become one row

constexpr const char* kFinished =
    "SELECT f.id, p.text, outcome, mismatch, flags, lane, message, attempts, at_ms, record "
    "FROM finished f JOIN planned p USING (id) {} ORDER BY sequence LIMIT ?";
// As is_listed() in the index and in the query. In stores that were begun before there was that
// index all rows are looked at.
constexpr const char* kFlaggedPass = "outcome = 'pass' AND flags <> 0";

// Cases that reports show one by one. It stands in the queries as well as in the index, word for
// word, or SQLite does not use the index.
std::string is_listed() {
  std::string names;
  for (const OutcomeInfo& each : kOutcomes) {
    if (each.failed) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", each.name);
  }
  return fmt::format("outcome IN ({})", names);
}

// Version 2 had no estimates, and a table of what had been started, which nobody read.
constexpr const char* kFromVersion2 = R"sql(
DROP TABLE started;
ALTER TABLE planned ADD COLUMN elements INTEGER NOT NULL DEFAULT 0;
ALTER TABLE planned ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
)sql";

// Version 1 had the columns of version 2, in trees that were ordered by id.
constexpr const char* kFromVersion1 = R"sql(
DROP INDEX IF EXISTS finished_order;
ALTER TABLE property RENAME TO old_property;
ALTER TABLE planned RENAME TO old_planned;
DROP TABLE started;
ALTER TABLE finished RENAME TO old_finished;
ALTER TABLE invalid RENAME TO old_invalid;
)sql";
constexpr const char* kRowsOfVersion1 = R"sql(
INSERT INTO property SELECT key, value FROM old_property;
INSERT INTO planned (id, text) SELECT id, text FROM old_planned;
INSERT INTO finished SELECT sequence, id, outcome, mismatch, flags, lane, message, attempts, at_ms,
                            record FROM old_finished;
INSERT INTO invalid SELECT place, text, message FROM old_invalid;
DROP TABLE old_property;
DROP TABLE old_planned;
DROP TABLE old_finished;
DROP TABLE old_invalid;
)sql";

Result<bool> is_empty(Database& database) {
  ASSAY_TRY(Statement tables, database.prepare("SELECT count(*) FROM sqlite_schema"));
  ASSAY_TRY([[maybe_unused]] const bool counted, tables.step());
  return tables.integer(0) == 0;
}

// Finished cases that meet a condition, in the order in which they finished; the first `most`.
Result<Statement> finished_rows(Database& database, std::string_view condition,
                                std::uint64_t most) {
  ASSAY_TRY(Statement rows, database.prepare(fmt::format(fmt::runtime(kFinished), condition)));
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  rows.bind(1, static_cast<std::int64_t>(std::min(most, kMost)));
  return rows;
}

Status show_rows(Statement& rows, const std::function<Status(const FinishedCase&)>& visit) {
  FinishedCase finished;
  while (true) {
    ASSAY_TRY(const bool row, rows.step());
    if (!row) return {};
    SqliteStore::read_finished(rows, 0, finished);
    ASSAY_CHECK(visit(finished));
  }
}

// Version 3 had no sums, and no index of what failed. For older ones all rows are read, once.
Status begin_tally(Database& database) {
  ASSAY_CHECK(database.execute(kTallyTable));
  ASSAY_CHECK(database.execute(fmt::format(
      "CREATE INDEX finished_listed ON finished (outcome, sequence) WHERE {}", is_listed())));
  ASSAY_CHECK(database.execute(
      fmt::format("CREATE INDEX finished_flagged ON finished (sequence) WHERE {}", kFlaggedPass)));
  Tally tally;
  ASSAY_TRY(Statement rows, finished_rows(database, "", kAllOfThem));
  ASSAY_CHECK(show_rows(rows, [&](const FinishedCase& finished) -> Status {
    tally.add(traits_of(finished.text), finished);
    return {};
  }));
  if (tally.empty()) return {};
  const std::string text = tally.text();
  ASSAY_TRY(Statement insert, database.prepare("INSERT INTO tally VALUES (?)"));
  insert.bind(1, std::string_view(text));
  return insert.run();
}

Status create_tables(Database& database) {
  ASSAY_TRY(Transaction transaction, Transaction::begin(database));
  ASSAY_CHECK(database.execute(kSchema));
  ASSAY_CHECK(begin_tally(database));
  ASSAY_CHECK(database.execute(fmt::format("PRAGMA application_id = {}", kApplicationId)));
  ASSAY_CHECK(database.set_schema_version(kSchemaVersion));
  return transaction.commit();
}

Status upgrade_from_version_1(Database& database) {
  ASSAY_TRY(Transaction transaction, Transaction::begin(database));
  ASSAY_CHECK(database.execute(kFromVersion1));
  ASSAY_CHECK(database.execute(kSchema));
  ASSAY_CHECK(database.execute(kRowsOfVersion1));
  ASSAY_CHECK(begin_tally(database));
  ASSAY_CHECK(database.set_schema_version(kSchemaVersion));
  return transaction.commit();
}

Status upgrade_from_version_2(Database& database) {
  ASSAY_TRY(Transaction transaction, Transaction::begin(database));
  ASSAY_CHECK(database.execute(kFromVersion2));
  ASSAY_CHECK(begin_tally(database));
  ASSAY_CHECK(database.set_schema_version(kSchemaVersion));
  return transaction.commit();
}

Status upgrade_from_version_3(Database& database) {
  ASSAY_TRY(Transaction transaction, Transaction::begin(database));
  ASSAY_CHECK(begin_tally(database));
  ASSAY_CHECK(database.set_schema_version(kSchemaVersion));
  return transaction.commit();
}

Status upgrade(Database& database, std::int64_t version) {
  if (version == kSchemaVersion) return {};
  if (version == 3) return upgrade_from_version_3(database);
  return version == 2 ? upgrade_from_version_2(database) : upgrade_from_version_1(database);
}

Status check_identity(Database& database, const std::filesystem::path& file, StoreMode mode) {
  ASSAY_TRY(Statement identity, database.prepare("PRAGMA application_id"));
  ASSAY_TRY(const bool row, identity.step());
  const std::int64_t found = row ? identity.integer(0) : 0;
  identity.reset();
  ASSAY_TRY(const std::int64_t version, database.schema_version());
  if (found == 0 && version == 0 && mode == StoreMode::create) {
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
  return upgrade(database, version);
}

}  // namespace

void SqliteStore::read_finished(const Statement& row, int first, FinishedCase& finished) {
  finished.id = unsigned_bits(row.integer(first));
  finished.text = row.text(first + 1);
  finished.verdict.outcome = find_outcome(row.text(first + 2)).value_or(Outcome::invalid);
  finished.verdict.mismatch = static_cast<std::uint8_t>(row.integer(first + 3));
  finished.verdict.flags = static_cast<std::uint8_t>(row.integer(first + 4));
  finished.verdict.lane = row.text(first + 5);
  finished.verdict.message = row.text(first + 6);
  finished.attempts = static_cast<std::uint32_t>(row.integer(first + 7));
  finished.finished_ms = row.integer(first + 8);
  finished.record = row.blob(first + 9);
}

Result<std::unique_ptr<Store>> SqliteStore::open(const std::filesystem::path& folder,
                                                 StoreMode mode) {
  const std::filesystem::path file = folder / kFileName;
  if (mode != StoreMode::create && !std::filesystem::exists(file)) {
    return usage_error(fmt::format("{} holds no run of assay (no {})", folder.string(), kFileName));
  }
  const OpenMode how = mode == StoreMode::create ? OpenMode::create : OpenMode::existing;
  ASSAY_TRY(Database database, Database::open(file, how));
  ASSAY_CHECK(check_identity(database, file, mode));
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(database)));
  ASSAY_CHECK(store->prepare_statements());
  return store;
}

Status SqliteStore::prepare_statements() {
  ASSAY_TRY(insert_case_,
            database_.prepare("INSERT OR IGNORE INTO planned (id, text, elements, bytes) "
                              "VALUES (?, ?, ?, ?)"));
  ASSAY_TRY(update_case_,
            database_.prepare("UPDATE planned SET elements = ?2, bytes = ?3 WHERE id = ?1"));
  ASSAY_TRY(insert_finished_,
            database_.prepare("INSERT OR IGNORE INTO finished (id, outcome, mismatch, flags, lane, "
                              "message, attempts, at_ms, record) "
                              "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  return {};
}

Status SqliteStore::begin() {
  if (transaction_) return {};
  ASSAY_TRY(Transaction begun, Transaction::begin(database_));
  transaction_.emplace(std::move(begun));
  return {};
}

Status SqliteStore::write(Statement& statement) {
  ASSAY_CHECK(begin());
  return statement.run();
}

Status SqliteStore::commit() {
  if (!transaction_) return {};
  Status status = write_tally();
  if (status) status = transaction_->commit();
  transaction_.reset();
  changed_ = Tally();
  return status;
}

// In the transaction that it belongs to.
Status SqliteStore::write_tally() {
  if (changed_.empty()) return {};
  const bool all = tally_bytes_ > kMostTallyBytes;
  Tally written = changed_;
  if (all) {
    ASSAY_TRY(written, tally());
    ASSAY_CHECK(database_.execute("DELETE FROM tally"));
  }
  const std::string text = written.text();
  ASSAY_TRY(Statement insert, database_.prepare("INSERT INTO tally VALUES (?)"));
  insert.bind(1, std::string_view(text));
  ASSAY_CHECK(insert.run());
  tally_bytes_ = all ? 0 : tally_bytes_ + text.size();
  return {};
}

Result<std::map<std::string, std::string>> SqliteStore::properties() {
  std::map<std::string, std::string> found;
  ASSAY_TRY(Statement rows, database_.prepare("SELECT key, value FROM property"));
  while (true) {
    ASSAY_TRY(const bool row, rows.step());
    if (!row) return found;
    found.emplace(rows.text(0), rows.text(1));
  }
}

Status SqliteStore::set_property(std::string_view key, std::string_view value) {
  ASSAY_TRY(Statement insert, database_.prepare("INSERT OR REPLACE INTO property VALUES (?, ?)"));
  insert.bind(1, key);
  insert.bind(2, value);
  return write(insert);
}

Result<std::string> SqliteStore::agree_on(std::string_view key, std::string_view value) {
  ASSAY_TRY(Statement insert, database_.prepare("INSERT OR IGNORE INTO property VALUES (?, ?)"));
  insert.bind(1, key);
  insert.bind(2, value);
  ASSAY_CHECK(write(insert));
  ASSAY_TRY(Statement found, database_.prepare("SELECT value FROM property WHERE key = ?"));
  found.bind(1, key);
  ASSAY_TRY([[maybe_unused]] const bool row, found.step());
  return std::string(found.text(0));
}

// ---- planning ----

Status SqliteStore::add_case(const StoredCase& added) {
  insert_case_.bind(1, signed_bits(added.id));
  insert_case_.bind(2, added.text);
  insert_case_.bind(3, signed_bits(added.elements));
  insert_case_.bind(4, signed_bits(added.bytes));
  added_.push_back(added.id);
  sorted_ = false;
  ASSAY_CHECK(write(insert_case_));
  if (database_.changes() > 0) {
    ++new_cases_;
    return {};
  }
  update_case_.bind(1, signed_bits(added.id));
  update_case_.bind(2, signed_bits(added.elements));
  update_case_.bind(3, signed_bits(added.bytes));
  return write(update_case_);
}

Status SqliteStore::add_invalid(const InvalidLine& line) {
  ASSAY_TRY(Statement insert, database_.prepare("INSERT INTO invalid VALUES (?, ?, ?)"));
  insert.bind(1, std::string_view(line.where));
  insert.bind(2, std::string_view(line.text));
  insert.bind(3, std::string_view(line.message));
  return write(insert);
}

Status SqliteStore::forget_invalid() {
  ASSAY_CHECK(begin());
  return database_.execute("DELETE FROM invalid");
}

Result<std::int64_t> SqliteStore::forget_finished(std::span<const Outcome> outcomes) {
  std::int64_t forgotten = 0;
  for (const Outcome outcome : outcomes) {
    ASSAY_CHECK(each_of(outcome, kAllOfThem, [this](const FinishedCase& finished) -> Status {
      changed_.take_back(traits_of(finished.text), finished);
      return {};
    }));
    ASSAY_TRY(Statement remove, database_.prepare("DELETE FROM finished WHERE outcome = ?"));
    remove.bind(1, name(outcome));
    ASSAY_CHECK(write(remove));
    forgotten += database_.changes();
  }
  return forgotten;
}

// ---- leases ----

bool SqliteStore::added_here(std::uint64_t id) {
  if (!sorted_) std::sort(added_.begin(), added_.end());
  sorted_ = true;
  return added_.empty() || std::binary_search(added_.begin(), added_.end(), id);
}

// In the order of planning; `claimed_to_` keeps two claims apart.
Result<Supply> SqliteStore::claim(std::size_t bundles,
                                  const std::function<Status(const ClaimedCase&)>& visit) {
  ASSAY_TRY(Statement rows,
            database_.prepare("SELECT number, id, text, elements, bytes FROM planned "
                              "WHERE number > ? AND id NOT IN (SELECT id FROM finished) "
                              "ORDER BY number"));
  rows.bind(1, claimed_to_);
  for (std::size_t claimed = 0; claimed < bundles;) {
    ASSAY_TRY(const bool row, rows.step());
    if (!row) return Supply::none;
    claimed_to_ = rows.integer(0);
    const auto id = unsigned_bits(rows.integer(1));
    if (!added_here(id)) continue;
    ++claimed;
    ASSAY_CHECK(visit(
        {{id, kOnlyEpoch},
         {id, rows.text(2), unsigned_bits(rows.integer(3)), unsigned_bits(rows.integer(4))}}));
  }
  return Supply::more;
}

Result<bool> SqliteStore::finish(const Lease& lease, const FinishedCase& finished) {
  const Verdict& verdict = finished.verdict;
  insert_finished_.bind(1, signed_bits(lease.id));
  insert_finished_.bind(2, name(verdict.outcome));
  insert_finished_.bind(3, std::int64_t{verdict.mismatch});
  insert_finished_.bind(4, std::int64_t{verdict.flags});
  insert_finished_.bind(5, std::string_view(verdict.lane));
  insert_finished_.bind(6, std::string_view(verdict.message));
  insert_finished_.bind(7, std::int64_t{finished.attempts});
  insert_finished_.bind(8, finished.finished_ms);
  insert_finished_.bind(9, finished.record);
  ASSAY_CHECK(write(insert_finished_));
  if (database_.changes() == 0) return false;
  FinishedCase kept = finished;
  kept.took_us = 0;  // as it is read again
  changed_.add(traits_of(finished.text), kept);
  return true;
}

// ---- reading ----

Status SqliteStore::each_finished_id(const std::function<void(std::uint64_t)>& visit) {
  ASSAY_TRY(Statement rows, database_.prepare("SELECT id FROM finished"));
  while (true) {
    ASSAY_TRY(const bool row, rows.step());
    if (!row) return {};
    visit(unsigned_bits(rows.integer(0)));
  }
}

Status SqliteStore::each_finished(const std::function<Status(const FinishedCase&)>& visit) {
  // The text of each case stands elsewhere in `planned`: in the usual 2 MB of cache its page would
  // be read again for nearly every case.
  ASSAY_CHECK(database_.execute("PRAGMA cache_size = -16384"));
  ASSAY_TRY(Statement rows, finished_rows(database_, "", kAllOfThem));
  ASSAY_CHECK(show_rows(rows, visit));
  return database_.execute("PRAGMA cache_size = -2000");
}

Status SqliteStore::each_of(Outcome outcome, std::uint64_t most,
                            const std::function<Status(const FinishedCase&)>& visit) {
  const std::string condition = fmt::format("WHERE outcome = '{}'{}", name(outcome),
                                            info(outcome).failed ? " AND " + is_listed() : "");
  ASSAY_TRY(Statement rows, finished_rows(database_, condition, most));
  return show_rows(rows, visit);
}

Status SqliteStore::each_listed(const std::function<Status(const FinishedCase&)>& visit) {
  // An index for each, and then the rows in their order.
  const std::string condition = fmt::format(
      "WHERE sequence IN (SELECT sequence FROM finished WHERE {} "
      "UNION ALL SELECT sequence FROM finished WHERE {})",
      is_listed(), kFlaggedPass);
  ASSAY_TRY(Statement rows, finished_rows(database_, condition, kAllOfThem));
  return show_rows(rows, visit);
}

// With what is not yet committed, as each_finished() shows it.
Result<Tally> SqliteStore::tally() {
  Tally tally = changed_;
  ASSAY_TRY(Statement rows, database_.prepare("SELECT changes FROM tally"));
  while (true) {
    ASSAY_TRY(const bool row, rows.step());
    if (!row) return tally;
    ASSAY_CHECK(tally.add_text(rows.text(0)));
  }
}

Status SqliteStore::each_unfinished(const std::function<Status(const StoredCase&)>& visit) {
  ASSAY_TRY(Statement rows,
            database_.prepare("SELECT id, text, elements, bytes FROM planned WHERE id "
                              "NOT IN (SELECT id FROM finished) ORDER BY text"));
  while (true) {
    ASSAY_TRY(const bool row, rows.step());
    if (!row) return {};
    ASSAY_CHECK(visit({unsigned_bits(rows.integer(0)), rows.text(1), unsigned_bits(rows.integer(2)),
                       unsigned_bits(rows.integer(3))}));
  }
}

Status SqliteStore::each_invalid(const std::function<Status(const InvalidLine&)>& visit) {
  ASSAY_TRY(Statement rows, database_.prepare("SELECT place, text, message FROM invalid"));
  while (true) {
    ASSAY_TRY(const bool row, rows.step());
    if (!row) return {};
    ASSAY_CHECK(
        visit({std::string(rows.text(0)), std::string(rows.text(1)), std::string(rows.text(2))}));
  }
}

Result<StoreCounts> SqliteStore::counts() {
  ASSAY_TRY(Statement row, database_.prepare("SELECT (SELECT count(*) FROM planned), "
                                             "(SELECT count(*) FROM finished)"));
  ASSAY_TRY([[maybe_unused]] const bool counted, row.step());
  return StoreCounts{unsigned_bits(row.integer(0)), unsigned_bits(row.integer(1))};
}

}  // namespace assay
