// Reads a run in PostgreSQL for reports.

#include <fmt/format.h>

#include <algorithm>

#include "store/postgres_connection.h"
#include "store/postgres_sql.h"

namespace assay {
namespace {

using namespace postgres;

// The outcomes of another run are extrapolated from about this many results.
constexpr double kCountedResults = 200'000;

Result<Tally> tally_in(pqxx::work& work, const std::string& query) {
  Tally tally;
  for (const auto& row : work.exec(query)) {
    ASSAY_CHECK(tally.add_text({row[0].c_str(), row[0].size()}));
  }
  return tally;
}

// The totals of the run in a schema that has about `results` results.
Result<RunTotals> totals_of(pqxx::work& work, const std::string& schema, double results) {
  RunTotals totals;
  totals.name = schema;
  totals.sampled = results > kCountedResults;
  const double share = totals.sampled ? kCountedResults / results : 1;
  const std::string quoted = work.quote_name(schema);
  for (const auto& row : work.exec(fmt::format(kPropertiesOf, quoted))) {
    totals.properties.emplace(row[0].as<std::string>(), row[1].as<std::string>());
  }
  if (work.exec_params1(kMayReadTally, schema)[0].as<bool>()) {
    ASSAY_TRY(const Tally tally, tally_in(work, fmt::format(kTallyOf, quoted)));
    totals.sampled = false;
    totals.count(tally);
    return totals;
  }
  for (const auto& row : work.exec(fmt::format(kTotals, quoted, 100 * share))) {
    totals.outcomes[row[0].as<std::string>()] =
        static_cast<std::uint64_t>(row[1].as<double>() / share);
    totals.last_ms = std::max(totals.last_ms, row[2].as<std::int64_t>());
  }
  return totals;
}

}  // namespace

// Calls `visit` with each row of the query. The limit of time is for each part of the rows.
Status PostgresStore::each_read(const char* query,
                                const std::function<Status(const pqxx::row&)>& visit) {
  return reading([&](pqxx::work& work) {
    return each_row(work, query, visit,
                    [&] { connection_->interruptible.expect(options_.whole_table_limit); });
  });
}

Result<std::map<std::string, std::string>> PostgresStore::properties() {
  std::map<std::string, std::string> found;
  ASSAY_CHECK(reading([&](pqxx::work& work) -> Status {
    for (const auto& row : work.exec("SELECT key, value FROM property")) {
      found.emplace(row[0].as<std::string>(), row[1].as<std::string>());
    }
    return {};
  }));
  return found;
}

Status PostgresStore::each_finished_id(const std::function<void(std::uint64_t)>& visit) {
  return each_read("SELECT id FROM finished", [&](const pqxx::row& row) -> Status {
    visit(unsigned_bits(row[0].as<std::int64_t>()));
    return {};
  });
}

Status PostgresStore::each(const RunQuery& query, const VisitFinished& visit) {
  const std::string rows = finished_rows(query);
  FinishedRow read;
  return each_read(rows.c_str(),
                   [&](const pqxx::row& row) { return show_finished(row, 0, read, visit); });
}

Status PostgresStore::each_unfinished(const VisitPlanned& visit) {
  return each_read(kUnfinished, [&](const pqxx::row& row) { return visit(planned_in(row, 0)); });
}

Status PostgresStore::each_invalid(const VisitInvalid& visit) {
  return each_read("SELECT place, text, message FROM invalid", [&](const pqxx::row& row) {
    return visit({row[0].as<std::string>(), row[1].as<std::string>(), row[2].as<std::string>()});
  });
}

Result<StoreCounts> PostgresStore::counts() {
  StoreCounts found;
  ASSAY_CHECK(reading([&](pqxx::work& work) -> Status {
    const auto row = work.exec1(kCounts);
    found = {row[0].as<std::uint64_t>(), row[1].as<std::uint64_t>()};
    return {};
  }));
  return found;
}

Result<std::vector<PostgresStore::Holder>> PostgresStore::holders() {
  std::vector<Holder> found;
  ASSAY_CHECK(reading([&](pqxx::work& work) -> Status {
    for (const auto& row : work.exec(kHolders)) {
      found.push_back({row[0].as<std::string>(), row[1].as<std::int64_t>(),
                       row[2].as<std::int64_t>(), row[3].as<double>()});
    }
    return {};
  }));
  return found;
}

Result<std::uint64_t> PostgresStore::unfinished() {
  std::uint64_t found = 0;
  ASSAY_CHECK(reading([&](pqxx::work& work) -> Status {
    found = work.exec1(kUnfinishedCount)[0].as<std::uint64_t>();
    return {};
  }));
  return found;
}

Result<Tally> PostgresStore::tally() {
  Tally found;
  ASSAY_CHECK(reading([&](pqxx::work& work) -> Status {
    ASSAY_TRY(found, tally_in(work, kTally));
    return {};
  }));
  return found;
}

// Sequence numbers are assigned in one order and committed in another. A writer locks its bundle
// before it takes a number, so it already has a transaction id, and keeps it until its rows are
// visible. When all transactions have ended that were open after a number was seen, no new result
// can get that number or a lower one.
void PostgresStore::see_newest(pqxx::transaction_base& work) {
  const auto newest = work.exec1(kNewest)[0].as<std::int64_t>();
  std::set<std::int64_t> under_way;
  for (const auto& row : work.exec(kUnderWay)) under_way.insert(row[0].as<std::int64_t>());
  if (!newest_) newest_ = {newest, under_way};
  std::erase_if(newest_->under_way, [&](std::int64_t each) { return !under_way.contains(each); });
  if (!newest_->under_way.empty()) return;
  complete_to_ = std::max(complete_to_, newest_->sequence);
  newest_.reset();
}

Result<std::int64_t> PostgresStore::each_listed_after(
    std::int64_t after, int most, bool flagged,
    const std::function<void(const FinishedCase&)>& visit) {
  std::string failed;
  std::string others;
  for (const OutcomeInfo& outcome : kOutcomes) {
    std::string& names = outcome.failed ? failed : others;
    names += (names.empty() ? "{" : ",") + std::string(outcome.name);
  }
  const std::string query = fmt::format(kListedAfter, is_listed());
  std::int64_t last = after;
  FinishedRow read;
  ASSAY_CHECK(reading([&](pqxx::work& work) -> Status {
    see_newest(work);
    for (const auto& row :
         work.exec_params(query, after, most, failed + "}", flagged, others + "}", complete_to_)) {
      last = row[0].as<std::int64_t>();
      const Status shown = show_finished(row, 1, read, [&](const FinishedCase& finished) -> Status {
        visit(finished);
        return {};
      });
      if (!shown) return shown;
    }
    return {};
  }));
  return last;
}

Result<std::vector<RunTotals>> PostgresStore::other_runs() {
  std::vector<RunTotals> found;
  ASSAY_CHECK(reading([&](pqxx::work& work) -> Status {
    found.clear();
    for (const auto& row : work.exec(kOtherRuns)) {
      ASSAY_TRY(RunTotals totals, totals_of(work, row[0].as<std::string>(), row[1].as<double>()));
      found.push_back(std::move(totals));
    }
    return {};
  }));
  return found;
}

Result<std::string> PostgresStore::run_name() {
  std::string name;
  ASSAY_CHECK(reading([&](pqxx::work& work) -> Status {
    name = work.exec1(kCurrentRun)[0].as<std::string>();
    return {};
  }));
  return name;
}

}  // namespace assay
