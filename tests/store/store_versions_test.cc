// Which versions of a run's file a store opens. What it refuses, it leaves untouched.

#include <gmock/gmock.h>

#include "base/atomic_file.h"
#include "claimed.h"
#include "folder.h"
#include "made_cases.h"
#include "sqlite/database.h"
#include "store/sqlite_store.h"

namespace assay {
namespace {

using testing::Folder;
using ::testing::HasSubstr;

// Makes run.db with plain SQL, and returns the error of opening it.
std::string opening_says(const Folder& folder, const std::string& sql) {
  {
    auto database = Database::open(folder / "run.db", OpenMode::create);
    EXPECT_TRUE(database && database->execute(sql));
  }
  const auto before = read_file(folder / "run.db");
  const auto store = SqliteStore::open(folder.path(), StoreMode::create);
  if (store) return "opened";
  EXPECT_EQ(store.error().kind, ErrorKind::usage);
  EXPECT_EQ(*read_file(folder / "run.db"), *before) << "a foreign file was changed";
  return store.error().message;
}

TEST(StoreVersions, ANewerRunIsRefusedUntouched) {
  const Folder folder;
  EXPECT_THAT(opening_says(folder,
                           "CREATE TABLE x (a); PRAGMA application_id = 0x61737361; "
                           "PRAGMA user_version = 7"),
              HasSubstr("written by a newer assay (store version 7"));
}

TEST(StoreVersions, AForeignDatabaseIsRefusedUntouched) {
  const Folder folder;
  EXPECT_THAT(opening_says(folder, "CREATE TABLE x (a)"), HasSubstr("is not a run of assay"));
  const Folder other;
  EXPECT_THAT(opening_says(other, "PRAGMA application_id = 99"),
              HasSubstr("is not a run of assay"));
}

// A file of version 4 with its sums.
TEST(StoreVersions, AVersion4RunGetsItsFaultsCounted) {
  const Folder folder;
  EXPECT_EQ(opening_says(folder, R"(
CREATE TABLE property (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE planned (number INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE, text TEXT NOT NULL,
                      elements INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0);
CREATE TABLE finished (sequence INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE,
                       outcome TEXT NOT NULL, mismatch INTEGER NOT NULL, flags INTEGER NOT NULL,
                       lane TEXT NOT NULL, message TEXT NOT NULL, attempts INTEGER NOT NULL,
                       at_ms INTEGER NOT NULL, record BLOB);
CREATE TABLE invalid (place TEXT, text TEXT, message TEXT);
CREATE TABLE tally (changes TEXT NOT NULL);
CREATE INDEX finished_listed ON finished (outcome, sequence) WHERE outcome IN ('crash');
CREATE INDEX finished_flagged ON finished (sequence) WHERE outcome = 'pass' AND flags <> 0;
INSERT INTO planned (id, text) VALUES (7, 'paddle.abs(1)'), (2, 'paddle.exp(1)'), (3, 'paddle.f()');
INSERT INTO finished VALUES (1, 7, 'pass', 0, 8, '', '', 1, 1600000000000, NULL);
INSERT INTO finished VALUES (2, 3, 'crash', 0, 0, 'paddle', 'it died', 1, 1600000060000, x'00');
INSERT INTO tally VALUES ('old sums');
PRAGMA application_id = 0x61737361;
PRAGMA user_version = 4;
)"),
            "opened");
  const auto opened = SqliteStore::open(folder.path(), StoreMode::existing);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  Store& store = **opened;
  const Tally tally = *store.tally();
  EXPECT_EQ(tally.finished(), 2);
  EXPECT_EQ(tally, testing::counted(store));
  const FaultKey crash{"paddle.f", Outcome::crash, "the paddle lane", "it died"};
  ASSERT_TRUE(tally.faults().contains(crash));
  EXPECT_EQ(tally.faults().at(crash).cases, 1);
  const std::vector<wire::JobT> left = testing::claim(store, 9, Supply::none);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].test_case.id, 2U);
}

TEST(StoreVersions, AVersionThatWasNeverReleasedIsRefused) {
  const Folder folder;
  EXPECT_THAT(opening_says(folder,
                           "CREATE TABLE x (a); PRAGMA application_id = 0x61737361; "
                           "PRAGMA user_version = 3"),
              HasSubstr("store version 3"));
}

}  // namespace
}  // namespace assay
