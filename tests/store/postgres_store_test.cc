// The store of a run that many machines share, on a real PostgreSQL: every case ends once, whatever
// becomes of those who worked on it.

#include "store/postgres_store.h"

#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "postgres_server.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::PostgresServer;

using StorePtr = std::unique_ptr<PostgresStore>;

class Postgres : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (PostgresServer::programs()) server_ = std::make_unique<PostgresServer>();
  }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override {
    if (!server_) GTEST_SKIP() << "PostgreSQL is not installed: tools/setup dev";
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string schema = info->name();
    for (char& c : schema) c = static_cast<char>(std::tolower(c));
    address_ = server_->address(schema);
  }

  StorePtr opened(std::chrono::milliseconds lease_time = std::chrono::seconds(30)) {
    PostgresStore::Options options;
    options.lease_time = lease_time;
    auto store = PostgresStore::open(address_, StoreMode::create, options);
    if (!store) throw std::runtime_error(store.error().message);
    return std::move(*store);
  }

  static std::unique_ptr<PostgresServer> server_;
  std::string address_;
};
std::unique_ptr<PostgresServer> Postgres::server_;

void add(Store& store, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t id = first; id <= last; ++id) {
    const std::string text = "paddle.abs(" + std::to_string(id) + ")";
    ASSERT_TRUE(store.add_case({id, text, id, id}));
  }
  ASSERT_TRUE(store.commit());
}

std::vector<Lease> claim(Store& store, std::size_t most, std::optional<Supply> left = {}) {
  std::vector<Lease> leases;
  const auto supply = store.claim(most, [&](const ClaimedCase& each) -> Status {
    leases.push_back(each.lease);
    return {};
  });
  EXPECT_TRUE(supply.has_value()) << supply.error().message;
  if (left) {
    EXPECT_EQ(*supply, *left);
  }
  return leases;
}

bool finish(Store& store, const Lease& lease, Outcome outcome = Outcome::pass) {
  FinishedCase made;
  made.id = lease.id;
  made.verdict = {outcome, kValue, kFlaky, "paddle", std::string("a message\0, \xff", 13)};
  made.attempts = 2;
  made.finished_ms = 1'700'000'000'000;
  const std::vector<std::uint8_t> record{0, 255, 10, 92};
  made.record = record;
  const auto taken = store.finish(lease, made);
  return taken && *taken;
}

std::vector<std::uint64_t> finished_ids(Store& store) {
  std::vector<std::uint64_t> ids;
  EXPECT_TRUE(store.each_finished_id([&](std::uint64_t id) { ids.push_back(id); }));
  return ids;
}

TEST_F(Postgres, EverythingOfACaseComesBack) {
  const StorePtr store = opened();
  constexpr std::uint64_t kTopBit = 0x8000'0000'0000'0001;
  ASSERT_TRUE(store->add_case({kTopBit, "paddle.abs(\"\u03b1\t\\n\")", 7, 8}));
  ASSERT_TRUE(store->set_property("seed", "7"));
  ASSERT_TRUE(store->set_property("seed", "8"));
  ASSERT_TRUE(store->add_invalid({"f:1", "bad", "column 1"}));
  const auto leases = claim(*store, 5, Supply::none);
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_TRUE(finish(*store, leases[0]));
  EXPECT_FALSE(finish(*store, leases[0]));  // it has ended
  ASSERT_TRUE(store->commit());

  const StorePtr reader = opened();
  EXPECT_EQ(reader->properties()->at("seed"), "8");
  int seen = 0;
  ASSERT_TRUE(reader->each_finished([&](const FinishedCase& each) -> Status {
    ++seen;
    EXPECT_EQ(each.id, kTopBit);
    EXPECT_EQ(each.text, "paddle.abs(\"\u03b1\t\\n\")");
    EXPECT_EQ(each.verdict.outcome, Outcome::pass);
    EXPECT_EQ(each.verdict.mismatch, kValue);
    EXPECT_EQ(each.verdict.flags, kFlaky);
    EXPECT_EQ(each.verdict.message, "a message?, ?");  // neither is text for PostgreSQL
    EXPECT_EQ(each.attempts, 2U);
    EXPECT_THAT(each.record, ElementsAre(0, 255, 10, 92));
    return {};
  }));
  EXPECT_EQ(seen, 1);
  int invalid = 0;
  ASSERT_TRUE(reader->each_invalid([&](const InvalidLine& line) -> Status {
    invalid += line.message == "column 1" ? 1 : 0;
    return {};
  }));
  EXPECT_EQ(invalid, 1);
}

TEST_F(Postgres, TheMostExpensiveComeFirstAndNobodyGetsThemTwice) {
  const StorePtr planner = opened();
  add(*planner, 1, 10);
  const StorePtr a = opened();
  const StorePtr b = opened();
  const auto first = claim(*a, 4, Supply::more);
  const auto second = claim(*b, 100, Supply::held_elsewhere);
  std::set<std::uint64_t> ids;
  for (const Lease& lease : first) ids.insert(lease.id);
  EXPECT_THAT(ids, ElementsAre(7, 8, 9, 10));
  for (const Lease& lease : second) EXPECT_TRUE(ids.insert(lease.id).second);
  EXPECT_EQ(ids.size(), 10U);
}

TEST_F(Postgres, AClaimerThatWasCutOffChangesNothing) {
  const StorePtr planner = opened();
  add(*planner, 1, 3);
  const StorePtr lost = opened(std::chrono::milliseconds(1));
  const auto old = claim(*lost, 3, Supply::more);
  ASSERT_EQ(old.size(), 3U);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const StorePtr next = opened();
  const auto leases = claim(*next, 10);
  ASSERT_EQ(leases.size(), 3U);
  EXPECT_GT(leases[0].epoch, old[0].epoch);
  for (const Lease& lease : old) EXPECT_TRUE(finish(*lost, lease, Outcome::crash));
  ASSERT_TRUE(lost->commit());
  EXPECT_EQ(lost->fenced(), 3U);
  EXPECT_TRUE(finished_ids(*planner).empty());
  for (const Lease& lease : leases) EXPECT_TRUE(finish(*next, lease));
  ASSERT_TRUE(next->commit());
  EXPECT_EQ(next->fenced(), 0U);
  EXPECT_EQ(finished_ids(*planner).size(), 3U);
}

TEST_F(Postgres, WhatIsRenewedOrReleasedIsKnownToOthers) {
  const StorePtr planner = opened();
  add(*planner, 1, 2);
  const StorePtr a = opened(std::chrono::hours(1));
  const auto held = claim(*a, 1);
  ASSERT_TRUE(a->renew());
  ASSERT_TRUE(a->release_all());
  ASSERT_TRUE(a->commit());
  EXPECT_FALSE(finish(*a, held[0]));
  const StorePtr b = opened();
  EXPECT_EQ(claim(*b, 10, Supply::none).size(), 2U);
}

TEST_F(Postgres, WhoAddedCasesGetsOnlyThose) {
  const StorePtr planner = opened();
  add(*planner, 1, 10);
  const StorePtr one = opened();
  add(*one, 4, 5);
  EXPECT_EQ(claim(*one, 10, Supply::none).size(), 2U);
}

TEST_F(Postgres, ARetestMakesCasesOpenAgain) {
  const StorePtr store = opened();
  add(*store, 1, 2);
  const auto leases = claim(*store, 2);
  EXPECT_TRUE(finish(*store, leases[0], Outcome::crash));
  EXPECT_TRUE(finish(*store, leases[1], Outcome::pass));
  ASSERT_TRUE(store->commit());
  {
    const StorePtr undone = opened();
    EXPECT_EQ(*undone->forget_finished(std::array{Outcome::crash}), 1);
    EXPECT_EQ(finished_ids(*undone).size(), 1U);  // and never committed
  }
  EXPECT_EQ(finished_ids(*store).size(), 2U);
  const StorePtr again = opened();
  EXPECT_EQ(*again->forget_finished(std::array{Outcome::crash}), 1);
  EXPECT_EQ(claim(*again, 10, Supply::none).size(), 1U);
}

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

TEST_F(Postgres, TwoThatBeginARunAtOnceBothSucceed) {
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto store = PostgresStore::open(address_, StoreMode::create);
      if (store) ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 4);
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
  EXPECT_FALSE(PostgresStore::is_address("assay-runs/postgresql"));
}

}  // namespace
}  // namespace assay
