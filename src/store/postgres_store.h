#pragma once

// A run in a PostgreSQL database, with any number of claimers on any number of machines.
//
// A plan cuts its cases into bundles with a few seconds of expected work, the most expensive cases
// first. The expected work comes from earlier runs in the same database. A claim takes bundles with
// FOR UPDATE SKIP LOCKED, so claimers never wait for each other, and raises their epoch. The store
// gathers results, and commit() writes them in one transaction. It records a case only if its
// bundle still has the epoch of the claim, so a claimer that was cut off and returns changes
// nothing. Leases end by the database's clock, so the clocks of workers do not matter.

#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/fair_share.h"
#include "store/learned_costs.h"
#include "store/run_totals.h"
#include "store/store.h"
#include "store/visit_pace.h"

namespace pqxx {
class result;
class row;
class transaction_base;
}  // namespace pqxx

namespace assay {

class PostgresStore final : public Store {
 public:
  struct Options {
    std::chrono::milliseconds lease_time{30'000};
    std::chrono::microseconds bundle{2'000'000};  // expected work of one bundle
    int least_bundles = 256;  // a small plan is cut finer, so that many claimers can work on it
    // How long the database may be unreachable, or its disk full, before that is an error.
    // With the last attempt to connect (10 s) 2 min.
    std::chrono::milliseconds patience{110'000};
    // How long a statement may take before its connection is given up. Plans, upgrades and reports
    // handle whole tables; the other statements handle a few bundles.
    std::chrono::milliseconds answer_limit{60'000};
    std::chrono::milliseconds whole_table_limit{900'000};
    std::size_t tally_characters = 8'000'000;  // of sums after which rows are added up, about
    FairShare share;                           // speeds that are known already
    bool read_only = false;                    // makes the database refuse writes
  };
  // A claimer that holds bundles.
  struct Holder {
    std::string claimer;  // "HOST:…"
    std::int64_t bundles = 0;
    std::int64_t cases = 0;   // unfinished
    double seconds_left = 0;  // until its leases end, unless it renews them
  };

  // Whether `where` is a database address: "postgresql://…". Passwords come from PGPASSFILE or
  // ~/.pgpass, the schema from the address's parameter options=-csearch_path=NAME.
  static bool is_address(std::string_view where);

  // Opens the run in this database; with StoreMode::create it makes missing tables. Upgrades tables
  // of the version before unless the store only reads. An error for other versions.
  static Result<std::unique_ptr<PostgresStore>> open(std::string address, StoreMode mode,
                                                     Options options);
  static Result<std::unique_ptr<PostgresStore>> open(std::string address, StoreMode mode) {
    return open(std::move(address), mode, Options());
  }
  ~PostgresStore() override;

  Result<std::map<std::string, std::string>> properties() override;
  Status set_property(std::string_view key, std::string_view value) override;
  Result<std::string> agree_on(std::string_view key, std::string_view value) override;

  // Between two commits, each case may be added once.
  Status add_case(const wire::CaseT& added) override;
  Status add_invalid(const InvalidLine& line) override;
  Status forget_invalid() override;
  Result<std::int64_t> forget_finished(std::span<const Outcome> outcomes) override;
  std::uint64_t added() const override { return new_cases_; }

  // Commits first, then claims the most expensive bundles.
  Result<Supply> claim(std::size_t bundles, const VisitJob& visit) override;
  std::optional<std::chrono::milliseconds> lease_time() const override {
    return options_.lease_time;
  }
  Status renew() override;
  Status release_all() override;
  // True as far as this claimer knows; commit() drops the result if the lease is no longer valid.
  Result<bool> finish(const FinishedCase& finished) override;
  Status note_failure(std::uint64_t id, const std::string& how) override;
  // Waits up to Options::patience for an unreachable database. A database that crashes may lose the
  // results of its last second; these cases run again.
  Status commit() override;
  // Visits take about a hundredth of a claimer's time. At most a third of the lease time.
  std::chrono::milliseconds pace() const override { return pace_.between_visits(); }

  Status each_finished_id(const std::function<void(std::uint64_t)>& visit) override;
  Status each(const RunQuery& query, const VisitFinished& visit) override;
  Status each_unfinished(const VisitPlanned& visit) override;
  Status each_invalid(const VisitInvalid& visit) override;
  Result<StoreCounts> counts() override;
  Result<Tally> tally() override;
  // Reads the bundles, not the cases, so it is fast for runs of any size.
  Result<std::uint64_t> unfinished() override;

  Result<std::vector<RunTotals>> other_runs() override;
  Result<std::string> run_name() override;

  // ---- watching a run while claimers work on it ----

  // The claimers that hold bundles.
  Result<std::vector<Holder>> holders();
  // Calls `visit` with up to `most` failed cases after the position `after` (0: from the start)
  // and, with `flagged`, passes with a flag. Gives the position of the last one, for the next call.
  // The order guarantees that a caller misses no case, also not one that commits late.
  Result<std::int64_t> each_listed_after(std::int64_t after, int most, bool flagged,
                                         const std::function<void(const FinishedCase&)>& visit);

  // The number of results that commit() dropped because their lease was no longer valid.
  std::uint64_t fenced() const { return fenced_; }

 private:
  struct Connection;
  struct Bundle {
    std::uint64_t epoch = 0;
    std::int64_t left = 0;     // cases that this claimer was given and has not finished
    std::int64_t work_us = 0;  // expected, of these
  };
  struct Results;  // finished cases as parameters of a statement
  struct Claimed;
  struct ClaimTerms {
    std::int64_t bundles = 1;
    std::int64_t most_us = 0;     // the largest expected work of a bundle
    const char* order = nullptr;  // kFirst or kLast
  };
  // What recorded cases add to the table `tally`.
  struct Sums {
    Tally tally;
    LearnedCosts costs;

    void add(const FinishedCase& ended);
  };
  // The newest result at some moment.
  struct Newest {
    std::int64_t sequence = 0;
    std::set<std::int64_t> under_way;  // transactions that were open then and still are
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
  std::int64_t held_us() const;
  std::int64_t most_of_bundle(std::int64_t bundles) const;
  pqxx::result claim_rows(pqxx::transaction_base& work, const ClaimTerms& terms);
  static Claimed claimed_in(const pqxx::result& rows);
  Status show_claimed(const Claimed& claimed, const VisitJob& visit);
  void note_work();
  bool write_all(pqxx::transaction_base& transaction, const Results& results);
  void write_some(pqxx::transaction_base& transaction, const Results& results);
  void forget_mine(pqxx::transaction_base& transaction);
  Status write_results();
  void add_up_tally();
  Status each_read(const char* query, const std::function<Status(const pqxx::row&)>& visit);
  template <typename Work>
  Status within(std::chrono::milliseconds limit, Work&& work);
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
  std::unique_ptr<Connection> connection_;              // null after patiently() has given up
  bool gave_up_ = false;                                // no answer came within Options::patience
  std::chrono::steady_clock::time_point silent_until_;  // by then a new connection is tried
  std::vector<wire::CaseT> added_;                      // not sent yet
  std::vector<InvalidLine> invalid_;                    // likewise
  std::unique_ptr<Planning, PlanningDeleter> planning_;
  std::vector<std::int64_t> mine_;  // all added cases; if there are any, only these are claimed
  std::uint64_t new_cases_ = 0;     // of mine_
  std::vector<std::pair<std::int64_t, FinishedCase>> ended_;  // with their bundles; not written yet
  std::unordered_map<std::uint64_t, std::int64_t> held_;      // unfinished case → its bundle
  std::unordered_map<std::int64_t, Bundle> bundles_;          // by number
  std::int64_t done_us_ = 0;  // expected work of cases finished since the last share_.worked()
  FairShare share_;
  std::optional<Newest> newest_;  // see see_newest()
  std::int64_t complete_to_ = 0;  // no new result will get this sequence number or a lower one
  std::uint64_t fenced_ = 0;
  int version_ = 0;  // of the tables
  VisitPace pace_;
  std::minstd_rand random_;
};

}  // namespace assay
