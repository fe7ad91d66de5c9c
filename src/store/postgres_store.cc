#include "store/postgres_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
constexpr std::chrono::milliseconds kBetweenTries{500};

template <typename Numbers>
std::string as_array(const Numbers& numbers) {
  return fmt::format("{{{}}}", fmt::join(numbers, ","));
}

// What PostgreSQL reads as an array.
class ArrayText {
 public:
  void add(std::int64_t number) {
    begin_entry();
    fmt::format_to(std::back_inserter(text_), "{}", number);
  }
  void add(const std::string& entry) {
    begin_entry();
    text_ += '"';
    for (const char c : entry) {
      if (c == '"' || c == '\\') text_ += '\\';
      text_ += c;
    }
    text_ += '"';
  }
  std::string take() { return std::move(text_) + "}"; }

 private:
  void begin_entry() {
    if (text_.size() > 1) text_ += ',';
  }
  std::string text_ = "{";
};

// "node7:3f…": people see it where they look on.
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
    : address_(std::move(address)), options_(options), claimer_(claimer_name()) {}

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
    connection_ = std::make_unique<Connection>(address_);
    if (options_.read_only) {
      pqxx::nontransaction(connection_->session)
          .exec0("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY");
    }
    // Said a thousand times a second by a thousand workers: it takes longer to plan than to do.
    connection_->session.prepare("assay_record", kRecord);
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
      work.exec0(kPlannedIndexes);
      work.exec_params0("INSERT INTO assay_schema VALUES ($1)", kSchemaVersion);
    }
    const int version = work.exec1("SELECT version FROM assay_schema")[0].as<int>();
    if (version != kSchemaVersion) return usage_error(version_error(version));
    work.commit();
    return {};
  });
}

// Tries again while the database is away, or has no room. What `work` did is lost with its
// connection, or done although the answer got lost: it must bear to be done twice.
template <typename Work>
Status PostgresStore::patiently(Work&& work) {
  const auto give_up = std::chrono::steady_clock::now() + options_.patience;
  while (true) {
    Status status = guarded(work);
    if (connection_) connection_->drop_plan();
    if (status) return status;
    if (connection_ && connection_->session.is_open()) {
      const bool full = status.error().message == kDiskIsFull;
      if (!full || std::chrono::steady_clock::now() > give_up) return status;
      std::this_thread::sleep_for(kBetweenTries);
      continue;
    }
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

// A single statement is a transaction by itself; who has added cases needs more than one.
template <typename Work>
Status PostgresStore::in_one(Work&& work) {
  return patiently([&]() -> Status {
    if (mine_.empty()) {
      pqxx::nontransaction transaction(connection_->session);
      work(transaction);
      return {};
    }
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

// ---- leases ----

// Once for each connection, whose own table it is.
void PostgresStore::fill_mine(pqxx::transaction_base& transaction) {
  if (mine_.empty() || connection_->knows_mine) return;
  transaction.exec0(kMineTable);
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
  pqxx::result rows;
  std::map<std::int64_t, Bundle> claimed;
  bool elsewhere = false;
  const char* const of_bundle = only_mine ? kBundleIsMine : "";
  ASSAY_CHECK(commit());
  ASSAY_CHECK(in_one([&](pqxx::transaction_base& work) {
    claimed.clear();
    fill_mine(work);
    if (only_mine) {
      rows = work.exec_params(fmt::format(kClaim, kBundleIsMine, kCaseIsMine, limit), claimer_,
                              options_.lease_time.count());
    } else {
      const std::string statement = fmt::format("assay_claim_{}", limit);
      if (connection_->claims.insert(limit).second) {
        connection_->session.prepare(statement, fmt::format(kClaim, "", "", limit));
      }
      rows = work.exec_prepared(statement, claimer_, options_.lease_time.count());
    }
    for (const auto& row : rows) {
      Bundle& bundle = claimed[row[0].as<std::int64_t>()];
      bundle.epoch = unsigned_bits(row[1].as<std::int64_t>());
      bundle.left += row[2].is_null() ? 0 : 1;
    }
    if (static_cast<std::int64_t>(claimed.size()) < limit) {
      elsewhere = work.exec_params1(fmt::format(kHeldElsewhere, of_bundle), claimer_)[0].as<bool>();
    }
  }));
  connection_->knows_mine = only_mine;
  for (const auto& [number, bundle] : claimed) bundles_[number] = bundle;
  for (const auto& row : rows) {
    if (row[2].is_null()) continue;
    const auto id = unsigned_bits(row[2].as<std::int64_t>());
    const Held held{row[0].as<std::int64_t>(), unsigned_bits(row[1].as<std::int64_t>())};
    held_[id] = held;
    ASSAY_CHECK(
        visit({{id, held.epoch},
               {id, std::string_view(row[3].c_str(), row[3].size()),
                unsigned_bits(row[4].as<std::int64_t>()), unsigned_bits(row[5].as<std::int64_t>()),
                unsigned_bits(row[6].as<std::int64_t>())}}));
  }
  if (static_cast<std::int64_t>(claimed.size()) == limit) return Supply::more;
  return elsewhere ? Supply::held_elsewhere : Supply::none;
}

Status PostgresStore::renew() {
  ASSAY_CHECK(commit());
  if (bundles_.empty()) return {};
  return in_one([&](pqxx::transaction_base& work) {
    std::vector<std::int64_t> numbers;
    numbers.reserve(bundles_.size());
    for (const auto& [number, bundle] : bundles_) numbers.push_back(number);
    work.exec_params0(kRenew, claimer_, options_.lease_time.count(), as_array(numbers));
  });
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

bool PostgresStore::has_results() const {
  return !ended_.empty() || std::any_of(bundles_.begin(), bundles_.end(),
                                        [](const auto& each) { return each.second.left == 0; });
}

void PostgresStore::write_results(pqxx::transaction_base& transaction) {
  ArrayText ids, of, outcomes, mismatches, flags, lanes, messages, attempts, at_ms, took_us, sizes;
  std::string records;
  std::map<std::int64_t, std::uint64_t> touched;  // in order: who locks bundles does it so
  for (const Ended& each : ended_) {
    touched[each.held.bundle] = each.held.epoch;
    ids.add(signed_bits(each.id));
    of.add(each.held.bundle);
    outcomes.add(each.outcome);
    mismatches.add(std::int64_t{each.verdict.mismatch});
    flags.add(std::int64_t{each.verdict.flags});
    lanes.add(as_text(each.verdict.lane));
    messages.add(as_text(each.verdict.message));
    attempts.add(std::int64_t{each.attempts});
    at_ms.add(each.finished_ms);
    took_us.add(each.took_us);
    sizes.add(static_cast<std::int64_t>(each.record.size()));
    records.append(each.record.begin(), each.record.end());
  }
  for (const auto& [number, bundle] : bundles_) {
    if (bundle.left == 0) touched[number] = bundle.epoch;
  }
  if (touched.empty()) return;
  ArrayText numbers, epochs, all_ended;
  for (const auto& [number, epoch] : touched) {
    const auto bundle = bundles_.find(number);
    numbers.add(number);
    epochs.add(signed_bits(epoch));
    all_ended.add(std::int64_t{bundle == bundles_.end() || bundle->second.left == 0});
  }
  const auto recorded =
      transaction
          .exec_prepared1("assay_record", ids.take(), of.take(), outcomes.take(), mismatches.take(),
                          flags.take(), lanes.take(), messages.take(), attempts.take(),
                          at_ms.take(), took_us.take(), sizes.take(), pqxx::binarystring(records),
                          numbers.take(), epochs.take(), all_ended.take())[0]
          .as<std::uint64_t>();
  fenced_ += ended_.size() - std::min<std::uint64_t>(ended_.size(), recorded);
  if (!mine_.empty() && connection_->knows_mine) {
    std::vector<std::int64_t> ended;
    for (const auto& [number, bundle] : bundles_) {
      if (bundle.left == 0) ended.push_back(number);
    }
    transaction.exec_params0(kMineAreLeft, as_array(ended));
  }
}

// A plan that is lost with its connection is an error: nobody knows its cases any more. Results are
// kept until they are written; one that was written although the answer got lost is fenced the
// second time.
Status PostgresStore::commit() {
  ASSAY_CHECK(place_added());
  if (!connection_->plan && !has_results()) return {};
  const std::uint64_t fenced_before = fenced_;
  if (connection_->plan) {
    const Status written = guarded([&]() -> Status {
      write_results(*connection_->plan);
      connection_->plan->commit();
      return {};
    });
    connection_->drop_plan();
    ASSAY_CHECK(written);
  } else {
    ASSAY_CHECK(in_one([&](pqxx::transaction_base& work) {
      fenced_ = fenced_before;
      write_results(work);
    }));
  }
  ended_.clear();
  std::erase_if(bundles_, [](const auto& each) { return each.second.left == 0; });
  return {};
}

}  // namespace assay
