// A stored run that is only read: nothing is written, a changed byte is noticed.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "folder.h"
#include "made_cases.h"
#include "store/sqlite_store.h"

namespace assay {
namespace {

using testing::Folder;
using ::testing::HasSubstr;

std::unique_ptr<Store> open_run(const Folder& folder, StoreMode mode = StoreMode::create) {
  auto store = SqliteStore::open(folder.path(), mode);
  if (!store) throw std::runtime_error(store.error().message);
  return std::move(*store);
}

// Not in WAL mode, as most programs leave theirs.
TEST(SqliteStore, AForeignDatabaseStaysInItsMode) {
  for (const StoreMode mode : {StoreMode::create, StoreMode::existing, StoreMode::read}) {
    const Folder folder;
    sqlite3* foreign = nullptr;
    ASSERT_EQ(sqlite3_open((folder / "run.db").c_str(), &foreign), SQLITE_OK);
    sqlite3_exec(foreign, "CREATE TABLE x (a); INSERT INTO x VALUES (1)", nullptr, nullptr,
                 nullptr);
    sqlite3_close(foreign);
    const auto before = read_file(folder / "run.db");
    const auto store = SqliteStore::open(folder.path(), mode);
    ASSERT_FALSE(store);
    EXPECT_THAT(store.error().message, HasSubstr("is not a run of assay"));
    EXPECT_EQ(*read_file(folder / "run.db"), *before);
    EXPECT_FALSE(std::filesystem::exists(folder / "run.db-wal"));
  }
}

// Everything that the store tells of a run.
std::string answers_of(Store& store) {
  std::string told;
  const auto add = [&](const auto& value) { told += fmt::format("{}|", value); };
  const auto must = [](const auto& result) {
    if (!result) throw std::runtime_error(result.error().message);
  };
  const auto properties = store.properties();
  must(properties);
  for (const auto& [key, value] : *properties) add(key + "=" + value);
  const auto tally = store.tally();
  must(tally);
  add(tally->text());
  must(store.each_finished([&](const FinishedCase& each) -> Status {
    add(each.id), add(each.text), add(name(each.verdict.outcome)), add(each.verdict.message);
    add(each.verdict.mismatch), add(each.verdict.flags), add(each.attempts), add(each.took_us);
    add(each.finished_ms), add(each.record.size()),
        told.append(each.record.begin(), each.record.end());
    return {};
  }));
  must(store.each_unfinished([&](const wire::CaseT& each) -> Status {
    add(each.id), add(each.text), add(each.elements), add(each.bytes);
    return {};
  }));
  must(store.each_invalid([&](const InvalidLine& each) -> Status {
    add(each.where), add(each.text), add(each.message);
    return {};
  }));
  return told;
}

// A run of some hundred cases that is closed.
void make_run(const Folder& folder) {
  std::mt19937_64 random(3);
  const auto store = open_run(folder);
  for (std::uint64_t id = 1; id <= 400; ++id) {
    ASSERT_TRUE(store->add_case(wire::planned_case(id, testing::made_text(id))));
    if (id % 10 == 0) continue;
    ASSERT_TRUE(testing::finish_somehow(*store, id, random));
  }
  ASSERT_TRUE(store->add_invalid({"a.txt:1", "nothing(", "no case"}));
  ASSERT_TRUE(store->set_property("seed", "7"));
  ASSERT_TRUE(store->commit());
}

// SQLite itself notices no changed byte of a value.
TEST(SqliteStore, AChangedByteIsNoticedOrChangesNoAnswer) {
  const Folder folder;
  make_run(folder);
  const std::string right = answers_of(*open_run(folder, StoreMode::read));
  const std::string bytes = *read_file(folder / "run.db");
  std::mt19937_64 random(7);
  int noticed = 0;
  for (int i = 0; i < 121; ++i) {
    const std::size_t at = i == 0 ? 20 : random() % bytes.size();  // 20: whether pages are checked
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ static_cast<char>(1 + random() % 255));
    ASSERT_TRUE(write_file(folder / "run.db", changed));
    try {
      EXPECT_EQ(answers_of(*open_run(folder, StoreMode::read)), right) << "byte " << at;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("run.db")) << "byte " << at;
      ++noticed;
    }
  }
  EXPECT_GT(noticed, 60);
}

TEST(SqliteStore, ReadingWritesNothing) {
  const Folder folder;
  make_run(folder);
  const std::string right = answers_of(*open_run(folder, StoreMode::read));
  const std::string bytes = *read_file(folder / "run.db");
  const auto written = std::filesystem::last_write_time(folder / "run.db");
  const auto first = open_run(folder, StoreMode::read);
  EXPECT_EQ(answers_of(*open_run(folder, StoreMode::read)), right);  // two at a time
  EXPECT_EQ(*read_file(folder / "run.db"), bytes);
  EXPECT_EQ(std::filesystem::last_write_time(folder / "run.db"), written);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

// What its writer was killed over is in the log, and is read from there.
TEST(SqliteStore, ReadingLeavesTheLogOfAKilledRun) {
  const Folder folder;
  make_run(folder);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto store = open_run(folder, StoreMode::existing);
    (void)store->add_case(wire::planned_case(1000, testing::made_text(1000)));
    (void)store->commit();
    ::_exit(0);  // as if killed: nothing is closed
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const auto log = read_file(folder / "run.db-wal");
  ASSERT_TRUE(log && !log->empty());
  const auto unfinished = answers_of(*open_run(folder, StoreMode::read));
  EXPECT_THAT(unfinished, HasSubstr("|1000|" + testing::made_text(1000)));
  EXPECT_EQ(*read_file(folder / "run.db-wal"), *log);
}

// What the writer has committed is read; the writer keeps its lock.
TEST(SqliteStore, ARunIsReadWhileItIsWritten) {
  const Folder folder;
  make_run(folder);
  const auto right = answers_of(*open_run(folder, StoreMode::read));
  const auto writer = open_run(folder, StoreMode::existing);
  (void)writer->add_case(wire::planned_case(1000, testing::made_text(1000)));
  ASSERT_TRUE(writer->commit());
  (void)writer->add_case(wire::planned_case(1001, testing::made_text(1001)));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto read = answers_of(*open_run(folder, StoreMode::read));
    const bool committed = read.find(testing::made_text(1000)) != std::string::npos;
    const bool pending = read.find(testing::made_text(1001)) != std::string::npos;
    ::_exit(committed && !pending ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(right.find(testing::made_text(1000)), std::string::npos);
}

}  // namespace
}  // namespace assay
