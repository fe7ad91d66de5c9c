#pragma once

// A run in a PostgreSQL database, with any number of claimers on any number of machines.
//
// A claim takes cases with FOR UPDATE SKIP LOCKED, so claimers never wait for each other, and
// raises their epoch. What has come of cases is gathered here and written by commit() in one
// transaction, which records a case only if its epoch still holds: a claimer that was cut off and
// comes back changes nothing. Leases end by the database's clock alone, so the clocks of workers do
// not matter.

#include <chrono>
#include <memory>
#include <unordered_map>
#include <vector>

#include "store/store.h"

namespace pqxx {
class transaction_base;
}

namespace assay {

class PostgresStore final : public Store {
 public:
  struct Options {
    std::chrono::milliseconds lease_time{30'000};
    // How long a database may be away before that is an error.
    std::chrono::milliseconds patience{120'000};
  };

  // Whether that is the address of a database: "postgresql://…". Passwords come by libpq's usual
  // means (PGPASSFILE, ~/.pgpass); the schema by its parameter options=-csearch_path=NAME.
  static bool is_address(std::string_view where);

  // Opens the run in this database, or makes its tables. A schema of a newer assay is refused.
  static Result<std::unique_ptr<PostgresStore>> open(std::string address, StoreMode mode,
                                                     Options options);
  static Result<std::unique_ptr<PostgresStore>> open(std::string address, StoreMode mode) {
    return open(std::move(address), mode, Options());
  }
  ~PostgresStore() override;

  Result<std::map<std::string, std::string>> properties() override;
  Status set_property(std::string_view key, std::string_view value) override;

  Status add_case(const StoredCase& added) override;
  Status add_invalid(const InvalidLine& line) override;
  Status forget_invalid() override;
  Result<std::int64_t> forget_finished(std::span<const Outcome> outcomes) override;

  // Most expensive first. What was written before becomes durable with it.
  Result<Supply> claim(std::size_t most,
                       const std::function<Status(const ClaimedCase&)>& visit) override;
  std::optional<std::chrono::milliseconds> lease_time() const override {
    return options_.lease_time;
  }
  Status renew() override;
  Status release_all() override;
  // True while this claimer believes that it holds the case; commit() has the last word.
  Result<bool> finish(const Lease& lease, const FinishedCase& finished) override;
  // Waits for a database that is away, as long as the options say.
  Status commit() override;

  Status each_finished_id(const std::function<void(std::uint64_t)>& visit) override;
  Status each_finished(const std::function<Status(const FinishedCase&)>& visit) override;
  Status each_unfinished(const std::function<Status(const StoredCase&)>& visit) override;
  Status each_invalid(const std::function<Status(const InvalidLine&)>& visit) override;

  // Results that commit() dropped, because their lease was no longer valid.
  std::uint64_t fenced() const { return fenced_; }

 private:
  struct Connection;
  struct Ended {
    Lease lease;
    std::string outcome;
    Verdict verdict;
    std::uint32_t attempts = 1;
    std::int64_t finished_ms = 0;
    std::vector<std::uint8_t> record;
  };
  struct Added {
    std::uint64_t id = 0;
    std::string text;
    std::int64_t elements = 0;
    std::int64_t bytes = 0;
  };

  PostgresStore(std::string address, Options options);
  Status connect();
  Status make_tables(StoreMode mode);
  Status flush_added();
  void write_ended(pqxx::transaction_base& transaction);
  template <typename Work>
  Status in_plan(Work&& work);
  template <typename Work>
  Status reading(Work&& work);
  template <typename Work>
  Status at_once(Work&& work);

  std::string address_;
  Options options_;
  std::string claimer_;
  std::unique_ptr<Connection> connection_;
  std::vector<Added> added_;                               // not yet sent
  bool added_any_ = false;                                 // then only these are claimed
  std::vector<Ended> ended_;                               // not yet written
  std::unordered_map<std::uint64_t, std::uint64_t> held_;  // epoch of each case
  std::uint64_t fenced_ = 0;
};

}  // namespace assay
