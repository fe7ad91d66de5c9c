#pragma once

// A run in a PostgreSQL database, with any number of claimers on any number of machines.
//
// Cases are planned in bundles of some seconds of expected work, the most expensive ones first;
// what cases of their kind took in earlier runs of the same database is what they are expected to
// take. A claim takes bundles with FOR UPDATE SKIP LOCKED, so claimers never wait for each other,
// and raises their epoch. What has come of cases is gathered here and written by commit() in one
// transaction, which records a case only if its bundle's epoch still holds: a claimer that was cut
// off and comes back changes nothing. Leases end by the database's clock alone, so the clocks of
// workers do not matter.

#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <unordered_map>
#include <vector>

#include "store/fair_share.h"
#include "store/learned_costs.h"
#include "store/run_totals.h"
#include "store/store.h"
#include "store/visit_pace.h"

namespace pqxx {
class result;
class transaction_base;
}  // namespace pqxx

namespace assay {

class PostgresStore final : public Store {
 public:
  struct Options {
    std::chrono::milliseconds lease_time{30'000};
    std::chrono::microseconds bundle{2'000'000};  // expected work that is handed out at once
    int least_bundles = 256;  // of a plan; a small one is cut finer, so that many can work on it
    // How long a database may be away, or its disk full, before that is an error.
    std::chrono::milliseconds patience{120'000};
    std::size_t tally_characters = 8'000'000;  // of sums that are added up at once, about
    FairShare share;         // what is known already of how fast this claimer and all others are
    bool read_only = false;  // the database itself refuses to write anything
  };
  // Who works on the run.
  struct Holder {
    std::string claimer;  // "HOST:…"
    std::int64_t bundles = 0;
    std::int64_t cases = 0;   // that have not ended
    double seconds_left = 0;  // of its leases, if it does not renew them
  };

  // Whether that is the address of a database: "postgresql://…". Passwords come by libpq's usual
  // means (PGPASSFILE, ~/.pgpass); the schema by its parameter options=-csearch_path=NAME.
  static bool is_address(std::string_view where);
  static bool has_password(std::string_view address);

  // Opens the run in this database, or makes its tables. The schema of the version before is
  // upgraded, unless the store only reads; other versions are refused.
  static Result<std::unique_ptr<PostgresStore>> open(std::string address, StoreMode mode,
                                                     Options options);
  static Result<std::unique_ptr<PostgresStore>> open(std::string address, StoreMode mode) {
    return open(std::move(address), mode, Options());
  }
  ~PostgresStore() override;

  Result<std::map<std::string, std::string>> properties() override;
  Status set_property(std::string_view key, std::string_view value) override;
  Result<std::string> agree_on(std::string_view key, std::string_view value) override;

  // A case is added once between two commits.
  Status add_case(const StoredCase& added) override;
  Status add_invalid(const InvalidLine& line) override;
  Status forget_invalid() override;
  Result<std::int64_t> forget_finished(std::span<const Outcome> outcomes) override;
  std::uint64_t added() const override { return new_cases_; }

  // Most expensive first. What was written before becomes durable with it.
  Result<Supply> claim(std::size_t bundles,
                       const std::function<Status(const ClaimedCase&)>& visit) override;
  std::optional<std::chrono::milliseconds> lease_time() const override {
    return options_.lease_time;
  }
  Status renew() override;
  Status release_all() override;
  // True while this claimer believes that it holds the case; commit() has the last word.
  Result<bool> finish(const Lease& lease, const FinishedCase& finished) override;
  // Waits for a database that is away, as long as the options say. One that crashes may lose the
  // results of its last second; these cases run again.
  Status commit() override;
  // So that visits take about a hundredth of a claimer's time; at most a third of the lease.
  std::chrono::milliseconds pace() const override { return pace_.between_visits(); }

  Status each_finished_id(const std::function<void(std::uint64_t)>& visit) override;
  Status each(const RunQuery& query, const VisitFinished& visit) override;
  Status each_unfinished(const std::function<Status(const StoredCase&)>& visit) override;
  Status each_invalid(const std::function<Status(const InvalidLine&)>& visit) override;
  Result<StoreCounts> counts() override;
  Result<Tally> tally() override;
  // Quick, however many cases there are.
  Result<std::uint64_t> unfinished() override;

  Result<std::vector<RunTotals>> other_runs() override;
  Result<std::string> run_name() override;

  // ---- for those who look on while others work ----

  Result<std::vector<Holder>> holders();
  // Up to `most` cases behind the place `after` (0: the beginning) that have failed, and with
  // `flagged` those that passed with a flag, in an order in which none can be missed; gives the
  // place of the last one.
  Result<std::int64_t> each_listed_after(std::int64_t after, int most, bool flagged,
                                         const std::function<void(const FinishedCase&)>& visit);

  // Results that commit() dropped, because their lease was no longer valid.
  std::uint64_t fenced() const { return fenced_; }

 private:
  struct Connection;
  struct Bundle {
    std::uint64_t epoch = 0;
    std::size_t left = 0;  // cases that this claimer was given and has not ended
  };
  struct Held {
    std::int64_t bundle = 0;
    std::uint64_t epoch = 0;
    CaseTraits traits;
    std::uint64_t elements = 0;
    std::int64_t work_us = 0;  // expected
  };
  struct Ended {
    std::uint64_t id = 0;
    Held held;
    Verdict verdict;
    std::uint32_t attempts = 1;
    std::int64_t finished_ms = 0;
    std::int64_t took_us = 0;
    std::vector<std::uint8_t> record;

    FinishedCase finished() const;
  };
  struct Results;  // as they are written
  struct Claimed;
  struct ClaimTerms {
    std::int64_t bundles = 1;
    std::int64_t most_us = 0;     // of expected work in each of them
    const char* order = nullptr;  // of which the first are taken
  };
  struct Sums {  // of cases that were recorded
    Tally tally;
    LearnedCosts costs;

    void add(const Ended& ended);
  };
  struct Added {
    std::int64_t id = 0;
    std::string text;
    std::int64_t elements = 0;
    std::int64_t bytes = 0;
    std::int64_t work_us = 0;
  };

  struct Newest {
    std::int64_t sequence = 0;         // of a result
    std::set<std::int64_t> under_way;  // transactions, when it was seen
  };

  struct Planning;
  struct PlanningDeleter {
    void operator()(Planning* planning) const;
  };

  PostgresStore(std::string address, Options options);
  Status connect();
  Status make_tables(StoreMode mode);
  Status upgrade(pqxx::transaction_base& work);
  template <typename Work>
  Status in_timed(Work&& work);
  Status begin_planning();
  Status prepare_planning();
  void keep_new();
  std::int64_t work_us() const;
  std::int64_t bundle_us() const;
  Status write_added(const std::function<std::int64_t(std::int64_t)>& place);
  Status stream_added();
  Status place_added();
  Status write_changed();
  Status flush_invalid();
  void see_newest(pqxx::transaction_base& work);
  void fill_mine(pqxx::transaction_base& transaction);
  void forget_unknown_bundles(pqxx::transaction_base& transaction);
  bool has_results() const;
  Results gathered() const;
  std::int64_t most_of_bundle(std::int64_t bundles) const;
  pqxx::result claim_rows(pqxx::transaction_base& work, const ClaimTerms& terms);
  static Claimed claimed_in(const pqxx::result& rows);
  Status show_claimed(const Claimed& claimed,
                      const std::function<Status(const ClaimedCase&)>& visit);
  void note_work();
  bool write_all(pqxx::transaction_base& transaction, const Results& results);
  void write_some(pqxx::transaction_base& transaction, const Results& results);
  void forget_mine(pqxx::transaction_base& transaction);
  Status write_results();
  void add_up_tally();
  template <typename Work>
  Status in_plan(Work&& work);
  template <typename Work>
  Status reading(Work&& work);
  template <typename Work>
  Status in_one(Work&& work);
  template <typename Work>
  Status patiently(Work&& work);

  std::string address_;
  Options options_;
  std::string claimer_;
  std::unique_ptr<Connection> connection_;
  std::vector<Added> added_;          // not yet sent
  std::vector<InvalidLine> invalid_;  // likewise
  std::unique_ptr<Planning, PlanningDeleter> planning_;
  std::vector<std::int64_t>
      mine_;                     // all that were added: where there are any, only these are claimed
  std::uint64_t new_cases_ = 0;  // of these
  std::vector<Ended> ended_;     // not yet written
  std::unordered_map<std::uint64_t, Held> held_;      // by case
  std::unordered_map<std::int64_t, Bundle> bundles_;  // of these cases
  std::int64_t held_us_ = 0;                          // expected work of these cases
  std::int64_t done_us_ = 0;  // and of those that have ended since `share_` was told
  FairShare share_;
  std::optional<Newest> newest_;  // whose transactions are not all over
  std::int64_t complete_to_ = 0;  // no result comes any more with such a number or a lower one
  std::uint64_t fenced_ = 0;
  int version_ = 0;  // of the tables
  VisitPace pace_;
  std::minstd_rand random_;
};

}  // namespace assay
