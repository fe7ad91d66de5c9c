// What reports read of a run in PostgreSQL.

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>

#include "store/postgres_connection.h"
#include "store/postgres_sql.h"

namespace assay {
namespace {

using namespace postgres;

constexpr int kRowsAtOnce = 1000;
// Of another run so many results are counted, and what they are is taken for all.
constexpr double kCountedResults = 200'000;

// Shows each row of the query to `visit`, until one is an error; so many at once come over.
Status each_row(pqxx::work& work, const char* query,
                const std::function<Status(const pqxx::row&)>& visit) {
  pqxx::icursorstream rows(work, query, "assay_rows", kRowsAtOnce);
  pqxx::result part;
  while (rows.get(part)) {
    for (const auto& row : part) ASSAY_CHECK(visit(row));
  }
  return {};
}

// A case whose columns begin at `first`, in the order of kFinished.
template <typename Visit>
auto show_finished(const pqxx::row& row, int first, const Visit& visit) {
  const auto at = [&](int column) { return row[first + column]; };
  const pqxx::binarystring record(at(10));
  FinishedCase finished;
  finished.id = unsigned_bits(at(0).template as<std::int64_t>());
  finished.text = {at(1).c_str(), at(1).size()};
  finished.verdict.outcome = find_outcome(at(2).c_str()).value_or(Outcome::invalid);
  finished.verdict.mismatch = static_cast<std::uint8_t>(at(3).template as<int>());
  finished.verdict.flags = static_cast<std::uint8_t>(at(4).template as<int>());
  finished.verdict.lane = at(5).template as<std::string>();
  finished.verdict.message = at(6).template as<std::string>();
  finished.attempts = at(7).template as<std::uint32_t>();
  finished.finished_ms = at(8).template as<std::int64_t>();
  finished.took_us = unsigned_bits(at(9).template as<std::int64_t>());
  finished.record = {record.data(), record.size()};
  return visit(finished);
}

// A run in a schema with about so many results.
RunTotals totals_of(pqxx::work& work, const std::string& schema, double results) {
  RunTotals totals;
  totals.name = schema;
  totals.sampled = results > kCountedResults;
  const double share = totals.sampled ? kCountedResults / results : 1;
  const std::string quoted = work.quote_name(schema);
  for (const auto& row : work.exec(fmt::format(kPropertiesOf, quoted))) {
    totals.properties.emplace(row[0].as<std::string>(), row[1].as<std::string>());
  }
  for (const auto& row : work.exec(fmt::format(kTotals, quoted, 100 * share))) {
    totals.outcomes[row[0].as<std::string>()] =
        static_cast<std::uint64_t>(row[1].as<double>() / share);
    totals.last_ms = std::max(totals.last_ms, row[2].as<std::int64_t>());
  }
  return totals;
}

}  // namespace

// Within the transaction of the next commit() where there is one, so that what it wrote is seen.
template <typename Work>
Status PostgresStore::reading(Work&& work) {
  ASSAY_CHECK(place_added());
  if (!connection_ || !connection_->session.is_open()) ASSAY_CHECK(connect());
  return guarded([&]() -> Status {
    if (connection_->plan) return work(*connection_->plan);
    pqxx::work transaction(connection_->session);
    return work(transaction);
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
  return reading([&](pqxx::work& work) {
    return each_row(work, "SELECT id FROM finished", [&](const pqxx::row& row) -> Status {
      visit(unsigned_bits(row[0].as<std::int64_t>()));
      return {};
    });
  });
}

Status PostgresStore::each_finished(const std::function<Status(const FinishedCase&)>& visit) {
  return reading([&](pqxx::work& work) {
    return each_row(work, kFinished,
                    [&](const pqxx::row& row) { return show_finished(row, 0, visit); });
  });
}

Status PostgresStore::each_unfinished(const std::function<Status(const StoredCase&)>& visit) {
  return reading([&](pqxx::work& work) {
    return each_row(work, kUnfinished, [&](const pqxx::row& row) {
      const auto text = row[1].as<std::string>();
      return visit(
          {unsigned_bits(row[0].as<std::int64_t>()), text, unsigned_bits(row[2].as<std::int64_t>()),
           unsigned_bits(row[3].as<std::int64_t>()), unsigned_bits(row[4].as<std::int64_t>())});
    });
  });
}

Status PostgresStore::each_invalid(const std::function<Status(const InvalidLine&)>& visit) {
  return reading([&](pqxx::work& work) {
    return each_row(work, "SELECT place, text, message FROM invalid", [&](const pqxx::row& row) {
      return visit({row[0].as<std::string>(), row[1].as<std::string>(), row[2].as<std::string>()});
    });
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

Result<std::uint64_t> PostgresStore::number_of(const char* query) {
  std::uint64_t found = 0;
  ASSAY_CHECK(reading([&](pqxx::work& work) -> Status {
    found = work.exec1(query)[0].as<std::uint64_t>();
    return {};
  }));
  return found;
}

Result<std::uint64_t> PostgresStore::unfinished() { return number_of(kUnfinishedCount); }

Result<std::uint64_t> PostgresStore::planned_about() { return number_of(kPlannedAbout); }

Result<std::int64_t> PostgresStore::each_finished_after(
    std::int64_t after, int most, const std::function<void(const FinishedCase&)>& visit) {
  std::string failed;
  for (const OutcomeInfo& outcome : kOutcomes) {
    if (outcome.failed) failed += (failed.empty() ? "{" : ",") + std::string(outcome.name);
  }
  std::int64_t last = after;
  ASSAY_CHECK(reading([&](pqxx::work& work) -> Status {
    for (const auto& row : work.exec_params(kFinishedAfter, after, most, kSampled, failed + "}")) {
      last = row[0].as<std::int64_t>();
      show_finished(row, 1, visit);
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
      found.push_back(totals_of(work, row[0].as<std::string>(), row[1].as<double>()));
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

bool PostgresStore::has_password(std::string_view address) {
  const std::string text(address);
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(text.c_str(), nullptr), &PQconninfoFree);
  for (const PQconninfoOption* option = options.get(); option != nullptr && option->keyword;
       ++option) {
    if (option->val != nullptr && std::string_view(option->keyword) == "password") return true;
  }
  return false;
}

}  // namespace assay
