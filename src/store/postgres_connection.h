#pragma once

// What the sources of the PostgreSQL store share: its connection, errors, values on their way.

#include <fmt/format.h>

#include <bit>
#include <exception>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "store/postgres_store.h"

namespace assay {

struct PostgresStore::Connection {
  explicit Connection(const std::string& address) : session(address) {}
  pqxx::connection session;
  std::optional<pqxx::work> plan;  // what is written and not yet committed, but for results
  bool knows_mine = false;         // its table `mine` is filled
};

namespace postgres {

inline std::int64_t signed_bits(std::uint64_t value) { return std::bit_cast<std::int64_t>(value); }
inline std::uint64_t unsigned_bits(std::int64_t value) {
  return std::bit_cast<std::uint64_t>(value);
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

// The first line: libpq adds hints and the statement itself.
inline Error database_error(const std::exception& error) {
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
}  // namespace assay
