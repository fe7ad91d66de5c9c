// A run against what was there before: a past run, or a baseline file under version control.

#include "report/compare.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "compared_runs.h"
#include "report/baseline.h"
#include "report/junit.h"
#include "report/run_report.h"
#include "report/run_verdict.h"

namespace assay {
namespace {

using testing::after;
using testing::before;
using testing::came_to;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::mismatch;
using ::testing::Not;
using testing::not_finite;
using testing::past_of;
using testing::run_of;
using testing::said;
using testing::Standing;
using testing::StoredRun;
using testing::wrong;

TEST(Compare, ReportsNewLostAndFixedFaults) {
  const auto now = run_of(after());
  const RunComparison comparison =
      StoredRun::must(compare_runs(now->store(), past_of(before()), false));
  EXPECT_THAT(
      said(comparison),
      ElementsAre("new mismatch paddle.broke: m", "new crash paddle.crashes: m",
                  "new timeout paddle.fresh: m", "lost paddle.lost", "rejected paddle.refused",
                  "fixed mismatch paddle.crashes", "fixed test_error paddle.mended"));
  EXPECT_EQ(comparison.count(FaultState::known), 1U);
  EXPECT_TRUE(comparison.worse());
  const std::string table = comparison_table(comparison);
  EXPECT_THAT(table, HasSubstr(": 3 new, 0 grown, 1 known, 2 fixed faults; coverage lost: 2\n"));
  EXPECT_THAT(table, HasSubstr("paddle.broke(1)"));
  EXPECT_THAT(comparison_table(comparison, {}, /*faults=*/false), Not(HasSubstr("paddle.broke")));
}

TEST(Compare, ARunAgainstItselfIsNoWorse) {
  const auto now = run_of(after());
  const RunComparison comparison =
      StoredRun::must(compare_runs(now->store(), past_of(after()), true));
  EXPECT_THAT(said(comparison), IsEmpty());
  EXPECT_FALSE(comparison.worse());
}

// What the gate is for: a case that is known for its NaN now also computes wrong values.
TEST(Compare, AKnownCaseThatAlsoFailsInAnotherWayIsNew) {
  const std::vector<Standing> then{{"paddle.relu(1)", mismatch({not_finite()})},
                                   {"paddle.relu(2)", mismatch({not_finite()})}};
  const auto now = run_of({{"paddle.relu(1)", mismatch({not_finite()})},
                           {"paddle.relu(2)", mismatch({wrong(), not_finite()})}});
  const RunComparison comparison =
      StoredRun::must(compare_runs(now->store(), past_of(then), false));
  EXPECT_THAT(said(comparison), ElementsAre("new mismatch paddle.relu: value"));
  const ComparedFault& found =
      comparison.faults.at({"paddle.relu", Outcome::mismatch, "result", "value"});
  EXPECT_EQ(found.example.text, "paddle.relu(2)");
  EXPECT_THAT(found.example.message, HasSubstr("off by 20"));
  // The same where the wrong value is not the fault that decides the outcome.
  const auto second = run_of({{"paddle.relu(1)", mismatch({not_finite(), wrong("wide")})},
                              {"paddle.relu(2)", mismatch({not_finite()})}});
  EXPECT_THAT(said(StoredRun::must(compare_runs(second->store(), past_of(then), false))),
              ElementsAre("new mismatch paddle.relu: value"));
}

TEST(Compare, AFaultGrowsByRegimeDtypeErrorOrShare) {
  const std::vector<Standing> then{{"paddle.f(1)", mismatch({wrong()})},
                                   {"paddle.f(2)", came_to(Outcome::pass)},
                                   {"paddle.f(3)", came_to(Outcome::pass)},
                                   {"paddle.f(4)", came_to(Outcome::pass)}};
  const auto grows = [&](std::vector<Standing> cases) {
    const auto now = run_of(cases);
    return said(StoredRun::must(compare_runs(now->store(), past_of(then), false)));
  };
  std::vector<Standing> now = then;
  EXPECT_THAT(grows(now), IsEmpty());
  now[0].verdict = mismatch({wrong(), wrong("wide")});
  EXPECT_THAT(grows(now), ElementsAre("grown mismatch paddle.f: value; also under wide values"));
  Fault doubles = wrong();
  doubles.dtype = "float64";
  now[0].verdict = mismatch({wrong(), doubles});
  EXPECT_THAT(grows(now), ElementsAre("grown mismatch paddle.f: value; also float64"));
  now[0].verdict = mismatch({wrong("usual", 30)});
  EXPECT_THAT(grows(now), IsEmpty());
  now[0].verdict = mismatch({wrong("usual", 250)});
  EXPECT_THAT(grows(now), ElementsAre(HasSubstr("times the bar instead of")));
  now = then;
  now[1].verdict = now[2].verdict = mismatch({wrong()});
  EXPECT_THAT(grows(now), ElementsAre(HasSubstr("3 of 4 cases instead of 1 of 4")));
  // A corpus of the failing cases alone is no growth.
  EXPECT_THAT(grows({then[0]}), IsEmpty());
}

TEST(Compare, FlakyCountsOnlyWhereItIsStrict) {
  const std::vector<Standing> flaky{{"paddle.f(1)", came_to(Outcome::pass, kFlaky)}};
  const std::vector<Standing> passed{{"paddle.f(1)", came_to(Outcome::pass)}};
  const auto now = run_of(flaky);
  EXPECT_THAT(said(StoredRun::must(compare_runs(now->store(), past_of(passed), false))), IsEmpty());
  EXPECT_THAT(said(StoredRun::must(compare_runs(now->store(), past_of(passed), true))),
              ElementsAre("new pass paddle.f: flaky"));
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
              HasSubstr("seed: 0 before, 7 now (other inputs: verdicts may differ"));
}

TEST(Compare, ShowsTheBuildsOfBothSides) {
  std::map<std::string, std::string> sides{{"test.lane", "paddle"},
                                           {"reference.lane", "torch"},
                                           {"paddle", "3.3.1"},
                                           {"paddle.build", "3.3.1, commit aaa"},
                                           {"torch.build", "2.9.0, commit ccc"}};
  const PastRun past = past_of(after(), sides);
  sides["paddle.build"] = "3.3.1, commit bbb";
  const auto now = run_of(after(), sides);
  const RunComparison comparison = StoredRun::must(compare_runs(now->store(), past, false));
  EXPECT_THAT(comparison.settings, IsEmpty());
  EXPECT_THAT(build_lines(comparison),
              ElementsAre("paddle before: 3.3.1, commit aaa", "paddle now:    3.3.1, commit bbb",
                          "torch, the same build: 2.9.0, commit ccc"));
  EXPECT_THAT(comparison_table(comparison), HasSubstr("\n  paddle before: 3.3.1, commit aaa\n"));
  EXPECT_EQ(comparison_json(comparison)["builds"][0]["now"], "3.3.1, commit bbb");
}

TEST(Compare, ABaselineThatKeepsNoBuildIsNamed) {
  const auto now =
      run_of(after(), {{"test.lane", "paddle"}, {"paddle.build", "3.3.1, commit bbb"}});
  PastRun past = past_of(after());
  past.is_baseline = true;
  EXPECT_THAT(build_lines(StoredRun::must(compare_runs(now->store(), past, false))),
              ElementsAre("paddle before: (not kept)", "paddle now:    3.3.1, commit bbb"));
}

TEST(Compare, IdsThatAreMadeInAnotherWayAreRefused) {
  const auto now = run_of(after(), {{"version.canonical", "2"}});
  const auto compared =
      compare_runs(now->store(), past_of(before(), {{"version.canonical", "1"}}), false);
  ASSERT_FALSE(compared);
  EXPECT_EQ(compared.error().kind, ErrorKind::usage);
  EXPECT_THAT(compared.error().message, HasSubstr("version.canonical 1 and 2"));
}

TEST(Compare, JsonHasEveryFaultWhateverALineHolds) {
  const auto now = run_of(after());
  StoredRun::must(now->store().add_invalid({"a.txt:1", "paddle.(\xff", "expected a name"}));
  const RunComparison comparison =
      StoredRun::must(compare_runs(now->store(), past_of(before()), false));
  const auto json = nlohmann::json::parse(json_text(comparison_json(comparison)));
  EXPECT_EQ(json["new"].size(), 4U);
  EXPECT_EQ(json["lost"].size(), 2U);
  EXPECT_EQ(json["fixed"][1]["api"], "paddle.mended");
  EXPECT_EQ(json["known"].size(), 1U);
}

// ---- baseline files ----

std::string written(RunReader& run, const std::filesystem::path& file) {
  StoredRun::must(write_baseline(run, file));
  return StoredRun::must(read_file(file));
}

TEST(Baseline, ARunIsNoWorseThanItsOwn) {
  const testing::Folder folder;
  const auto now = run_of(after(), {{"seed", "7"}, {"flag.paddle_python", "/here/python"}});
  now->add("paddle.odd(\"a\\b\")", mismatch({wrong("wide", 1e300), not_finite()}));
  StoredRun::must(now->store().add_invalid({"a.txt:1", "paddle.( ", "expected a \"name\""}));
  const std::string text = written(now->store(), folder / "baseline.toml");
  EXPECT_THAT(text, HasSubstr("\"seed\" = \"7\"\n"));
  EXPECT_THAT(text, Not(HasSubstr("/here/python")));  // of a machine
  EXPECT_THAT(text, HasSubstr("[[fault]]\napi = \"paddle.known\"\noutcome = \"mismatch\"\n"));
  EXPECT_THAT(text, HasSubstr("\"paddle.lost\" = \"1 of 1\"\n"));
  EXPECT_THAT(text, Not(HasSubstr("paddle.mended")));
  const PastRun past = StoredRun::must(load_past((folder / "baseline.toml").string()));
  const RunComparison comparison = StoredRun::must(compare_runs(now->store(), past, false));
  EXPECT_THAT(said(comparison), IsEmpty());
  EXPECT_EQ(comparison.count(FaultState::known), 7U);
  EXPECT_THAT(comparison.settings, IsEmpty());
}

TEST(Baseline, WhatIsNotInItPassed) {
  const testing::Folder folder;
  const auto then = run_of(before());
  written(then->store(), folder / "baseline.toml");
  const auto now = run_of(after());
  const RunComparison comparison = StoredRun::must(compare_runs(
      now->store(), StoredRun::must(load_past((folder / "baseline.toml").string())), false));
  EXPECT_THAT(
      said(comparison),
      ElementsAre("new mismatch paddle.broke: m", "new crash paddle.crashes: m",
                  "new timeout paddle.fresh: m", "lost paddle.lost", "rejected paddle.refused",
                  "fixed mismatch paddle.crashes", "fixed test_error paddle.mended"));
}

// A case of it may still have the fault.
TEST(Compare, AFaultIsNotFixedWhileCasesOfItsApiHaveNotFinished) {
  const testing::Folder folder;
  const auto file = folder / "baseline.toml";
  written(run_of(before())->store(), file);
  const auto now = run_of(after());
  StoredRun::must(now->store().add_case(wire::planned_case(7, "paddle.mended(2)")));
  StoredRun::must(now->store().commit());
  const PastRun past = StoredRun::must(load_past(file.string()));
  const RunComparison comparison = StoredRun::must(compare_runs(now->store(), past, false));
  EXPECT_THAT(said(comparison), ::testing::Contains("fixed mismatch paddle.crashes"));
  EXPECT_THAT(said(comparison), Not(::testing::Contains("fixed test_error paddle.mended")));
  EXPECT_EQ(StoredRun::must(write_baseline(now->store(), file)).gone.size(), 1U);
  // Nor has the run passed, whatever it has shown so far.
  const auto good = run_of({{"paddle.mended(1)", came_to(Outcome::pass)}});
  StoredRun::must(good->store().add_case(wire::planned_case(7, "paddle.mended(2)")));
  StoredRun::must(good->store().commit());
  const RunReport report = StoredRun::must(load_report(good->store()));
  const RunComparison fine = StoredRun::must(compare_runs(good->store(), past, false));
  for (const RunComparison* against : {static_cast<const RunComparison*>(nullptr), &fine}) {
    EXPECT_EQ(verdict_of(report, against, false, false).kind, RunVerdict::Kind::not_judged);
  }
  EXPECT_THAT(StoredRun::must(read_file(file)), HasSubstr("api = \"paddle.mended\""));
}

TEST(Baseline, NotesAndCommentsStayWithTheirFault) {
  const testing::Folder folder;
  const auto file = folder / "baseline.toml";
  const auto then = run_of(before());
  std::string text = written(then->store(), file);
  const std::size_t known = text.find("[[fault]]\napi = \"paddle.known\"");
  ASSERT_NE(known, std::string::npos);
  const std::size_t reason = text.find("reason = \"\"", known);
  text.replace(reason, 11, "reason = \"logits are \\\"clamped\\\"\"");
  text.insert(known, "# issue 71234\n");
  text.insert(text.find("[[fault]]\napi = \"paddle.mended\""), "# fixed soon\n");
  ASSERT_TRUE(write_file(file, text));
  const auto now = run_of(after());
  const WrittenBaseline again = StoredRun::must(write_baseline(now->store(), file));
  text = StoredRun::must(read_file(file));
  EXPECT_THAT(text, HasSubstr("# issue 71234\n[[fault]]\napi = \"paddle.known\""));
  EXPECT_THAT(text, HasSubstr("reason = \"logits are \\\"clamped\\\"\""));
  EXPECT_THAT(text, Not(HasSubstr("fixed soon")));
  ASSERT_EQ(again.gone.size(), 2U);
  EXPECT_EQ(again.gone[1].api, "paddle.mended");
  EXPECT_EQ(written(now->store(), file), text);  // nothing moves where nothing changes
  // The run did not judge paddle.gone: its fault stays.
  EXPECT_THAT(text, HasSubstr("api = \"paddle.gone\""));
}

TEST(Baseline, AFaultIsKnownUntilItsDate) {
  const testing::Folder folder;
  const auto file = folder / "baseline.toml";
  const auto now = run_of(after());
  const std::string text = written(now->store(), file);
  const auto with_date = [&](const std::string& date) {
    std::string dated = text;
    const std::size_t fault = dated.find("api = \"paddle.known\"");
    dated.replace(dated.find("owner = \"\"", fault), 10,
                  "owner = \"nn\"\nuntil = \"" + date + "\"");
    EXPECT_TRUE(write_file(file, dated));
    return load_past(file.string());
  };
  const PastRun past = StoredRun::must(with_date("2020-02-01"));
  const RunComparison comparison = StoredRun::must(compare_runs(now->store(), past, false));
  ASSERT_EQ(comparison.count(FaultState::added), 1U);
  EXPECT_THAT(comparison_table(comparison), HasSubstr("it was known until 2020-02-01; owner: nn"));
  EXPECT_THAT(written(now->store(), file), HasSubstr("until = \"2020-02-01\""));
  const PastRun later = StoredRun::must(with_date("2999-02-01"));
  EXPECT_FALSE(StoredRun::must(compare_runs(now->store(), later, false)).worse());
  EXPECT_THAT(with_date("soon").error().message, HasSubstr("is no date such as"));
}

// Corpora may hold any bytes.
TEST(Baseline, ALineThatIsNoUtf8IsWrittenReadAndFound) {
  const testing::Folder folder;
  const auto file = folder / "baseline.toml";
  const auto now = run_of(after());
  StoredRun::must(now->store().add_invalid({"cases.txt:1", "paddle.\xe9t\xe9(1)", "bad byte"}));
  written(now->store(), file);
  const PastRun past = StoredRun::must(load_past(file.string()));
  EXPECT_THAT(said(StoredRun::must(compare_runs(now->store(), past, false))), IsEmpty());
}

TEST(Baseline, WhatIsNoneIsRefusedWithItsLine) {
  const testing::Folder folder;
  const auto file = folder / "baseline.toml";
  const auto refusal = [&](const std::string& text) {
    EXPECT_TRUE(write_file(file, text));
    const auto past = load_past(file.string());
    return past ? "taken" : past.error().message;
  };
  EXPECT_THAT(refusal("version = 3\n"), HasSubstr("version = 2 is wanted"));
  EXPECT_THAT(refusal(""), HasSubstr("--write-baseline"));
  EXPECT_EQ(refusal("version = 2\n[[fault]]\napi = \"paddle.abs\"\n"), "taken");
  EXPECT_THAT(refusal("version = 2\n[[fault]]\napi = \"a\"\nodd = 1\n"),
              HasSubstr("unknown setting fault.odd"));
  EXPECT_THAT(refusal("version = 2\n[[fault]]\noutcome = \"odd\"\n"), HasSubstr("has no api"));
  EXPECT_THAT(refusal("version = 2\n[[fault]]\napi = \"a\"\noutcome = \"odd\"\n"),
              HasSubstr("no outcome odd"));
  EXPECT_THAT(refusal("version = 2\n[[fault]]\napi = \"a\"\ncases = -5\n"),
              HasSubstr("not be negative"));
  EXPECT_THAT(refusal("version = 2\n[not_judged]\n\"paddle.abs\" = \"some\"\n"),
              HasSubstr("wants \"CASES of CASES\""));
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
  EXPECT_THAT(xml, HasSubstr("tests=\"10\" failures=\"5\" skipped=\"3\""));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"known mismatch: m\"/>"));
  EXPECT_THAT(
      xml,
      HasSubstr(
          "<failure type=\"lost\" message=\"coverage lost: 1 of 1 cases are not judged (0 of 1"));
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

TEST(Verdict, CasesComparedOnlyWithThemselvesPassWhereTheUserSaysSo) {
  using Kind = RunVerdict::Kind;
  const auto run = run_of({{"torch.abs(1)", came_to(Outcome::pass)},
                           {"torch.ops.mine.f(1)", came_to(Outcome::self_only)}});
  const RunReport report = StoredRun::must(load_report(run->store()));
  const RunVerdict verdict = verdict_of(report, nullptr, false, false);
  EXPECT_EQ(verdict.kind, Kind::not_judged);
  EXPECT_THAT(verdict.reason, HasSubstr("1 case compared only with itself"));
  EXPECT_EQ(verdict_of(report, nullptr, false, false, true).kind, Kind::passes);
  const auto alone = run_of({{"torch.ops.mine.f(1)", came_to(Outcome::self_only)}});
  const RunReport of_one = StoredRun::must(load_report(alone->store()));
  EXPECT_EQ(verdict_of(of_one, nullptr, false, false).kind, Kind::not_judged);
  EXPECT_EQ(verdict_of(of_one, nullptr, false, false, true).kind, Kind::passes);
}

}  // namespace
}  // namespace assay
