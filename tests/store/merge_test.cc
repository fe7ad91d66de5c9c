// Merged runs: they have each case once, and report cases on which the runs disagree.

#include "store/merge.h"

#include <gmock/gmock.h>

#include "folder.h"
#include "store/open_store.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using testing::Folder;
using ::testing::HasSubstr;
using ::testing::Pair;
using Outcomes = std::map<std::string, Outcome>;

// A run of these cases in a folder of its own within `folder`.
std::filesystem::path run_of(const Folder& folder, const std::string& name, const Outcomes& cases,
                             const std::map<std::string, std::string>& properties,
                             const std::string& unfinished = "") {
  const std::filesystem::path path = folder.path() / name;
  std::filesystem::create_directories(path);
  const auto store = open_store(path, StoreMode::create);
  for (const auto& [key, value] : properties) EXPECT_TRUE((*store)->set_property(key, value));
  for (const auto& [text, outcome] : cases) {
    const std::uint64_t id = std::hash<std::string>()(text);
    EXPECT_TRUE((*store)->add_case(wire::planned_case(id, text)));
    FinishedCase finished;
    finished.id = id;
    finished.text = text;
    finished.verdict.outcome = outcome;
    finished.verdict.message = "from " + name;
    EXPECT_TRUE((*store)->finish(finished));
  }
  if (!unfinished.empty()) {
    EXPECT_TRUE(
        (*store)->add_case(wire::planned_case(std::hash<std::string>()(unfinished), unfinished)));
  }
  EXPECT_TRUE((*store)->add_invalid({"cases.txt:7", "bad", "column 1"}));
  EXPECT_TRUE((*store)->commit());
  return path;
}

std::map<std::string, std::string> messages_in(const std::filesystem::path& run) {
  std::map<std::string, std::string> found;
  const auto store = open_store(run, StoreMode::existing);
  EXPECT_TRUE((*store)->each_finished([&](const FinishedCase& finished) -> Status {
    EXPECT_TRUE(found.emplace(finished.text, finished.verdict.message).second);
    return {};
  }));
  return found;
}

TEST(Merge, EveryCaseIsThereOnce) {
  const Folder folder;
  const std::vector<std::filesystem::path> runs{
      run_of(folder, "one", {{"a", Outcome::pass}, {"b", Outcome::crash}},
             {{"seed", "1"}, {"shard", "1/3"}, {"flag.timeout", "5"}}, "c"),
      run_of(folder, "two", {{"b", Outcome::crash}, {"c", Outcome::pass}},
             {{"seed", "1"}, {"shard", "3/3"}}, "d")};
  const auto merged = merge_runs(folder.path() / "all", runs);
  ASSERT_TRUE(merged.has_value()) << merged.error().message;
  EXPECT_EQ(merged->cases, 3U);
  EXPECT_EQ(merged->repeated, 1U);
  EXPECT_EQ(merged->unfinished, 1U);  // d; c has finished in the other
  EXPECT_TRUE(merged->conflicts.empty());
  EXPECT_THAT(merged->missing_shards, ElementsAre("2/3"));
  EXPECT_THAT(messages_in(folder.path() / "all"),
              ElementsAre(Pair("a", "from one"), Pair("b", "from one"), Pair("c", "from two")));
  const auto store = open_store(folder.path() / "all", StoreMode::existing);
  EXPECT_THAT(*(*store)->properties(), ElementsAre(Pair("seed", "1")));
  int invalid = 0;
  EXPECT_TRUE((*store)->each_invalid([&](const InvalidLine&) -> Status {
    ++invalid;
    return {};
  }));
  EXPECT_EQ(invalid, 1);
}

TEST(Merge, AFailureIsKeptAndReportedIfRunsDisagree) {
  const Folder folder;
  const std::vector<std::filesystem::path> runs{
      run_of(folder, "one", {{"a", Outcome::pass}, {"b", Outcome::mismatch}}, {}),
      run_of(folder, "two", {{"a", Outcome::crash}, {"b", Outcome::pass}}, {})};
  const auto merged = merge_runs(folder.path() / "all", runs);
  ASSERT_TRUE(merged.has_value());
  ASSERT_EQ(merged->conflicts.size(), 2U);
  for (const MergeConflict& conflict : merged->conflicts) {
    EXPECT_EQ(conflict.other, Outcome::pass);
    EXPECT_THAT(conflict.kept_from, HasSubstr(conflict.text == "a" ? "two" : "one"));
  }
  EXPECT_THAT(messages_in(folder.path() / "all"),
              ElementsAre(Pair("a", "from two"), Pair("b", "from one")));
}

TEST(Merge, RunsWithDifferentPropertiesAreRefused) {
  const Folder folder;
  const auto one = run_of(folder, "one", {{"a", Outcome::pass}}, {{"seed", "1"}});
  const auto refused = [&](const std::filesystem::path& other) {
    const std::vector<std::filesystem::path> runs{one, other};
    const auto merged = merge_runs(folder.path() / "all", runs);
    EXPECT_FALSE(has_store(folder.path() / "all"));
    return merged ? std::string("merged") : merged.error().message;
  };
  EXPECT_THAT(refused(run_of(folder, "two", {}, {{"seed", "2"}})),
              HasSubstr("differ in `seed`: 1 and 2;"));
  EXPECT_THAT(refused(run_of(folder, "more", {}, {{"seed", "1"}, {"torch", "2.13"}})),
              HasSubstr("differ in `torch`: 2.13 and not set;"));
  EXPECT_THAT(refused(folder.path() / "none"), HasSubstr("none does not exist"));
}

TEST(Merge, ShardsOfDifferentDivisionsAndFoldersWithARunAreRefused) {
  const Folder folder;
  const std::vector<std::filesystem::path> runs{run_of(folder, "one", {}, {{"shard", "1/2"}}),
                                                run_of(folder, "two", {}, {{"shard", "2/3"}})};
  const auto cuts = merge_runs(folder.path() / "all", runs);
  ASSERT_FALSE(cuts.has_value());
  EXPECT_THAT(cuts.error().message, HasSubstr("shards 1/2 and 2/3"));
  const auto taken = merge_runs(runs[0], runs);
  ASSERT_FALSE(taken.has_value());
  EXPECT_THAT(taken.error().message, HasSubstr("already holds a run"));
}

TEST(Merge, TheMessageIsShortEvenIfThePropertiesAreLong) {
  const Folder folder;
  const std::string list(5'000, 'x');
  const std::vector<std::filesystem::path> runs{
      run_of(folder, "one", {{"a", Outcome::pass}}, {{"accommodations", "1" + list}}),
      run_of(folder, "two", {{"b", Outcome::pass}}, {{"accommodations", "2" + list}})};
  const auto refused = merge_runs(folder.path() / "all", runs);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("`accommodations`: 1xxx"));
  EXPECT_LT(refused.error().message.size(), 500U);
}

}  // namespace
}  // namespace assay
