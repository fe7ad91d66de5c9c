#include "store/database.h"

#include <gmock/gmock.h>

#include <limits>
#include <vector>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "folder.h"

namespace assay {
namespace {

using testing::Folder;
using ::testing::HasSubstr;

std::int64_t count(Database& database, const std::string& table) {
  auto rows = database.prepare("SELECT count(*) FROM " + table);
  EXPECT_TRUE(rows && *rows->step());
  return rows->integer(0);
}

TEST(Database, ValuesOfEveryTypeComeBack) {
  const Folder folder;
  auto database = Database::open(folder / "a.db", OpenMode::create);
  ASSERT_TRUE(database.has_value());
  ASSERT_TRUE(database->execute("CREATE TABLE t (a, b, c, d, e)"));
  const std::vector<std::uint8_t> blob{0, 255, 0, 7};
  const std::string text("a\0b'\"\xC3\xA9", 7);
  auto insert = database->prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?)");
  insert->bind(1, std::numeric_limits<std::int64_t>::min());
  insert->bind(2, -0.1);
  insert->bind(3, std::string_view(text));
  insert->bind(4, std::span(blob));
  ASSERT_TRUE(insert->run());

  auto rows = database->prepare("SELECT * FROM t");
  ASSERT_TRUE(*rows->step());
  EXPECT_EQ(rows->integer(0), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(rows->number(1), -0.1);
  EXPECT_EQ(rows->text(2), text);
  EXPECT_THAT(rows->blob(3), ::testing::ElementsAreArray(blob));
  EXPECT_TRUE(rows->is_null(4));
  EXPECT_FALSE(rows->is_null(0));
  EXPECT_FALSE(*rows->step());
}

TEST(Database, ATransactionIsWholeOrNothing) {
  const Folder folder;
  auto database = Database::open(folder / "a.db", OpenMode::create);
  ASSERT_TRUE(database->execute("CREATE TABLE t (a)"));
  {
    auto dropped = Transaction::begin(*database);
    ASSERT_TRUE(database->execute("INSERT INTO t VALUES (1)"));
    EXPECT_EQ(count(*database, "t"), 1);
  }
  EXPECT_EQ(count(*database, "t"), 0);
  auto kept = Transaction::begin(*database);
  ASSERT_TRUE(database->execute("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)"));
  ASSERT_TRUE(kept->commit());
  EXPECT_EQ(count(*database, "t"), 2);
}

TEST(Database, ASecondOpenerIsRefused) {
  const Folder folder;
  auto first = Database::open(folder / "a.db", OpenMode::create);
  ASSERT_TRUE(first->execute("CREATE TABLE t (a)"));
  for (const OpenMode mode : {OpenMode::create, OpenMode::existing}) {
    const auto second = Database::open(folder / "a.db", mode);
    ASSERT_FALSE(second.has_value());
    EXPECT_THAT(second.error().message, HasSubstr("in use by another process"));
  }
}

TEST(Database, AFileThatIsNoDatabaseIsAnError) {
  const Folder folder;
  EXPECT_FALSE(Database::open(folder / "missing.db", OpenMode::existing).has_value());
  EXPECT_FALSE(std::filesystem::exists(folder / "missing.db"));
  ASSERT_TRUE(write_file(folder / "text.db", std::string(5000, 'x')));
  EXPECT_FALSE(Database::open(folder / "text.db", OpenMode::existing).has_value());
}

// The WAL index is not in a shared-memory file, which file systems of clusters do not support.
TEST(Database, ThereIsNoSharedMemoryFile) {
  const Folder folder;
  auto database = Database::open(folder / "a.db", OpenMode::create);
  ASSERT_TRUE(database->execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)"));
  EXPECT_TRUE(std::filesystem::exists(folder / "a.db-wal"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.db-shm"));
}

TEST(Database, BadSqlIsAnErrorWithItsText) {
  const Folder folder;
  auto database = Database::open(folder / "a.db", OpenMode::create);
  const auto statement = database->prepare("SELECT a FROM nowhere");
  ASSERT_FALSE(statement.has_value());
  EXPECT_THAT(statement.error().message, HasSubstr("nowhere"));
}

}  // namespace
}  // namespace assay
