// A run's folder, shown while another process works on it.

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "../report/stored_run.h"
#include "base/atomic_file.h"
#include "serve/source.h"
#include "store/folder_watch.h"

namespace assay {
namespace {

using testing::Folder;
using testing::StoredRun;

std::string text_of(int number) {
  return "paddle.fake.echo(Tensor([" + std::to_string(number) + "], \"float32\"))";
}

void finish(Store& store, int number, std::span<const std::uint8_t> record = {}) {
  const std::string text = text_of(number);
  FinishedCase made;
  made.id = case_id(text);
  made.text = text;
  made.verdict.message = text;
  made.verdict.outcome = number % 3 == 0 ? Outcome::crash : Outcome::pass;
  made.finished_ms = 1'000 + number;
  made.record.assign(record.begin(), record.end());
  ASSERT_TRUE(*store.finish(made));
}

std::unique_ptr<Store> planned(const Folder& folder, int cases) {
  auto store = StoredRun::must(open_store(folder.path(), StoreMode::create));
  for (int i = 1; i <= cases; ++i) {
    const std::string text = text_of(i);
    EXPECT_TRUE(store->add_case(wire::planned_case(case_id(text), text)));
  }
  EXPECT_TRUE(store->commit());
  return store;
}

// Runs `work` in a process of its own.
template <typename Work>
void in_a_process(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

nlohmann::json page_of(RunSource& source) {
  while (true) {
    const auto more = source.poll();
    EXPECT_TRUE(more.has_value()) << more.error().message;
    if (!more || !*more) return source.json();
  }
}

TEST(AFolder, IsReadWhileItIsWritten) {
  const Folder folder;
  EXPECT_FALSE(open_source(folder.path().string()).has_value());
  const FdPair go = StoredRun::must(make_pipe());
  const FdPair done = StoredRun::must(make_pipe());
  const pid_t writer = ::fork();
  if (writer == 0) {
    const auto store = planned(folder, 10);
    char word = 0;
    for (int i = 1; i <= 3; ++i) {
      (void)!::write(done.second.get(), &word, 1);
      (void)!::read(go.first.get(), &word, 1);
      finish(*store, i);
      if (i == 3) break;
      EXPECT_TRUE(store->commit());
    }
    (void)!::write(done.second.get(), &word, 1);  // the third is written and not committed
    (void)!::read(go.first.get(), &word, 1);
    ::_exit(0);
  }
  char word = 0;
  const auto wait = [&] { ASSERT_EQ(::read(done.first.get(), &word, 1), 1); };
  const auto next = [&] { ASSERT_EQ(::write(go.second.get(), &word, 1), 1); };
  wait();
  // The file is locked: no other process can open it for writing.
  EXPECT_FALSE(open_store(folder.path(), StoreMode::existing).has_value());
  const auto source = StoredRun::must(open_source(folder.path().string()));
  EXPECT_EQ(page_of(*source)["planned"], 10);
  EXPECT_EQ(page_of(*source)["unfinished"], 10);
  for (const int known : {1, 2, 2}) {
    next();
    wait();
    const nlohmann::json page = page_of(*source);
    EXPECT_EQ(page["read"], known);
    EXPECT_EQ(page["unfinished"], 10 - known);
  }
  EXPECT_FALSE(open_store(folder.path(), StoreMode::existing).has_value()) << "it lost its lock";
  next();
  int status = 0;
  ASSERT_EQ(::waitpid(writer, &status, 0), writer);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(page_of(*source)["read"], 2);  // its log is still there
  const auto again = StoredRun::must(open_store(folder.path(), StoreMode::existing));
  EXPECT_EQ(again->counts()->finished, 2U);
}

// The writer copies its log into the file every 32 MB, between two looks.
TEST(AFolder, IsNeverReadHalf) {
  const Folder folder;
  constexpr int kCases = 20'000;
  { const auto store = planned(folder, kCases); }
  const pid_t writer = ::fork();
  if (writer == 0) {
    const auto store = StoredRun::must(open_store(folder.path(), StoreMode::existing));
    const std::vector<std::uint8_t> record(12'000, 7);  // 240 MB in all
    for (int i = 1; i <= kCases; ++i) {
      finish(*store, i, record);
      if (i % 10 != 0) continue;
      EXPECT_TRUE(store->commit());
    }
    ::_exit(0);
  }
  FolderWatch watch(folder.path(), 16);
  std::set<std::uint64_t> seen;
  std::uint64_t looks = 0;
  std::uint64_t looks_meanwhile = 0;
  int status = 0;
  while (seen.size() < kCases) {
    const bool ended = ::waitpid(writer, &status, WNOHANG) == writer;
    const auto news = watch.news(700);
    ASSERT_TRUE(news.has_value()) << news.error().message;
    EXPECT_FALSE(news->begun_again);
    EXPECT_EQ(news->counts.finished % 10, 0U) << "half a transaction";
    for (const FinishedCase& each : news->cases) {
      EXPECT_TRUE(seen.insert(each.id).second);
      EXPECT_EQ(each.verdict.message, each.text);
      EXPECT_EQ(each.id, case_id(each.text));
      if (each.verdict.outcome != Outcome::crash) continue;
      EXPECT_EQ(each.record, std::vector<std::uint8_t>(12'000, 7));
    }
    ++looks;
    looks_meanwhile += ended || news->cases.empty() ? 0 : 1;
    if (ended && news->cases.empty()) break;
  }
  EXPECT_EQ(seen.size(), kCases);
  EXPECT_GT(looks_meanwhile, 0U) << "of " << looks;
}

TEST(AFolder, IsCountedAgainAfterARetest) {
  const Folder folder;
  in_a_process([&] {
    const auto store = planned(folder, 6);
    for (int i = 1; i <= 6; ++i) finish(*store, i);
    EXPECT_TRUE(store->commit());
  });
  const auto source = StoredRun::must(open_source(folder.path().string()));
  nlohmann::json page = page_of(*source);
  EXPECT_EQ(page["outcomes"], (nlohmann::json{{"pass", 4}, {"crash", 2}}));
  EXPECT_EQ(page["listed"], 2);
  const auto begun = page["begun"].get<std::uint64_t>();
  EXPECT_EQ(page_of(*source)["begun"], begun);  // nothing is read twice
  in_a_process([&] {
    const auto store = StoredRun::must(open_store(folder.path(), StoreMode::existing));
    EXPECT_EQ(*store->forget_finished(std::array{Outcome::crash}), 2);
    EXPECT_TRUE(store->commit());
  });
  page = page_of(*source);
  EXPECT_EQ(page["outcomes"], (nlohmann::json{{"pass", 4}}));
  EXPECT_EQ(page["unfinished"], 2);
  EXPECT_GT(page["begun"], begun);
  EXPECT_EQ(page["listed"], 0);
}

// The totals that a run beside this one shows, with sums and without (an older run).
TEST(AFolder, HasTheTotalsOfItsRun) {
  const Folder folder;
  in_a_process([&] {
    const auto store = planned(folder, 7);
    for (int number = 1; number <= 5; ++number) finish(*store, number);
    ASSERT_TRUE(store->commit());
    finish(*store, 6);
    ASSERT_TRUE(store->commit());
  });
  const std::map<std::string, std::uint64_t> ended = {{"crash", 2}, {"pass", 4}};
  const auto by_sums = StoredRun::must(totals_of_folder(folder.path()));
  EXPECT_EQ(by_sums.outcomes, ended);
  EXPECT_EQ(by_sums.last_ms / kMinuteMs, 1'006 / kMinuteMs);
  EXPECT_EQ(by_sums.duration_ms, kMinuteMs);  // six cases within one minute
}

TEST(AFolder, IsOnlyRead) {
  const Folder folder;
  in_a_process([&] {
    Store* store = planned(folder, 6).release();  // never closed, so its log stays
    finish(*store, 1);
    EXPECT_TRUE(store->commit());
  });
  const auto files = [&] {
    std::map<std::string, std::string> found;
    for (const auto& each : std::filesystem::directory_iterator(folder.path())) {
      found[each.path().filename()] = StoredRun::must(read_file(each.path()));
    }
    return found;
  };
  const auto before = files();
  EXPECT_EQ(before.size(), 2U);  // the file and its log
  EXPECT_EQ(page_of(*StoredRun::must(open_source(folder.path().string())))["read"], 1);
  EXPECT_EQ(files(), before);
  { const auto store = StoredRun::must(open_store(folder.path(), StoreMode::existing)); }
  const auto closed = files();
  EXPECT_EQ(closed.size(), 1U);
  EXPECT_EQ(page_of(*StoredRun::must(open_source(folder.path().string())))["read"], 1);
  EXPECT_EQ(files(), closed);
}

TEST(AFolder, WithoutARunIsRefused) {
  const Folder folder;
  ASSERT_TRUE(write_file(folder / "run.db", "this is no database at all"));
  const auto source = StoredRun::must(open_source(folder.path().string()));
  EXPECT_FALSE(source->poll().has_value());
}

}  // namespace
}  // namespace assay
