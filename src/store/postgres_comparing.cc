// What is looked up in PostgreSQL for reports: single cases, and how two runs differ.

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "store/postgres_connection.h"
#include "store/postgres_sql.h"

namespace assay {
namespace {

using namespace postgres;

// With more results in either of two runs, those in both are not counted: it takes longer than all
// the rest.
constexpr std::int64_t kCountedInBoth = 1'000'000;

// As PostgreSQL takes lists in a query, one for each part of a known case.
struct KnownLists {
  std::string ids;
  std::string outcomes;
  std::string flags;

  explicit KnownLists(std::span<const KnownCase> cases) {
    for (const KnownCase& each : cases) {
      const char* comma = ids.empty() ? "" : ",";
      fmt::format_to(std::back_inserter(ids), "{}{}", comma, signed_bits(each.id));
      fmt::format_to(std::back_inserter(outcomes), "{}{}", comma, name(each.outcome));
      fmt::format_to(std::back_inserter(flags), "{}{}", comma, each.flaky ? int{kFlaky} : 0);
    }
    for (std::string* list : {&ids, &outcomes, &flags}) *list = "{" + *list + "}";
  }
  std::string query() const { return fmt::format(kKnown, ids, outcomes, flags); }
};

std::string different(const std::string& there, const std::string& its_result) {
  return fmt::format(kDifferent, told(), int{kFlaky}, there, kExpensiveUs, its_result);
}

}  // namespace

QuickReader* PostgresStore::quick() { return version_ == kVersionWithoutTally ? nullptr : this; }

Status PostgresStore::each_with_id(std::span<const std::uint64_t> ids, const VisitFinished& visit) {
  std::vector<std::int64_t> wanted;
  wanted.reserve(ids.size());
  for (const std::uint64_t id : ids) wanted.push_back(signed_bits(id));
  const std::string query = fmt::format(kOfIds, as_array(wanted));
  return reading([&](pqxx::work& work) {
    return each_row(work, query.c_str(),
                    [&](const pqxx::row& row) { return show_finished(row, 0, visit); });
  });
}

Status PostgresStore::each_flagged_pass(std::uint64_t most, const VisitFinished& visit) {
  const std::string condition =
      fmt::format("{} AND {}", kIsFlaggedPass, fmt::format(kIsListed, failed_outcomes()));
  const std::string query = fmt::format(kOfOutcome, condition, clamped(most));
  return reading([&](pqxx::work& work) {
    return each_row(work, query.c_str(),
                    [&](const pqxx::row& row) { return show_finished(row, 0, visit); });
  });
}

// Whether our connection can read the other run: it takes a lock that only its database shows.
Result<bool> PostgresStore::may_read_beside(PostgresStore& past) {
  const auto sign = static_cast<std::int64_t>(std::random_device()());
  ASSAY_TRY(const std::string schema, past.run_name());
  int other = 0;
  ASSAY_CHECK(past.reading([&](pqxx::work& work) -> Status {
    work.exec_params1(kLeaveSign, sign);
    other = work.exec1("SELECT pg_backend_pid()")[0].as<int>();
    return {};
  }));
  bool sees = false;
  ASSAY_CHECK(reading([&](pqxx::work& work) -> Status {
    sees = work.exec_params1(kSeesSign, sign, other, schema)[0].as<bool>();
    return {};
  }));
  ASSAY_CHECK(past.reading([&](pqxx::work& work) -> Status {
    work.exec_params1(kTakeSign, sign);
    return {};
  }));
  return sees;
}

Status PostgresStore::show_different(const std::string& query, const VisitDifferent& visit) {
  return reading([&](pqxx::work& work) -> Status {
    // All rows are wanted, and not the first ones soon.
    work.exec0("SET LOCAL cursor_tuple_fraction = 1");
    return each_row(work, query.c_str(), [&](const pqxx::row& row) {
      constexpr int kBefore = 11;  // its first column
      DifferentCase different;
      const pqxx::binarystring record(row[kBefore + 2]);
      if (!row[kBefore].is_null()) {
        const auto outcome = find_outcome(row[kBefore].c_str()).value_or(Outcome::invalid);
        const bool flaky = (row[kBefore + 1].as<int>() & kFlaky) != 0;
        different.before = {unsigned_bits(row[0].as<std::int64_t>()), outcome, flaky};
        different.record_before = {record.data(), record.size()};
      }
      return show_finished(row, 0, [&](const FinishedCase& finished) {
        different.now = finished;
        return visit(different);
      });
    });
  });
}

Result<bool> PostgresStore::each_different(QuickReader& past, const VisitDifferent& visit) {
  auto* other = dynamic_cast<PostgresStore*>(&past);
  if (other == nullptr) return false;
  ASSAY_TRY(const bool together, may_read_beside(*other));
  if (!together) return false;
  ASSAY_TRY(const std::string schema, other->run_name());
  const std::string quoted = connection_->session.quote_name(schema);
  const std::string there = fmt::format(kThere, told(), int{kFlaky}, quoted);
  ASSAY_CHECK(show_different(different(there, fmt::format(kItsResult, quoted)), visit));
  return true;
}

Status PostgresStore::each_different(std::span<const KnownCase> past, const VisitDifferent& visit) {
  const std::string there = KnownLists(past).query();
  std::unordered_map<std::uint64_t, KnownCase> by_id;
  for (const KnownCase& each : past) by_id[each.id] = each;
  return show_different(different(there, kItsNothing), [&](const DifferentCase& shown) {
    DifferentCase found = shown;
    const auto before = by_id.find(shown.now.id);
    if (before != by_id.end()) found.before = before->second;
    return visit(found);
  });
}

Result<std::optional<std::uint64_t>> PostgresStore::finished_in_both(QuickReader& past) {
  auto* other = dynamic_cast<PostgresStore*>(&past);
  if (other == nullptr) return std::nullopt;
  ASSAY_TRY(const Tally own, tally());
  ASSAY_TRY(const Tally its, other->tally());
  if (std::max(own.finished(), its.finished()) > kCountedInBoth) return std::nullopt;
  ASSAY_TRY(const std::string schema, other->run_name());
  std::optional<std::uint64_t> cases;
  ASSAY_CHECK(reading([&](pqxx::work& work) -> Status {
    cases = work.exec1(fmt::format(kInBoth, work.quote_name(schema)))[0].as<std::uint64_t>();
    return {};
  }));
  return cases;
}

Result<std::uint64_t> PostgresStore::finished_in_both(std::span<const KnownCase> past) {
  std::uint64_t cases = 0;
  ASSAY_CHECK(reading([&](pqxx::work& work) -> Status {
    cases = work.exec1(fmt::format(kOfKnown, KnownLists(past).query()))[0].as<std::uint64_t>();
    return {};
  }));
  return cases;
}

}  // namespace assay
