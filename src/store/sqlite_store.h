#pragma once

// A run in one SQLite file. The process that has it open holds its lock and is the only claimer. So
// every claim is granted, a bundle is one case, and leases end with the store.

#include <memory>
#include <vector>

#include "sqlite/database.h"
#include "store/finished_rows.h"
#include "store/store.h"

namespace assay {

class SqliteStore final : public Store {
 public:
  static constexpr std::string_view kFileName = "run.db";
  static constexpr std::int64_t kSchemaVersion = 6;
  static constexpr std::int64_t kVersionWithoutChecksums = 5;  // of pages; the tables are the same
  static constexpr std::int64_t kVersionWithoutFaults = 4;     // a writer upgrades it to 5
  // "assa" in ASCII: tells a run of assay from any other SQLite file.
  static constexpr std::int64_t kApplicationId = 0x61737361;

  // Checks that the file is a run that this assay can read, and gives the version of its schema.
  static Result<std::int64_t> checked_version(Database& database,
                                              const std::filesystem::path& file);
  // As properties(), counts(), tally() and each_invalid(), for a database without a store.
  static Result<std::map<std::string, std::string>> read_properties(Database& database);
  static Result<StoreCounts> read_counts(Database& database);
  static Status add_tally(Database& database, Tally& sums);
  static Status read_invalid(Database& database, const VisitInvalid& visit);
  // Reads the columns of finished_rows(), which start at the column `first`. The case's text is
  // valid until the statement's next step. An error if the stored case is damaged.
  static Status read_finished(const Statement& row, int first, FinishedRow& read);

  // Opens the run in `folder`, or begins one there. A folder whose run.db is no run of assay, or of
  // a newer assay, is refused untouched. StoreMode::read writes nothing.
  static Result<std::unique_ptr<Store>> open(const std::filesystem::path& folder, StoreMode mode);

  Result<std::map<std::string, std::string>> properties() override;
  Status set_property(std::string_view key, std::string_view value) override;
  Result<std::string> agree_on(std::string_view key, std::string_view value) override;

  Status add_case(const wire::CaseT& added) override;
  Status add_invalid(const InvalidLine& line) override;
  Status forget_invalid() override;
  Result<std::int64_t> forget_finished(std::span<const Outcome> outcomes) override;
  std::uint64_t added() const override { return new_cases_; }

  Result<Supply> claim(std::size_t bundles, const VisitJob& visit) override;
  Result<bool> finish(const FinishedCase& finished) override;
  Status note_failure(std::uint64_t id, const std::string& how) override;
  Status commit() override;

  Status each_finished_id(const std::function<void(std::uint64_t)>& visit) override;
  Status each(const RunQuery& query, const VisitFinished& visit) override;
  Status each_unfinished(const VisitPlanned& visit) override;
  Status each_invalid(const VisitInvalid& visit) override;
  Result<StoreCounts> counts() override;
  Result<Tally> tally() override;
  Result<std::vector<RunTotals>> other_runs() override;
  Result<std::string> run_name() override;

 private:
  SqliteStore(Database database, std::filesystem::path folder)
      : database_(std::move(database)), folder_(std::move(folder)) {}
  Status prepare_statements();
  Status begin();
  Status write(Statement& statement);
  bool added_here(std::uint64_t id);
  Status write_tally();
  Status note_failed_before(Outcome outcome);

  Database database_;
  std::filesystem::path folder_;
  RecordPacker packer_;
  std::optional<Transaction> transaction_;
  Statement insert_case_;
  Statement update_case_;
  Statement insert_finished_;
  Tally changed_;                     // what the transaction adds to the run's sums
  std::size_t tally_bytes_ = 0;       // written to `tally` since its rows were last added up
  std::vector<std::uint64_t> added_;  // ids of all cases that were added to this store
  bool sorted_ = true;                // whether added_ is sorted
  std::uint64_t new_cases_ = 0;
  std::int64_t claimed_to_ = 0;  // planned.number of the last claimed case
};

}  // namespace assay
