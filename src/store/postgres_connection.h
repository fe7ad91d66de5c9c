#pragma once

// What the sources of the PostgreSQL store share: its connection, errors, values on their way.

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <pqxx/pqxx>
#include <set>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "store/postgres_store.h"
#include "store/signed_bits.h"

namespace assay {

struct PostgresStore::Connection {
  explicit Connection(const std::string& address) : session(address) {}
  pqxx::connection session;
  std::optional<pqxx::work> plan;       // what is written and not yet committed, but for results
  std::optional<pqxx::stream_to> rows;  // within it: planned cases on their way
  bool knows_mine = false;              // its table `mine` is filled
  std::set<std::int64_t> claims;        // of so many bundles, whose statements it knows

  // Ends the stream of rows: nothing else goes over the connection before.
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

namespace postgres {

// Estimates are compared in the database, so they keep their order there.
inline std::int64_t clamped(std::uint64_t value) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(value, kMost));
}

// PostgreSQL's text is UTF-8 without the code 0.
inline std::string as_text(std::string_view text) {
  std::string valid;
  while (true) {
    const std::size_t good = find_bad_byte(text);
    valid += text.substr(0, good);
    if (good == text.size()) return valid;
    valid += '?';
    text.remove_prefix(good + 1);
  }
}

inline constexpr std::string_view kDiskIsFull =
    "the database's disk is full: free some space there (nothing recorded is lost)";

// The first line: libpq adds hints and the statement itself.
inline Error database_error(const std::exception& error) {
  if (dynamic_cast<const pqxx::disk_full*>(&error) != nullptr) return {std::string(kDiskIsFull)};
  const std::string_view text = error.what();
  return {fmt::format("the database: {}", text.substr(0, text.find('\n')))};
}

template <typename Work>
Status guarded(Work&& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return tl::unexpected<Error>(database_error(error));
  }
}

}  // namespace postgres

// Within the transaction that the next commit() ends.
template <typename Work>
Status PostgresStore::in_plan(Work&& work) {
  return postgres::guarded([&]() -> Status {
    if (!connection_->plan) connection_->plan.emplace(connection_->session);
    connection_->end_rows();
    work(*connection_->plan);
    return {};
  });
}

}  // namespace assay
