// The store of a run that many machines share, on a real PostgreSQL: each case finishes once,
// whatever happens to its claimers.

#include <pqxx/pqxx>
#include <thread>

#include "made_cases.h"
#include "postgres_fixture.h"

namespace assay::testing {
namespace {

using ::testing::ElementsAre;

TEST_F(Postgres, EverythingOfACaseComesBack) {
  const StorePtr store = opened();
  constexpr std::uint64_t kTopBit = 0x8000'0000'0000'0001;
  ASSERT_TRUE(store->add_case(wire::planned_case(kTopBit, "paddle.abs(\"\u03b1\t\\n\")", 7, 8)));
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

TEST_F(Postgres, TheMostExpensiveCasesAreClaimedFirstAndOnce) {
  const StorePtr planner = opened();
  add(*planner, 1, 10);
  const StorePtr a = opened();
  const StorePtr b = opened();
  const auto first = claim(*a, 4, Supply::more);
  const auto second = claim(*b, 100, Supply::held_elsewhere);
  std::set<std::uint64_t> ids;
  for (const wire::JobT& job : first) ids.insert(job.test_case.id);
  EXPECT_THAT(ids, ElementsAre(7, 8, 9, 10));
  for (const wire::JobT& job : second) EXPECT_TRUE(ids.insert(job.test_case.id).second);
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
    ASSERT_TRUE((*planner)->add_case(wire::planned_case(id, std::to_string(id), 1, 1, 600)));
  }
  ASSERT_TRUE((*planner)->commit());
  EXPECT_EQ(claim(*opened(), 1, Supply::more).size(), 2U);
}

// When a claimer has finished its cases of a bundle, others get the remaining cases.
TEST_F(Postgres, TheRestOfABundleGoesToOthers) {
  const StorePtr planner = opened(std::chrono::seconds(30), std::chrono::seconds(1));
  add(*planner, 1, 5);
  const StorePtr some = opened();
  add(*some, 2, 3);
  EXPECT_EQ(some->added(), 0U);
  for (const wire::JobT& job : claim(*some, 9, Supply::none)) EXPECT_TRUE(finish(*some, job));
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
      ASSERT_TRUE(store.add_case(
          wire::planned_case(id, "paddle.abs(" + std::to_string(id) + ")", id, id, work)));
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
  const auto supply = worker->claim(2, [&](const wire::JobT& each) -> Status {
    EXPECT_EQ(each.test_case.text, "paddle.abs(" + std::to_string(each.test_case.id) + ")");
    EXPECT_EQ(each.test_case.elements, each.test_case.id);
    costs.push_back(each.test_case.work_us);
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

TEST_F(Postgres, TheExpectedTimeOfACaseIsItsTimeInEarlierRuns) {
  const StorePtr before = opened();
  add(*before, 1, 3);
  // 5, 2.5 and 1.7 s, where the plan had expected 1, 2 and 3 microseconds.
  for (const wire::JobT& job : claim(*before, 9)) EXPECT_TRUE(finish(*before, job));
  ASSERT_TRUE(before->commit());
  address_ = server_->address("another_run");
  const StorePtr now = opened(std::chrono::seconds(30), std::chrono::seconds(2));
  add(*now, 1, 5);
  EXPECT_THAT(ids_of(claim(*now, 1)), ElementsAre(1));
  EXPECT_THAT(ids_of(claim(*now, 1)), ElementsAre(2));
  EXPECT_THAT(ids_of(claim(*now, 1)), ElementsAre(3));
  EXPECT_THAT(ids_of(claim(*now, 1)), ElementsAre(4, 5));
}

// Runs these cases, each of which takes this long.
void run_all(Store& store, std::uint64_t first, std::uint64_t last, std::uint64_t took_us) {
  for (std::uint64_t id = first; id <= last; ++id) {
    const std::string text = fmt::format("paddle.tan(Tensor([{}], \"float32\"))", id);
    ASSERT_TRUE(store.add_case(wire::planned_case(id, text, id, 1, 7)));
  }
  for (const wire::JobT& job : claim(store, 1'000)) {
    FinishedCase made = testing::finished_of(job);
    made.took_us = took_us;
    ASSERT_TRUE(*store.finish(made));
  }
  ASSERT_TRUE(store.commit());
}

void add_tan(Store& store, std::initializer_list<std::uint64_t> elements) {
  for (const std::uint64_t each : elements) {
    const std::string text = fmt::format("paddle.tan(Tensor([{}], \"float32\"))", each);
    ASSERT_TRUE(store.add_case(wire::planned_case(each, text, each, 1, 7)));
  }
  ASSERT_TRUE(store.commit());
}

// The cases have 50 million elements, a kind that no other test in this database uses.
TEST_F(Postgres, TheExpectedTimeOfANewCaseIsTheAverageOfItsKind) {
  constexpr std::uint64_t kFirst = 50'000'000;
  const StorePtr before = opened();
  run_all(*before, kFirst, kFirst + 1, 400);
  run_all(*opened(), kFirst + 2, kFirst + 3, 800);
  const StorePtr expensive = opened();
  run_all(*expensive, kFirst + 4, kFirst + 4, 3'000'000);
  address_ = server_->address("kinds_learned");
  const StorePtr now = opened();
  add_tan(*now, {kFirst, kFirst + 4, kFirst + 9, 5});
  EXPECT_EQ(expected_of(*now),
            (std::map<std::uint64_t, std::uint64_t>{
                {kFirst, 600}, {kFirst + 4, 3'000'000}, {kFirst + 9, 600}, {5, 7}}));
}

// A plan reads the sums of a run and its most expensive cases, and no other rows.
TEST_F(Postgres, APlanReadsSumsInsteadOfCases) {
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

TEST_F(Postgres, ClaimersThatStartARunAtOnceAgreeOnItsProperties) {
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
  EXPECT_GT(leases[0].attempt.epoch, old[0].attempt.epoch);
  for (const wire::JobT& job : old) EXPECT_TRUE(finish(*lost, job, Outcome::crash));
  ASSERT_TRUE(lost->commit());
  EXPECT_EQ(lost->fenced(), 3U);
  EXPECT_TRUE(finished_ids(*planner).empty());
  for (const wire::JobT& job : leases) EXPECT_TRUE(finish(*next, job));
  ASSERT_TRUE(next->commit());
  EXPECT_EQ(next->fenced(), 0U);
  EXPECT_EQ(finished_ids(*planner).size(), 3U);
}

// A claim first records finished cases, even if some of them cannot be recorded.
TEST_F(Postgres, AClaimRecordsWhatHasEnded) {
  const StorePtr planner = opened();
  for (const std::uint64_t id :
       {7'000'001, 7'000'002, 7'000'003, 7'000'004, 7'000'005, 7'000'006}) {
    ASSERT_TRUE(
        planner->add_case(wire::planned_case(id, fmt::format("paddle.sinh({})", id), 1, 1, id)));
  }
  ASSERT_TRUE(planner->commit());
  const StorePtr slow = opened();
  const StorePtr worker = opened();
  const auto both = claim(*slow, 2, Supply::more);
  EXPECT_TRUE(finish(*slow, both[0]));
  const auto own = claim(*worker, 2, Supply::more);
  ASSERT_EQ(own.size(), 2U);
  EXPECT_EQ(finished_ids(*planner).size(), 0U);
  for (const wire::JobT& job : own) EXPECT_TRUE(finish(*worker, job));
  {
    pqxx::connection session(address_);
    pqxx::work work(session);
    work.exec_params0("UPDATE bundle SET held_until = now() - interval '1 h' WHERE rank >= $1",
                      std::min(both[0].test_case.id, both[1].test_case.id));
    work.commit();
  }
  // It gets the two that `slow` has lost: expensive ones come first.
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

// Near the end, a slow claimer takes a small bundle, or none while it has work. If it has no work,
// it gets the smallest bundle.
TEST_F(Postgres, ASlowClaimerTakesSmallBundles) {
  const StorePtr planner = opened();
  for (std::uint64_t id = 1; id <= 40; ++id) {
    const std::uint64_t work = id <= 20 ? 900'000 : 1'000;
    ASSERT_TRUE(planner->add_case(
        wire::planned_case(80'000'000 + id, fmt::format("paddle.acosh({})", id), 1, 1, work)));
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
  EXPECT_GT(smallest[0].test_case.id, 80'000'020U);
  EXPECT_TRUE(claim(**slow, 1, Supply::held_elsewhere).empty());
  EXPECT_TRUE(finish(**slow, smallest[0]));
  EXPECT_EQ(claim(**slow, 1, Supply::more).size(), 1U);
  const StorePtr other = opened();
  EXPECT_LE(claim(*other, 1, Supply::more).at(0).test_case.id, 80'000'020U);
}

TEST_F(Postgres, OthersSeeWhatIsRenewedOrReleased) {
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

TEST_F(Postgres, AClaimerThatAddedCasesGetsOnlyThese) {
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
  const auto jobs = claim(*again, 10, Supply::none);
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_THAT(jobs[0].attempt.failed_before, ::testing::StartsWith("crash (a message"));
}

TEST_F(Postgres, AJobKnowsOfAFailureWhoseRetryNeverCame) {
  {
    const StorePtr ended = opened();
    add(*ended, 1, 1);
    ASSERT_EQ(claim(*ended, 1).size(), 1U);
    ASSERT_TRUE(ended->note_failure(1, "mismatch (as it was)"));
    ASSERT_TRUE(ended->release_all());
    ASSERT_TRUE(ended->commit());
  }
  const auto jobs = claim(*opened(), 1);
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].attempt.failed_before, "mismatch (as it was)");
}

// A bundle that was done is open again if one of its cases is.
TEST_F(Postgres, ABundleIsDoneWhenItsLastCaseHasEnded) {
  const StorePtr planner = opened(std::chrono::seconds(30), std::chrono::seconds(60));
  for (const std::uint64_t id : {9'000'001, 9'000'002, 9'000'003}) {
    ASSERT_TRUE(
        planner->add_case(wire::planned_case(id, fmt::format("paddle.cosh({})", id), 1, 1, 1)));
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

}  // namespace
}  // namespace assay::testing
