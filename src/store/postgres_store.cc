#include "store/postgres_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <pqxx/pqxx>
#include <random>
#include <thread>
#include <tuple>

#include "base/utf8.h"

namespace assay {
namespace {

constexpr int kSchemaVersion = 1;
// One number for everybody who makes tables: two that begin a run at once do so one after the
// other.
constexpr std::int64_t kMakingTables = 0x6173736179;  // "assay"
constexpr std::size_t kAddedAtOnce = 50'000;
constexpr std::chrono::milliseconds kBetweenTries{500};

constexpr const char* kSchema = R"sql(
CREATE TABLE assay_schema (version integer NOT NULL);
CREATE TABLE property (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE planned (number bigserial PRIMARY KEY, id bigint NOT NULL UNIQUE, text text NOT NULL,
                      elements bigint NOT NULL, bytes bigint NOT NULL,
                      epoch bigint NOT NULL DEFAULT 0, claimer text, held_until timestamptz,
                      done boolean NOT NULL DEFAULT false);
CREATE INDEX planned_open ON planned (bytes DESC, number) WHERE NOT done;
CREATE TABLE finished (sequence bigserial PRIMARY KEY, id bigint NOT NULL UNIQUE,
                       outcome text NOT NULL, mismatch integer NOT NULL, flags integer NOT NULL,
                       lane text NOT NULL, message text NOT NULL, attempts bigint NOT NULL,
                       at_ms bigint NOT NULL, record bytea);
CREATE TABLE invalid (place text, text text, message text);
)sql";

// Tables of a connection: what it adds, what it has to record, and which cases it added.
constexpr const char* kOwnTables = R"sql(
CREATE TEMPORARY TABLE adding (id bigint, text text, elements bigint, bytes bigint);
CREATE TEMPORARY TABLE mine (id bigint PRIMARY KEY);
CREATE TEMPORARY TABLE incoming (id bigint, epoch bigint, outcome text, mismatch integer,
                                 flags integer, lane text, message text, attempts bigint,
                                 at_ms bigint, record bytea) ON COMMIT DELETE ROWS;
)sql";

constexpr const char* kAdd = R"sql(
INSERT INTO planned (id, text, elements, bytes)
  SELECT DISTINCT ON (id) id, text, elements, bytes FROM adding ORDER BY id
  ON CONFLICT (id) DO UPDATE SET elements = excluded.elements, bytes = excluded.bytes;
INSERT INTO mine SELECT DISTINCT id FROM adding ON CONFLICT DO NOTHING;
TRUNCATE adding;
)sql";

constexpr const char* kClaim = R"sql(
UPDATE planned SET epoch = epoch + 1, claimer = $1, held_until = now() + $2 * interval '1 ms'
FROM (SELECT number AS next FROM planned
      WHERE NOT done AND (held_until IS NULL
                           OR (held_until < now() AND claimer IS DISTINCT FROM $1))
        AND (NOT $4 OR id IN (SELECT id FROM mine))
      ORDER BY bytes DESC, number LIMIT $3 FOR UPDATE SKIP LOCKED) AS free
WHERE number = next RETURNING id, epoch, text, elements, bytes
)sql";

// Cases that this claimer might yet get.
constexpr const char* kHeldElsewhere = R"sql(
SELECT EXISTS (SELECT 1 FROM planned WHERE NOT done AND claimer IS DISTINCT FROM $1
               AND (NOT $2 OR id IN (SELECT id FROM mine)))
)sql";

constexpr const char* kRecord = R"sql(
WITH held AS (UPDATE planned p SET done = true, claimer = NULL, held_until = NULL
              FROM incoming i WHERE p.id = i.id AND p.epoch = i.epoch AND NOT p.done
              RETURNING p.id)
INSERT INTO finished (id, outcome, mismatch, flags, lane, message, attempts, at_ms, record)
  SELECT DISTINCT ON (i.id) i.id, outcome, mismatch, flags, lane, message, attempts, at_ms, record
  FROM incoming i JOIN held USING (id) ORDER BY i.id
  ON CONFLICT (id) DO NOTHING
)sql";

std::int64_t signed_bits(std::uint64_t value) { return std::bit_cast<std::int64_t>(value); }
std::uint64_t unsigned_bits(std::int64_t value) { return std::bit_cast<std::uint64_t>(value); }
// Estimates are compared in the database, so they keep their order there.
std::int64_t clamped(std::uint64_t value) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(value, kMost));
}

// PostgreSQL's text is UTF-8 without the code 0.
std::string as_text(std::string_view text) {
  std::string valid;
  while (true) {
    const std::size_t good = find_bad_byte(text);
    valid += text.substr(0, good);
    if (good == text.size()) return valid;
    valid += '?';
    text.remove_prefix(good + 1);
  }
}

std::string as_bytea(const std::vector<std::uint8_t>& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "\\x";
  text.reserve(2 + 2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// The first line: libpq adds hints and the statement itself.
Error database_error(const std::exception& error) {
  const std::string_view text = error.what();
  return {fmt::format("the database: {}", text.substr(0, text.find('\n')))};
}

std::string random_name() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

template <typename Work>
Status guarded(Work&& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return tl::unexpected<Error>(database_error(error));
  }
}

}  // namespace

struct PostgresStore::Connection {
  explicit Connection(const std::string& address) : session(address) {}
  pqxx::connection session;
  std::optional<pqxx::work> plan;  // what is written and not yet committed, but for results
};

bool PostgresStore::is_address(std::string_view where) {
  return where.starts_with("postgresql://") || where.starts_with("postgres://");
}

PostgresStore::PostgresStore(std::string address, Options options)
    : address_(std::move(address)), options_(options), claimer_(random_name()) {}

PostgresStore::~PostgresStore() = default;

Result<std::unique_ptr<PostgresStore>> PostgresStore::open(std::string address, StoreMode mode,
                                                           Options options) {
  std::unique_ptr<PostgresStore> store(new PostgresStore(std::move(address), options));
  ASSAY_CHECK(store->connect());
  ASSAY_CHECK(store->make_tables(mode));
  return store;
}

Status PostgresStore::connect() {
  return guarded([this]() -> Status {
    connection_.reset();
    auto made = std::make_unique<Connection>(address_);
    pqxx::work work(made->session);
    work.exec0(kOwnTables);
    work.commit();
    connection_ = std::move(made);
    return {};
  });
}

Status PostgresStore::make_tables(StoreMode mode) {
  return guarded([&]() -> Status {
    pqxx::work work(connection_->session);
    work.exec_params("SELECT pg_advisory_xact_lock($1)", kMakingTables);
    const bool known = work.exec1("SELECT to_regclass('assay_schema') IS NOT NULL")[0].as<bool>();
    if (!known && mode == StoreMode::existing) {
      return usage_error("this database holds no run of assay; begin one with `assay api --store`");
    }
    if (!known) {
      work.exec0(kSchema);
      work.exec_params0("INSERT INTO assay_schema VALUES ($1)", kSchemaVersion);
    }
    const int version = work.exec1("SELECT version FROM assay_schema")[0].as<int>();
    if (version != kSchemaVersion) {
      return usage_error(
          fmt::format("this database has version {} of assay's tables, this assay knows {}; use "
                      "the assay that made it",
                      version, kSchemaVersion));
    }
    work.commit();
    return {};
  });
}

// Within the transaction that the next commit() ends.
template <typename Work>
Status PostgresStore::in_plan(Work&& work) {
  return guarded([&]() -> Status {
    if (!connection_->plan) connection_->plan.emplace(connection_->session);
    work(*connection_->plan);
    return {};
  });
}

// Within that transaction where there is one, so that what it wrote is seen.
template <typename Work>
Status PostgresStore::reading(Work&& work) {
  if (connection_->plan) return in_plan(work);
  return guarded([&]() -> Status {
    pqxx::work transaction(connection_->session);
    work(transaction);
    return {};
  });
}

// Durable at once, behind what was written before.
template <typename Work>
Status PostgresStore::at_once(Work&& work) {
  ASSAY_CHECK(commit());
  return guarded([&]() -> Status {
    pqxx::work transaction(connection_->session);
    work(transaction);
    transaction.commit();
    return {};
  });
}

Result<std::map<std::string, std::string>> PostgresStore::properties() {
  std::map<std::string, std::string> found;
  ASSAY_CHECK(reading([&](pqxx::work& work) {
    for (const auto& row : work.exec("SELECT key, value FROM property")) {
      found.emplace(row[0].as<std::string>(), row[1].as<std::string>());
    }
  }));
  return found;
}

Status PostgresStore::set_property(std::string_view key, std::string_view value) {
  return in_plan([&](pqxx::work& work) {
    work.exec_params0(
        "INSERT INTO property VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2",
        as_text(key), as_text(value));
  });
}

// ---- planning ----

Status PostgresStore::add_case(const StoredCase& added) {
  added_any_ = true;
  added_.push_back(
      {added.id, std::string(added.text), clamped(added.elements), clamped(added.bytes)});
  return added_.size() < kAddedAtOnce ? Status() : flush_added();
}

Status PostgresStore::flush_added() {
  if (added_.empty()) return {};
  ASSAY_CHECK(in_plan([&](pqxx::work& work) {
    pqxx::stream_to rows(work, "adding",
                         std::vector<std::string>{"id", "text", "elements", "bytes"});
    for (const Added& each : added_) {
      rows << std::make_tuple(signed_bits(each.id), each.text, each.elements, each.bytes);
    }
    rows.complete();
    work.exec0(kAdd);
  }));
  added_.clear();
  return {};
}

Status PostgresStore::add_invalid(const InvalidLine& line) {
  return in_plan([&](pqxx::work& work) {
    work.exec_params0("INSERT INTO invalid VALUES ($1, $2, $3)", as_text(line.where),
                      as_text(line.text), as_text(line.message));
  });
}

Status PostgresStore::forget_invalid() {
  return in_plan([](pqxx::work& work) { work.exec0("DELETE FROM invalid"); });
}

Result<std::int64_t> PostgresStore::forget_finished(std::span<const Outcome> outcomes) {
  std::int64_t forgotten = 0;
  for (const Outcome outcome : outcomes) {
    ASSAY_CHECK(in_plan([&](pqxx::work& work) {
      const auto rows = work.exec_params(
          "WITH gone AS (DELETE FROM finished WHERE outcome = $1 RETURNING id) "
          "UPDATE planned SET done = false FROM gone WHERE planned.id = gone.id",
          std::string(name(outcome)));
      forgotten += static_cast<std::int64_t>(rows.affected_rows());
    }));
  }
  return forgotten;
}

// ---- leases ----

Result<Supply> PostgresStore::claim(std::size_t most,
                                    const std::function<Status(const ClaimedCase&)>& visit) {
  pqxx::result rows;
  bool elsewhere = false;
  const auto limit = static_cast<std::int64_t>(
      std::min<std::size_t>(most, std::numeric_limits<std::int32_t>::max()));
  ASSAY_CHECK(at_once([&](pqxx::work& work) {
    rows = work.exec_params(kClaim, claimer_, options_.lease_time.count(), limit, added_any_);
    if (rows.size() < static_cast<pqxx::result::size_type>(limit)) {
      elsewhere = work.exec_params1(kHeldElsewhere, claimer_, added_any_)[0].as<bool>();
    }
  }));
  for (const auto& row : rows) {
    const auto id = unsigned_bits(row[0].as<std::int64_t>());
    const Lease lease{id, unsigned_bits(row[1].as<std::int64_t>())};
    const auto text = row[2].as<std::string>();
    held_[id] = lease.epoch;
    ASSAY_CHECK(visit({lease,
                       {id, text, unsigned_bits(row[3].as<std::int64_t>()),
                        unsigned_bits(row[4].as<std::int64_t>())}}));
  }
  if (static_cast<std::int64_t>(rows.size()) == limit) return Supply::more;
  return elsewhere ? Supply::held_elsewhere : Supply::none;
}

Status PostgresStore::renew() {
  return at_once([&](pqxx::work& work) {
    work.exec_params0(
        "UPDATE planned SET held_until = now() + $2 * interval '1 ms' "
        "WHERE claimer = $1 AND NOT done",
        claimer_, options_.lease_time.count());
  });
}

Status PostgresStore::release_all() {
  held_.clear();
  return in_plan([&](pqxx::work& work) {
    work.exec_params0(
        "UPDATE planned SET claimer = NULL, held_until = NULL "
        "WHERE claimer = $1 AND NOT done",
        claimer_);
  });
}

Result<bool> PostgresStore::finish(const Lease& lease, const FinishedCase& finished) {
  const auto held = held_.find(lease.id);
  if (held == held_.end() || held->second != lease.epoch) return false;
  held_.erase(held);
  ended_.push_back({lease,
                    std::string(name(finished.verdict.outcome)),
                    finished.verdict,
                    finished.attempts,
                    finished.finished_ms,
                    {finished.record.begin(), finished.record.end()}});
  return true;
}

void PostgresStore::write_ended(pqxx::transaction_base& transaction) {
  pqxx::stream_to rows(transaction, "incoming");
  for (const Ended& each : ended_) {
    rows << std::make_tuple(signed_bits(each.lease.id), signed_bits(each.lease.epoch), each.outcome,
                            int{each.verdict.mismatch}, int{each.verdict.flags},
                            as_text(each.verdict.lane), as_text(each.verdict.message),
                            std::int64_t{each.attempts}, each.finished_ms, as_bytea(each.record));
  }
  rows.complete();
  const auto recorded = transaction.exec(kRecord).affected_rows();
  fenced_ += ended_.size() - std::min<std::uint64_t>(ended_.size(), recorded);
}

// A plan that is lost with its connection is an error: nobody knows its cases any more. Results are
// kept until they are written; one that was written although the answer got lost is fenced the
// second time.
Status PostgresStore::commit() {
  ASSAY_CHECK(flush_added());
  if (!connection_->plan && ended_.empty()) return {};
  const auto give_up = std::chrono::steady_clock::now() + options_.patience;
  while (true) {
    const bool had_plan = connection_ && connection_->plan.has_value();
    bool broken = false;
    const std::uint64_t fenced_before = fenced_;
    Status status = guarded([&]() -> Status {
      try {
        if (!connection_->plan) connection_->plan.emplace(connection_->session);
        if (!ended_.empty()) write_ended(*connection_->plan);
        connection_->plan->commit();
        return {};
      } catch (const pqxx::broken_connection&) {
        broken = true;
        throw;
      }
    });
    if (connection_) connection_->plan.reset();
    if (status) {
      ended_.clear();
      return {};
    }
    fenced_ = fenced_before;
    if (!broken || had_plan) return status;
    while (!connect()) {
      if (std::chrono::steady_clock::now() > give_up) return status;
      std::this_thread::sleep_for(kBetweenTries);
    }
  }
}

// ---- reading ----

Status PostgresStore::each_finished_id(const std::function<void(std::uint64_t)>& visit) {
  return reading([&](pqxx::work& work) {
    for (const auto& row : work.exec("SELECT id FROM finished")) {
      visit(unsigned_bits(row[0].as<std::int64_t>()));
    }
  });
}

Status PostgresStore::each_finished(const std::function<Status(const FinishedCase&)>& visit) {
  Status status;
  ASSAY_CHECK(reading([&](pqxx::work& work) {
    pqxx::icursorstream rows(
        work,
        "SELECT f.id, p.text, outcome, mismatch, flags, lane, message, attempts, at_ms, record "
        "FROM finished f JOIN planned p USING (id) ORDER BY sequence",
        "assay_finished", 1000);
    pqxx::result part;
    while (status && rows.get(part)) {
      for (const auto& row : part) {
        const auto text = row[1].as<std::string>();
        const pqxx::binarystring record(row[9]);
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
        finished.record = {record.data(), record.size()};
        status = visit(finished);
        if (!status) break;
      }
    }
  }));
  return status;
}

Status PostgresStore::each_unfinished(const std::function<Status(const StoredCase&)>& visit) {
  ASSAY_CHECK(flush_added());
  Status status;
  ASSAY_CHECK(reading([&](pqxx::work& work) {
    for (const auto& row :
         work.exec("SELECT id, text, elements, bytes FROM planned WHERE NOT done ORDER BY text")) {
      const auto text = row[1].as<std::string>();
      status = visit({unsigned_bits(row[0].as<std::int64_t>()), text,
                      unsigned_bits(row[2].as<std::int64_t>()),
                      unsigned_bits(row[3].as<std::int64_t>())});
      if (!status) break;
    }
  }));
  return status;
}

Status PostgresStore::each_invalid(const std::function<Status(const InvalidLine&)>& visit) {
  Status status;
  ASSAY_CHECK(reading([&](pqxx::work& work) {
    for (const auto& row : work.exec("SELECT place, text, message FROM invalid")) {
      status =
          visit({row[0].as<std::string>(), row[1].as<std::string>(), row[2].as<std::string>()});
      if (!status) break;
    }
  }));
  return status;
}

}  // namespace assay
