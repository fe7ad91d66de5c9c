#include "store/sqlite_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "case/case_traits.h"
#include "store/fault_text.h"
#include "store/past_folders.h"
#include "store/signed_bits.h"

namespace assay {
namespace {

constexpr std::int64_t kSchemaVersion = SqliteStore::kSchemaVersion;
constexpr std::int64_t kVersionWithoutChecksums = SqliteStore::kVersionWithoutChecksums;
constexpr std::int64_t kVersionWithoutFaults = SqliteStore::kVersionWithoutFaults;
constexpr std::int64_t kApplicationId = SqliteStore::kApplicationId;
// The epoch of every lease: with one claimer, a lease ends only when its case finishes.
constexpr std::uint64_t kOnlyEpoch = 1;

// Rows are appended in order of their primary keys, and the random ids have narrow indexes of their
// own. So a large run writes each page about once.
constexpr const char* kSchema = R"sql(
CREATE TABLE property (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE planned (number INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE, text TEXT NOT NULL,
                      elements INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0);
CREATE TABLE finished (sequence INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE,
                       outcome TEXT NOT NULL, mismatch INTEGER NOT NULL, flags INTEGER NOT NULL,
                       lane TEXT NOT NULL, message TEXT NOT NULL, attempts INTEGER NOT NULL,
                       at_ms INTEGER NOT NULL, record BLOB, faults TEXT NOT NULL DEFAULT '',
                       took_us INTEGER NOT NULL DEFAULT 0);
CREATE TABLE invalid (place TEXT, text TEXT, message TEXT);
CREATE TABLE tally (changes TEXT NOT NULL);
)sql";
constexpr const char* kFailedBefore =
    "CREATE TABLE IF NOT EXISTS failed_before (id INTEGER PRIMARY KEY, ending TEXT NOT NULL)";
constexpr const char* kNewColumns = R"sql(
ALTER TABLE finished ADD COLUMN faults TEXT NOT NULL DEFAULT '';
ALTER TABLE finished ADD COLUMN took_us INTEGER NOT NULL DEFAULT 0;
DROP INDEX finished_listed;
DROP INDEX finished_flagged;
DELETE FROM tally;
)sql";

// Each commit adds a row to `tally`; the sum of the rows is the run's tally. When the rows have
// more bytes than this, they are replaced by their sum.
constexpr std::size_t kMostTallyBytes = 8'000'000;

// Whether no program has written anything to the file.
Result<bool> is_new(Database& database) {
  for (const char* query :
       {"PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema"}) {
    ASSAY_TRY(const std::int64_t found, database.read_integer(query));
    if (found != 0) return false;
  }
  return true;
}

// Writes the tally of a file that was made before faults were counted: reads every case once.
Status sum_up(Database& database) {
  Tally tally;
  ASSAY_TRY(Statement rows, database.prepare(finished_rows({})));
  FinishedRow row;
  const auto add = [&]() -> Status {
    ASSAY_CHECK(SqliteStore::read_finished(rows, 0, row));
    tally.add(traits_of(row.finished.text), row.finished);
    return {};
  };
  ASSAY_CHECK(rows.each(add));
  if (tally.empty()) return {};
  ASSAY_TRY(Statement insert, database.prepare("INSERT INTO tally VALUES (?)"));
  return insert.run(tally.text());
}

Status create_tables(Database& database) {
  ASSAY_TRY(Transaction transaction, Transaction::begin(database));
  ASSAY_CHECK(database.execute(kSchema));
  ASSAY_CHECK(database.execute(listed_index()));
  ASSAY_CHECK(database.execute(fmt::format("PRAGMA application_id = {}", kApplicationId)));
  ASSAY_CHECK(database.set_schema_version(database.is_checked() ? kSchemaVersion
                                                                : kVersionWithoutChecksums));
  return transaction.commit();
}

Status add_faults(Database& database) {
  ASSAY_TRY(Transaction transaction, Transaction::begin(database));
  ASSAY_CHECK(database.execute(kNewColumns));
  ASSAY_CHECK(database.execute(listed_index()));
  ASSAY_CHECK(sum_up(database));
  ASSAY_CHECK(database.set_schema_version(kVersionWithoutChecksums));
  return transaction.commit();
}

// The version of a run's schema; 0 for a file without one. An error for anything else.
Result<std::int64_t> version_if_any(Database& database, const std::filesystem::path& file) {
  ASSAY_TRY(const bool is_new_file, is_new(database));
  if (is_new_file) return 0;
  return SqliteStore::checked_version(database, file);
}

// The case in a row whose columns from `first` on are id, text, elements and bytes.
wire::CaseT planned_in(const Statement& row, int first) {
  return wire::planned_case(unsigned_bits(row.integer(first)), row.text(first + 1),
                            unsigned_bits(row.integer(first + 2)),
                            unsigned_bits(row.integer(first + 3)));
}

// Checks a file before it is opened to write, which changes it. What another process has open is
// refused later.
Status check_untouched(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error) || std::filesystem::file_size(file, error) == 0) {
    return {};
  }
  ASSAY_TRY(Database database, Database::open_to_read(file));
  ASSAY_TRY([[maybe_unused]] const std::int64_t version, version_if_any(database, file));
  return {};
}

// The run, only to be read; one without sums of faults is upgraded in memory.
Result<Database> open_to_read(const std::filesystem::path& file) {
  ASSAY_TRY(Database database, Database::open_to_read(file));
  ASSAY_TRY(const std::int64_t version, version_if_any(database, file));
  if (version == 0) return usage_error(file.string() + " holds no run yet");
  if (version >= kVersionWithoutChecksums) return database;
  ASSAY_TRY(Database upgraded, database.copy());
  ASSAY_CHECK(add_faults(upgraded));
  return upgraded;
}

Result<Database> open_to_write(const std::filesystem::path& file, StoreMode mode) {
  ASSAY_CHECK(check_untouched(file));
  ASSAY_TRY(
      Database database,
      Database::open(file, mode == StoreMode::create ? OpenMode::checked : OpenMode::existing));
  ASSAY_TRY(const std::int64_t version, version_if_any(database, file));
  if (version == 0) ASSAY_CHECK(create_tables(database));
  if (version == kVersionWithoutFaults) ASSAY_CHECK(add_faults(database));
  ASSAY_CHECK(database.execute(kFailedBefore));
  return database;
}

}  // namespace

Result<std::int64_t> SqliteStore::checked_version(Database& database,
                                                  const std::filesystem::path& file) {
  ASSAY_TRY(const std::int64_t application, database.read_integer("PRAGMA application_id"));
  if (application != kApplicationId) {
    return usage_error(
        fmt::format("{} is not a run of assay; choose another --log_dir", file.string()));
  }
  ASSAY_TRY(const std::int64_t version, database.schema_version());
  if (version > kSchemaVersion) {
    return usage_error(
        fmt::format("{} was written by a newer assay (store version {}, this assay knows {}); use "
                    "that assay, or another folder",
                    file.string(), version, kSchemaVersion));
  }
  if (version < kVersionWithoutFaults) {
    return usage_error(
        fmt::format("{} was written by an assay that was never released (store version {}, this "
                    "assay knows {} and {}); use another folder",
                    file.string(), version, kVersionWithoutFaults, kSchemaVersion));
  }
  if (version > kVersionWithoutChecksums && !database.is_checked()) {
    return fail(file.string() + " is damaged: its pages have lost their checksums");
  }
  return version;
}

Status SqliteStore::read_finished(const Statement& row, int first, FinishedRow& read) {
  FinishedCase& finished = read.finished;
  finished.id = unsigned_bits(row.integer(first));
  finished.text = row.text(first + 1);
  Verdict& verdict = finished.verdict;
  verdict.outcome = find_outcome(row.text(first + 2)).value_or(Outcome::invalid);
  verdict.mismatch = static_cast<std::uint8_t>(row.integer(first + 3));
  verdict.flags = static_cast<std::uint8_t>(row.integer(first + 4));
  verdict.lane = row.text(first + 5);
  verdict.message = row.text(first + 6);
  finished.attempts = static_cast<std::uint32_t>(row.integer(first + 7));
  finished.finished_ms = row.integer(first + 8);
  finished.took_us = unsigned_bits(row.integer(first + 9));
  return read.take(row.text(first + 10), row.blob(first + 11));
}

Result<std::unique_ptr<Store>> SqliteStore::open(const std::filesystem::path& folder,
                                                 StoreMode mode) {
  const std::filesystem::path file = folder / kFileName;
  if (mode != StoreMode::create && !std::filesystem::exists(file)) {
    if (!std::filesystem::exists(folder)) {
      return usage_error(folder.string() + " does not exist");
    }
    return usage_error(
        fmt::format("{} holds no run of assay: it has no file {}", folder.string(), kFileName));
  }
  ASSAY_TRY(Database database,
            mode == StoreMode::read ? open_to_read(file) : open_to_write(file, mode));
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(database), folder));
  if (mode != StoreMode::read) ASSAY_CHECK(store->prepare_statements());
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
                              "message, attempts, at_ms, record, faults, took_us) "
                              "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
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
  if (database_.has_moved()) {
    return fail(
        fmt::format("{} was removed or replaced while the run wrote to it: its results are "
                    "lost; start the same command again",
                    (folder_ / kFileName).string()));
  }
  if (!transaction_) return {};
  Status status = write_tally();
  if (status) status = transaction_->commit();
  transaction_.reset();
  changed_ = Tally();
  return status;
}

// Writes `changed_` in the current transaction.
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
  ASSAY_CHECK(insert.run(text));
  tally_bytes_ = all ? 0 : tally_bytes_ + text.size();
  return {};
}

Result<std::map<std::string, std::string>> SqliteStore::properties() {
  return read_properties(database_);
}

Result<std::map<std::string, std::string>> SqliteStore::read_properties(Database& database) {
  std::map<std::string, std::string> found;
  ASSAY_TRY(Statement rows, database.prepare("SELECT key, value FROM property"));
  ASSAY_CHECK(rows.each([&]() -> Status {
    found.emplace(rows.text(0), rows.text(1));
    return {};
  }));
  return found;
}

Status SqliteStore::set_property(std::string_view key, std::string_view value) {
  ASSAY_TRY(Statement insert, database_.prepare("INSERT OR REPLACE INTO property VALUES (?, ?)"));
  insert.bind_all(key, value);
  return write(insert);
}

Result<std::string> SqliteStore::agree_on(std::string_view key, std::string_view value) {
  ASSAY_TRY(Statement insert, database_.prepare("INSERT OR IGNORE INTO property VALUES (?, ?)"));
  insert.bind_all(key, value);
  ASSAY_CHECK(write(insert));
  ASSAY_TRY(Statement found, database_.prepare("SELECT value FROM property WHERE key = ?"));
  found.bind(1, key);
  ASSAY_TRY([[maybe_unused]] const bool row, found.step());
  return std::string(found.text(0));
}

// ---- planning ----

Status SqliteStore::add_case(const wire::CaseT& added) {
  insert_case_.bind_all(signed_bits(added.id), added.text, signed_bits(added.elements),
                        signed_bits(added.bytes));
  added_.push_back(added.id);
  sorted_ = false;
  ASSAY_CHECK(write(insert_case_));
  if (database_.changes() > 0) {
    ++new_cases_;
    return {};
  }
  update_case_.bind_all(signed_bits(added.id), signed_bits(added.elements),
                        signed_bits(added.bytes));
  return write(update_case_);
}

Status SqliteStore::add_invalid(const InvalidLine& line) {
  ASSAY_TRY(Statement insert, database_.prepare("INSERT INTO invalid VALUES (?, ?, ?)"));
  insert.bind_all(line.where, line.text, line.message);
  return write(insert);
}

Status SqliteStore::forget_invalid() {
  ASSAY_CHECK(begin());
  return database_.execute("DELETE FROM invalid");
}

Status SqliteStore::note_failed_before(Outcome outcome) {
  const std::string failed = info(outcome).failed ? "true" : "false";
  ASSAY_TRY(Statement note, database_.prepare(failures_to_note("finished", failed, "?")));
  note.bind(1, name(outcome));
  return write(note);
}

Result<std::int64_t> SqliteStore::forget_finished(std::span<const Outcome> outcomes) {
  std::int64_t forgotten = 0;
  ASSAY_CHECK(begin());
  if (outcomes.size() == kOutcomes.size())
    ASSAY_CHECK(database_.execute("DELETE FROM failed_before"));
  for (const Outcome outcome : outcomes) {
    if (outcomes.size() < kOutcomes.size()) ASSAY_CHECK(note_failed_before(outcome));
    const RunQuery query{.rows = RunQuery::Rows::outcome, .outcome = outcome};
    ASSAY_CHECK(each(query, [this](const FinishedCase& finished) -> Status {
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

// Claims cases in the order in which they were planned, after those of earlier claims.
Result<Supply> SqliteStore::claim(std::size_t bundles, const VisitJob& visit) {
  ASSAY_TRY(Statement rows,
            database_.prepare("SELECT number, planned.id, text, elements, bytes, ending "
                              "FROM planned LEFT JOIN failed_before USING (id) "
                              "WHERE number > ? AND planned.id NOT IN (SELECT id FROM finished) "
                              "ORDER BY number"));
  rows.bind(1, claimed_to_);
  for (std::size_t claimed = 0; claimed < bundles;) {
    ASSAY_TRY(const bool row, rows.step());
    if (!row) return Supply::none;
    claimed_to_ = rows.integer(0);
    if (!added_here(unsigned_bits(rows.integer(1)))) continue;
    ++claimed;
    wire::JobT job;
    job.test_case = planned_in(rows, 1);
    job.attempt.epoch = kOnlyEpoch;
    job.attempt.failed_before = rows.text(5);
    ASSAY_CHECK(visit(std::move(job)));
  }
  return Supply::more;
}

Status SqliteStore::note_failure(std::uint64_t id, const std::string& how) {
  ASSAY_TRY(Statement note,
            database_.prepare("INSERT OR REPLACE INTO failed_before VALUES (?, ?)"));
  note.bind_all(signed_bits(id), how);
  return write(note);
}

Result<bool> SqliteStore::finish(const FinishedCase& finished) {
  const Verdict& verdict = finished.verdict;
  const std::string faults = faults_text(verdict.faults);
  const std::vector<std::uint8_t> record = packer_.pack(finished.record);
  insert_finished_.bind_all(signed_bits(finished.id), name(verdict.outcome),
                            std::int64_t{verdict.mismatch}, std::int64_t{verdict.flags},
                            verdict.lane, verdict.message, std::int64_t{finished.attempts},
                            finished.finished_ms, std::span<const std::uint8_t>(record), faults,
                            signed_bits(finished.took_us));
  ASSAY_CHECK(write(insert_finished_));
  if (database_.changes() == 0) return false;
  changed_.add(traits_of(finished.text), finished);
  return true;
}

// ---- reading ----

Status SqliteStore::each_finished_id(const std::function<void(std::uint64_t)>& visit) {
  ASSAY_TRY(Statement rows, database_.prepare("SELECT id FROM finished"));
  return rows.each([&]() -> Status {
    visit(unsigned_bits(rows.integer(0)));
    return {};
  });
}

Status SqliteStore::each(const RunQuery& query, const VisitFinished& visit) {
  // The texts are in `planned`, in another order. With the usual cache of 2 MB, nearly every case
  // would read a page again.
  ASSAY_CHECK(database_.execute("PRAGMA cache_size = -16384"));
  ASSAY_TRY(Statement rows, database_.prepare(finished_rows(query)));
  FinishedRow row;
  const auto read = [&]() -> Status {
    ASSAY_CHECK(read_finished(rows, 0, row));
    return visit(row.finished);
  };
  ASSAY_CHECK(rows.each(read));
  return database_.execute("PRAGMA cache_size = -2000");
}

Result<std::vector<RunTotals>> SqliteStore::other_runs() { return runs_beside(folder_); }

Result<std::string> SqliteStore::run_name() { return folder_name(folder_); }

// Includes what is not committed yet, as each_finished() does.
Result<Tally> SqliteStore::tally() {
  Tally tally = changed_;
  ASSAY_CHECK(add_tally(database_, tally));
  return tally;
}

Status SqliteStore::add_tally(Database& database, Tally& sums) {
  ASSAY_TRY(Statement rows, database.prepare("SELECT changes FROM tally"));
  return rows.each([&] { return sums.add_text(rows.text(0)); });
}

Status SqliteStore::each_unfinished(const VisitPlanned& visit) {
  ASSAY_TRY(Statement rows,
            database_.prepare("SELECT id, text, elements, bytes FROM planned WHERE id "
                              "NOT IN (SELECT id FROM finished) ORDER BY text"));
  return rows.each([&] { return visit(planned_in(rows, 0)); });
}

Status SqliteStore::each_invalid(const VisitInvalid& visit) {
  return read_invalid(database_, visit);
}

Status SqliteStore::read_invalid(Database& database, const VisitInvalid& visit) {
  ASSAY_TRY(Statement rows, database.prepare("SELECT place, text, message FROM invalid"));
  return rows.each([&] {
    return visit({std::string(rows.text(0)), std::string(rows.text(1)), std::string(rows.text(2))});
  });
}

Result<StoreCounts> SqliteStore::counts() { return read_counts(database_); }

Result<StoreCounts> SqliteStore::read_counts(Database& database) {
  ASSAY_TRY(const std::int64_t planned, database.read_integer("SELECT count(*) FROM planned"));
  ASSAY_TRY(const std::int64_t finished, database.read_integer("SELECT count(*) FROM finished"));
  return StoreCounts{unsigned_bits(planned), unsigned_bits(finished)};
}

}  // namespace assay
