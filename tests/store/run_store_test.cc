// The store of a run: what goes in comes out, a result is recorded once, foreign files are left
// alone.

#include "store/run_store.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>

#include "base/fd.h"
#include "folder.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using testing::Folder;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr std::uint64_t kTopBit = 0x8000'0000'0000'0001;

RunStore opened(const Folder& folder, OpenMode mode = OpenMode::create) {
  auto store = RunStore::open(folder.path(), mode);
  if (!store) throw std::runtime_error(store.error().message);
  return std::move(*store);
}

FinishedCase finished(std::uint64_t id, Outcome outcome, std::string message = "") {
  FinishedCase made;
  made.id = id;
  made.verdict = {outcome, 0, 0, "", std::move(message)};
  return made;
}

std::vector<std::pair<std::uint64_t, std::string>> all_finished(RunStore& store) {
  std::vector<std::pair<std::uint64_t, std::string>> found;
  EXPECT_TRUE(store.each_finished([&](const FinishedCase& each) -> Status {
    found.emplace_back(each.id, std::string(name(each.verdict.outcome)));
    return {};
  }));
  return found;
}

std::vector<std::uint64_t> all_unfinished(RunStore& store) {
  std::vector<std::uint64_t> found;
  EXPECT_TRUE(store.each_unfinished([&](const StoredCase& each) -> Status {
    found.push_back(each.id);
    return {};
  }));
  return found;
}

TEST(RunStore, EverythingOfACaseComesBack) {
  const Folder folder;
  const std::vector<std::uint8_t> record{0, 1, 2, 255};
  {
    RunStore store = opened(folder);
    ASSERT_TRUE(store.add_case({kTopBit, "paddle.abs(1)"}));
    FinishedCase made;
    made.id = kTopBit;
    made.verdict = {Outcome::mismatch, kShape | kGradient, kFlaky, "paddle", "it's \"this\"\n"};
    made.attempts = 2;
    made.finished_ms = 1'700'000'000'123;
    made.record = record;
    ASSERT_TRUE(store.record_started(kTopBit, 1, 3));
    ASSERT_TRUE(store.record_finished(made));
    ASSERT_TRUE(store.set_property("seed", "7"));
    ASSERT_TRUE(store.commit());
  }
  RunStore store = opened(folder, OpenMode::existing);
  int seen = 0;
  ASSERT_TRUE(store.each_finished([&](const FinishedCase& back) -> Status {
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
  EXPECT_THAT(*store.properties(), ElementsAre(Pair("seed", "7")));
  EXPECT_EQ(*store.case_text(kTopBit), "paddle.abs(1)");
  EXPECT_EQ(*store.case_text(kTopBit - 1), std::nullopt);
}

// Ids that differ in the top bit alone are two cases.
TEST(RunStore, IdsAre64Bits) {
  const Folder folder;
  RunStore store = opened(folder);
  const std::vector<std::uint64_t> ids{0, 1, kTopBit, ~std::uint64_t{0}};
  for (const std::uint64_t id : ids) ASSERT_TRUE(store.add_case({id, std::to_string(id)}));
  for (const std::uint64_t id : ids)
    ASSERT_TRUE(store.record_finished(finished(id, Outcome::pass)));
  std::vector<std::uint64_t> back;
  ASSERT_TRUE(store.each_finished_id([&](std::uint64_t id) { back.push_back(id); }));
  EXPECT_THAT(back, ::testing::UnorderedElementsAreArray(ids));
}

// A case may run twice (its slot died after it had answered); its first result stands.
TEST(RunStore, AResultIsRecordedOnce) {
  const Folder folder;
  RunStore store = opened(folder);
  ASSERT_TRUE(store.add_case({5, "paddle.abs(1)"}));
  ASSERT_TRUE(store.add_case({5, "paddle.other(1)"}));
  ASSERT_TRUE(store.record_finished(finished(5, Outcome::pass)));
  ASSERT_TRUE(store.record_finished(finished(5, Outcome::crash)));
  EXPECT_THAT(all_finished(store), ElementsAre(Pair(5, "pass")));
  EXPECT_EQ(*store.case_text(5), "paddle.abs(1)");
}

TEST(RunStore, TheOrderIsThatOfFinishing) {
  const Folder folder;
  RunStore store = opened(folder);
  for (const std::uint64_t id : {1, 2, 3, 4}) ASSERT_TRUE(store.add_case({id, std::to_string(id)}));
  for (const std::uint64_t id : {3, 1, 4}) {
    ASSERT_TRUE(store.record_finished(finished(id, Outcome::pass)));
  }
  EXPECT_THAT(all_finished(store), ElementsAre(Pair(3, "pass"), Pair(1, "pass"), Pair(4, "pass")));
  EXPECT_THAT(all_unfinished(store), ElementsAre(2));
}

TEST(RunStore, ForgettingMakesUnfinished) {
  const Folder folder;
  RunStore store = opened(folder);
  for (const std::uint64_t id : {1, 2, 3}) ASSERT_TRUE(store.add_case({id, std::to_string(id)}));
  ASSERT_TRUE(store.record_finished(finished(1, Outcome::crash)));
  ASSERT_TRUE(store.record_finished(finished(2, Outcome::pass)));
  ASSERT_TRUE(store.record_finished(finished(3, Outcome::timeout)));
  const std::vector<Outcome> outcomes{Outcome::crash, Outcome::timeout};
  EXPECT_EQ(*store.forget_finished(outcomes), 2);
  EXPECT_THAT(all_unfinished(store), ElementsAre(1, 3));
  // What runs again comes last, behind what stayed.
  ASSERT_TRUE(store.record_finished(finished(1, Outcome::pass)));
  EXPECT_THAT(all_finished(store), ElementsAre(Pair(2, "pass"), Pair(1, "pass")));
}

TEST(RunStore, InvalidLinesAreForgottenOnResume) {
  const Folder folder;
  RunStore store = opened(folder);
  ASSERT_TRUE(store.add_invalid({"a.txt:1", "paddle.(", "column 8: expected a name"}));
  std::vector<std::string> found;
  const auto visit = [&](const InvalidLine& line) -> Status {
    found.push_back(line.where + "|" + line.text + "|" + line.message);
    return {};
  };
  ASSERT_TRUE(store.each_invalid(visit));
  EXPECT_THAT(found, ElementsAre("a.txt:1|paddle.(|column 8: expected a name"));
  ASSERT_TRUE(store.forget_invalid());
  found.clear();
  ASSERT_TRUE(store.each_invalid(visit));
  EXPECT_TRUE(found.empty());
}

// A process that is gone without a word loses what it had not committed, whole, and nothing else.
TEST(RunStore, DeathLosesOnlyWhatWasNotCommitted) {
  const Folder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = RunStore::open(folder.path(), OpenMode::create);
    bool good = store.has_value();
    for (std::uint64_t id = 1; good && id <= 3; ++id) {
      good = store->add_case({id, "t"}) && store->record_finished(finished(id, Outcome::pass));
      if (good && id == 2) good = store->commit().has_value();
    }
    std::_Exit(good ? 0 : 1);  // no destructor, as after SIGKILL
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  RunStore store = opened(folder, OpenMode::existing);
  EXPECT_THAT(all_finished(store), ElementsAre(Pair(1, "pass"), Pair(2, "pass")));
  EXPECT_TRUE(all_unfinished(store).empty());
}

TEST(RunStore, AFolderWithoutARunIsAUsageError) {
  const Folder folder;
  const auto store = RunStore::open(folder.path(), OpenMode::existing);
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().kind, ErrorKind::usage);
  EXPECT_THAT(store.error().message, HasSubstr("no run of assay"));
}

// Makes run.db with plain SQL; gives what opening it says.
std::string opening_says(const Folder& folder, const std::string& sql) {
  {
    auto database = Database::open(folder / "run.db", OpenMode::create);
    EXPECT_TRUE(database && database->execute(sql));
  }
  const auto before = read_file(folder / "run.db");
  const auto store = RunStore::open(folder.path(), OpenMode::create);
  if (store) return "opened";
  EXPECT_EQ(store.error().kind, ErrorKind::usage);
  EXPECT_EQ(*read_file(folder / "run.db"), *before) << "a foreign file was changed";
  return store.error().message;
}

TEST(RunStore, ANewerRunIsRefusedUntouched) {
  const Folder folder;
  EXPECT_THAT(opening_says(folder,
                           "CREATE TABLE x (a); PRAGMA application_id = 0x61737361; "
                           "PRAGMA user_version = 3"),
              HasSubstr("written by a newer assay (store version 3"));
}

TEST(RunStore, AForeignDatabaseIsRefusedUntouched) {
  const Folder folder;
  EXPECT_THAT(opening_says(folder, "CREATE TABLE x (a)"), HasSubstr("is not a run of assay"));
  const Folder other;
  EXPECT_THAT(opening_says(other, "PRAGMA application_id = 99"),
              HasSubstr("is not a run of assay"));
}

// A run as version 1 wrote it; every later version must read it. Not made by our own code.
TEST(RunStore, AVersion1RunIsRead) {
  const Folder folder;
  EXPECT_EQ(opening_says(folder, R"(
CREATE TABLE property (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE planned (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE started (id INTEGER, attempt INTEGER, slot INTEGER, at_ms INTEGER,
                      PRIMARY KEY (id, attempt)) WITHOUT ROWID;
CREATE TABLE finished (id INTEGER PRIMARY KEY, outcome TEXT NOT NULL, mismatch INTEGER NOT NULL,
                       flags INTEGER NOT NULL, lane TEXT NOT NULL, message TEXT NOT NULL,
                       attempts INTEGER NOT NULL, at_ms INTEGER NOT NULL, sequence INTEGER NOT NULL,
                       record BLOB);
CREATE TABLE invalid (place TEXT, text TEXT, message TEXT);
INSERT INTO property VALUES ('mode', 'accuracy');
INSERT INTO planned VALUES (-1, 'paddle.abs(1)'), (2, 'paddle.exp(1)');
INSERT INTO started VALUES (2, 1, 0, 5);
INSERT INTO planned VALUES (3, 'paddle.log(1)');
INSERT INTO finished VALUES (-1, 'mismatch', 8, 0, '', 'differs', 2, 1700000000000, 2, x'00ff');
INSERT INTO finished VALUES (3, 'pass', 0, 0, '', '', 1, 1600000000000, 1, NULL);
CREATE INDEX finished_order ON finished (sequence);
PRAGMA application_id = 0x61737361;
PRAGMA user_version = 1;
)"),
            "opened");
  RunStore store = opened(folder, OpenMode::existing);
  const auto before = ElementsAre(Pair(3, "pass"), Pair(~std::uint64_t{0}, "mismatch"));
  EXPECT_THAT(all_finished(store), before);
  EXPECT_THAT(all_unfinished(store), ElementsAre(2));  // started, and never finished
  EXPECT_THAT(*store.properties(), ElementsAre(Pair("mode", "accuracy")));
  EXPECT_EQ(*store.case_text(3), "paddle.log(1)");
  ASSERT_TRUE(store.record_finished(finished(2, Outcome::pass)));
  EXPECT_THAT(all_finished(store),
              ElementsAre(Pair(3, "pass"), Pair(~std::uint64_t{0}, "mismatch"), Pair(2, "pass")));
}

}  // namespace
}  // namespace assay
