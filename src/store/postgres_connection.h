#pragma once

// Shared by the sources of the PostgreSQL store: its connection, retries, and conversions between
// C++ and SQL values.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <map>
#include <optional>
#include <pqxx/pqxx>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "base/interruption.h"
#include "base/utf8.h"
#include "store/finished_rows.h"
#include "store/interruptible_connect.h"
#include "store/postgres_errors.h"
#include "store/postgres_sql.h"
#include "store/postgres_store.h"
#include "store/signed_bits.h"

namespace assay {

struct PostgresStore::Connection {
  explicit Connection(const std::string& address) : session(address) {}
  pqxx::basic_connection_base<InterruptibleConnect> session;
  std::optional<pqxx::work> plan;       // open transaction of everything but results
  std::optional<pqxx::stream_to> rows;  // in `plan`: planned cases that are being sent
  bool knows_mine = false;              // the connection's table `mine` is filled
  std::set<std::string> statements;     // names of prepared statements
  InterruptibleSocket interruptible{session.sock()};

  // Ends the stream of rows. The connection can do nothing else before.
  void end_rows() {
    if (!rows) return;
    rows->complete();
    rows.reset();
  }
  void drop_plan() {
    rows.reset();
    plan.reset();
  }
};

struct PostgresStore::Claimed {
  pqxx::result rows;
  std::map<std::int64_t, Bundle> bundles;
  std::int64_t left_us = 0;  // unclaimed work before the claim
};

namespace postgres {

constexpr std::chrono::milliseconds kBetweenTries{500};

// An SQL array: "{1,2}".
template <typename Numbers>
std::string as_array(const Numbers& numbers) {
  return fmt::format("{{{}}}", fmt::join(numbers, ","));
}

// Estimates as SQL integers. signed_bits() would not do, because the database compares them.
inline std::int64_t clamped(std::uint64_t value) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(value, kMost));
}

// Calls `visit` with each row of the query, until it returns an error, and `progress` now and then.
inline Status each_row(
    pqxx::transaction_base& work, const char* query,
    const std::function<Status(const pqxx::row&)>& visit,
    const std::function<void()>& progress = [] {}) {
  constexpr int kRowsAtOnce = 1000;
  pqxx::icursorstream rows(work, query, "assay_rows", kRowsAtOnce);
  pqxx::result part;
  while (rows.get(part)) {
    for (const auto& row : part) ASSAY_CHECK(visit(row));
    progress();
  }
  return {};
}

// The case in a row whose columns from `first` on are id, text, elements, bytes and work_us.
inline wire::CaseT planned_in(const pqxx::row& row, int first) {
  const auto number = [&](int column) {
    return unsigned_bits(row[first + column].as<std::int64_t>());
  };
  const auto text = row[first + 1];
  return wire::planned_case(number(0), {text.c_str(), text.size()}, number(2), number(3),
                            number(4));
}

// Calls `visit` with the case in this row, whose columns start at `first` in the order of
// finished_rows().
template <typename Visit>
Status show_finished(const pqxx::row& row, int first, FinishedRow& read, const Visit& visit) {
  const auto at = [&](int column) { return row[first + column]; };
  FinishedCase& finished = read.finished;
  finished.id = unsigned_bits(at(0).template as<std::int64_t>());
  finished.text.assign(at(1).c_str(), at(1).size());
  finished.verdict.outcome = find_outcome(at(2).c_str()).value_or(Outcome::invalid);
  finished.verdict.mismatch = static_cast<std::uint8_t>(at(3).template as<int>());
  finished.verdict.flags = static_cast<std::uint8_t>(at(4).template as<int>());
  finished.verdict.lane = at(5).template as<std::string>();
  finished.verdict.message = at(6).template as<std::string>();
  finished.attempts = at(7).template as<std::uint32_t>();
  finished.finished_ms = at(8).template as<std::int64_t>();
  finished.took_us = unsigned_bits(at(9).template as<std::int64_t>());
  const pqxx::binarystring record(at(11));
  ASSAY_CHECK(read.take({at(10).c_str(), at(10).size()}, {record.data(), record.size()}));
  return visit(finished);
}

inline tl::unexpected<Error> interrupted_error() {
  return fail(
      "interrupted while the database did not answer; cases without a stored result will run again "
      "when you resume the run");
}

// Runs `work`; turns what pqxx throws into an error.
template <typename Work>
Status guarded(Work&& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return tl::unexpected<Error>(database_error(error));
  }
}

}  // namespace postgres

// Runs `work`, and breaks the connection if that takes longer than `limit`.
template <typename Work>
Status PostgresStore::within(std::chrono::milliseconds limit, Work&& work) {
  if (!connection_) ASSAY_CHECK(connect());
  InterruptibleSocket& socket = connection_->interruptible;
  socket.expect(limit);
  Status status = postgres::guarded(work);
  socket.relax();
  if (status || !socket.timed_out()) return status;
  return fail(fmt::format("the database: no answer for {} s", limit.count() / 1000));
}

// Runs `work` in the transaction that the next commit() ends.
template <typename Work>
Status PostgresStore::in_plan(Work&& work) {
  return within(options_.whole_table_limit, [&]() -> Status {
    if (!connection_->plan) connection_->plan.emplace(connection_->session);
    connection_->end_rows();
    work(*connection_->plan);
    return {};
  });
}

// Runs `work`, and retries it while the database is unreachable or its disk is full, for at most
// `options_.patience`. A signal ends the retries. `work` may run twice, because its answer can get
// lost after the database has committed. Once it has given up it tries only once, until the
// database is back.
template <typename Work>
Status PostgresStore::patiently(Work&& work) {
  const auto began = std::chrono::steady_clock::now();
  const auto out_of_patience = [&] {
    if (!gave_up_) gave_up_ = std::chrono::steady_clock::now() - began > hurried(options_.patience);
    return gave_up_;
  };
  while (true) {
    Status status = within(options_.answer_limit, work);
    if (connection_) connection_->drop_plan();
    if (status) gave_up_ = false;
    if (status) return status;
    if (interrupted()) return postgres::interrupted_error();
    if (connection_ && connection_->session.is_open()) {
      const bool full = status.error().message == postgres::kDiskIsFull;
      if (!full || out_of_patience()) return status;
      std::this_thread::sleep_for(postgres::kBetweenTries);
      continue;
    }
    // A database that accepts connections and never answers runs out of patience as well.
    while (true) {
      if (out_of_patience()) {
        connection_.reset();
        return status;
      }
      status = connect();
      if (status) break;
      if (interrupted()) return postgres::interrupted_error();
      std::this_thread::sleep_for(postgres::kBetweenTries);
    }
    const Status forgotten = within(options_.answer_limit, [&]() -> Status {
      pqxx::work transaction(connection_->session);
      forget_unknown_bundles(transaction);
      transaction.commit();
      return {};
    });
    if (!forgotten && connection_->session.is_open()) return forgotten;
  }
}

// Runs `work` in one transaction, with retries. A single statement is a transaction already; a
// claimer that has added cases needs several statements.
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

// As in_one(), and tells `pace_` how long the visit took.
template <typename Work>
Status PostgresStore::in_timed(Work&& work) {
  const auto began = std::chrono::steady_clock::now();
  Status done = in_one(work);
  pace_.took(std::chrono::steady_clock::now() - began);
  return done;
}

// Runs `work`, which only reads. It runs in the transaction of the next commit() if there is one,
// so that it sees what that transaction wrote.
template <typename Work>
Status PostgresStore::reading(Work&& work) {
  ASSAY_CHECK(place_added());
  if (!connection_ || !connection_->session.is_open()) ASSAY_CHECK(connect());
  return within(options_.whole_table_limit, [&]() -> Status {
    if (connection_->plan) return work(*connection_->plan);
    pqxx::work transaction(connection_->session);
    return work(transaction);
  });
}

}  // namespace assay
