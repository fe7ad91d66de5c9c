// A database that is restarted, unreachable, full, or missing.

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <pqxx/pqxx>
#include <thread>

#include "postgres_fixture.h"
#include "store/postgres_errors.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(Postgres, ResultsOutliveARestartOfTheDatabase) {
  const StorePtr store = opened();
  add(*store, 1, 3);
  const auto leases = claim(*store, 3);
  for (const wire::JobT& job : leases) EXPECT_TRUE(finish(*store, job));
  server_->stop();
  std::thread later([] { server_->start(); });
  const Status committed = store->commit();
  later.join();
  ASSERT_TRUE(committed.has_value()) << committed.error().message;
  EXPECT_EQ(finished_ids(*store).size(), 3U);
  EXPECT_EQ(store->fenced(), 0U);
}

// For a claimer that has added its cases itself, and for one that has not.
TEST_F(Postgres, ClaimsGoOnWhenTheDatabaseIsBack) {
  for (const bool own : {false, true}) {
    address_ = server_->address(own ? "back_own" : "back");
    const StorePtr planner = opened();
    add(*planner, 1, 3);
    const StorePtr worker = opened();
    if (own) add(*worker, 1, 3);
    ASSERT_EQ(claim(*worker, 1, Supply::more).size(), 1U);
    server_->stop();
    std::thread later([] {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      server_->start();
    });
    ASSERT_TRUE(worker->renew());
    later.join();
    EXPECT_EQ(claim(*worker, 9, Supply::none).size(), 2U);
  }
}

TEST_F(Postgres, ADatabaseThatStaysAwayIsOneLine) {
  const StorePtr planner = opened();
  add(*planner, 1, 1);
  PostgresStore::Options impatient;
  impatient.patience = std::chrono::milliseconds(100);
  auto worker = PostgresStore::open(address_, StoreMode::existing, impatient);
  ASSERT_TRUE(worker.has_value());
  server_->stop();
  const auto refused = (*worker)->claim(1, [](const wire::JobT&) -> Status { return {}; });
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("the database: "));
  EXPECT_EQ(refused.error().message.find('\n'), std::string::npos);
  server_->start();
}

// The server's processes for connections to this schema's tests.
std::vector<pid_t> backends(const std::string& address) {
  pqxx::connection session(address);
  pqxx::nontransaction work(session);
  std::vector<pid_t> found;
  for (const auto& row : work.exec("SELECT pid FROM pg_stat_activity WHERE usename = 'assay' AND "
                                   "datname = 'runs' AND pid <> pg_backend_pid()")) {
    found.push_back(row[0].as<pid_t>());
  }
  return found;
}

// A backend that is stopped answers nothing, and its connection stays open.
class APostgresBackendThatStops : public Postgres {
 protected:
  void stop_backends() {
    stopped_ = backends(address_);
    ASSERT_FALSE(stopped_.empty());
    for (const pid_t each : stopped_) ::kill(each, SIGSTOP);
  }
  void TearDown() override {
    for (const pid_t each : stopped_) ::kill(each, SIGCONT);
  }
  StorePtr impatient(std::chrono::milliseconds patience) {
    PostgresStore::Options options;
    options.answer_limit = options.whole_table_limit = std::chrono::milliseconds(500);
    options.patience = patience;
    options.bundle = std::chrono::microseconds(1);
    options.least_bundles = 1;
    return std::move(*PostgresStore::open(address_, StoreMode::create, options));
  }

  std::vector<pid_t> stopped_;
};

TEST_F(APostgresBackendThatStops, IsReplacedAndTheClaimerGoesOn) {
  const StorePtr store = impatient(std::chrono::seconds(60));
  add(*store, 1, 3);
  const auto leases = claim(*store, 3);
  for (const wire::JobT& job : leases) EXPECT_TRUE(finish(*store, job));
  stop_backends();
  const Status committed = store->commit();
  ASSERT_TRUE(committed.has_value()) << committed.error().message;
  EXPECT_EQ(finished_ids(*store).size(), 3U);
}

TEST_F(APostgresBackendThatStops, IsAnErrorOfItsReaders) {
  const StorePtr store = impatient(std::chrono::milliseconds(0));
  add(*store, 1, 3);
  stop_backends();
  const auto counts = store->counts();
  ASSERT_FALSE(counts.has_value());
  EXPECT_THAT(counts.error().message, HasSubstr("the database: no answer for"));
}

// What a run does at its end, after the database has stayed away for too long.
TEST_F(APostgresBackendThatStops, LeavesAStoreThatCanBeAskedAgain) {
  const StorePtr store = impatient(std::chrono::milliseconds(0));
  add(*store, 1, 3);
  const auto leases = claim(*store, 2);
  EXPECT_TRUE(finish(*store, leases[0]));
  server_->stop();
  EXPECT_FALSE(store->commit().has_value());
  EXPECT_FALSE(store->release_all().has_value());
  EXPECT_FALSE(store->commit().has_value());
  EXPECT_FALSE(store->counts().has_value());
  server_->start();
  EXPECT_TRUE(store->commit());
  EXPECT_EQ(finished_ids(*store).size(), 1U);
}

// Who has waited in vain does not wait again for what a run still does at its end.
TEST_F(APostgresBackendThatStops, IsNotWaitedForAgainAndAgain) {
  address_ += "&connect_timeout=4";
  const StorePtr store = impatient(std::chrono::milliseconds(0));
  add(*store, 1, 3);
  EXPECT_TRUE(finish(*store, claim(*store, 2)[0]));
  server_->stop();
  const std::string folder = address_.substr(address_.find("host=") + 5);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  (folder.substr(0, folder.find('&')) + "/.s.PGSQL.5432")
      .copy(name.sun_path, sizeof name.sun_path - 1);
  const Fd silent(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(silent.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::chmod(name.sun_path, 0777), 0);
  ASSERT_EQ(::listen(silent.get(), 64), 0);
  EXPECT_FALSE(store->commit());
  EXPECT_THAT(store->commit().error().message, HasSubstr("timeout expired"));
  EXPECT_THAT(store->commit().error().message, HasSubstr("it does not answer"));
  ::unlink(name.sun_path);
  server_->start();
  std::this_thread::sleep_for(std::chrono::seconds(5));
  EXPECT_TRUE(store->commit());
}

// The claimer keeps results that it cannot write, and writes them when there is room again.
TEST(PostgresOnASmallDisk, ADiskThatStaysFullIsOneLineAndLosesNothing) {
  if (!PostgresServer::programs()) GTEST_SKIP() << "PostgreSQL is not installed: tools/setup dev";
  if (::geteuid() != 0) GTEST_SKIP() << "a small disk for the database needs root";
  std::unique_ptr<PostgresServer> server;
  try {
    constexpr int kMegabytes = 160;
    server = std::make_unique<PostgresServer>("", kMegabytes);
  } catch (const std::exception& error) {
    GTEST_SKIP() << error.what();
  }
  PostgresStore::Options options;
  options.patience = std::chrono::milliseconds(300);
  const auto store = PostgresStore::open(server->address("small"), StoreMode::create, options);
  ASSERT_TRUE(store.has_value()) << store.error().message;
  add(**store, 1, 400);
  const auto leases = claim(**store, 400);
  ASSERT_EQ(leases.size(), 400U);
  server->fill_disk();
  const std::vector<std::uint8_t> record(4'000, 7);  // more than the tables have room for
  for (const wire::JobT& job : leases) {
    FinishedCase made = testing::finished_of(job);
    made.record = record;
    ASSERT_TRUE(*(*store)->finish(made));
  }
  const Status refused = (*store)->commit();
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("disk is full"));
  EXPECT_EQ(refused.error().message.find('\n'), std::string::npos);
  EXPECT_THAT(finished_ids(**store), ::testing::IsEmpty());
  server->free_disk();
  EXPECT_TRUE((*store)->commit());
  EXPECT_EQ(finished_ids(**store).size(), 400U);
}

TEST_F(Postgres, BadDatabasesAreOneLine) {
  const auto none = PostgresStore::open(address_, StoreMode::existing);
  ASSERT_FALSE(none.has_value());
  EXPECT_THAT(none.error().message, HasSubstr("holds no run of assay"));
  const auto away =
      PostgresStore::open("postgresql://assay:secret@/runs?host=/nowhere", StoreMode::existing);
  ASSERT_FALSE(away.has_value());
  EXPECT_THAT(away.error().message, HasSubstr("the database: "));
  EXPECT_EQ(away.error().message.find('\n'), std::string::npos);
  EXPECT_EQ(away.error().message.find("secret"), std::string::npos);
  EXPECT_TRUE(PostgresStore::is_address("postgresql://a/b"));
  EXPECT_TRUE(postgres::has_password("postgresql://me:secret@db/runs"));
  EXPECT_TRUE(postgres::has_password("postgresql://me@db/runs?password=secret"));
  EXPECT_FALSE(postgres::has_password("postgresql://me@db/runs"));
  EXPECT_FALSE(postgres::has_password("no address"));
  EXPECT_FALSE(PostgresStore::is_address("assay-runs/postgresql"));
}

}  // namespace
}  // namespace assay::testing
