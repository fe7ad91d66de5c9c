// What reports read of a run in PostgreSQL.

#include <libpq-fe.h>

#include "store/postgres_connection.h"
#include "store/postgres_sql.h"

namespace assay {
namespace {

using namespace postgres;

constexpr int kRowsAtOnce = 1000;

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

}  // namespace

// Within the transaction of the next commit() where there is one, so that what it wrote is seen.
template <typename Work>
Status PostgresStore::reading(Work&& work) {
  ASSAY_CHECK(place_added());
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
    return each_row(work, kFinished, [&](const pqxx::row& row) {
      const auto text = row[1].as<std::string>();
      const pqxx::binarystring record(row[10]);
      FinishedCase finished;
      finished.id = unsigned_bits(row[0].as<std::int64_t>());
      finished.text = text;
      finished.verdict.outcome = find_outcome(row[2].c_str()).value_or(Outcome::invalid);
      finished.verdict.mismatch = static_cast<std::uint8_t>(row[3].as<int>());
      finished.verdict.flags = static_cast<std::uint8_t>(row[4].as<int>());
      finished.verdict.lane = row[5].as<std::string>();
      finished.verdict.message = row[6].as<std::string>();
      finished.attempts = row[7].as<std::uint32_t>();
      finished.finished_ms = row[8].as<std::int64_t>();
      finished.took_us = unsigned_bits(row[9].as<std::int64_t>());
      finished.record = {record.data(), record.size()};
      return visit(finished);
    });
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
