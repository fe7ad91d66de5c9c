// The leases of a run in PostgreSQL.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <tuple>

#include "store/postgres_connection.h"
#include "store/postgres_sql.h"

namespace assay {

using namespace postgres;

namespace {

double now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

}  // namespace

// Fills the temporary table `mine`, once for each connection.
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

// Releases bundles that this claimer holds without knowing it: a claim's answer can get lost with
// its connection.
void PostgresStore::forget_unknown_bundles(pqxx::transaction_base& transaction) {
  std::vector<std::int64_t> known;
  known.reserve(bundles_.size());
  for (const auto& [number, bundle] : bundles_) known.push_back(number);
  transaction.exec_params0(kRelease, claimer_, as_array(known));
}

// Expected work of the cases that this claimer holds.
std::int64_t PostgresStore::held_us() const {
  std::int64_t all = 0;
  for (const auto& [number, bundle] : bundles_) all += bundle.work_us;
  return all;
}

// The largest work in µs of each of `bundles` bundles that are claimed now; 0: claim none.
std::int64_t PostgresStore::most_of_bundle(std::int64_t bundles) const {
  const std::int64_t most_us = share_.most_us();
  if (most_us == FairShare::kAny) return most_us;
  const std::int64_t held = held_us();
  if (held == 0) return std::max<std::int64_t>(most_us / bundles, 1);
  return std::max<std::int64_t>(most_us - held, 0) / bundles;
}

pqxx::result PostgresStore::claim_rows(pqxx::transaction_base& work, const ClaimTerms& terms) {
  const std::int64_t lease_ms = options_.lease_time.count();
  if (!mine_.empty()) {
    return work.exec_params(
        fmt::format(kClaim, kBundleIsMine, kCaseIsMine, terms.bundles, terms.order), claimer_,
        lease_ms, terms.most_us);
  }
  const std::string statement =
      fmt::format("assay_claim_{}_{}", terms.order == kFirst ? "first" : "last", terms.bundles);
  if (connection_->statements.insert(statement).second) {
    connection_->session.prepare(statement,
                                 fmt::format(kClaim, "", "", terms.bundles, terms.order));
  }
  return work.exec_prepared(statement, claimer_, lease_ms, terms.most_us);
}

Result<Supply> PostgresStore::claim(std::size_t bundles, const VisitJob& visit) {
  const bool only_mine = !mine_.empty();
  const auto limit = static_cast<std::int64_t>(
      std::min<std::size_t>(bundles, std::numeric_limits<std::int32_t>::max()));
  ASSAY_CHECK(commit());
  note_work();
  const ClaimTerms terms{limit, most_of_bundle(limit), kFirst};
  if (terms.most_us == 0) return Supply::held_elsewhere;
  const bool limited = terms.most_us != FairShare::kAny;
  Claimed claimed;
  bool elsewhere = false;
  const char* const of_bundle = only_mine ? kBundleIsMine : "";
  ASSAY_CHECK(in_timed([&](pqxx::transaction_base& work) {
    fill_mine(work);
    claimed = claimed_in(claim_rows(work, terms));
    if (limited && claimed.rows.empty() && held_us() == 0) {
      claimed = claimed_in(claim_rows(work, {1, FairShare::kAny, kLast}));
    }
    if (limited) claimed.left_us = work.exec1(kLeft)[0].as<std::int64_t>();
    if (static_cast<std::int64_t>(claimed.bundles.size()) < limit) {
      elsewhere = work.exec_params1(fmt::format(kHeldElsewhere, of_bundle), claimer_)[0].as<bool>();
    }
  }));
  connection_->knows_mine = only_mine;
  if (claimed.left_us > 0) share_.saw(now_us(), claimed.left_us);
  ASSAY_CHECK(show_claimed(claimed, visit));
  if (static_cast<std::int64_t>(claimed.bundles.size()) == limit) return Supply::more;
  return elsewhere ? Supply::held_elsewhere : Supply::none;
}

PostgresStore::Claimed PostgresStore::claimed_in(const pqxx::result& rows) {
  Claimed claimed;
  for (const auto& row : rows) {
    Bundle& bundle = claimed.bundles[row[0].as<std::int64_t>()];
    bundle.epoch = unsigned_bits(row[1].as<std::int64_t>());
    claimed.left_us = std::max(claimed.left_us, row[2].as<std::int64_t>());
    if (row[3].is_null()) continue;
    ++bundle.left;
    bundle.work_us += row[7].as<std::int64_t>();
  }
  claimed.rows = rows;
  return claimed;
}

Status PostgresStore::show_claimed(const Claimed& claimed, const VisitJob& visit) {
  for (const auto& [number, bundle] : claimed.bundles) bundles_[number] = bundle;
  for (const auto& row : claimed.rows) {
    if (row[3].is_null()) continue;
    wire::JobT job;
    job.test_case = planned_in(row, 3);
    job.attempt.epoch = unsigned_bits(row[1].as<std::int64_t>());
    job.attempt.failed_before = row[8].c_str();
    held_[job.test_case.id] = row[0].as<std::int64_t>();
    ASSAY_CHECK(visit(std::move(job)));
  }
  return {};
}

// Reports the work since the last call to `share_`.
void PostgresStore::note_work() {
  share_.worked(now_us(), done_us_);
  done_us_ = 0;
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

Status PostgresStore::note_failure(std::uint64_t id, const std::string& how) {
  return in_one([&](pqxx::transaction_base& work) {
    work.exec_params0(
        "INSERT INTO failed_before VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET ending = $2",
        signed_bits(id), replace_bad_bytes(how));
  });
}

Status PostgresStore::release_all() {
  held_.clear();
  bundles_.clear();
  return in_plan([&](pqxx::work& work) { work.exec_params0(kRelease, claimer_, "{}"); });
}

}  // namespace assay
