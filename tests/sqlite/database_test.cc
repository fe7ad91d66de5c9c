#include "sqlite/database.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <vector>

#include "../store/folder.h"
#include "base/atomic_file.h"
#include "base/fd.h"

namespace assay {
namespace {

using testing::Folder;
using ::testing::HasSubstr;

// Two processes wait for each other.
class Signal {
 public:
  Signal() : ends_(*make_pipe()) {}
  void say() const { (void)!::write(ends_.second.get(), "x", 1); }
  void wait() const {
    char word = 0;
    (void)!::read(ends_.first.get(), &word, 1);
  }

 private:
  FdPair ends_;
};

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

// Commits until the log has about `megabytes` of new pages.
void add_megabytes(Database& database, int megabytes) {
  const std::vector<std::uint8_t> blob(1 << 20, 7);
  auto insert = database.prepare("INSERT INTO t VALUES (?)");
  for (int i = 0; i < megabytes; ++i) {
    insert->bind(1, std::span(blob));
    ASSERT_TRUE(insert->run());
  }
}

// In another process, because a reader there must not drop the writer's locks when it closes.
template <typename Look>
int in_a_reader(const std::filesystem::path& path, Look look) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto database = Database::open_to_read(path);
    ::_exit(database.has_value() ? look(*database) : 99);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(Database, AReaderKeepsItsViewWhileTheWriterGoesOn) {
  const Folder folder;
  auto writer = Database::open(folder / "a.db", OpenMode::create);
  ASSERT_TRUE(writer->execute("CREATE TABLE t (a)"));
  add_megabytes(*writer, 3);
  const Signal go;
  const Signal done;
  const pid_t reader = ::fork();
  if (reader == 0) {
    auto database = Database::open_to_read(folder / "a.db");
    const bool before = database && count(*database, "t") == 3;
    done.say();
    go.wait();
    const bool after = count(*database, "t") == 3 &&
                       database->read_integer("SELECT sum(length(a)) FROM t") == 3 << 20;
    ::_exit(before && after ? 0 : 1);
  }
  done.wait();
  add_megabytes(*writer, 100);  // more than three times what is copied at once
  EXPECT_GT(std::filesystem::file_size(folder / "a.db-wal"), 100U << 20);
  go.say();
  int status = 1;
  ASSERT_EQ(::waitpid(reader, &status, 0), reader);
  EXPECT_EQ(status, 0);
  add_megabytes(*writer, 1);  // nobody reads: the log is copied
  EXPECT_LT(std::filesystem::file_size(folder / "a.db-wal"), 2U << 20);
  EXPECT_EQ(in_a_reader(folder / "a.db", [](Database& all) { return count(all, "t"); }), 104);
}

TEST(Database, AWriterThatEndsLeavesTheLogToAReader) {
  const Folder folder;
  const Signal go;
  const Signal done;
  pid_t reader = 0;
  {
    auto writer = Database::open(folder / "a.db", OpenMode::create);
    ASSERT_TRUE(writer->execute("CREATE TABLE t (a)"));
    add_megabytes(*writer, 3);
    reader = ::fork();
    if (reader == 0) {
      auto database = Database::open_to_read(folder / "a.db");
      done.say();
      go.wait();
      ::_exit(database && count(*database, "t") == 3 ? 0 : 1);
    }
    done.wait();
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "a.db-wal"));
  go.say();
  int status = 1;
  ASSERT_EQ(::waitpid(reader, &status, 0), reader);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(in_a_reader(folder / "a.db", [](Database& all) { return count(all, "t"); }), 3);
  { auto again = Database::open(folder / "a.db", OpenMode::existing); }
  EXPECT_FALSE(std::filesystem::exists(folder / "a.db-wal"));
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
