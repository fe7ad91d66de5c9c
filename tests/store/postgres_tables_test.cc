// What stands in the tables: their versions, sums of what has ended, and what others see of it.

#include <pqxx/pqxx>
#include <thread>

#include "made_cases.h"
#include "postgres_fixture.h"

namespace assay::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  for (const auto& [version, who] : {std::pair{7, "a newer assay"}, {2, "an older assay"}}) {
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

int version_of(pqxx::connection& session) {
  return pqxx::work(session).exec1("SELECT version FROM assay_schema")[0].as<int>();
}

TEST_F(Postgres, TheVersionWithoutSumsIsReadAsItIsAndUpgradedByWhoWrites) {
  pqxx::connection session(address_);
  {
    pqxx::work work(session);
    work.exec0(kVersion3);
    work.commit();
  }
  const auto version = [&] { return version_of(session); };
  const StorePtr reader = looking_on();
  const Tally before = *reader->tally();
  EXPECT_EQ(before.finished(), 2);
  EXPECT_EQ(before.cases().at({{"paddle.abs", "int8", 1}, Outcome::mismatch, kFlaky}).took_us, 40);
  EXPECT_EQ(*reader->unfinished(), 1U);
  int mismatches = 0;
  ASSERT_TRUE(reader->each_of(Outcome::mismatch, 9, [&](const FinishedCase&) -> Status {
    ++mismatches;
    return {};
  }));
  EXPECT_EQ(mismatches, 1);
  EXPECT_EQ(version(), 3);
  const StorePtr writer = opened();
  EXPECT_EQ(version(), 6);
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
  const auto version = [&] { return version_of(session); };
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
  EXPECT_EQ(version(), 6);
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

// As version 5 had it.
constexpr const char* kBackToVersion5 = R"sql(
UPDATE assay_schema SET version = 5;
ALTER TABLE bundle RENAME COLUMN rank TO dearest_us;
DROP INDEX finished_told;
)sql";

TEST_F(Postgres, TheVersionWithoutAnIndexForComparisonsIsReadAndUpgradedByWhoWrites) {
  {
    const StorePtr made = opened();
    add(*made, 1, 3);
  }
  pqxx::connection session(address_);
  {
    pqxx::work work(session);
    work.exec0(kBackToVersion5);
    work.commit();
  }
  const auto version = [&] { return version_of(session); };
  const StorePtr reader = looking_on();
  EXPECT_NE(reader->quick(), nullptr);
  EXPECT_EQ(*reader->unfinished(), 3U);
  EXPECT_EQ(version(), 5);
  const StorePtr writer = opened();
  EXPECT_EQ(version(), 6);
  EXPECT_EQ(ids_of(claim(*writer, 3, Supply::more)), (std::set<std::uint64_t>{1, 2, 3}));
  pqxx::work work(session);
  EXPECT_TRUE(work.exec1("SELECT to_regclass('finished_told') IS NOT NULL")[0].as<bool>());
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
      ASSERT_TRUE(planner->add_case({id, made_text(id), 1, 1, 1 + id % 9}));
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

}  // namespace
}  // namespace assay::testing
