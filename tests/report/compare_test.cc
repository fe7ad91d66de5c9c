// A run against what was there before: a past run, or a baseline file under version control.

#include "report/compare.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "report/baseline.h"
#include "report/junit.h"
#include "report/load_past.h"
#include "report/run_report.h"
#include "stored_run.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::StoredRun;

Verdict came_to(Outcome outcome, std::uint8_t flags = 0, std::string message = "m") {
  return {outcome, 0, flags, "", std::move(message)};
}

struct Standing {
  const char* text;
  Verdict verdict;
};

std::unique_ptr<StoredRun> run_of(const std::vector<Standing>& cases,
                                  const std::map<std::string, std::string>& properties = {}) {
  auto run = std::make_unique<StoredRun>();
  for (const Standing& each : cases) run->add(each.text, each.verdict);
  for (const auto& [key, value] : properties) {
    StoredRun::must(run->store().set_property(key, value));
  }
  StoredRun::must(run->store().commit());
  return run;
}

// The run's folder, with its store closed: SQLite lets one process and one opener at it.
PastRun past_of(const std::vector<Standing>& cases,
                const std::map<std::string, std::string>& properties = {}) {
  const testing::Folder folder;
  {
    const auto store = StoredRun::must(open_store(folder.path(), StoreMode::create));
    for (const Standing& each : cases) {
      const std::uint64_t id = case_id(each.text);
      StoredRun::must(store->add_case({id, each.text}));
      FinishedCase finished;
      finished.id = id;
      finished.text = each.text;
      finished.verdict = each.verdict;
      StoredRun::must(store->finish({id, 1}, finished));
    }
    for (const auto& [key, value] : properties) StoredRun::must(store->set_property(key, value));
    StoredRun::must(store->commit());
  }
  return StoredRun::must(load_past(folder.path().string()));
}

// "new_failure paddle.a(1)", …
std::vector<std::string> said(const RunComparison& comparison) {
  constexpr std::array<const char*, 4> kWords{"new", "lost", "mended", "slower"};
  std::vector<std::string> lines;
  for (const ChangedCase& changed : comparison.changes) {
    lines.push_back(std::string(kWords[static_cast<std::size_t>(changed.change)]) + " " +
                    changed.text + " " + changed.before);
  }
  return lines;
}

const std::vector<Standing>& before() {
  static const std::vector<Standing> all{
      {"paddle.broke(1)", came_to(Outcome::pass)},
      {"paddle.crashes(1)", came_to(Outcome::mismatch)},
      {"paddle.gone(1)", came_to(Outcome::mismatch)},
      {"paddle.known(1)", came_to(Outcome::mismatch)},
      {"paddle.lost(1)", came_to(Outcome::pass)},
      {"paddle.mended(1)", came_to(Outcome::test_error)},
      {"paddle.never(1)", came_to(Outcome::no_kernel)},
      {"paddle.refused(1)", came_to(Outcome::pass)},
  };
  return all;
}

const std::vector<Standing>& after() {
  static const std::vector<Standing> all{
      {"paddle.broke(1)", came_to(Outcome::mismatch)},
      {"paddle.crashes(1)", came_to(Outcome::crash)},
      {"paddle.fresh(1)", came_to(Outcome::timeout)},
      {"paddle.known(1)", came_to(Outcome::mismatch)},
      {"paddle.lost(1)", came_to(Outcome::no_kernel)},
      {"paddle.mended(1)", came_to(Outcome::pass)},
      {"paddle.never(1)", came_to(Outcome::no_kernel)},
      {"paddle.refused(1)", came_to(Outcome::rejected)},
  };
  return all;
}

TEST(Compare, SaysWhatIsNewLostAndMended) {
  const auto now = run_of(after());
  const RunComparison comparison =
      StoredRun::must(compare_runs(now->store(), past_of(before()), false));
  EXPECT_THAT(said(comparison),
              ElementsAre("new paddle.broke(1) pass", "new paddle.crashes(1) mismatch",
                          "new paddle.fresh(1) not there", "lost paddle.lost(1) pass",
                          "lost paddle.refused(1) pass", "mended paddle.mended(1) test_error"));
  EXPECT_EQ(comparison.known, 1U);
  EXPECT_EQ(comparison.only_before, 1U);
  EXPECT_EQ(comparison.only_now, 1U);
  EXPECT_TRUE(comparison.worse());
  const std::string table = comparison_table(comparison);
  EXPECT_THAT(table, HasSubstr("3  new failures\n"));
  EXPECT_THAT(table, HasSubstr("mismatch, was pass  paddle.broke(1)"));
}

TEST(Compare, ARunAgainstItselfIsNoWorse) {
  const auto now = run_of(after());
  const RunComparison comparison =
      StoredRun::must(compare_runs(now->store(), past_of(after()), true));
  EXPECT_THAT(said(comparison), IsEmpty());
  EXPECT_FALSE(comparison.worse());
}

TEST(Compare, FlakyCountsOnlyWhereItIsStrict) {
  const std::vector<Standing> flaky{{"paddle.f(1)", came_to(Outcome::pass, kFlaky)}};
  const std::vector<Standing> passed{{"paddle.f(1)", came_to(Outcome::pass)}};
  const auto now = run_of(flaky);
  EXPECT_THAT(said(StoredRun::must(compare_runs(now->store(), past_of(passed), false))), IsEmpty());
  EXPECT_THAT(said(StoredRun::must(compare_runs(now->store(), past_of(passed), true))),
              ElementsAre("new paddle.f(1) pass"));
  EXPECT_THAT(said(StoredRun::must(compare_runs(now->store(), past_of(flaky), true))), IsEmpty());
}

TEST(Compare, SettingsThatBearOnVerdictsAreTold) {
  const auto now = run_of(after(), {{"seed", "7"}, {"paddle", "3.4"}, {"flag.timeout", "9"}});
  const PastRun past = past_of(after(), {{"seed", "0"}, {"paddle", "3.3"}, {"flag.timeout", "8"}});
  const RunComparison comparison = StoredRun::must(compare_runs(now->store(), past, false));
  ASSERT_EQ(comparison.settings.size(), 2U);
  EXPECT_EQ(comparison.settings[0].key, "paddle");
  EXPECT_EQ(comparison.settings[0].bearing, "");
  EXPECT_EQ(comparison.settings[1].bearing, "other inputs");
  EXPECT_THAT(comparison_table(comparison),
              HasSubstr("seed: 0 then, 7 now (other inputs: a verdict may differ"));
}

TEST(Compare, IdsThatAreMadeInAnotherWayAreRefused) {
  const auto now = run_of(after(), {{"version.canonical", "2"}});
  const auto compared =
      compare_runs(now->store(), past_of(before(), {{"version.canonical", "1"}}), false);
  ASSERT_FALSE(compared);
  EXPECT_EQ(compared.error().kind, ErrorKind::usage);
  EXPECT_THAT(compared.error().message, HasSubstr("version.canonical 1, this run 2"));
}

TEST(Compare, JsonHasEveryChangeAndIsJsonWhateverALineHolds) {
  const auto now = run_of(after());
  StoredRun::must(now->store().add_invalid({"a.txt:1", "paddle.(\xff", "expected a name"}));
  const RunComparison comparison =
      StoredRun::must(compare_runs(now->store(), past_of(before()), false));
  const auto json = nlohmann::json::parse(json_text(comparison_json(comparison)));
  EXPECT_EQ(json["new_failures"].size(), 4U);
  EXPECT_EQ(json["lost"].size(), 2U);
  EXPECT_EQ(json["mended"][0]["case"], "paddle.mended(1)");
  EXPECT_EQ(json["mended"][0]["before"], "test_error");
  EXPECT_EQ(json["known"], 1);
}

// ---- baseline files ----

std::string written(RunReader& run, const std::filesystem::path& file) {
  StoredRun::must(write_baseline(run, file));
  return StoredRun::must(read_file(file));
}

TEST(Baseline, ARunIsNoWorseThanItsOwn) {
  const testing::Folder folder;
  const auto now = run_of(after(), {{"seed", "7"}, {"flag.paddle_python", "/here/python"}});
  StoredRun::must(now->store().add_invalid({"a.txt:1", "paddle.( ", "expected a name"}));
  const std::string text = written(now->store(), folder / "baseline.txt");
  EXPECT_THAT(text, HasSubstr("setting seed 7\n"));
  EXPECT_THAT(text, Not(HasSubstr("/here/python")));  // of a machine
  EXPECT_THAT(text, HasSubstr("mismatch " + format_case_id(case_id("paddle.known(1)")) +
                              " paddle.known(1)\n"));
  EXPECT_THAT(text, Not(HasSubstr("paddle.mended(1)")));
  EXPECT_LT(text.find("paddle.broke"), text.find("paddle.crashes"));
  const PastRun past = StoredRun::must(load_past((folder / "baseline.txt").string()));
  const RunComparison comparison = StoredRun::must(compare_runs(now->store(), past, false));
  EXPECT_THAT(said(comparison), IsEmpty());
  EXPECT_EQ(comparison.known, 5U);
  EXPECT_THAT(comparison.settings, IsEmpty());
}

TEST(Baseline, WhatIsNotInItPassed) {
  const testing::Folder folder;
  const auto then = run_of(before());
  written(then->store(), folder / "baseline.txt");
  const auto now = run_of(after());
  const RunComparison comparison = StoredRun::must(compare_runs(
      now->store(), StoredRun::must(load_past((folder / "baseline.txt").string())), false));
  EXPECT_THAT(said(comparison),
              ElementsAre("new paddle.broke(1) pass", "new paddle.crashes(1) mismatch",
                          "new paddle.fresh(1) pass", "lost paddle.lost(1) pass",
                          "lost paddle.refused(1) pass", "mended paddle.mended(1) test_error"));
}

TEST(Baseline, ReasonsOfPeopleStayWithTheirCase) {
  const testing::Folder folder;
  const auto file = folder / "baseline.txt";
  const auto then = run_of(before());
  std::string text = written(then->store(), file);
  text.insert(text.find('\n') + 1, "# who looks after this file\n");
  text.insert(text.find("mismatch " + format_case_id(case_id("paddle.known(1)"))),
              "# issue 71234\n# until the next release\n");
  text.insert(text.find("test_error"), "# mended soon\n");
  ASSERT_TRUE(write_file(file, text));
  const auto now = run_of(after());
  const std::string again = written(now->store(), file);
  EXPECT_THAT(again, HasSubstr("assay-baseline 1\n# who looks after this file\n"));
  EXPECT_THAT(again, HasSubstr("\n# issue 71234\n# until the next release\nmismatch " +
                               format_case_id(case_id("paddle.known(1)"))));
  EXPECT_THAT(again, Not(HasSubstr("mended")));
  EXPECT_EQ(written(now->store(), file), again);  // nothing moves where nothing changes
}

TEST(Baseline, WhatIsNoneIsRefusedWithItsLine) {
  const testing::Folder folder;
  const auto file = folder / "baseline.txt";
  const auto refusal = [&](const std::string& text) {
    EXPECT_TRUE(write_file(file, text));
    const auto past = load_past(file.string());
    return past ? "taken" : past.error().message;
  };
  EXPECT_THAT(refusal("assay-baseline 2\n"), HasSubstr("first line is not \"assay-baseline 1\""));
  EXPECT_THAT(refusal(""), HasSubstr("--write-baseline"));
  const std::string id = format_case_id(case_id("paddle.abs(1)"));
  const std::string head = "assay-baseline 1\nsetting seed 0\n";
  EXPECT_EQ(refusal(head + "mismatch " + id + " paddle.abs(1)\n"), "taken");
  for (const std::string& line :
       {"mismatch " + id + " paddle.abs(2)", "odd " + id + " paddle.abs(1)",
        std::string("mismatch xyz paddle.abs(1)"), "mismatch " + id}) {
    EXPECT_THAT(refusal(head + line + "\n"), HasSubstr("baseline.txt:3: no line of a baseline"))
        << line;
  }
  // Nothing of a file that is something else is overwritten.
  const auto now = run_of(after());
  ASSERT_TRUE(write_file(file, "notes\n"));
  EXPECT_FALSE(write_baseline(now->store(), file));
  EXPECT_EQ(StoredRun::must(read_file(file)), "notes\n");
}

// ---- JUnit ----

TEST(CompareJunit, OnlyWhatIsNewFails) {
  const auto now = run_of(after());
  const RunComparison comparison =
      StoredRun::must(compare_runs(now->store(), past_of(before()), false));
  const auto file = now->folder() / "junit.xml";
  StoredRun::must(write_junit(now->store(), {false, &comparison}, file));
  const std::string xml = StoredRun::must(read_file(file));
  EXPECT_THAT(xml, HasSubstr("tests=\"8\" failures=\"5\" skipped=\"2\""));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"known mismatch: m\"/>"));
  EXPECT_THAT(xml, HasSubstr("<failure type=\"lost\" message=\"no longer tested: no_kernel m\">"));
}

TEST(CompareJunit, AFlakyCaseIsSeen) {
  const auto now = run_of({{"paddle.f(1)", came_to(Outcome::pass, kFlaky, "first mismatch")}});
  const auto file = now->folder() / "junit.xml";
  StoredRun::must(write_junit(now->store(), {}, file));
  EXPECT_THAT(StoredRun::must(read_file(file)),
              HasSubstr("<flakyFailure type=\"flaky\" message=\"first mismatch\"/>"));
  StoredRun::must(write_junit(now->store(), {.strict = true}, file));
  const std::string strict = StoredRun::must(read_file(file));
  EXPECT_THAT(strict, HasSubstr("failures=\"1\""));
  EXPECT_THAT(strict, HasSubstr("<failure type=\"flaky\" message=\"first mismatch\">"));
}

}  // namespace
}  // namespace assay
