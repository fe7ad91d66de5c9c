// The store of a run that many machines share, on a real PostgreSQL: every case ends once, whatever
// becomes of those who worked on it.

#include "store/postgres_store.h"

#include <gmock/gmock.h>

#include <pqxx/pqxx>
#include <set>
#include <thread>

#include "made_cases.h"
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

  // Its bundles are single cases, unless the test wants more in them.
  StorePtr opened(std::chrono::milliseconds lease_time = std::chrono::seconds(30),
                  std::chrono::microseconds bundle = std::chrono::microseconds(1)) {
    PostgresStore::Options options;
    options.lease_time = lease_time;
    options.bundle = bundle;
    options.least_bundles = 1;
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
    ASSERT_TRUE(store.add_case({id, text, id, id, id}));
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
  made.took_us = 5'000'000 / lease.id;
  const std::vector<std::uint8_t> record{0, 255, 10, 92};
  made.record = record;
  const auto taken = store.finish(lease, made);
  return taken && *taken;
}

std::set<std::uint64_t> ids_of(const std::vector<Lease>& leases) {
  std::set<std::uint64_t> ids;
  for (const Lease& lease : leases) ids.insert(lease.id);
  return ids;
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

TEST_F(Postgres, ABundleIsWorkForSomeSeconds) {
  const StorePtr planner = opened(std::chrono::seconds(30), std::chrono::microseconds(10));
  add(*planner, 1, 7);  // 7 + 6 | 5 + 4 | 3 + 2 + 1, by what comes before a case
  EXPECT_EQ(planner->added(), 7U);
  const StorePtr a = opened();
  EXPECT_THAT(ids_of(claim(*a, 1, Supply::more)), ElementsAre(6, 7));
  const StorePtr b = opened();
  EXPECT_THAT(ids_of(claim(*b, 1, Supply::more)), ElementsAre(4, 5));
  EXPECT_THAT(ids_of(claim(*b, 9, Supply::held_elsewhere)), ElementsAre(1, 2, 3));
}

TEST_F(Postgres, ASmallPlanIsForManyToo) {
  auto planner = PostgresStore::open(address_, StoreMode::create);
  ASSERT_TRUE(planner.has_value());
  for (std::uint64_t id = 1; id <= 512; ++id) {
    ASSERT_TRUE((*planner)->add_case({id, std::to_string(id), 1, 1, 600}));
  }
  ASSERT_TRUE((*planner)->commit());
  EXPECT_EQ(claim(*opened(), 1, Supply::more).size(), 2U);
}

// What is left of a bundle goes to others when its claimer has ended what was its own.
TEST_F(Postgres, TheRestOfABundleGoesToOthers) {
  const StorePtr planner = opened(std::chrono::seconds(30), std::chrono::seconds(1));
  add(*planner, 1, 5);
  const StorePtr some = opened();
  add(*some, 2, 3);
  EXPECT_EQ(some->added(), 0U);
  for (const Lease& lease : claim(*some, 9, Supply::none)) EXPECT_TRUE(finish(*some, lease));
  const StorePtr next = opened();
  EXPECT_TRUE(claim(*next, 9, Supply::held_elsewhere).empty());
  ASSERT_TRUE(some->commit());
  EXPECT_THAT(ids_of(claim(*next, 9, Supply::none)), ElementsAre(1, 4, 5));
}

// A plan that is too large to be sorted first, into an empty table and into one with cases.
TEST_F(Postgres, ALargePlanIsCutByCostAsItComes) {
  constexpr std::uint64_t kCases = 120'000;
  const auto add_large = [](Store& store, std::uint64_t first) {
    for (std::uint64_t id = first; id < first + kCases; ++id) {
      const std::uint64_t work = id % 2 == 0 ? 100'000 : 50;
      ASSERT_TRUE(store.add_case({id, "paddle.abs(" + std::to_string(id) + ")", id, id, work}));
      if (id == first + 100'500) {
        ASSERT_TRUE(store.add_invalid({"f:1", "bad", "column 1"}));
      }
    }
    ASSERT_TRUE(store.commit());
  };
  auto planner = PostgresStore::open(address_, StoreMode::create);
  ASSERT_TRUE(planner.has_value());
  constexpr std::uint64_t kFirst =
      10'000'001;  // other tests of this database have taken none of these
  add_large(**planner, kFirst);
  EXPECT_EQ((*planner)->added(), kCases);
  EXPECT_EQ(opened()->counts()->planned, kCases);
  const StorePtr worker = opened();
  std::vector<std::uint64_t> costs;
  const auto supply = worker->claim(2, [&](const ClaimedCase& each) -> Status {
    EXPECT_EQ(each.planned.text, "paddle.abs(" + std::to_string(each.lease.id) + ")");
    EXPECT_EQ(each.planned.elements, each.lease.id);
    costs.push_back(each.planned.work_us);
    return {};
  });
  EXPECT_EQ(*supply, Supply::more);
  EXPECT_EQ(costs, std::vector<std::uint64_t>(40, 100'000));  // two times two seconds

  // Half of these are there: their estimates are the newest, the other half is new.
  auto again = PostgresStore::open(address_, StoreMode::create);
  add_large(**again, kFirst + kCases / 2);
  EXPECT_EQ((*again)->added(), kCases / 2);
  EXPECT_EQ(opened()->counts()->planned, kCases + kCases / 2);
  pqxx::connection session(address_);
  pqxx::work work(session);
  EXPECT_EQ(work.exec1("SELECT count(*) FROM pg_indexes WHERE tablename = 'planned' AND "
                       "schemaname = current_schema()")[0]
                .as<int>(),
            2);
  EXPECT_EQ(work.exec1("SELECT sum(left_over) FROM bundle")[0].as<std::uint64_t>(),
            kCases + kCases / 2);
}

TEST_F(Postgres, WhatACaseTookBeforeIsWhatItIsExpectedToTake) {
  const StorePtr before = opened();
  add(*before, 1, 3);
  // 5, 2.5 and 1.7 s, where the plan had expected 1, 2 and 3 microseconds.
  for (const Lease& lease : claim(*before, 9)) EXPECT_TRUE(finish(*before, lease));
  ASSERT_TRUE(before->commit());
  address_ = server_->address("another_run");
  const StorePtr now = opened(std::chrono::seconds(30), std::chrono::seconds(2));
  add(*now, 1, 5);
  EXPECT_THAT(ids_of(claim(*now, 1)), ElementsAre(1));
  EXPECT_THAT(ids_of(claim(*now, 1)), ElementsAre(2));
  EXPECT_THAT(ids_of(claim(*now, 1)), ElementsAre(3));
  EXPECT_THAT(ids_of(claim(*now, 1)), ElementsAre(4, 5));
}

// Works on a plan of these cases, of which each takes so long.
void run_all(Store& store, std::uint64_t first, std::uint64_t last, std::uint64_t took_us) {
  for (std::uint64_t id = first; id <= last; ++id) {
    const std::string text = fmt::format("paddle.tan(Tensor([{}], \"float32\"))", id);
    ASSERT_TRUE(store.add_case({id, text, id, 1, 7}));
  }
  for (const Lease& lease : claim(store, 1'000)) {
    FinishedCase made;
    made.took_us = took_us;
    ASSERT_TRUE(*store.finish(lease, made));
  }
  ASSERT_TRUE(store.commit());
}

std::map<std::uint64_t, std::uint64_t> expected_of(Store& store) {
  std::map<std::uint64_t, std::uint64_t> expected;
  EXPECT_TRUE(store.each_unfinished([&](const StoredCase& each) -> Status {
    expected[each.id] = each.work_us;
    return {};
  }));
  return expected;
}

void add_tan(Store& store, std::initializer_list<std::uint64_t> elements) {
  for (const std::uint64_t each : elements) {
    const std::string text = fmt::format("paddle.tan(Tensor([{}], \"float32\"))", each);
    ASSERT_TRUE(store.add_case({each, text, each, 1, 7}));
  }
  ASSERT_TRUE(store.commit());
}

// Of 50 million elements, so that no other test of this database has run cases of this kind.
TEST_F(Postgres, CasesOfAKindAreExpectedToTakeWhatOthersOfItTook) {
  constexpr std::uint64_t kFirst = 50'000'000;
  const StorePtr before = opened();
  run_all(*before, kFirst, kFirst + 1, 400);
  run_all(*opened(), kFirst + 2, kFirst + 3, 800);
  const StorePtr dear = opened();
  run_all(*dear, kFirst + 4, kFirst + 4, 3'000'000);
  address_ = server_->address("kinds_learned");
  const StorePtr now = opened();
  add_tan(*now, {kFirst, kFirst + 4, kFirst + 9, 5});
  EXPECT_EQ(expected_of(*now),
            (std::map<std::uint64_t, std::uint64_t>{
                {kFirst, 600}, {kFirst + 4, 3'000'000}, {kFirst + 9, 600}, {5, 7}}));
}

// A plan reads the sums of a run and its dear cases: what stands in other rows does not matter.
TEST_F(Postgres, APlanDoesNotReadWhatIsSummedUp) {
  constexpr std::uint64_t kFirst = 300'000'000;
  run_all(*opened(), kFirst, kFirst + 3, 500);
  pqxx::connection session(address_);
  {
    pqxx::work work(session);
    work.exec0("UPDATE finished SET took_us = 999");
    work.commit();
  }
  address_ = server_->address("not_read");
  const StorePtr now = opened();
  add_tan(*now, {kFirst});
  EXPECT_EQ(expected_of(*now).at(kFirst), 500U);
}

TEST_F(Postgres, WhoBeginsARunAtOnceAgreesOnWhatItIs) {
  const StorePtr first = opened();
  const StorePtr second = opened();
  EXPECT_EQ(*first->agree_on("paddle", "3.3.1"), "3.3.1");
  std::string stands;
  std::thread other([&] { stands = *second->agree_on("paddle", "3.4.0"); });
  ASSERT_TRUE(first->commit());
  other.join();
  EXPECT_EQ(stands, "3.3.1");
}

TEST_F(Postgres, TwoPlansOfOneCorpusAddEachCaseOnce) {
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> added = 0;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const StorePtr planner = opened();
      ASSERT_TRUE(planner->forget_invalid());
      ASSERT_TRUE(planner->add_invalid({"f:1", "bad", "column 1"}));
      add(*planner, 1, 1000);
      added += planner->added();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(added, 1000U);
  const StorePtr reader = opened();
  EXPECT_EQ(reader->counts()->planned, 1000U);
  int invalid = 0;
  ASSERT_TRUE(reader->each_invalid([&](const InvalidLine&) -> Status {
    ++invalid;
    return {};
  }));
  EXPECT_EQ(invalid, 1);
  EXPECT_EQ(ids_of(claim(*reader, 2000, Supply::none)).size(), 1000U);
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

// A claim records what has ended before it, also where some of it cannot be.
TEST_F(Postgres, AClaimRecordsWhatHasEnded) {
  const StorePtr planner = opened();
  for (const std::uint64_t id :
       {7'000'001, 7'000'002, 7'000'003, 7'000'004, 7'000'005, 7'000'006}) {
    ASSERT_TRUE(planner->add_case({id, fmt::format("paddle.sinh({})", id), 1, 1, id}));
  }
  ASSERT_TRUE(planner->commit());
  const StorePtr slow = opened();
  const StorePtr worker = opened();
  const auto both = claim(*slow, 2, Supply::more);
  EXPECT_TRUE(finish(*slow, both[0]));
  const auto own = claim(*worker, 2, Supply::more);
  ASSERT_EQ(own.size(), 2U);
  EXPECT_EQ(finished_ids(*planner).size(), 0U);
  for (const Lease& lease : own) EXPECT_TRUE(finish(*worker, lease));
  {
    pqxx::connection session(address_);
    pqxx::work work(session);
    work.exec_params0(
        "UPDATE bundle SET held_until = now() - interval '1 h' WHERE dearest_us >= $1",
        std::min(both[0].id, both[1].id));
    work.commit();
  }
  // It gets the two that `slow` has lost: dear ones come first.
  EXPECT_EQ(ids_of(claim(*worker, 2, Supply::more)), ids_of(both));
  const auto recorded = [&] {
    const auto ids = finished_ids(*planner);
    return std::set<std::uint64_t>(ids.begin(), ids.end());
  };
  EXPECT_EQ(recorded(), ids_of(own));
  EXPECT_EQ(claim(*slow, 1, Supply::more).size(), 1U);  // and what it had ended is not recorded
  EXPECT_EQ(slow->fenced(), 1U);
  EXPECT_EQ(recorded(), ids_of(own));
  EXPECT_EQ(planner->tally()->finished(), 2);
}

// One that is slow near the end takes a small bundle, or none while it has work; but one that has
// none is given the smallest.
TEST_F(Postgres, ASlowClaimerTakesSmallBundles) {
  const StorePtr planner = opened();
  for (std::uint64_t id = 1; id <= 40; ++id) {
    const std::uint64_t work = id <= 20 ? 900'000 : 1'000;
    ASSERT_TRUE(
        planner->add_case({80'000'000 + id, fmt::format("paddle.acosh({})", id), 1, 1, work}));
  }
  ASSERT_TRUE(planner->commit());
  PostgresStore::Options options;  // it has ended nothing in 30 s, in which others did 30 s of work
  for (const double second : {0, 10, 20, 30}) {
    options.share.worked(second * 1e6, 0);
    options.share.saw(second * 1e6, static_cast<std::int64_t>((100 - second) * 1e6));
  }
  const auto slow = PostgresStore::open(address_, StoreMode::existing, options);
  const auto smallest = claim(**slow, 1, Supply::more);
  ASSERT_EQ(smallest.size(), 1U);
  EXPECT_GT(smallest[0].id, 80'000'020U);
  EXPECT_TRUE(claim(**slow, 1, Supply::held_elsewhere).empty());
  EXPECT_TRUE(finish(**slow, smallest[0]));
  EXPECT_EQ(claim(**slow, 1, Supply::more).size(), 1U);
  const StorePtr other = opened();
  EXPECT_LE(claim(*other, 1, Supply::more).at(0).id, 80'000'020U);
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

// Where an earlier case of the bundle is open again, a bundle that was done is not.
TEST_F(Postgres, ABundleIsDoneWhenItsLastCaseHasEnded) {
  const StorePtr planner = opened(std::chrono::seconds(30), std::chrono::seconds(60));
  for (const std::uint64_t id : {9'000'001, 9'000'002, 9'000'003}) {
    ASSERT_TRUE(planner->add_case({id, fmt::format("paddle.cosh({})", id), 1, 1, 1}));
  }
  ASSERT_TRUE(planner->commit());
  const auto is_done = [&] {
    pqxx::connection session(address_);
    pqxx::work work(session);
    return work.exec1("SELECT done FROM bundle")[0].as<bool>();
  };
  const StorePtr worker = opened();
  const auto leases = claim(*worker, 1);
  ASSERT_EQ(leases.size(), 3U);
  EXPECT_TRUE(finish(*worker, leases[0], Outcome::crash));
  EXPECT_TRUE(finish(*worker, leases[1]));
  ASSERT_TRUE(worker->commit());
  EXPECT_FALSE(is_done());
  EXPECT_TRUE(finish(*worker, leases[2]));
  ASSERT_TRUE(worker->commit());
  EXPECT_TRUE(is_done());
  EXPECT_EQ(*planner->forget_finished(std::array{Outcome::crash}), 1);
  ASSERT_TRUE(planner->commit());
  EXPECT_FALSE(is_done());
  const auto again = claim(*worker, 1, Supply::more);
  ASSERT_EQ(ids_of(again).size(), 1U);
  EXPECT_TRUE(finish(*worker, again[0]));
  ASSERT_TRUE(worker->commit());
  EXPECT_TRUE(is_done());
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

// Whether the claimer has added its cases itself or not.
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

// What is to be recorded stays with its claimer, which can write it when there is room again.
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

TEST_F(Postgres, TablesOfAnotherVersionAreRefused) {
  { const StorePtr made = opened(); }
  pqxx::connection session(address_);
  for (const auto& [version, who] : {std::pair{6, "a newer assay"}, {2, "an older assay"}}) {
    pqxx::work work(session);
    work.exec_params0("UPDATE assay_schema SET version = $1", version);
    work.commit();
    const auto refused = PostgresStore::open(address_, StoreMode::create);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind, ErrorKind::usage);
    EXPECT_THAT(refused.error().message, HasSubstr(who));
  }
}

// As version 3 made it: without sums, and results had numbers by themselves.
constexpr const char* kVersion3 = R"sql(
CREATE TABLE assay_schema (version integer NOT NULL);
INSERT INTO assay_schema VALUES (3);
CREATE TABLE property (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE bundle (number bigint PRIMARY KEY, dearest_us bigint NOT NULL, left_over bigint NOT NULL,
                     epoch bigint NOT NULL DEFAULT 0, claimer text, held_until timestamptz,
                     done boolean NOT NULL DEFAULT false);
CREATE TABLE planned (id bigint PRIMARY KEY, bundle bigint NOT NULL, text text NOT NULL,
                      elements bigint NOT NULL, bytes bigint NOT NULL, work_us bigint NOT NULL);
CREATE TABLE finished (sequence bigserial PRIMARY KEY, id bigint NOT NULL UNIQUE,
                       outcome text NOT NULL, mismatch integer NOT NULL, flags integer NOT NULL,
                       lane text NOT NULL, message text NOT NULL, attempts bigint NOT NULL,
                       at_ms bigint NOT NULL, took_us bigint NOT NULL, record bytea);
CREATE TABLE invalid (place text, text text, message text);
INSERT INTO bundle VALUES (1, 5, 1, 1);
INSERT INTO planned VALUES (-5, 1, 'paddle.abs(Tensor([2], "int8"))', 1, 1, 5),
                           (6, 1, 'paddle.exp(1)', 1, 1, 5), (7, 1, 'paddle.log(1)', 1, 1, 5);
INSERT INTO finished (id, outcome, mismatch, flags, lane, message, attempts, at_ms, took_us) VALUES
  (-5, 'mismatch', 8, 2, 'paddle', 'differs', 2, 1600000000000, 40),
  (6, 'pass', 0, 0, '', '', 1, 1600000090000, 2);
)sql";
constexpr const char* kResultOfVersion3 =
    "INSERT INTO finished (id, outcome, mismatch, flags, lane, message, attempts, at_ms, took_us) "
    "VALUES (7, 'pass', 0, 0, '', '', 1, 1, 1)";

TEST_F(Postgres, TheVersionWithoutSumsIsReadAsItIsAndUpgradedByWhoWrites) {
  pqxx::connection session(address_);
  {
    pqxx::work work(session);
    work.exec0(kVersion3);
    work.commit();
  }
  const auto version = [&] {
    return pqxx::work(session).exec1("SELECT version FROM assay_schema")[0].as<int>();
  };
  PostgresStore::Options looks_on;
  looks_on.read_only = true;
  const auto reader = PostgresStore::open(address_, StoreMode::read, looks_on);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  const Tally before = *(*reader)->tally();
  EXPECT_EQ(before.finished(), 2);
  EXPECT_EQ(before.cases().at({{"paddle.abs", "int8", 1}, Outcome::mismatch, kFlaky}).took_us, 40);
  EXPECT_EQ(*(*reader)->unfinished(), 1U);
  int mismatches = 0;
  ASSERT_TRUE((*reader)->each_of(Outcome::mismatch, 9, [&](const FinishedCase&) -> Status {
    ++mismatches;
    return {};
  }));
  EXPECT_EQ(mismatches, 1);
  EXPECT_EQ(version(), 3);
  const StorePtr writer = opened();
  EXPECT_EQ(version(), 5);
  EXPECT_EQ(*writer->tally(), before);
  const auto leases = claim(*writer, 1, Supply::more);
  ASSERT_EQ(ids_of(leases), std::set<std::uint64_t>{7});
  {  // one that was begun by version 3 is refused, and says so
    pqxx::work old(session);
    EXPECT_THROW(old.exec0(kResultOfVersion3), pqxx::not_null_violation);
  }
  EXPECT_TRUE(finish(*writer, leases[0]));
  ASSERT_TRUE(writer->commit());
  EXPECT_EQ(writer->tally()->finished(), 3);
  EXPECT_EQ(*writer->tally(), *writer->RunReader::tally());
}

// What version 4 added to it.
constexpr const char* kVersion4 = R"sql(
UPDATE assay_schema SET version = 4;
CREATE TABLE tally (changes text NOT NULL);
ALTER TABLE finished ALTER sequence DROP DEFAULT;
CREATE INDEX finished_listed ON finished (outcome, sequence) WHERE flags <> 0 OR outcome IN ('mismatch');
INSERT INTO tally VALUES ('case	paddle.abs	int8	1	mismatch	2	1	40	0	0	0	0	0	0	0	0	0
');
UPDATE planned SET elements = 90000000;
UPDATE finished SET took_us = 2000000 WHERE id = 6;
)sql";

TEST_F(Postgres, TheVersionWithoutCostsIsLearnedFromAndUpgradedByWhoWrites) {
  pqxx::connection session(address_);
  {
    pqxx::work work(session);
    work.exec0(kVersion3);
    work.exec0(kVersion4);
    work.commit();
  }
  const auto version = [&] {
    return pqxx::work(session).exec1("SELECT version FROM assay_schema")[0].as<int>();
  };
  const std::string old = address_;
  constexpr std::uint64_t kAbs = ~std::uint64_t{0} - 4;  // -5
  const auto expected_in = [&](const std::string& schema) {
    address_ = server_->address(schema);
    const StorePtr now = opened();
    EXPECT_TRUE(now->add_case({kAbs, "paddle.abs(Tensor([2], \"int8\"))", 90'000'000, 1, 7}));
    EXPECT_TRUE(now->add_case({6, "paddle.exp(1)", 90'000'000, 1, 7}));
    EXPECT_TRUE(now->add_case({1007, "paddle.abs(Tensor([3], \"int8\"))", 90'000'000, 1, 7}));
    EXPECT_TRUE(now->commit());
    return expected_of(*now);
  };
  // Another run learns from its cases as they are, and does not touch it.
  const auto from_cases = expected_in("beside_version_4");
  EXPECT_EQ(from_cases.at(kAbs), 40U);
  EXPECT_EQ(from_cases.at(6), 2'000'000U);
  EXPECT_EQ(from_cases.at(1007), 7U);
  EXPECT_EQ(version(), 4);
  address_ = old;
  const StorePtr writer = opened();
  EXPECT_EQ(version(), 5);
  EXPECT_EQ(writer->tally()->cases().size(), 1U);  // as it stood there
  {  // one that was begun by version 4 is refused, and says so
    pqxx::work late(session);
    EXPECT_THROW(late.exec0("INSERT INTO tally SELECT 'x'"), pqxx::not_null_violation);
  }
  const auto from_sums = expected_in("beside_version_5");
  EXPECT_EQ(from_sums.at(kAbs), 40U);
  EXPECT_EQ(from_sums.at(6), 2'000'000U);
  EXPECT_EQ(from_sums.at(1007), 40U);
}

// Equal but for what only sums know.
void expect_counted(PostgresStore& store) {
  const Tally counted = *store.RunReader::tally();
  const Tally kept = *store.tally();
  EXPECT_EQ(kept.cases(), counted.cases());
  EXPECT_EQ(kept.lanes(), counted.lanes());
  EXPECT_EQ(kept.not_judged(), counted.not_judged());
  EXPECT_EQ(kept.minutes(), counted.minutes());
  const auto counts = *store.counts();
  EXPECT_EQ(static_cast<std::uint64_t>(kept.finished()), counts.finished);
  EXPECT_EQ(*store.unfinished(), counts.planned - counts.finished);
}

class PostgresSums : public Postgres {
 protected:
  StorePtr worker(std::chrono::milliseconds lease_time) {
    PostgresStore::Options options;
    options.lease_time = lease_time;
    options.tally_characters = 1'000;
    return std::move(*PostgresStore::open(address_, StoreMode::existing, options));
  }
  void plan(std::uint64_t cases) {
    const StorePtr planner = opened(std::chrono::seconds(30), std::chrono::microseconds(20));
    for (std::uint64_t id = 1; id <= cases; ++id) {
      ASSERT_TRUE(planner->add_case({id, testing::made_text(id), 1, 1, 1 + id % 9}));
    }
    ASSERT_TRUE(planner->commit());
  }
};

// Claimers that lose their leases and come back, those that die, what is taken back by a retest:
// the sums are those of counting all cases.
TEST_F(PostgresSums, AreThoseOfAFullCountWhateverHappens) {
  plan(400);
  const StorePtr reader = opened();
  std::mt19937_64 random(7);
  std::array<StorePtr, 3> workers;
  std::array<std::vector<Lease>, 3> held;
  std::uint64_t fenced = 0;
  for (int step = 0; step < 400; ++step) {
    const std::size_t who = random() % 3;
    StorePtr& own = workers[who];
    std::vector<Lease>& leases = held[who];
    if (!own) own = worker(std::chrono::milliseconds(who == 0 ? 30'000 : 1));
    const int what = static_cast<int>(random() % 20);
    if (what < 5) {
      for (const Lease& each : claim(*own, 1 + random() % 3)) leases.push_back(each);
    } else if (what < 14) {
      for (std::size_t i = random() % 6; i > 0 && !leases.empty(); --i) {
        ASSERT_TRUE(testing::finish_somehow(*own, leases.back(), random));
        leases.pop_back();
      }
    } else if (what < 17) {
      ASSERT_TRUE(own->commit());
      expect_counted(*reader);
    } else if (what == 17) {
      fenced += own->fenced();
      own.reset();
      leases.clear();
    } else {
      const std::array open_again{what == 18 ? Outcome::crash : Outcome::pass};
      ASSERT_TRUE(reader->forget_finished(open_again));
      ASSERT_TRUE(reader->commit());
      expect_counted(*reader);
    }
  }
  for (const StorePtr& each : workers) fenced += each ? each->fenced() : 0;
  EXPECT_GT(fenced, 0U);
  EXPECT_GT(reader->tally()->taken_back(), 0);
}

// Many at once, who add up the sums between each other's commits.
TEST_F(PostgresSums, AreThoseOfAFullCountWithManyAtOnce) {
  plan(3'000);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 6; ++i) {
    threads.emplace_back([this, i] {
      std::mt19937_64 random(i);
      const StorePtr own = worker(std::chrono::seconds(30));
      while (true) {
        const auto leases = claim(*own, 1);
        if (leases.empty()) break;
        for (const Lease& each : leases) {
          ASSERT_TRUE(*testing::finish_somehow(*own, each, random));
        }
        ASSERT_TRUE(own->commit());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const StorePtr reader = opened();
  expect_counted(*reader);
  EXPECT_EQ(reader->tally()->finished(), 3'000);
  pqxx::connection session(address_);
  const auto rows = pqxx::work(session).exec1("SELECT count(*) FROM tally")[0].as<int>();
  EXPECT_LT(rows, 500);  // of more than 1,000 commits
}

// Two workers record at once: the one that began first gets the later number and commits first.
// Nobody who looks on misses what the other one commits then.
TEST_F(Postgres, WhoLooksOnMissesNothingThatCommitsLate) {
  const StorePtr reader = opened();
  add(*reader, 1, 3);
  const auto begin = [](pqxx::work& work) { work.exec("SELECT pg_current_xact_id()"); };
  const auto record = [](pqxx::work& work, int id) {
    work.exec_params0(
        "INSERT INTO finished (sequence, id, outcome, mismatch, flags, lane, message, attempts, "
        "at_ms, took_us) VALUES (nextval('finished_sequence_seq'), $1, 'crash', 0, 0, '', '', 1, "
        "1, 1)",
        id);
  };
  std::vector<std::uint64_t> seen;
  std::int64_t last = 0;
  const auto look = [&] {
    const auto to = reader->each_listed_after(
        last, 100, false, [&](const FinishedCase& each) { seen.push_back(each.id); });
    ASSERT_TRUE(to.has_value()) << to.error().message;
    last = *to;
  };
  pqxx::connection first_session(address_);
  pqxx::connection second_session(address_);
  {
    pqxx::work before(first_session);
    record(before, 1);
    before.commit();
  }
  pqxx::work first(first_session);
  begin(first);
  pqxx::work second(second_session);
  begin(second);
  record(second, 2);
  record(first, 3);
  first.commit();
  look();
  look();
  second.commit();
  look();
  look();
  EXPECT_THAT(seen, ElementsAre(1, 2, 3));
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
  EXPECT_TRUE(PostgresStore::has_password("postgresql://me:secret@db/runs"));
  EXPECT_TRUE(PostgresStore::has_password("postgresql://me@db/runs?password=secret"));
  EXPECT_FALSE(PostgresStore::has_password("postgresql://me@db/runs"));
  EXPECT_FALSE(PostgresStore::has_password("no address"));
  EXPECT_FALSE(PostgresStore::is_address("assay-runs/postgresql"));
}

}  // namespace
}  // namespace assay
