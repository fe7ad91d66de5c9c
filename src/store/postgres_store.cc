#include "store/postgres_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <random>
#include <thread>
#include <tuple>

#include "store/postgres_connection.h"
#include "store/postgres_sql.h"

namespace assay {
namespace {

using namespace postgres;

// One number for everybody who makes tables: two that begin a run at once do so one after the
// other.
constexpr std::int64_t kMakingTables = 0x6173736179;  // "assay"
constexpr std::size_t kAddedAtOnce = 50'000;
constexpr std::chrono::milliseconds kBetweenTries{500};
constexpr const char* kNoEarlierRuns = "SELECT NULL::bigint AS id, NULL::bigint AS took_us";

// Estimates are compared in the database, so they keep their order there.
std::int64_t clamped(std::uint64_t value) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(value, kMost));
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

template <typename Numbers>
std::string as_array(const Numbers& numbers) {
  return fmt::format("{{{}}}", fmt::join(numbers, ","));
}

std::string random_name() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

std::string version_error(int version) {
  if (version > kSchemaVersion) {
    return fmt::format(
        "a newer assay made this database's tables (version {}, this assay knows {}); use that "
        "one, "
        "or another database",
        version, kSchemaVersion);
  }
  return fmt::format(
      "an older assay made this database's tables (version {}, this assay has {}); use that one, "
      "or "
      "another schema (options=-csearch_path%3DNAME)",
      version, kSchemaVersion);
}

}  // namespace

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
      return usage_error(
          "this database holds no run of assay; begin one with `assay plan --store`");
    }
    if (!known) {
      work.exec0(kSchema);
      work.exec_params0("INSERT INTO assay_schema VALUES ($1)", kSchemaVersion);
    }
    const int version = work.exec1("SELECT version FROM assay_schema")[0].as<int>();
    if (version != kSchemaVersion) return usage_error(version_error(version));
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

// Tries again while the database is away. What `work` did is lost with its connection, or done
// although the answer got lost: it must bear to be done twice.
template <typename Work>
Status PostgresStore::patiently(Work&& work) {
  const auto give_up = std::chrono::steady_clock::now() + options_.patience;
  while (true) {
    Status status = guarded(work);
    if (connection_) connection_->plan.reset();
    if (status || (connection_ && connection_->session.is_open())) return status;
    while (!connect()) {
      if (std::chrono::steady_clock::now() > give_up) return status;
      std::this_thread::sleep_for(kBetweenTries);
    }
    ASSAY_CHECK(guarded([&]() -> Status {
      pqxx::work transaction(connection_->session);
      forget_unknown_bundles(transaction);
      transaction.commit();
      return {};
    }));
  }
}

// Durable at once, behind what was written before.
template <typename Work>
Status PostgresStore::at_once(Work&& work) {
  ASSAY_CHECK(commit());
  return patiently([&]() -> Status {
    pqxx::work transaction(connection_->session);
    work(transaction);
    transaction.commit();
    return {};
  });
}

Status PostgresStore::set_property(std::string_view key, std::string_view value) {
  return in_plan([&](pqxx::work& work) {
    work.exec_params0(
        "INSERT INTO property VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2",
        as_text(key), as_text(value));
  });
}

Result<std::string> PostgresStore::agree_on(std::string_view key, std::string_view value) {
  std::string stands;
  ASSAY_CHECK(in_plan([&](pqxx::work& work) {
    work.exec_params0("INSERT INTO property VALUES ($1, $2) ON CONFLICT (key) DO NOTHING",
                      as_text(key), as_text(value));
    stands = work.exec_params1("SELECT value FROM property WHERE key = $1", as_text(key))[0]
                 .as<std::string>();
  }));
  return stands;
}

// ---- planning ----

Status PostgresStore::begin_planning() {
  return in_plan([](pqxx::work& work) { work.exec(kPlanAlone); });
}

Status PostgresStore::add_case(const StoredCase& added) {
  mine_.push_back(signed_bits(added.id));
  added_.push_back({added.id, std::string(added.text), clamped(added.elements),
                    clamped(added.bytes), std::max<std::int64_t>(clamped(added.work_us), 1)});
  return added_.size() < kAddedAtOnce ? Status() : flush_added();
}

Status PostgresStore::flush_added() {
  if (added_.empty()) return {};
  ASSAY_CHECK(in_plan([&](pqxx::work& work) {
    pqxx::stream_to rows(work, "adding",
                         std::vector<std::string>{"id", "text", "elements", "bytes", "work_us"});
    for (const Added& each : added_) {
      rows << std::make_tuple(signed_bits(each.id), each.text, each.elements, each.bytes,
                              each.work_us);
    }
    rows.complete();
  }));
  added_.clear();
  to_place_ = true;
  return {};
}

// From `adding` into bundles.
Status PostgresStore::place_added() {
  ASSAY_CHECK(flush_added());
  if (!to_place_) return {};
  ASSAY_CHECK(begin_planning());
  ASSAY_CHECK(in_plan([this](pqxx::work& work) {
    const auto earlier = work.exec1(kEarlierRuns)[0];
    work.exec0("SET LOCAL work_mem = '256MB'");  // millions of cases are sorted
    work.exec0("ANALYZE adding");
    work.exec0(kKnownEstimates);
    const auto placed = work.exec_params(
        fmt::format(kAddToBundles, earlier.is_null() ? kNoEarlierRuns : earlier.c_str()),
        std::int64_t{options_.bundle.count()}, options_.least_bundles);
    new_cases_ += placed.affected_rows();
    work.exec0(kNewBundles);
    work.exec0("TRUNCATE adding");
    work.exec0("ANALYZE planned, bundle");
  }));
  if (connection_) connection_->knows_mine = false;
  to_place_ = false;
  return {};
}

Status PostgresStore::add_invalid(const InvalidLine& line) {
  return in_plan([&](pqxx::work& work) {
    work.exec_params0("INSERT INTO invalid VALUES ($1, $2, $3)", as_text(line.where),
                      as_text(line.text), as_text(line.message));
  });
}

// The first thing that a plan does. From here on it is alone.
Status PostgresStore::forget_invalid() {
  ASSAY_CHECK(begin_planning());
  return in_plan([](pqxx::work& work) { work.exec0("DELETE FROM invalid"); });
}

Result<std::int64_t> PostgresStore::forget_finished(std::span<const Outcome> outcomes) {
  std::int64_t forgotten = 0;
  for (const Outcome outcome : outcomes) {
    ASSAY_CHECK(in_plan([&](pqxx::work& work) {
      forgotten += work.exec_params1(kForget, std::string(name(outcome)))[0].as<std::int64_t>();
    }));
  }
  return forgotten;
}

// ---- leases ----

// Once for each connection, whose own table it is.
void PostgresStore::fill_mine(pqxx::transaction_base& transaction) {
  if (mine_.empty() || connection_->knows_mine) return;
  transaction.exec0("CREATE TEMPORARY TABLE own (id bigint) ON COMMIT DROP");
  pqxx::stream_to rows(transaction, "own");
  for (const std::int64_t id : mine_) rows << std::make_tuple(id);
  rows.complete();
  transaction.exec0("TRUNCATE mine");
  transaction.exec0(
      "INSERT INTO mine SELECT DISTINCT p.id, p.bundle FROM own JOIN planned p USING (id)");
  transaction.exec0("ANALYZE mine");
}

// A claim whose answer got lost with its connection has given us what we know nothing of.
void PostgresStore::forget_unknown_bundles(pqxx::transaction_base& transaction) {
  std::vector<std::int64_t> known;
  known.reserve(bundles_.size());
  for (const auto& [number, bundle] : bundles_) known.push_back(number);
  transaction.exec_params0(kRelease, claimer_, as_array(known));
}

Result<Supply> PostgresStore::claim(std::size_t bundles,
                                    const std::function<Status(const ClaimedCase&)>& visit) {
  const bool only_mine = !mine_.empty();
  const auto limit = static_cast<std::int64_t>(
      std::min<std::size_t>(bundles, std::numeric_limits<std::int32_t>::max()));
  pqxx::result cases;
  std::map<std::int64_t, Bundle> claimed;
  bool elsewhere = false;
  ASSAY_CHECK(at_once([&](pqxx::work& work) {
    claimed.clear();
    fill_mine(work);
    for (const auto& row :
         work.exec_params(kClaim, claimer_, options_.lease_time.count(), limit, only_mine)) {
      claimed[row[0].as<std::int64_t>()].epoch = unsigned_bits(row[1].as<std::int64_t>());
    }
    std::vector<std::int64_t> numbers;
    numbers.reserve(claimed.size());
    for (const auto& [number, bundle] : claimed) numbers.push_back(number);
    cases = work.exec_params(kClaimedCases, as_array(numbers), only_mine);
    elsewhere = work.exec_params1(kHeldElsewhere, claimer_, only_mine)[0].as<bool>();
  }));
  connection_->knows_mine = only_mine;
  for (const auto& row : cases) ++claimed[row[1].as<std::int64_t>()].left;
  for (const auto& [number, bundle] : claimed) bundles_[number] = bundle;
  for (const auto& row : cases) {
    const auto id = unsigned_bits(row[0].as<std::int64_t>());
    const auto number = row[1].as<std::int64_t>();
    const Held held{number, claimed[number].epoch};
    held_[id] = held;
    const auto text = row[2].as<std::string>();
    ASSAY_CHECK(visit(
        {{id, held.epoch},
         {id, text, unsigned_bits(row[3].as<std::int64_t>()),
          unsigned_bits(row[4].as<std::int64_t>()), unsigned_bits(row[5].as<std::int64_t>())}}));
  }
  if (static_cast<std::int64_t>(claimed.size()) == limit) return Supply::more;
  return elsewhere ? Supply::held_elsewhere : Supply::none;
}

Status PostgresStore::renew() {
  return at_once(
      [&](pqxx::work& work) { work.exec_params0(kRenew, claimer_, options_.lease_time.count()); });
}

Status PostgresStore::release_all() {
  held_.clear();
  bundles_.clear();
  return in_plan([&](pqxx::work& work) { work.exec_params0(kRelease, claimer_, "{}"); });
}

Result<bool> PostgresStore::finish(const Lease& lease, const FinishedCase& finished) {
  const auto found = held_.find(lease.id);
  if (found == held_.end() || found->second.epoch != lease.epoch) return false;
  const Held held = found->second;
  held_.erase(found);
  const auto bundle = bundles_.find(held.bundle);
  if (bundle == bundles_.end() || bundle->second.epoch != held.epoch) return false;
  --bundle->second.left;
  ended_.push_back({lease.id,
                    held,
                    std::string(name(finished.verdict.outcome)),
                    finished.verdict,
                    finished.attempts,
                    finished.finished_ms,
                    clamped(finished.took_us),
                    {finished.record.begin(), finished.record.end()}});
  return true;
}

void PostgresStore::write_ended(pqxx::transaction_base& transaction) {
  if (ended_.empty()) return;
  pqxx::stream_to rows(transaction, "incoming");
  for (const Ended& each : ended_) {
    rows << std::make_tuple(signed_bits(each.id), each.held.bundle, signed_bits(each.held.epoch),
                            each.outcome, int{each.verdict.mismatch}, int{each.verdict.flags},
                            as_text(each.verdict.lane), as_text(each.verdict.message),
                            std::int64_t{each.attempts}, each.finished_ms, each.took_us,
                            as_bytea(each.record));
  }
  rows.complete();
  const auto recorded = transaction.exec(kRecord).affected_rows();
  fenced_ += ended_.size() - std::min<std::uint64_t>(ended_.size(), recorded);
}

// Bundles of which nothing is left here.
void PostgresStore::settle(pqxx::transaction_base& transaction) {
  std::vector<std::int64_t> numbers;
  std::vector<std::int64_t> epochs;
  for (const auto& [number, bundle] : bundles_) {
    if (bundle.left > 0) continue;
    numbers.push_back(number);
    epochs.push_back(signed_bits(bundle.epoch));
  }
  if (!numbers.empty()) transaction.exec_params0(kSettle, as_array(numbers), as_array(epochs));
}

// A plan that is lost with its connection is an error: nobody knows its cases any more. Results are
// kept until they are written; one that was written although the answer got lost is fenced the
// second time.
Status PostgresStore::commit() {
  ASSAY_CHECK(place_added());
  const bool ends_bundles = std::any_of(bundles_.begin(), bundles_.end(),
                                        [](const auto& each) { return each.second.left == 0; });
  if (!connection_->plan && ended_.empty() && !ends_bundles) return {};
  const std::uint64_t fenced_before = fenced_;
  const auto write = [&]() -> Status {
    fenced_ = fenced_before;
    if (!connection_->plan) connection_->plan.emplace(connection_->session);
    write_ended(*connection_->plan);
    settle(*connection_->plan);
    connection_->plan->commit();
    return {};
  };
  if (connection_->plan) {
    const Status written = guarded(write);
    connection_->plan.reset();
    ASSAY_CHECK(written);
  } else {
    ASSAY_CHECK(patiently(write));
  }
  ended_.clear();
  std::erase_if(bundles_, [](const auto& each) { return each.second.left == 0; });
  return {};
}

}  // namespace assay
