// What reports make of a stored run, checked by the parsers that their readers use.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/markup.h"
#include "base/text.h"
#include "report/baseline.h"
#include "report/filtered_run.h"
#include "report/findings.h"
#include "report/junit.h"
#include "report/run_report.h"
#include "report/text_logs.h"
#include "store/known_deviations.h"
#include "stored_run.h"

namespace assay {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::run_program;
using testing::StoredRun;

constexpr const char* kNasty = R"(paddle.f("<a href='x'>&amp;\"\x01", Tensor([2], "int8")))";

// Two passes, one mismatch, one skip, one flaky pass, an invalid line, a case that has not run.
std::unique_ptr<StoredRun> sample() {
  auto run = std::make_unique<StoredRun>();
  run->add("paddle.abs(1)", {});
  run->add("paddle.abs(2)", {Outcome::pass, 0, kFlaky, "", ""});
  run->add(kNasty, {Outcome::mismatch, kShape | kValue, 0, "", "3 < 4 & \"so\" ]]> \x02"});
  run->add("paddle.exp(1)", {Outcome::skip, 0, 0, "", "needs \"<more>\""});
  run->plan("paddle.later(1)");
  StoredRun::must(
      run->store().add_invalid({"a&b.txt:7", "paddle.(\xff<\xc3", "column 8: expected a name"}));
  StoredRun::must(run->store().set_property("seed", "5"));
  return run;
}

TEST(Report, JsonCountsEveryOutcome) {
  const auto run = sample();
  const auto json = json_report(StoredRun::must(load_report(run->store())));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["cases"], 5);  // four that finished, and the invalid line
  EXPECT_EQ(json["unfinished"], 1);
  EXPECT_EQ(json["outcomes"]["pass"], 2);
  EXPECT_EQ(json["outcomes"]["mismatch"], 1);
  EXPECT_EQ(json["outcomes"]["skip"], 1);
  EXPECT_EQ(json["outcomes"]["invalid"], 1);
  EXPECT_EQ(json["outcomes"]["crash"], 0);
  EXPECT_EQ(json["flags"]["flaky"], 1);
  EXPECT_EQ(json["apis"]["paddle.abs"]["outcomes"]["pass"], 2);
  EXPECT_EQ(json["properties"]["seed"], "5");
  std::uint64_t sum = 0;
  for (const auto& count : json["outcomes"]) sum += count.get<std::uint64_t>();
  EXPECT_EQ(sum, json["cases"]);
}

// What the tables do for Paddle's sake is counted, as far as the run has such cases.
TEST(Report, KnownDeviationsAreCounted) {
  StoredRun run;
  run.add("paddle.max(1)", {});
  run.add("paddle.max(2)", {Outcome::mismatch, kShape, 0, "", ""});
  run.add("paddle.abs(1)", {});
  StoredRun::must(run.store().set_property(
      kKnownDeviations,
      R"({"paddle.max": ["follows: <a>", "dodges: b"], "paddle.min": ["follows: c"]})"));
  const RunReport report = StoredRun::must(load_report(run.store()));
  EXPECT_EQ(report.deviating, 2U);
  const auto json = json_report(report);
  EXPECT_EQ(json["flags"]["accommodated"], 2);
  EXPECT_EQ(json["accommodations"].size(), 1U);
  EXPECT_EQ(json["accommodations"]["paddle.max"][1], "dodges: b");
  EXPECT_FALSE(json["properties"].contains("accommodations"));
  EXPECT_THAT(outcome_table(report), HasSubstr("2  of them with known deviations"));
  EXPECT_THAT(known_deviation_table(report), HasSubstr("follows: <a>"));
  const auto baseline = run.folder() / "baseline.txt";
  StoredRun::must(write_baseline(run.store(), baseline));
  EXPECT_THAT(StoredRun::must(read_file(baseline)), Not(HasSubstr("accommodations")));
}

// A pass that has not looked at everything is told apart from one that has.
TEST(Report, WhatWasNotLookedAtIsCounted) {
  StoredRun run;
  flatbuffers::FlatBufferBuilder builder;
  const auto wide = builder.CreateString("wide");
  const auto reason = builder.CreateString("a draw has its own distribution");
  const auto trials = builder.CreateVector(std::vector<flatbuffers::Offset<wire::Trial>>{
      wire::CreateTrial(builder, wide, 0, 0, reason)});
  wire::RecordBuilder record(builder);
  record.add_version(wire::kVersion);
  record.add_trials(trials);
  builder.Finish(record.Finish());
  run.add("paddle.rand(1)", {Outcome::pass, 0, kWeak, "", ""}, wire::bytes_of(builder));
  run.add("paddle.rand(2)", {Outcome::mismatch, kShape, kWeak, "", ""});
  run.add("paddle.abs(1)", {});
  const RunReport report = StoredRun::must(load_report(run.store()));
  const auto json = json_report(report);
  EXPECT_EQ(json["flags"]["weak"], 1);
  EXPECT_EQ(json["partly_judged"], 1);
  EXPECT_EQ(json["not_judged"]["wide"]["a draw has its own distribution"], 1);
  EXPECT_THAT(outcome_table(report), HasSubstr("1  of those that pass are weak"));
  EXPECT_THAT(outcome_table(report), HasSubstr("1  of them not judged under some value regime\n"));
  EXPECT_THAT(outcome_table(report), HasSubstr("where and why: "));
  EXPECT_THAT(outcome_table(report, "my run"), HasSubstr(" report 'my run' --json\n"));
}

TEST(Report, SkippedCasesSayWhy) {
  StoredRun run;
  for (int i = 0; i < 7; ++i) {
    const std::string reason = i < 6 ? "reason " + std::to_string(i) : "";
    run.add("paddle.f(" + std::to_string(i) + ")", {Outcome::skip, 0, 0, "paddle", reason});
  }
  run.add("paddle.f(7)", {Outcome::skip, 0, 0, "paddle", "reason 5"});
  const RunReport report = StoredRun::must(load_report(run.store()));
  const std::string table = outcome_table(report);
  EXPECT_THAT(table, HasSubstr("8  skip          not run, for a stated reason\n"
                               "            2: reason 5\n"));
  EXPECT_THAT(table, HasSubstr("and 2 reasons more (--json has all)"));
  EXPECT_EQ(json_report(report)["skipped"]["no reason was kept"], 1);
  EXPECT_EQ(json_report(report)["skipped"]["reason 5"], 2);
}

TEST(Report, TheFailingApiComesFirst) {
  const auto run = sample();
  const std::string table = api_table(StoredRun::must(load_report(run->store())), true);
  EXPECT_LT(table.find("paddle.f "), table.find("paddle.abs "));
  EXPECT_THAT(table, HasSubstr("1 mismatch"));
}

// A line that is no case is a failure as any other: a finding, and a row of the table of APIs.
TEST(Report, InvalidLinesAreFindingsAndInTheTableOfApis) {
  const auto run = sample();
  StoredRun::must(run->store().add_invalid({"a.txt:8", "paddle.(3", "column 8: expected a name"}));
  StoredRun::must(run->store().add_invalid({"a.txt:9", "odd\x1b line", "column 1: no name"}));
  const RunReport report = StoredRun::must(load_report(run->store()));
  const std::string table = api_table(report, false);
  EXPECT_THAT(table, ContainsRegex("paddle\\. +2 +0.00  2 invalid\n"));
  EXPECT_THAT(table, ContainsRegex(R"(odd\\u001b line +1 +0\.00  1 invalid)"));
  EXPECT_EQ(json_report(report)["apis"]["paddle."]["outcomes"]["invalid"], 2);
  const auto findings = StoredRun::must(findings_of(run->store(), nullptr));
  ASSERT_EQ(findings.size(), 3U);
  const std::string listed = findings_table(findings, false);
  EXPECT_THAT(listed, HasSubstr("invalid paddle.: column ·: expected a name  (2 cases)\n"));
  EXPECT_THAT(listed, HasSubstr("\n      a&b.txt:7: column 8: expected a name\n"));
}

TEST(Report, PassingApisAreListedOnlyOnRequest) {
  const auto run = sample();
  const std::string table = api_table(StoredRun::must(load_report(run->store())), false);
  EXPECT_THAT(table, HasSubstr("paddle.f "));
  EXPECT_THAT(table, Not(HasSubstr("paddle.abs ")));
  EXPECT_THAT(table, HasSubstr("\n2 APIs without a failure (--passing lists them)\n"));
}

TEST(Report, ATerminalShowsColourAndWholeWords) {
  const auto run = sample();
  const RunReport report = StoredRun::must(load_report(run->store()));
  const Terminal terminal{.is_tty = true, .color = true, .width = 60};
  const std::string table = outcome_table(report, "r", terminal);
  EXPECT_THAT(table, HasSubstr("\x1b[31mmismatch     \x1b[0m the results differ"));
  EXPECT_THAT(table, HasSubstr("\x1b[32mpass         \x1b[0m"));
  EXPECT_THAT(table, HasSubstr("\x1b[33mskip         \x1b[0m"));
  for (const std::string& line : split_at(table, '\n')) EXPECT_LE(columns_of(line), 60U) << line;
  EXPECT_THAT(outcome_table(report, "r"), Not(HasSubstr("\x1b")));
  // --api_config takes a case in several lines, too.
  const auto findings =
      findings_table(StoredRun::must(findings_of(run->store(), nullptr)), false, terminal);
  for (const std::string& line : split_at(findings, '\n')) EXPECT_LE(columns_of(line), 60U);
}

// What `assay report -k` shows is the part of the run, in every count.
TEST(Report, APartOfARunIsCountedAlone) {
  const auto run = sample();
  FilteredRun part(run->store(), StoredRun::must(NameFilter::parse("abs or later")));
  const RunReport report = StoredRun::must(load_report(part));
  EXPECT_EQ(report.cases, 2U);
  EXPECT_EQ(report.by_api.size(), 1U);
  EXPECT_EQ(report.flaky, 1U);
  EXPECT_EQ(report.unfinished, 1U);
  EXPECT_EQ(StoredRun::must(part.counts()).planned, 3U);
  EXPECT_EQ(StoredRun::must(part.counts()).finished, 2U);
  EXPECT_TRUE(StoredRun::must(findings_of(part, nullptr)).empty());
  FilteredRun failing(run->store(), StoredRun::must(NameFilter::parse("paddle.f")));
  EXPECT_EQ(StoredRun::must(findings_of(failing, nullptr)).size(), 1U);
  // The limit of a query counts what is shown.
  RunQuery query;
  query.rows = RunQuery::Rows::outcome;
  query.outcome = Outcome::pass;
  query.most = 1;
  std::vector<std::string> seen;
  FilteredRun second(run->store(), StoredRun::must(NameFilter::parse("abs")));
  StoredRun::must(second.each(query, [&](const FinishedCase& finished) -> Status {
    seen.emplace_back(finished.text);
    return {};
  }));
  EXPECT_EQ(seen, std::vector<std::string>{"paddle.abs(1)"});
}

// A real XML parser reads back what was written, markup and all.
TEST(Report, JunitIsXml) {
  const auto run = sample();
  const auto file = run->folder() / "junit.xml";
  ASSERT_TRUE(write_junit(run->store(), {}, file));
  const auto ran = run_program(run->folder(), {"python3", "-c", R"(
import json, sys
import xml.etree.ElementTree as tree
suites = tree.parse(sys.argv[1]).getroot()
print(json.dumps({**suites.attrib, "suites": [[s.get(k) for k in ("name", "tests", "failures", "skipped")] for s in suites],
  "cases": [
    [c.get("classname"), c.get("name"), *((x.tag, x.get("message"), x.text) for x in c)]
    for s in suites for c in s]}))
)",
                                               file.string()});
  ASSERT_TRUE(ran.status.ok()) << ran.output;
  const auto suite = nlohmann::json::parse(ran.output);
  EXPECT_EQ(suite["tests"], "5");
  EXPECT_EQ(suite["failures"], "2");
  EXPECT_EQ(suite["skipped"], "1");
  ASSERT_EQ(suite["cases"].size(), 5U);
  EXPECT_EQ(suite["suites"][1], nlohmann::json({"paddle.abs", "2", "0", "0"}));
  EXPECT_EQ(suite["suites"][3], nlohmann::json({"paddle.f", "1", "1", "0"}));
  EXPECT_EQ(suite["cases"][1].size(), 2U);  // a pass has neither failure nor skip
  const auto& failed = suite["cases"][4];
  EXPECT_EQ(failed[0], "paddle.f");
  EXPECT_EQ(failed[1], kNasty);
  EXPECT_EQ(failed[2][0], "failure");
  EXPECT_EQ(failed[2][1], "3 < 4 & \"so\" ]]> ?");
  EXPECT_THAT(failed[2][2].get<std::string>(), HasSubstr("report_test api --api_config="));
  EXPECT_EQ(suite["cases"][3][2][1], "skip: needs \"<more>\"");
  EXPECT_EQ(suite["cases"][0][1], "a&b.txt:7");
  EXPECT_EQ(suite["cases"][0][2][2], "paddle.(?<?");
}

TEST(Report, JunitHasTheTimeOfEachCaseAndSuite) {
  StoredRun run;
  run.add("paddle.abs(1)", {}, {}, 1'500'000);
  run.add("paddle.abs(2)", {Outcome::mismatch, kValue, 0, "", "differs"}, {}, 250'000);
  run.add("paddle.exp(1)", {}, {}, 7);
  StoredRun::must(run.store().commit());
  const auto xml = [&](const JunitOptions& options) {
    const auto file = run.folder() / "junit.xml";
    StoredRun::must(write_junit(run.store(), options, file));
    return StoredRun::must(read_file(file));
  };
  const std::string each = xml({});
  EXPECT_THAT(each, HasSubstr("<testsuites name=\"assay\" tests=\"3\" failures=\"1\" "
                              "skipped=\"0\" time=\"1.750007\">"));
  EXPECT_THAT(each, HasSubstr("failures=\"1\" skipped=\"0\" time=\"1.750000\">"));
  EXPECT_THAT(each, HasSubstr("name=\"paddle.abs(1)\" time=\"1.500000\"/>"));
  EXPECT_THAT(each, HasSubstr("name=\"paddle.abs(2)\" time=\"0.250000\">\n"));
  EXPECT_THAT(each, HasSubstr("name=\"paddle.exp(1)\" time=\"0.000007\"/>"));
  // Of many cases only failures are listed: the sums stay.
  const std::string few = xml({.each_case_up_to = 1});
  EXPECT_THAT(few, HasSubstr("skipped=\"0\" time=\"1.750007\">"));
  EXPECT_THAT(few, HasSubstr("name=\"paddle.abs(2)\" time=\"0.250000\">\n"));
  EXPECT_THAT(few, HasSubstr("name=\"all other cases\" time=\"1.500000\">"));
}

TEST(Report, TextLogsHaveEngineV2sNames) {
  const auto run = sample();
  ASSERT_TRUE(write_file(run->folder() / "api_config_crash.txt", "of an earlier session\n"));
  ASSERT_TRUE(export_text_logs(run->store(), run->folder().path()));
  const auto text = [&](const char* name) {
    return StoredRun::must(read_file(run->folder() / name));
  };
  EXPECT_EQ(text("api_config_pass.txt"), "paddle.abs(1)\npaddle.abs(2)\n");
  EXPECT_EQ(text("api_config_accuracy_error.txt"), std::string(kNasty) + "\n");
  EXPECT_EQ(text("checkpoint.txt"),
            "paddle.abs(1)\npaddle.abs(2)\n" + std::string(kNasty) + "\npaddle.exp(1)\n");
  EXPECT_FALSE(std::filesystem::exists(run->folder() / "api_config_crash.txt"));
  const std::string in_order = text("log_inorder.log");
  EXPECT_THAT(in_order, HasSubstr("[mismatch] " + std::string(kNasty) + "\n  id: " +
                                  format_case_id(case_id(kNasty)) + "\n  kind: shape, value\n"));
  EXPECT_THAT(in_order, HasSubstr("a&b.txt:7 [invalid]"));
}

// A stored text may hold what no judge of ours writes.
TEST(Report, ACaseIsOneLineOfALog) {
  StoredRun run;
  run.add("paddle.f(1)", {Outcome::crash, 0, 0, "", "a\n2026-01-01 00:00:00 [pass] b\x1b[2J\rc"});
  ASSERT_TRUE(export_text_logs(run.store(), run.folder().path()));
  const std::string log = StoredRun::must(read_file(run.folder() / "log_inorder.log"));
  EXPECT_THAT(log, HasSubstr("  message: a\\n2026-01-01 00:00:00 [pass] b\\u001b[2J\\u000dc\n"));
  const auto findings = StoredRun::must(findings_of(run.store(), nullptr));
  const std::string table = findings_table(findings, false);
  EXPECT_THAT(table, Not(HasSubstr("\n2026-01-01"))) << table;
}

// RFC 4180 for quotes; OWASP's list of characters that begin a formula.
TEST(Report, ACellIsNoFormula) {
  EXPECT_EQ(csv_field("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0");
  EXPECT_EQ(csv_field("@SUM(1,2)"), "\"'@SUM(1,2)\"");
  EXPECT_EQ(csv_field("-1+1"), "'-1+1");
  EXPECT_EQ(csv_field("+1"), "'+1");
  EXPECT_EQ(csv_field("\t=1"), "'\t=1");
  EXPECT_EQ(csv_field("a\n=b \"c\""), "\"a\\n=b \"\"c\"\"\"");
  EXPECT_EQ(csv_field("paddle.abs(1)"), "paddle.abs(1)");
}

// A shell gives the program exactly the case, quotes and all.
TEST(Report, TheRerunCommandSurvivesAShell) {
  const std::string text = R"(paddle.f("it's", '$HOME `x` \\', 'a''b'))";
  const std::string program = own_executable().value();
  std::string command = rerun_command(text, {{"mode", "accuracy"},
                                             {"seed", "18446744073709551615"},
                                             {"atol", "0"},
                                             {"flag.timeout", "2.5"},
                                             {"flag.torch_python", "/a b/python"}});
  ASSERT_TRUE(command.starts_with(program + " api ")) << command;
  command.replace(0, program.size(), "assay");
  const testing::Folder folder;
  const auto ran =
      run_program(folder, {"sh", "-c", "assay() { printf '%s\\n' \"$@\"; }\n" + command});
  EXPECT_EQ(ran.output, "api\n--api_config=" + text +
                            "\n--accuracy=True\n--random_seed=18446744073709551615\n--atol=0\n--"
                            "timeout=2.5\n--torch_python=/a b/python\n");
  EXPECT_THAT(
      rerun_command("paddle.abs(1)", {{"mode", "paddle_only"}, {"seed", "0"}, {"rtol", "0.01"}}),
      program + " api --api_config='paddle.abs(1)' --paddle_only=True");
}

TEST(Report, TheApiIsWhatStandsBeforeTheCall) {
  EXPECT_EQ(api_of("paddle.Tensor.__add__(Tensor([1], \"int8\"), 1)"), "paddle.Tensor.__add__");
}

}  // namespace
}  // namespace assay
