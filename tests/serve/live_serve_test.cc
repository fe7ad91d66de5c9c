// The page of a run in a real PostgreSQL, while others work on it.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <pqxx/pqxx>
#include <thread>

#include "../store/claimed.h"
#include "../store/postgres_server.h"
#include "serve/source.h"
#include "store/postgres_store.h"

namespace assay {
namespace {

using testing::claim;
using testing::finished_of;
using ::testing::HasSubstr;
using testing::PostgresServer;

class ALiveDatabase : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!PostgresServer::programs()) GTEST_SKIP() << "PostgreSQL is not installed: tools/setup dev";
    server_ = std::make_unique<PostgresServer>();
    address_ = server_->address("live");
    planner_ = opened();
    for (std::uint64_t id = 1; id <= 400; ++id) {
      const std::string text = "paddle.api" + std::to_string(id % 4) + "(Tensor([" +
                               std::to_string(id) + "], \"int8\"))";
      ASSERT_TRUE(planner_->add_case(wire::planned_case(id, text, 1, 1, 1000)));
    }
    ASSERT_TRUE(planner_->set_property("mode", "accuracy"));
    ASSERT_TRUE(planner_->set_property("test.lane", "paddle"));
    ASSERT_TRUE(planner_->set_property("test.device", "gpu"));
    ASSERT_TRUE(planner_->commit());
    auto source = open_source(address_);
    ASSERT_TRUE(source.has_value()) << source.error().message;
    source_ = std::move(*source);
    EXPECT_EQ(page()["planned"], 400);  // the first look says no more
  }
  std::unique_ptr<PostgresStore> opened() const {
    return std::move(*PostgresStore::open(address_, StoreMode::create));
  }
  static void finish(PostgresStore& store, const std::vector<wire::JobT>& jobs, Outcome outcome) {
    for (const wire::JobT& job : jobs) {
      FinishedCase made = finished_of(job);
      made.verdict.outcome = outcome;
      ASSERT_TRUE(*store.finish(made));
    }
    ASSERT_TRUE(store.commit());
  }
  nlohmann::json page() {
    const auto more = source_->poll();
    EXPECT_TRUE(more.has_value()) << more.error().message;
    return source_->json();
  }

  std::unique_ptr<PostgresServer> server_;
  std::string address_;
  std::unique_ptr<PostgresStore> planner_;
  std::unique_ptr<RunSource> source_;
};

TEST_F(ALiveDatabase, IsShownAsItGrows) {
  EXPECT_EQ(page()["planned"], 400);
  EXPECT_EQ(page()["unfinished"], 400);
  EXPECT_EQ(page()["worker_count"], 0);
  const auto worker = opened();
  const auto leases = claim(*worker, 100);
  const nlohmann::json held = page();
  ASSERT_EQ(held["workers"].size(), 1U);
  EXPECT_EQ(held["workers"][0]["bundles"], 100);
  EXPECT_EQ(held["workers"][0]["cases"], leases.size());
  EXPECT_GT(held["workers"][0]["seconds_left"], 10.0);
  finish(*worker, leases, Outcome::crash);
  const nlohmann::json after = page();
  EXPECT_EQ(after["unfinished"], 400 - leases.size());
  EXPECT_EQ(after["read"], leases.size());
  EXPECT_EQ(after["outcomes"]["crash"], leases.size());
  EXPECT_EQ(after["worker_count"], 0);
  EXPECT_EQ(page()["read"], leases.size());  // and no case twice
  finish(*worker, claim(*worker, 1'000), Outcome::pass);
  const nlohmann::json end = page();
  EXPECT_EQ(end["unfinished"], 0);
  EXPECT_EQ(end["read"], 400);
  EXPECT_EQ(end["apis"].size(), 4U);
}

// The results of a writer that starts earlier and commits later are not missed.
TEST_F(ALiveDatabase, MissesNoCaseThatIsCommittedLate) {
  const auto slow = opened();
  const auto fast = opened();
  const auto first = claim(*slow, 1);
  const auto second = claim(*fast, 1);
  pqxx::connection session(address_);
  pqxx::work late(session);  // as the slow one's statement does it
  late.exec0(
      "INSERT INTO finished (sequence, id, outcome, mismatch, flags, lane, message, attempts, "
      "at_ms, took_us, faults) VALUES (nextval('finished_sequence_seq'), " +
      std::to_string(first[0].test_case.id) + ", 'crash', 0, 0, '', '', 1, 0, 0, '')");
  finish(*fast, second, Outcome::crash);
  (void)page();
  EXPECT_LE(page()["listed"], second.size());
  late.commit();
  EXPECT_EQ(page()["listed"], second.size() + 1);
}

TEST_F(ALiveDatabase, IsCountedAgainAfterARetest) {
  const auto worker = opened();
  finish(*worker, claim(*worker, 10), Outcome::crash);
  const auto before = page()["read"].get<std::uint64_t>();
  EXPECT_GT(before, 0U);
  ASSERT_EQ(*planner_->forget_finished(std::array{Outcome::crash}), before);
  ASSERT_TRUE(planner_->commit());
  (void)page();
  const nlohmann::json after = page();
  EXPECT_EQ(after["read"], 0);
  EXPECT_EQ(after["listed"], 0);
  EXPECT_EQ(after["unfinished"], 400);
}

// The other schemas of the database, each perhaps of another build.
TEST_F(ALiveDatabase, IsShownWithTheOtherRunsOfItsDatabase) {
  const auto other =
      std::move(*PostgresStore::open(server_->address("earlier"), StoreMode::create));
  ASSERT_TRUE(other->add_case(wire::planned_case(1, "paddle.abs(1)", 1, 1, 1000)));
  ASSERT_TRUE(other->set_property("mode", "accuracy"));
  ASSERT_TRUE(other->set_property("test.lane", "paddle"));
  ASSERT_TRUE(other->set_property("test.device", "gpu"));
  ASSERT_TRUE(other->set_property("paddle", "3.3.1"));
  ASSERT_TRUE(other->set_property("version.assay", "0.0.9"));
  finish(*other, claim(*other, 1), Outcome::crash);
  const auto unlike =
      std::move(*PostgresStore::open(server_->address("unlike"), StoreMode::create));
  ASSERT_TRUE(unlike->set_property("mode", "paddle_only"));
  ASSERT_TRUE(unlike->commit());
  const auto worker = opened();
  const auto leases = claim(*worker, 3);
  for (const wire::JobT& job : leases) {
    FinishedCase made = finished_of(job);
    made.finished_ms = 100'000;
    ASSERT_TRUE(*worker->finish(made));
  }
  ASSERT_TRUE(worker->commit());
  (void)page();
  const nlohmann::json runs = page()["runs"];
  ASSERT_EQ(runs.size(), 2U);  // of this mode, lanes and device
  EXPECT_EQ(runs[0]["name"], "earlier");
  EXPECT_EQ(runs[0]["build"], "paddle 3.3.1 on gpu, assay 0.0.9");
  EXPECT_EQ(runs[0]["outcomes"], (nlohmann::json{{"crash", 1}}));
  EXPECT_EQ(runs[0]["sampled"], false);
  EXPECT_EQ(runs[1]["name"], "live");
  EXPECT_EQ(runs[1]["outcomes"], (nlohmann::json{{"pass", leases.size()}}));
}

TEST_F(ALiveDatabase, IsOnlyRead) {
  PostgresStore::Options options;
  options.read_only = true;
  const auto reader = PostgresStore::open(address_, StoreMode::existing, options);
  ASSERT_TRUE(reader.has_value());
  const auto refused = (*reader)->claim(1, [](const wire::JobT&) -> Status { return {}; });
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("read-only"));
}

TEST_F(ALiveDatabase, IsShownAgainAfterAnOutage) {
  (void)page();
  server_->stop();
  EXPECT_FALSE(source_->poll().has_value());
  EXPECT_FALSE(source_->poll().has_value());
  server_->start();
  EXPECT_EQ(page()["planned"], 400);
}

}  // namespace
}  // namespace assay
