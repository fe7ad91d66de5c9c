// A database that is restarted, unreachable, full, or missing.

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
  for (const Lease& lease : leases) EXPECT_TRUE(finish(*store, lease));
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
  const auto refused = (*worker)->claim(1, [](const ClaimedCase&) -> Status { return {}; });
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("the database: "));
  EXPECT_EQ(refused.error().message.find('\n'), std::string::npos);
  server_->start();
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
  for (const Lease& lease : leases) {
    FinishedCase made;
    made.record = record;
    ASSERT_TRUE(*(*store)->finish(lease, made));
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
