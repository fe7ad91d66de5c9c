// Opens a run in PostgreSQL: connection, tables and their version, properties.

#include <fmt/format.h>
#include <libpq-fe.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <string_view>
#include <utility>

#include "store/postgres_connection.h"
#include "store/postgres_sql.h"

namespace assay {
namespace {

using namespace postgres;

// Key of the advisory lock under which tables are made, so that two claimers can start a run at
// once.
constexpr std::int64_t kMakingTables = 0x6173736179;  // "assay"

// "node7:3f…". Users see it in the list of holders.
std::string claimer_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::random_device random;
  return fmt::format("{}:{:08x}{:08x}", host.data(), random(), random());
}

std::string version_error(int version) {
  if (version > kSchemaVersion) {
    return fmt::format(
        "a newer assay made this database's tables (version {}, this assay knows {}); use that "
        "assay, or another database",
        version, kSchemaVersion);
  }
  if (version == kVersionWithoutFaults) {
    return fmt::format(
        "an older assay made this database's tables (version {}, this assay needs {}); upgrade "
        "them with `assay plan --store` or `assay work --store`",
        version, kSchemaVersion);
  }
  return fmt::format(
      "an assay that was never released made this database's tables (version {}, this assay needs "
      "{}); use another schema (options=-csearch_path%3DNAME)",
      version, kSchemaVersion);
}

// How long libpq waits for a server that does not answer. Without these limits it waits for
// minutes, as long as the kernel does. A value in the address takes precedence.
constexpr auto kLimits = std::to_array<std::pair<std::string_view, int>>({
    {"connect_timeout", 10},      // seconds, including authentication
    {"keepalives_idle", 5},       // seconds
    {"keepalives_interval", 2},   // seconds
    {"keepalives_count", 3},      // unanswered probes
    {"tcp_user_timeout", 10000},  // milliseconds without an acknowledgement
});
constexpr int kKnowsUserTimeout = 120000;  // libpq 12

std::string with_limits(std::string address) {
  const std::size_t question = address.find('?');
  for (const auto& [name, value] : kLimits) {
    if (name == "tcp_user_timeout" && ::PQlibVersion() < kKnowsUserTimeout) continue;
    const std::string setting = fmt::format("{}=", name);
    const bool given = question != std::string::npos &&
                       (address.find("?" + setting, question) != std::string::npos ||
                        address.find("&" + setting, question) != std::string::npos);
    if (given) continue;
    address += address.find('?') == std::string::npos ? '?' : '&';
    address += fmt::format("{}{}", setting, value);
  }
  return address;
}

}  // namespace

bool PostgresStore::is_address(std::string_view where) {
  return where.starts_with("postgresql://") || where.starts_with("postgres://");
}

PostgresStore::PostgresStore(std::string address, Options options)
    : address_(std::move(address)),
      options_(options),
      claimer_(claimer_name()),
      share_(options_.share),
      pace_(kUsualPace, std::max(options_.lease_time / 3, kUsualPace), std::random_device()()),
      random_(std::random_device()()) {}

PostgresStore::~PostgresStore() = default;

Result<std::unique_ptr<PostgresStore>> PostgresStore::open(std::string address, StoreMode mode,
                                                           Options options) {
  std::unique_ptr<PostgresStore> store(new PostgresStore(std::move(address), options));
  ASSAY_CHECK(store->connect());
  ASSAY_CHECK(store->make_tables(mode));
  return store;
}

Status PostgresStore::connect() {
  ASSAY_CHECK(check_address(address_));
  connection_.reset();
  if (interrupted()) return interrupted_error();
  const auto began = std::chrono::steady_clock::now();
  // What a run does at its end must not wait for the same silence again and again.
  if (gave_up_ && began < silent_until_) return fail("the database: it does not answer");
  const Status connected = guarded([this]() -> Status {
    connection_ = std::make_unique<Connection>(with_limits(address_));
    connection_->interruptible.expect(options_.answer_limit);
    if (options_.read_only) {
      pqxx::nontransaction(connection_->session)
          .exec0("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY");
    }
    // Many workers execute this statement very often, and planning it takes longer than running it.
    connection_->session.prepare("assay_record", fmt::format(kRecord, kWithTally, kAllRecorded));
    connection_->interruptible.relax();
    return {};
  });
  if (!connected) {
    connection_.reset();
    const auto now = std::chrono::steady_clock::now();
    silent_until_ = now + (now - began);
  }
  return connected;
}

Status PostgresStore::make_tables(StoreMode mode) {
  return within(options_.whole_table_limit, [&]() -> Status {
    pqxx::work work(connection_->session);
    work.exec_params("SELECT pg_advisory_xact_lock($1)", kMakingTables);
    const bool known = work.exec1("SELECT to_regclass('assay_schema') IS NOT NULL")[0].as<bool>();
    if (!known && mode != StoreMode::create) {
      return usage_error(
          "this database holds no run of assay; start one with `assay plan --store`");
    }
    if (!known) {
      work.exec0(fmt::format(kSchema, kExpensiveUs));
      work.exec0(listed_index());
      work.exec0(kPlannedIndexes);
      work.exec_params0("INSERT INTO assay_schema VALUES ($1)", kSchemaVersion);
    }
    version_ = work.exec1("SELECT version FROM assay_schema")[0].as<int>();
    if (version_ == kVersionWithoutFaults && !options_.read_only) ASSAY_CHECK(upgrade(work));
    if (version_ != kSchemaVersion) return usage_error(version_error(version_));
    const bool notes = work.exec1("SELECT to_regclass('failed_before') IS NOT NULL")[0].as<bool>();
    if (!notes && !options_.read_only) work.exec0(kFailedBefore);
    work.commit();
    return {};
  });
}

// Counts the faults of all results. kAddFaults has locked the tables, so no result is recorded
// meanwhile.
Status PostgresStore::upgrade(pqxx::transaction_base& work) {
  work.exec0(kAddFaults);
  Sums sums;
  for (const auto& row : work.exec(kTakeTally)) {
    ASSAY_CHECK(sums.costs.add_text({row[1].c_str(), row[1].size()}));
  }
  FinishedRow read;
  ASSAY_CHECK(each_row(work, finished_rows({}).c_str(), [&](const pqxx::row& row) {
    return show_finished(row, 0, read, [&](const FinishedCase& finished) -> Status {
      sums.tally.add(traits_of(finished.text), finished);
      return {};
    });
  }));
  work.exec_params0(kWriteTally, sums.tally.text(), sums.costs.text());
  version_ = kSchemaVersion;
  work.exec_params0("UPDATE assay_schema SET version = $1", version_);
  return {};
}

Status PostgresStore::set_property(std::string_view key, std::string_view value) {
  return in_plan([&](pqxx::work& work) {
    work.exec_params0(
        "INSERT INTO property VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2",
        replace_bad_bytes(key), replace_bad_bytes(value));
  });
}

Result<std::string> PostgresStore::agree_on(std::string_view key, std::string_view value) {
  std::string stands;
  ASSAY_CHECK(in_plan([&](pqxx::work& work) {
    work.exec_params0("INSERT INTO property VALUES ($1, $2) ON CONFLICT (key) DO NOTHING",
                      replace_bad_bytes(key), replace_bad_bytes(value));
    stands =
        work.exec_params1("SELECT value FROM property WHERE key = $1", replace_bad_bytes(key))[0]
            .as<std::string>();
  }));
  return stands;
}

}  // namespace assay
