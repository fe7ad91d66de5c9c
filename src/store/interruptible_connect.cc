#include "store/interruptible_connect.h"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <pqxx/except>
#include <string>
#include <string_view>

#include "base/interruption.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kLookMs = 50;  // how often an attempt looks for an interruption

// The time for all hosts of the address, an hour without a limit. libpq leaves it to callers of
// PQconnectPoll().
std::chrono::seconds time_limit(PGconn* connection) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfo(connection),
                                                                             &PQconninfoFree);
  int seconds = 0;
  std::ptrdiff_t hosts = 1;
  for (const PQconninfoOption* at = options.get(); at != nullptr && at->keyword != nullptr; ++at) {
    if (at->val == nullptr) continue;
    const std::string_view key = at->keyword;
    const std::string_view value = at->val;
    if (key == "connect_timeout")
      std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (key == "host" || key == "hostaddr") {
      hosts = std::max(hosts, 1 + std::count(value.begin(), value.end(), ','));
    }
  }
  if (seconds <= 0) return std::chrono::hours(1);
  return std::chrono::seconds(seconds) * hosts;
}

[[noreturn]] void refuse(PGconn* connection, const std::string& why) {
  PQfinish(connection);
  throw pqxx::broken_connection(why);
}

}  // namespace

pqxx::connectionpolicy::handle InterruptibleConnect::do_startconnect(handle orig) {
  if (orig != nullptr) return orig;
  PGconn* const connection = PQconnectStart(options().c_str());
  if (connection == nullptr) throw std::bad_alloc();
  const auto limit = time_limit(connection);
  const auto began = Clock::now();
  PostgresPollingStatusType next = PGRES_POLLING_WRITING;
  while (PQstatus(connection) != CONNECTION_BAD && next != PGRES_POLLING_OK) {
    if (interrupted()) refuse(connection, "interrupted while it did not answer");
    if (Clock::now() - began > hurried(limit)) refuse(connection, "timeout expired");
    pollfd ready{PQsocket(connection), POLLOUT, 0};
    if (next == PGRES_POLLING_READING) ready.events = POLLIN;
    if (::poll(&ready, 1, kLookMs) > 0) next = PQconnectPoll(connection);
    if (next == PGRES_POLLING_FAILED) break;
  }
  if (PQstatus(connection) != CONNECTION_OK) refuse(connection, PQerrorMessage(connection));
  return connection;
}

}  // namespace assay
