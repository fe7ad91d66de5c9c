// What reports make of a stored run, checked by the parsers that their readers use.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "report/baseline.h"
#include "report/junit.h"
#include "report/run_report.h"
#include "report/text_logs.h"
#include "store/accommodations.h"
#include "stored_run.h"

namespace assay {
namespace {

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
TEST(Report, WhatIsAccommodatedIsCounted) {
  StoredRun run;
  run.add("paddle.max(1)", {});
  run.add("paddle.max(2)", {Outcome::mismatch, kShape, 0, "", ""});
  run.add("paddle.abs(1)", {});
  StoredRun::must(run.store().set_property(
      kAccommodations,
      R"({"paddle.max": ["follows: <a>", "dodges: b"], "paddle.min": ["follows: c"]})"));
  const RunReport report = StoredRun::must(load_report(run.store()));
  EXPECT_EQ(report.accommodated, 2U);
  const auto json = json_report(report);
  EXPECT_EQ(json["flags"]["accommodated"], 2);
  EXPECT_EQ(json["accommodations"].size(), 1U);
  EXPECT_EQ(json["accommodations"]["paddle.max"][1], "dodges: b");
  EXPECT_FALSE(json["properties"].contains("accommodations"));
  EXPECT_THAT(outcome_table(report), HasSubstr("2  known deviations"));
  EXPECT_THAT(accommodation_table(report), HasSubstr("follows: <a>"));
  const auto baseline = run.folder() / "baseline.txt";
  StoredRun::must(write_baseline(run.store(), baseline));
  EXPECT_THAT(StoredRun::must(read_file(baseline)), Not(HasSubstr("accommodations")));
}

// A pass that has not looked at everything is told apart from one that has.
TEST(Report, WhatWasNotLookedAtIsCounted) {
  StoredRun run;
  flatbuffers::FlatBufferBuilder builder;
  const auto wide = builder.CreateString("wide");
  const auto reason = builder.CreateString("a draw has its own law");
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
  EXPECT_EQ(json["not_judged"]["wide"]["a draw has its own law"], 1);
  EXPECT_THAT(outcome_table(report), HasSubstr("1  weak: passed, with only shape"));
  EXPECT_THAT(outcome_table(report),
              HasSubstr("1  not judged in some value regime (`assay report DIR --json`"));
  EXPECT_THAT(outcome_table(report, "my run"), HasSubstr(" report 'my run' --json` lists"));
}

TEST(Report, TheFailingApiComesFirst) {
  const auto run = sample();
  const std::string table = api_table(StoredRun::must(load_report(run->store())));
  EXPECT_LT(table.find("paddle.f "), table.find("paddle.abs "));
  EXPECT_THAT(table, HasSubstr("1 mismatch"));
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
