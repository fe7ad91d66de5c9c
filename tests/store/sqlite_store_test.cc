// The store of a run: it returns what was written, records a result once, and does not change
// foreign files.

#include "store/sqlite_store.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>

#include "base/fd.h"
#include "folder.h"
#include "made_cases.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using testing::Folder;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr std::uint64_t kTopBit = 0x8000'0000'0000'0001;

std::unique_ptr<Store> opened(const Folder& folder, StoreMode mode = StoreMode::create) {
  auto store = SqliteStore::open(folder.path(), mode);
  if (!store) throw std::runtime_error(store.error().message);
  return std::move(*store);
}

// Finishes a case, and returns whether it was recorded.
bool finish(Store& store, std::uint64_t id, Outcome outcome) {
  FinishedCase made;
  made.id = id;
  made.verdict = {outcome, 0, 0, "", ""};
  const auto recorded = store.finish(made);
  return recorded && *recorded;
}

std::vector<std::pair<std::uint64_t, std::string>> all_finished(Store& store) {
  std::vector<std::pair<std::uint64_t, std::string>> found;
  EXPECT_TRUE(store.each_finished([&](const FinishedCase& each) -> Status {
    found.emplace_back(each.id, std::string(name(each.verdict.outcome)));
    return {};
  }));
  return found;
}

// The ids of finished cases.
std::vector<std::string> all_texts(Store& store) {
  std::vector<std::string> found;
  EXPECT_TRUE(store.each_finished([&](const FinishedCase& each) -> Status {
    found.emplace_back(each.text);
    return {};
  }));
  return found;
}

std::vector<std::uint64_t> all_unfinished(Store& store) {
  std::vector<std::uint64_t> found;
  EXPECT_TRUE(store.each_unfinished([&](const wire::CaseT& each) -> Status {
    found.push_back(each.id);
    return {};
  }));
  return found;
}

// Claims up to `most` cases, and returns their ids.
std::vector<std::uint64_t> claim(Store& store, std::size_t most, Supply left) {
  std::vector<std::uint64_t> found;
  const auto supply = store.claim(most, [&](const wire::JobT& each) -> Status {
    found.push_back(each.test_case.id);
    return {};
  });
  EXPECT_TRUE(supply && *supply == left);
  return found;
}

TEST(SqliteStore, EverythingOfACaseComesBack) {
  const Folder folder;
  const std::vector<std::uint8_t> record{0, 1, 2, 255};
  {
    const auto store = opened(folder);
    ASSERT_TRUE(store->add_case(wire::planned_case(kTopBit, "paddle.abs(1)")));
    FinishedCase made;
    made.id = kTopBit;
    made.text = "paddle.abs(1)";
    made.verdict = {Outcome::mismatch, kShape | kGradient, kFlaky, "paddle", "it's \"this\"\n"};
    made.attempts = 2;
    made.finished_ms = 1'700'000'000'123;
    made.record = record;
    ASSERT_TRUE(*store->finish(made));
    ASSERT_TRUE(store->set_property("seed", "7"));
    ASSERT_TRUE(store->commit());
  }
  const auto store = opened(folder, StoreMode::existing);
  int seen = 0;
  ASSERT_TRUE(store->each_finished([&](const FinishedCase& back) -> Status {
    ++seen;
    EXPECT_EQ(back.id, kTopBit);
    EXPECT_EQ(back.text, "paddle.abs(1)");
    EXPECT_EQ(back.verdict.outcome, Outcome::mismatch);
    EXPECT_EQ(back.verdict.mismatch, kShape | kGradient);
    EXPECT_EQ(back.verdict.flags, kFlaky);
    EXPECT_EQ(back.verdict.lane, "paddle");
    EXPECT_EQ(back.verdict.message, "it's \"this\"\n");
    EXPECT_EQ(back.attempts, 2U);
    EXPECT_EQ(back.finished_ms, 1'700'000'000'123);
    EXPECT_THAT(back.record, ::testing::ElementsAreArray(record));
    return {};
  }));
  EXPECT_EQ(seen, 1);
  EXPECT_THAT(*store->properties(), ElementsAre(Pair("seed", "7")));
}

TEST(SqliteStore, CountsWhatIsPlannedAddedAndFinished) {
  const Folder folder;
  {
    const auto store = opened(folder);
    for (const std::uint64_t id : {1, 2, 2})
      ASSERT_TRUE(store->add_case(wire::planned_case(id, "t", 1, 1)));
    EXPECT_EQ(store->added(), 2U);
    ASSERT_TRUE(finish(*store, 2, Outcome::pass));
    EXPECT_EQ(*store->agree_on("paddle", "3.3.1"), "3.3.1");
    EXPECT_EQ(*store->agree_on("paddle", "3.4.0"), "3.3.1");
    ASSERT_TRUE(store->commit());
  }
  const auto store = opened(folder);
  for (const std::uint64_t id : {2, 3})
    ASSERT_TRUE(store->add_case(wire::planned_case(id, "t", 1, 1)));
  EXPECT_EQ(store->added(), 1U);
  EXPECT_EQ(store->counts()->planned, 3U);
  EXPECT_EQ(store->counts()->finished, 1U);
}

// Ids that differ only in the top bit are two cases.
TEST(SqliteStore, IdsAre64Bits) {
  const Folder folder;
  const auto store = opened(folder);
  const std::vector<std::uint64_t> ids{0, 1, kTopBit, ~std::uint64_t{0}};
  for (const std::uint64_t id : ids)
    ASSERT_TRUE(store->add_case(wire::planned_case(id, std::to_string(id))));
  for (const std::uint64_t id : ids) ASSERT_TRUE(finish(*store, id, Outcome::pass));
  std::vector<std::uint64_t> back;
  ASSERT_TRUE(store->each_finished_id([&](std::uint64_t id) { back.push_back(id); }));
  EXPECT_THAT(back, ::testing::UnorderedElementsAreArray(ids));
}

// A case may run twice (its slot died after it had answered); its first result stands.
TEST(SqliteStore, AResultIsRecordedOnce) {
  const Folder folder;
  const auto store = opened(folder);
  ASSERT_TRUE(store->add_case(wire::planned_case(5, "paddle.abs(1)")));
  ASSERT_TRUE(store->add_case(wire::planned_case(5, "paddle.other(1)")));
  EXPECT_TRUE(finish(*store, 5, Outcome::pass));
  EXPECT_FALSE(finish(*store, 5, Outcome::crash));
  EXPECT_THAT(all_finished(*store), ElementsAre(Pair(5, "pass")));
  EXPECT_EQ(all_texts(*store), std::vector<std::string>{"paddle.abs(1)"});
}

TEST(SqliteStore, EachUnfinishedCaseIsClaimedOnce) {
  const Folder folder;
  const auto store = opened(folder);
  for (const std::uint64_t id : {1, 2, 3, 4}) {
    ASSERT_TRUE(store->add_case(wire::planned_case(id, std::to_string(id), 10 * id, kTopBit)));
  }
  ASSERT_TRUE(finish(*store, 2, Outcome::pass));
  EXPECT_THAT(claim(*store, 2, Supply::more), ElementsAre(1, 3));
  std::vector<std::uint64_t> estimates;
  const auto supply = store->claim(5, [&](const wire::JobT& each) -> Status {
    EXPECT_EQ(each.test_case.text, "4");
    estimates = {each.test_case.elements, each.test_case.bytes};
    return {};
  });
  EXPECT_EQ(*supply, Supply::none);
  EXPECT_THAT(estimates, ElementsAre(40, kTopBit));
  EXPECT_TRUE(claim(*store, 5, Supply::none).empty());
}

// A session claims only the cases that it added; if it added none, it claims all cases of the run.
TEST(SqliteStore, OnlyAddedCasesAreClaimed) {
  const Folder folder;
  {
    const auto store = opened(folder);
    for (const std::uint64_t id : {1, 2, 3}) {
      ASSERT_TRUE(store->add_case(wire::planned_case(id, std::to_string(id), 7, 7)));
    }
    ASSERT_TRUE(store->commit());
  }
  {
    const auto store = opened(folder);
    ASSERT_TRUE(store->add_case(wire::planned_case(2, "another text", 70, 70)));
    std::string text;
    const auto supply = store->claim(5, [&](const wire::JobT& each) -> Status {
      text = each.test_case.text;
      EXPECT_EQ(each.test_case.elements, 70U);  // the newest estimate
      return {};
    });
    EXPECT_EQ(*supply, Supply::none);
    EXPECT_EQ(text, "2");
  }
  EXPECT_THAT(claim(*opened(folder), 5, Supply::none), ElementsAre(1, 2, 3));
}

// A retest that fails to start has removed nothing.
TEST(SqliteStore, WhatIsNotCommittedIsLost) {
  const Folder folder;
  {
    const auto store = opened(folder);
    ASSERT_TRUE(store->add_case(wire::planned_case(1, "1")));
    ASSERT_TRUE(finish(*store, 1, Outcome::crash));
    ASSERT_TRUE(store->add_invalid({"a:1", "x", "y"}));
    ASSERT_TRUE(store->commit());
  }
  {
    const auto store = opened(folder);
    const std::vector<Outcome> outcomes{Outcome::crash};
    EXPECT_EQ(*store->forget_finished(outcomes), 1);
    ASSERT_TRUE(store->forget_invalid());
    ASSERT_TRUE(store->set_property("seed", "1"));
    EXPECT_TRUE(all_finished(*store).empty());
  }
  const auto store = opened(folder);
  EXPECT_THAT(all_finished(*store), ElementsAre(Pair(1, "crash")));
  EXPECT_TRUE(store->properties()->empty());
  int invalid = 0;
  ASSERT_TRUE(store->each_invalid([&](const InvalidLine&) -> Status {
    ++invalid;
    return {};
  }));
  EXPECT_EQ(invalid, 1);
}

TEST(SqliteStore, TheOrderIsThatOfFinishing) {
  const Folder folder;
  const auto store = opened(folder);
  for (const std::uint64_t id : {1, 2, 3, 4})
    ASSERT_TRUE(store->add_case(wire::planned_case(id, std::to_string(id))));
  for (const std::uint64_t id : {3, 1, 4}) {
    ASSERT_TRUE(finish(*store, id, Outcome::pass));
  }
  EXPECT_THAT(all_finished(*store), ElementsAre(Pair(3, "pass"), Pair(1, "pass"), Pair(4, "pass")));
  EXPECT_THAT(all_unfinished(*store), ElementsAre(2));
}

TEST(SqliteStore, AJobKnowsOfAFailureWhoseRetryNeverCame) {
  const Folder folder;
  {
    const auto store = opened(folder);
    ASSERT_TRUE(store->add_case(wire::planned_case(1, "1")));
    ASSERT_TRUE(store->commit());
    ASSERT_TRUE(store->note_failure(1, "mismatch (as it was)"));
    ASSERT_TRUE(store->commit());
  }
  std::string before;
  EXPECT_TRUE(opened(folder)->claim(1, [&](const wire::JobT& job) -> Status {
    before = job.attempt.failed_before;
    return {};
  }));
  EXPECT_EQ(before, "mismatch (as it was)");
}

// A retest of everything is a run of its own.
TEST(SqliteStore, AJobKnowsHowItsCaseFailedBeforeARetest) {
  const Folder folder;
  const auto how_failed = [&] {
    std::map<std::uint64_t, std::string> found;
    EXPECT_TRUE(opened(folder)->claim(9, [&](const wire::JobT& job) -> Status {
      found[job.test_case.id] = job.attempt.failed_before;
      return {};
    }));
    return found;
  };
  const auto finish_all = [&](Outcome first, std::span<const Outcome> forgotten) {
    const auto store = opened(folder);
    for (const std::uint64_t id : {1, 2, 3}) {
      ASSERT_TRUE(store->add_case(wire::planned_case(id, std::to_string(id))));
      FinishedCase made;
      made.id = id;
      made.verdict.outcome = id == 1 ? first : Outcome::pass;
      made.verdict.message = "as it was";
      made.verdict.flags = id == 3 ? kFlaky : 0;
      ASSERT_TRUE(*store->finish(made));
    }
    ASSERT_TRUE(store->forget_finished(forgotten));
    ASSERT_TRUE(store->commit());
  };
  const std::array some{Outcome::crash, Outcome::pass};
  finish_all(Outcome::crash, some);
  const auto failed = ElementsAre(Pair(1, "crash (as it was)"), Pair(2, ""), Pair(3, "as it was"));
  EXPECT_THAT(how_failed(), failed);
  finish_all(Outcome::pass, some);  // once more
  EXPECT_THAT(how_failed(), failed);
  std::vector<Outcome> all;
  for (const OutcomeInfo& each : kOutcomes) all.push_back(each.outcome);
  finish_all(Outcome::crash, all);
  EXPECT_THAT(how_failed(), ElementsAre(Pair(1, ""), Pair(2, ""), Pair(3, "")));
}

TEST(SqliteStore, ForgettingMakesUnfinished) {
  const Folder folder;
  const auto store = opened(folder);
  for (const std::uint64_t id : {1, 2, 3})
    ASSERT_TRUE(store->add_case(wire::planned_case(id, std::to_string(id))));
  ASSERT_TRUE(finish(*store, 1, Outcome::crash));
  ASSERT_TRUE(finish(*store, 2, Outcome::pass));
  ASSERT_TRUE(finish(*store, 3, Outcome::timeout));
  const std::vector<Outcome> outcomes{Outcome::crash, Outcome::timeout};
  EXPECT_EQ(*store->forget_finished(outcomes), 2);
  EXPECT_THAT(all_unfinished(*store), ElementsAre(1, 3));
  // Cases that run again come after the others.
  ASSERT_TRUE(finish(*store, 1, Outcome::pass));
  EXPECT_THAT(all_finished(*store), ElementsAre(Pair(2, "pass"), Pair(1, "pass")));
}

TEST(SqliteStore, InvalidLinesAreForgottenOnResume) {
  const Folder folder;
  const auto store = opened(folder);
  ASSERT_TRUE(store->add_invalid({"a.txt:1", "paddle.(", "column 8: expected a name"}));
  std::vector<std::string> found;
  const auto visit = [&](const InvalidLine& line) -> Status {
    found.push_back(line.where + "|" + line.text + "|" + line.message);
    return {};
  };
  ASSERT_TRUE(store->each_invalid(visit));
  EXPECT_THAT(found, ElementsAre("a.txt:1|paddle.(|column 8: expected a name"));
  ASSERT_TRUE(store->forget_invalid());
  found.clear();
  ASSERT_TRUE(store->each_invalid(visit));
  EXPECT_TRUE(found.empty());
}

// A process that dies loses exactly what it had not committed.
TEST(SqliteStore, ADeadProcessLosesOnlyWhatWasNotCommitted) {
  const Folder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = SqliteStore::open(folder.path(), StoreMode::create);
    bool good = store.has_value();
    for (std::uint64_t id = 1; good && id <= 3; ++id) {
      good = (*store)->add_case(wire::planned_case(id, "t")) && finish(**store, id, Outcome::pass);
      if (good && id == 2) good = (*store)->commit().has_value();
    }
    std::_Exit(good ? 0 : 1);  // no destructor, as after SIGKILL
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const auto store = opened(folder, StoreMode::existing);
  EXPECT_THAT(all_finished(*store), ElementsAre(Pair(1, "pass"), Pair(2, "pass")));
  EXPECT_TRUE(all_unfinished(*store).empty());
}

TEST(SqliteStore, AFolderWithoutARunIsAUsageError) {
  const Folder folder;
  const auto store = SqliteStore::open(folder.path(), StoreMode::existing);
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().kind, ErrorKind::usage);
  EXPECT_THAT(store.error().message, HasSubstr("no run of assay"));
}

std::vector<std::uint64_t> ids_of(RunReader& run, Outcome outcome, std::uint64_t most) {
  std::vector<std::uint64_t> ids;
  RunQuery query;
  query.rows = RunQuery::Rows::outcome;
  query.outcome = outcome;
  query.most = most;
  EXPECT_TRUE(run.each(query, [&](const FinishedCase& each) -> Status {
    EXPECT_EQ(each.verdict.outcome, outcome);
    EXPECT_EQ(each.text, testing::made_text(each.id));
    ids.push_back(each.id);
    return {};
  }));
  return ids;
}

std::vector<std::uint64_t> listed(RunReader& run) {
  std::vector<std::uint64_t> ids;
  RunQuery query;
  query.rows = RunQuery::Rows::listed;
  query.records = false;
  EXPECT_TRUE(run.each(query, [&](const FinishedCase& each) -> Status {
    EXPECT_EQ(each.text, testing::made_text(each.id));
    EXPECT_TRUE(each.record.empty());
    ids.push_back(each.id);
    return {};
  }));
  return ids;
}

// The sums always equal a full count, also before a commit.
TEST(SqliteStore, SumsAreThoseOfAFullCount) {
  const Folder folder;
  std::mt19937_64 random(5);
  auto store = opened(folder, StoreMode::create);
  for (std::uint64_t id = 1; id <= 500; ++id) {
    ASSERT_TRUE(store->add_case(wire::planned_case(id, testing::made_text(id))));
  }
  for (int step = 0; step < 300; ++step) {
    const std::uint64_t id = 1 + random() % 500;
    const int what = static_cast<int>(random() % 20);
    if (what < 14) {  // also of cases that have finished
      ASSERT_TRUE(testing::finish_somehow(*store, id, random));
    } else if (what < 17) {
      ASSERT_TRUE(store->commit());
    } else if (what < 19) {
      const std::array open_again{what == 17 ? Outcome::crash : Outcome::pass};
      ASSERT_TRUE(store->forget_finished(open_again));
    } else {  // a process that is killed
      store.reset();
      store = opened(folder, StoreMode::existing);
    }
    const Tally counted = testing::counted(*store);
    const Tally kept = *store->tally();
    EXPECT_EQ(static_cast<std::uint64_t>(kept.finished()), store->counts()->finished);
    EXPECT_EQ(kept.cases(), counted.cases());
    EXPECT_EQ(kept.lanes(), counted.lanes());
    EXPECT_EQ(kept.not_judged(), counted.not_judged());
    EXPECT_EQ(kept.minutes(), counted.minutes());
    EXPECT_EQ(kept.faults().size(), counted.faults().size());
  }
  const Tally tally = *store->tally();
  EXPECT_GT(tally.finished(), 50);
  for (const OutcomeInfo& each : kOutcomes) {
    auto all = ids_of(*store, each.outcome, kAllOfThem);
    std::size_t summed = 0;
    for (const auto& [key, sums] : tally.cases()) {
      summed += key.outcome == each.outcome ? static_cast<std::size_t>(sums.cases) : 0;
    }
    EXPECT_EQ(all.size(), summed);
    if (all.size() > 3) all.resize(3);
    EXPECT_EQ(ids_of(*store, each.outcome, 3), all);
  }
}

TEST(SqliteStore, FailuresAndPassesWithAFlagAreListed) {
  const Folder folder;
  std::mt19937_64 random(6);
  const auto store = opened(folder, StoreMode::create);
  for (std::uint64_t id = 1; id <= 500; ++id) {
    ASSERT_TRUE(store->add_case(wire::planned_case(id, testing::made_text(id))));
    ASSERT_TRUE(testing::finish_somehow(*store, id, random));
  }
  std::vector<std::uint64_t> all;
  ASSERT_TRUE(store->each_finished([&](const FinishedCase& each) -> Status {
    const Verdict& verdict = each.verdict;
    const bool flagged = verdict.outcome == Outcome::pass && verdict.flags != 0;
    if (info(verdict.outcome).failed || flagged) all.push_back(each.id);
    return {};
  }));
  ASSERT_GT(all.size(), 20U);
  ASSERT_LT(all.size(), store->counts()->finished);
  EXPECT_EQ(listed(*store), all);
}

}  // namespace
}  // namespace assay
