// Failures that show in the same way are one finding; a stored run is judged again without running.

#include "report/findings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "../verdict/record.h"
#include "base/atomic_file.h"
#include "report/annotations.h"
#include "report/rejudge.h"
#include "report/run_report.h"
#include "stored_run.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::measured_leaf;
using testing::RecordParts;
using ::testing::SizeIs;
using ::testing::StartsWith;
using testing::StoredRun;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Adds a case with this record, and the verdict that it has under no policy.
void add(StoredRun& run, const std::string& text, const RecordParts& parts) {
  const wire::Bytes record = testing::make_record(parts);
  const auto opened = StoredRun::must(wire::open<wire::Record>(record));
  run.add(text, judge(*opened, {}, Rules()), record);
}

RecordParts result(std::vector<float> left, std::vector<float> right) {
  RecordParts parts;
  parts.outputs = {measured_leaf(DType::float32, left, right)};
  return parts;
}

RecordParts gradient(std::vector<double> left, std::vector<double> right) {
  RecordParts parts;
  parts.outputs = {measured_leaf(DType::float64, right, right)};
  parts.gradients = {measured_leaf(DType::float64, left, right)};
  return parts;
}

RecordParts raises(std::string error) {
  RecordParts parts;
  parts.test.status = wire::Status::raised;
  parts.test.phase = "forward";
  parts.test.error = std::move(error);
  return parts;
}

std::vector<std::string> said(const std::vector<Finding>& findings) {
  std::vector<std::string> lines;
  for (const Finding& each : findings) {
    lines.push_back(fmt::format("{} {} | {} | {} | {}", name(each.key.outcome), each.key.api,
                                each.key.where, each.key.how, each.cases));
  }
  return lines;
}

std::vector<Finding> findings_in(StoredRun& run) {
  return StoredRun::must(findings_of(run.store(), nullptr));
}

// As beside a baseline that knows all of them.
std::vector<Finding> known_findings_in(StoredRun& run) {
  std::vector<Finding> findings = findings_in(run);
  for (Finding& each : findings) each.state = FaultState::known;
  return findings;
}

TEST(Findings, WhatShowsInTheSameWayIsOne) {
  StoredRun run;
  for (int size = 40; size > 0; --size) {
    add(run, fmt::format("paddle.roi(Tensor([{}], \"float32\"))", size), result({1, 2}, {1, 3}));
  }
  add(run, "paddle.roi(Tensor([9], \"float64\"))", gradient({5}, {1}));
  add(run, "paddle.exp(Tensor([9], \"float64\"))", result({kNan}, {1}));
  add(run, "paddle.abs(Tensor([9], \"float64\"))", result({1}, {1}));
  const auto findings = findings_in(run);
  EXPECT_THAT(said(findings),
              ElementsAre("mismatch paddle.exp | result[·] | NaN or infinity wrong | 1",
                          "mismatch paddle.roi | result[·] | value | 40",
                          "mismatch paddle.roi | gradient of [·] | value | 1"));
  // The smallest case stands for all.
  EXPECT_EQ(findings[1].text, "paddle.roi(Tensor([1], \"float32\"))");
  EXPECT_THAT(findings[1].extent.values, ElementsAre("usual"));
  EXPECT_THAT(findings[2].extent.dtypes, ElementsAre("float64"));
  EXPECT_THAT(findings_table(findings, false),
              HasSubstr("   2  mismatch paddle.roi, result[·]: value  (40 cases; "
                        "float32; usual values)\n"));
}

TEST(Findings, ErrorsAreSortedByTheirKindAndNotByTheirNumbers) {
  StoredRun run;
  add(run, "paddle.f(1)", raises("ValueError: axis 3 is beyond rank 2 (expected [0, 2))"));
  add(run, "paddle.f(2)", raises("ValueError: axis 15 is beyond rank 11 (expected [0, 11))"));
  add(run, "paddle.f(3)", raises("TypeError: no such thing as a tensor here"));
  EXPECT_THAT(
      said(findings_in(run)),
      ElementsAre(
          "test_error paddle.f | the test lane | ValueError: axis · is beyond rank · | 2",
          "test_error paddle.f | the test lane | TypeError: no such thing as a tensor here | 1"));
}

TEST(Findings, CrashesComeBeforeErrorsAndThoseBeforeMismatches) {
  StoredRun run;
  for (int i = 1; i < 9; ++i) {
    add(run, fmt::format("paddle.a(Tensor([{}], \"float32\"))", i), result({1}, {2}));
  }
  add(run, "paddle.b(1)", raises("TypeError: no"));
  run.add("paddle.c(1)", {Outcome::timeout, 0, 0, "test", "no result within 90 s"});
  run.add("paddle.d(1)", {Outcome::crash, 0, 0, "test", "SIGSEGV"});
  std::vector<std::string> apis;
  for (const Finding& each : findings_in(run)) apis.push_back(each.key.api);
  EXPECT_THAT(apis, ElementsAre("paddle.c", "paddle.d", "paddle.b", "paddle.a"));
}

TEST(Findings, FaultsOfTheReferenceComeLast) {
  StoredRun run;
  RecordParts parts = raises("RuntimeError: the reference gives up");
  std::swap(parts.test, parts.reference);
  add(run, "paddle.a(1)", parts);
  add(run, "paddle.a(2)", parts);
  add(run, "paddle.z(1)", result({1}, {2}));
  EXPECT_THAT(said(findings_in(run)), ElementsAre("mismatch paddle.z | result[·] | value | 1",
                                                  "reference_error paddle.a | the reference lane | "
                                                  "RuntimeError: the reference gives up | 2"));
}

TEST(Findings, TheSameFindingHasTheSameDigestInEveryRun) {
  StoredRun one;
  StoredRun two;
  add(one, "paddle.z(Tensor([4], \"float32\"))", result({1}, {2}));
  add(two, "paddle.z(Tensor([5], \"float32\"))", result({3}, {2}));
  add(two, "paddle.y(Tensor([5], \"float32\"))", result({3}, {2}));
  EXPECT_EQ(findings_in(one)[0].key.digest(), findings_in(two)[1].key.digest());
  EXPECT_NE(findings_in(two)[0].key.digest(), findings_in(two)[1].key.digest());
}

// ---- judged again ----

TEST(Rejudge, UnderItsOwnPolicyNothingChanges) {
  StoredRun run;
  add(run, "paddle.a(1)", result({1}, {2}));
  add(run, "paddle.b(1)", result({1}, {1.001F}));
  add(run, "paddle.c(1)", raises("ValueError: no"));
  run.add("paddle.d(1)", {Outcome::unsupported, 0, 0, "", "no reference"});
  const auto again = StoredRun::must(RejudgedRun::make(run.store(), {}));
  std::map<std::string, Verdict> before;
  StoredRun::must(run.store().each_finished([&](const FinishedCase& finished) -> Status {
    before[std::string(finished.text)] = finished.verdict;
    return {};
  }));
  std::size_t seen = 0;
  StoredRun::must(again->each_finished([&](const FinishedCase& finished) -> Status {
    const Verdict& stored = before.at(std::string(finished.text));
    EXPECT_EQ(finished.verdict.outcome, stored.outcome) << finished.text;
    EXPECT_EQ(finished.verdict.message, stored.message);
    ++seen;
    return {};
  }));
  EXPECT_EQ(seen, 4U);
}

std::string outcome_under(StoredRun& run, const JudgeBy& by) {
  const auto again = StoredRun::must(RejudgedRun::make(run.store(), by));
  std::string outcome;
  StoredRun::must(again->each_finished([&](const FinishedCase& finished) -> Status {
    outcome = name(finished.verdict.outcome);
    return {};
  }));
  return outcome;
}

TEST(Rejudge, AnotherToleranceOrPolicyDecidesAnew) {
  StoredRun run;
  add(run, "paddle.b(1)", result({100}, {100.5F}));
  EXPECT_EQ(outcome_under(run, {}), "pass");
  EXPECT_EQ(outcome_under(run, {.atol = 0.1, .rtol = 0}), "mismatch");
  EXPECT_EQ(outcome_under(run, {.atol = 1, .rtol = 0}), "pass");
  const std::string policy = "version = 1\n[\"paddle.b\"]\natol = 0.1\nrtol = 0\nreason = \"r\"\n";
  EXPECT_EQ(outcome_under(run, {.policies = policy, .policies_name = "p.toml"}), "mismatch");
  const auto refused =
      RejudgedRun::make(run.store(), {.policies = "version = 9\n", .policies_name = "p.toml"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("p.toml"));
  const auto again = StoredRun::must(RejudgedRun::make(run.store(), {.atol = 1}));
  EXPECT_EQ(StoredRun::must(again->properties()).at("error_bar"), "false");
}

TEST(Rejudge, WhatOnlyAttemptsTellStays) {
  StoredRun run;
  const wire::Bytes record = testing::make_record(result({1}, {1}));
  run.add("paddle.f(1)", {Outcome::pass, 0, kFlaky, "", "first mismatch"}, record);
  const auto again = StoredRun::must(RejudgedRun::make(run.store(), {}));
  StoredRun::must(again->each_finished([&](const FinishedCase& finished) -> Status {
    EXPECT_EQ(finished.verdict.flags, kFlaky);
    return {};
  }));
}

// ---- annotations ----

TEST(Annotations, GithubTakesLinesAndColons) {
  StoredRun run;
  const testing::Folder folder;
  add(run, "paddle.f(1)", raises("ValueError: 50% of\nwhat, there: is"));
  const auto corpus = folder / "a,b.txt";
  ASSERT_TRUE(write_file(corpus, "# comment\nno case\npaddle.f( 1 ,)\n"));
  const std::vector<std::string> files{corpus.string()};
  const CorpusPlaces places = StoredRun::must(CorpusPlaces::read(files));
  const RunVerdict fails{RunVerdict::Kind::fails, "1 of 1 case failed"};
  const std::string lines = github_annotations(findings_in(run), places, fails, nullptr);
  EXPECT_THAT(lines, StartsWith("::error title=assay::fails: 1 of 1 case failed\n::error file="));
  EXPECT_THAT(lines,
              HasSubstr("a%2Cb.txt,line=3,title=test_error paddle.f::paddle.f, the test "
                        "lane: ValueError: 50%25 of what, there: is (1 case)%0Apaddle.f(1)\n"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
}

TEST(Annotations, GithubGetsOneNoticeWhereNothingIsNew) {
  StoredRun run;
  add(run, "paddle.f(1)", raises("ValueError: what"));
  const RunVerdict passes{RunVerdict::Kind::passes, "nothing is worse"};
  const RunComparison comparison;
  EXPECT_EQ(github_annotations(known_findings_in(run), {}, passes, &comparison),
            "::notice title=assay::passes: nothing is worse\n");
}

TEST(Annotations, GithubSeesLostCoverageAndInvalidLines) {
  RunComparison comparison;
  comparison.lost.push_back({"paddle.f", "float32", false, {4, 0, 0}, {4, 3, 0}});
  StoredRun run;
  StoredRun::must(run.store().add_invalid({"cases.txt:7", "padle.g(1)", "unknown name"}));
  const RunVerdict fails{RunVerdict::Kind::fails, "1 new fault"};
  EXPECT_EQ(
      github_annotations(findings_in(run), {}, fails, &comparison),
      "::error title=assay::fails: 1 new fault\n"
      "::error title=invalid padle.g::padle.g: cases.txt:7: unknown name (1 case)%0Apadle.g(1)\n"
      "::error title=lost paddle.f::3 of 4 cases are not judged (0 of 4 before)\n");
}

TEST(Annotations, GithubTakesNoCommandOfACase) {
  StoredRun run;
  add(run, "paddle.f(1)", raises("a\n::stop-commands::x\x1b[2J\xE2\x80\xAE"));
  const RunVerdict fails{RunVerdict::Kind::fails, "1 of 1 case failed"};
  const std::string lines = github_annotations(findings_in(run), {}, fails, nullptr);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2) << lines;
  EXPECT_THAT(lines, HasSubstr("stop-commands::x [2J\\u202e"));
}

// By SARIF 2.1.0: what sections 3.13 to 3.28 require of the objects that are used.
TEST(Annotations, SarifHasWhatTheStandardRequires) {
  StoredRun run;
  const testing::Folder folder;
  add(run, "paddle.f(1)", raises("ValueError: bytes \xff that are no text"));
  add(run, "paddle.g(Tensor([1], \"float32\"))", result({1}, {2}));
  ASSERT_TRUE(write_file(folder / "a b.txt", "paddle.f(1)\n"));
  const std::vector<std::string> files{(folder / "a b.txt").string()};
  const CorpusPlaces places = StoredRun::must(CorpusPlaces::read(files));
  const auto log = nlohmann::json::parse(sarif_log(known_findings_in(run), places, true, "1.2"));
  EXPECT_EQ(log["version"], "2.1.0");
  ASSERT_THAT(log["runs"], SizeIs(1));
  const auto& driver = log["runs"][0]["tool"]["driver"];
  EXPECT_EQ(driver["name"], "assay");
  std::set<std::string> rules;
  std::set<std::string> tracked_by;
  for (const auto& rule : driver["rules"]) rules.insert(rule["id"].get<std::string>());
  ASSERT_THAT(log["runs"][0]["results"], SizeIs(2));
  for (const auto& each : log["runs"][0]["results"]) {
    EXPECT_TRUE(each["message"]["text"].is_string());
    EXPECT_TRUE(rules.contains(each["ruleId"].get<std::string>()));
    EXPECT_THAT((std::set<std::string>{"none", "note", "warning", "error"}),
                ::testing::Contains(each["level"].get<std::string>()));
    EXPECT_EQ(each["baselineState"], "unchanged");
    EXPECT_GE(each["occurrenceCount"].get<int>(), 1);
    tracked_by.insert(each["partialFingerprints"]["primaryLocationLineHash"].get<std::string>());
    ASSERT_THAT(each["locations"], SizeIs(1));
    const auto& location = each["locations"][0];
    EXPECT_EQ(location["logicalLocations"][0]["kind"], "function");
    if (!location.contains("physicalLocation")) continue;
    EXPECT_THAT(location["physicalLocation"]["artifactLocation"]["uri"].get<std::string>(),
                ::testing::EndsWith("/a%20b.txt"));
    EXPECT_EQ(location["physicalLocation"]["region"]["startLine"], 1);
  }
  // Each fault is an alert of its own, and the same one in every run.
  EXPECT_THAT(tracked_by, SizeIs(2));
  for (const Finding& each : findings_in(run)) {
    EXPECT_THAT(tracked_by, ::testing::Contains(each.key.digest() + ":1"));
  }
}

}  // namespace
}  // namespace assay
