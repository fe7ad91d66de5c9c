// The tables: their versions, the sums of finished cases, and what observers see.

#include <pqxx/pqxx>
#include <thread>

#include "made_cases.h"
#include "postgres_fixture.h"

namespace assay::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(Postgres, TwoClaimersCanStartARunAtOnce) {
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
  for (const auto& [version, who] : {std::pair{8, "a newer assay"}, {5, "never released"}}) {
    pqxx::work work(session);
    work.exec_params0("UPDATE assay_schema SET version = $1", version);
    work.commit();
    const auto refused = PostgresStore::open(address_, StoreMode::create);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind, ErrorKind::usage);
    EXPECT_THAT(refused.error().message, HasSubstr(who));
  }
}

int version_of(pqxx::connection& session) {
  return pqxx::work(session).exec1("SELECT version FROM assay_schema")[0].as<int>();
}

// The schema of version 6.
constexpr const char* kBackToVersion6 = R"sql(
UPDATE assay_schema SET version = 6;
ALTER TABLE finished DROP COLUMN faults;
CREATE INDEX finished_told ON finished (id);
)sql";

TEST_F(Postgres, AWriterUpgradesTheVersionWithoutFaults) {
  {
    const StorePtr made = opened();
    add(*made, 1, 30);
    std::mt19937_64 random(3);
    for (const wire::JobT& job : claim(*made, 20, Supply::more)) {
      ASSERT_TRUE(testing::finish_somehow(*made, job.test_case.id, random, job.attempt.epoch));
    }
    ASSERT_TRUE(made->commit());
  }
  pqxx::connection session(address_);
  {
    pqxx::work work(session);
    work.exec0(kBackToVersion6);
    work.commit();
  }
  PostgresStore::Options reads;
  reads.read_only = true;
  const auto refused = PostgresStore::open(address_, StoreMode::read, reads);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("upgrade them with `assay plan"));
  EXPECT_EQ(version_of(session), 6);
  const StorePtr writer = opened();
  EXPECT_EQ(version_of(session), 7);
  EXPECT_EQ(*writer->tally(), testing::counted(*writer));
  EXPECT_FALSE(writer->tally()->faults().empty());
}

// Compares two tallies without what only sums have.
void expect_counted(PostgresStore& store) {
  const Tally counted = testing::counted(store);
  const Tally kept = *store.tally();
  EXPECT_EQ(kept.cases(), counted.cases());
  EXPECT_EQ(kept.lanes(), counted.lanes());
  EXPECT_EQ(kept.not_judged(), counted.not_judged());
  EXPECT_EQ(kept.minutes(), counted.minutes());
  EXPECT_EQ(kept.faults().size(), counted.faults().size());
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
      ASSERT_TRUE(planner->add_case(wire::planned_case(id, made_text(id), 1, 1, 1 + id % 9)));
    }
    ASSERT_TRUE(planner->commit());
  }
};

// The sums equal a full count although claimers lose leases and return, claimers die, and a retest
// removes results.
TEST_F(PostgresSums, AreThoseOfAFullCountWhateverHappens) {
  plan(400);
  const StorePtr reader = opened();
  std::mt19937_64 random(7);
  std::array<StorePtr, 3> workers;
  std::array<std::vector<wire::JobT>, 3> held;
  std::uint64_t fenced = 0;
  for (int step = 0; step < 400; ++step) {
    const std::size_t who = random() % 3;
    StorePtr& own = workers[who];
    std::vector<wire::JobT>& leases = held[who];
    if (!own) own = worker(std::chrono::milliseconds(who == 0 ? 30'000 : 1));
    const int what = static_cast<int>(random() % 20);
    if (what < 5) {
      for (const wire::JobT& each : claim(*own, 1 + random() % 3)) leases.push_back(each);
    } else if (what < 14) {
      for (std::size_t i = random() % 6; i > 0 && !leases.empty(); --i) {
        const wire::JobT& job = leases.back();
        ASSERT_TRUE(testing::finish_somehow(*own, job.test_case.id, random, job.attempt.epoch));
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

// Many claimers at once add up the sums between each other's commits.
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
        for (const wire::JobT& each : leases) {
          ASSERT_TRUE(
              *testing::finish_somehow(*own, each.test_case.id, random, each.attempt.epoch));
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

// Two workers record at once. The one that started first gets the higher number and commits first.
// An observer does not miss what the other one commits afterwards.
TEST_F(Postgres, AnObserverMissesNothingThatCommitsLate) {
  const StorePtr reader = opened();
  add(*reader, 1, 3);
  const auto begin = [](pqxx::work& work) { work.exec("SELECT pg_current_xact_id()"); };
  const auto record = [](pqxx::work& work, int id) {
    work.exec_params0(
        "INSERT INTO finished (sequence, id, outcome, mismatch, flags, lane, message, attempts, "
        "at_ms, took_us, faults) VALUES (nextval('finished_sequence_seq'), $1, 'crash', 0, 0, '', "
        "'', 1, 1, 1, '')",
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

}  // namespace
}  // namespace assay::testing
