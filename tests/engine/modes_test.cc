// Modes and lanes by role, as a user asks for them, with frameworks that differ on demand.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "../serve/page_data.h"
#include "base/atomic_file.h"
#include "cli.h"
#include "report/performance.h"
#include "store/open_store.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay::testing {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::istringstream text(read_file(file).value_or(""));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::string log_of(const Cli& cli) { return read_file(cli.run() / "log_inorder.log").value_or(""); }

TEST(Modes, StabilityComparesBothFrameworksWithThemselvesAndEachOther) {
  Cli cli;
  const std::string cases =
      cli.write_cases({fake("echo"), fake("unsteady"), fake("wrong"), fake("raises"),
                       fake("raises_the_second_time"), fake("both_raise")});
  const CliResult result = cli.call_api({"--api_config_file=" + cases, "--accuracy_stable=True"});
  EXPECT_EQ(result.status.code, 1) << result.output;
  EXPECT_THAT(
      cli.outcomes(),
      UnorderedElementsAre(Pair(fake("echo"), "pass"), Pair(fake("unsteady"), "unstable"),
                           Pair(fake("wrong"), "mismatch"), Pair(fake("raises"), "test_error"),
                           Pair(fake("raises_the_second_time"), "test_error"),
                           Pair(fake("both_raise"), "rejected")));
  EXPECT_THAT(log_of(cli), HasSubstr("paddle#1 against paddle#2"));

  std::vector<std::string> pairs;
  for (const std::string& line : lines_of(cli.run() / "stable.csv")) {
    if (!line.starts_with("paddle.fake.echo")) continue;
    const std::size_t end = line.find(",0.000000e+00,0.000000e+00");
    ASSERT_NE(end, std::string::npos) << line;
    pairs.push_back(line.substr(line.rfind(',', end - 1) + 1, end - line.rfind(',', end - 1) - 1));
  }
  EXPECT_THAT(pairs, UnorderedElementsAre("P1P2", "P1T1", "P1T2", "P2T1", "P2T2", "T1T2"));
}

TEST(Modes, CompiledGraphsAreComparedWithEagerMode) {
  Cli cli;
  // "unknown to the tables" is no reason here: no reference function is called.
  const std::string cases = cli.write_cases({fake("echo"), fake("wrong_in_graphs"), fake("wrong")});
  const CliResult result = cli.call_api({"--api_config_file=" + cases, "--paddle_cinn=True"});
  EXPECT_EQ(result.status.code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("paddle-to_static: graphs are pretended"));
  EXPECT_THAT(cli.outcomes(), UnorderedElementsAre(Pair(fake("echo"), "pass"),
                                                   Pair(fake("wrong_in_graphs"), "mismatch"),
                                                   Pair(fake("wrong"), "pass")));
  EXPECT_THAT(log_of(cli), HasSubstr("--paddle_cinn=True"));
}

TEST(Modes, WhatAFrameworkCannotDoIsSkippedWithItsReason) {
  Cli cli;
  const CliResult result = cli.call_api({"--api_config=" + fake("wrong"), "--test_amp=True"});
  EXPECT_EQ(result.status.code, 4) << result.output;
  EXPECT_THAT(cli.outcomes(), UnorderedElementsAre(Pair(fake("wrong"), "skip")));
  EXPECT_THAT(log_of(cli), HasSubstr("paddle 1.0 has no automatic mixed precision"));
}

TEST(Modes, WhatIsComparedWithNothingRan) {
  for (const char* mode : {"--paddle_only=True", "--paddle_gpu_performance=True"}) {
    Cli cli;
    const CliResult result = cli.call_api({"--api_config=" + fake("echo"), mode});
    EXPECT_THAT(result.output, HasSubstr("pass          the call ran; no results were compared"));
  }
}

// A call that takes so many microseconds of the fakes' own clock, in either lane.
std::string takes(int mine, int reference) {
  return fmt::format("paddle.fake.takes(Tensor([3], \"float32\"), {}, {})", mine, reference);
}

TEST(Modes, LanesAreTimedByTurns) {
  Cli cli;
  const std::string cases =
      cli.write_cases({takes(2000, 1900), takes(200, 220), takes(3, 3), fake("both_raise"),
                       fake("raises"), fake("crash"), fake("dies_later")});
  const CliResult result =
      cli.call_api({"--api_config_file=" + cases, "--paddle_torch_gpu_performance=True"});
  EXPECT_EQ(result.status.code, 1) << result.output;
  EXPECT_THAT(cli.outcomes(),
              UnorderedElementsAre(Pair(takes(2000, 1900), "slow"), Pair(takes(200, 220), "fast"),
                                   Pair(takes(3, 3), "same"), Pair(fake("both_raise"), "rejected"),
                                   Pair(fake("raises"), "test_error"), Pair(fake("crash"), "crash"),
                                   Pair(fake("dies_later"), "crash")));
  EXPECT_THAT(log_of(cli), HasSubstr("forward host warm: 2 ms against 1.9 ms, 1.053 times as long "
                                     "(1.053 to 1.053)"));
  // How many turns a lane has depends on how fast this machine is; each of the 12 lanes of the
  // first look has one cold sample. 3 µs are 33 calls in a sample of about 100 µs.
  const auto rows = lines_of(cli.run() / "performance.csv");
  ASSERT_GE(rows.size(), 7U);
  EXPECT_TRUE(rows.front().starts_with("API,config,what,calls,test_samples,test_ns,"));
  EXPECT_THAT(rows, Contains(ContainsRegex("2000, 1900\\)\",forward host warm,1,[0-9]+,"
                                           "2000000.0,0.0000,[0-9]+,1900000.0,0.0000,")));
  EXPECT_THAT(rows, Contains(HasSubstr("2000, 1900)\",forward host cold,1,12,2000000.0,")));
  EXPECT_THAT(rows, Contains(HasSubstr("3, 3)\",forward host warm,33,")));
  // The page's, the slowest first.
  const auto store = open_store(cli.run(), StoreMode::existing);
  ASSERT_TRUE(store);
  const auto shown = performance_json(**store);
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(shown->at("parts"), rows.size() - 1);
  const auto& slowest = shown->at("rows").at(0);
  EXPECT_EQ(slowest.at("case"), takes(2000, 1900));
  EXPECT_EQ(slowest.at("speed"), "slow");
  EXPECT_NEAR(slowest.at("ratio").at(1).get<double>(), 2000.0 / 1900, 1e-6);
}

// How code and heap lie in a server makes all of its lanes faster or slower: second attempts come
// from another one.
TEST(Modes, ASlowServerIsNoSlowCase) {
  Cli cli;
  const std::string lucky = fmt::format("paddle.fake.takes_by_luck(Tensor([3], \"float32\"), {:?})",
                                        (cli.folder() / "server").string());
  const CliResult result = cli.call_api(
      {"--api_config_file=" + cli.write_cases({lucky}), "--paddle_torch_gpu_performance=True"});
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_EQ(cli.outcomes().at(lucky), "same");
  EXPECT_THAT(log_of(cli), HasSubstr("first slow (forward host warm: 1.1 ms against 1 ms"));
  EXPECT_TRUE(std::filesystem::exists(cli.run() / "lanes" / "server-paddle-second.log"));
}

// What a sample costs beside its calls is shared by them: a build on a GPU was flagged against
// itself where one lane had chosen one call and the other two.
TEST(Modes, SamplesOfBothLanesHaveAsManyCalls) {
  Cli cli;
  cli.call_api({"--api_config_file=" + cli.write_cases({takes(60, 20)}),
                "--paddle_torch_gpu_performance=True"});
  EXPECT_EQ(cli.outcomes().at(takes(60, 20)), "slow");
  const auto store = open_store(cli.run(), StoreMode::existing);
  ASSERT_TRUE(store);
  std::vector<std::uint32_t> calls;
  const Status read = (*store)->each_finished([&](const FinishedCase& finished) -> Status {
    ASSAY_TRY(const wire::Record* record, wire::open<wire::Record>(finished.record));
    for (const wire::LaneRecord* lane : *record->trials()->Get(0)->lanes()) {
      for (const wire::Timing* timing : *lane->timings()) {
        if (timing->what()->string_view() == "forward host warm") calls.push_back(timing->calls());
      }
    }
    return {};
  });
  EXPECT_TRUE(read);
  EXPECT_THAT(calls, ::testing::ElementsAre(2, 2));
}

TEST(Modes, ALaneIsTimedAloneAndComparedWithAnEarlierRun) {
  Cli cli;
  std::vector<std::string> lines;
  for (int i = 1; i <= 25; ++i) lines.push_back(takes(1000 * i, 0));
  const std::string cases = cli.write_cases(lines);
  const std::vector<std::string> flags{"--api_config_file=" + cases,
                                       "--paddle_gpu_performance=True"};
  const CliResult first = cli.call_api(flags);
  EXPECT_EQ(first.status.code, 0) << first.output;
  for (const auto& [text, outcome] : cli.outcomes()) EXPECT_EQ(outcome, "pass") << text;
  std::filesystem::rename(cli.run(), cli.folder() / "old");

  // All of a machine that is slower by a third take longer: no case is blamed.
  const std::string settings = read_file(cli.folder() / "assay.toml").value_or("");
  std::string slower = settings;
  const std::string entry = fake_environment();
  slower.replace(slower.find(entry), entry.size(), entry + ", \"ASSAY_FAKE_PACE=1.3\"");
  ASSERT_TRUE(write_file(cli.folder() / "assay.toml", slower));
  const std::string old = (cli.folder() / "old").string();
  std::vector<std::string> again = flags;
  again.push_back("--against=" + old);
  const CliResult second = cli.call_api(again);
  EXPECT_EQ(second.status.code, 0) << second.output;
  EXPECT_THAT(second.output, HasSubstr("relative to the pace of all cases (1.300 times as long"));
  EXPECT_THAT(second.output, HasSubstr("      25  same"));
}

// Two builds of one framework: the second one is told apart by the name of its lane.
constexpr const char* kOldLane = R"(
[lanes.old]
framework = "paddle"
environment = [{}, "ASSAY_FAKE_VERSION=0.9"]
)";

void add_settings(const Cli& cli, std::string text) {
  const std::size_t place = text.find("{}");
  if (place != std::string::npos) text.replace(place, 2, fake_environment());
  const std::string settings = read_file(cli.folder() / "assay.toml").value_or("");
  ASSERT_TRUE(write_file(cli.folder() / "assay.toml", settings + text));
}

TEST(Lanes, OneFrameworkTwiceInDifferentBuilds) {
  Cli cli;
  add_settings(cli, kOldLane);
  const std::string cases = cli.write_cases({fake("echo"), fake("wrong"), fake("reference_crash")});
  const CliResult result = cli.call_api({"--api_config_file=" + cases, "--reference-lane=old"});
  EXPECT_EQ(result.status.code, 0) << result.output;
  // The old build calls its own functions, which are as wrong, and no reference that crashes.
  EXPECT_THAT(cli.outcomes(),
              UnorderedElementsAre(Pair(fake("echo"), "pass"), Pair(fake("wrong"), "pass"),
                                   Pair(fake("reference_crash"), "pass")));
  for (const char* log : {"server-paddle.log", "server-old.log"}) {
    EXPECT_TRUE(std::filesystem::exists(cli.run() / "lanes" / log)) << log;
  }
  const auto properties = cli.report()["properties"];
  EXPECT_EQ(properties["paddle"], "1.0");
  EXPECT_EQ(properties["old"], "0.9");

  const CliResult resumed = cli.call_api({"--api_config_file=" + cases});
  EXPECT_EQ(resumed.status.code, 2);
  EXPECT_THAT(resumed.output, HasSubstr("was begun with reference."));
}

TEST(Lanes, ADeviceThatTheBuildLacksIsSaidAtOnce) {
  Cli cli;
  add_settings(cli, "[lanes.npu]\nframework = \"paddle\"\ndevice = \"npu:0\"\n");
  const CliResult result = cli.call_api({"--api_config=" + fake("echo"), "--test-lane=npu"});
  EXPECT_EQ(result.status.code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("npu: paddle 1.0 has no device npu; this build has: cpu"));
}

TEST(Lanes, SettingsOfALaneAreChecked) {
  Cli cli;
  add_settings(cli, "[lanes.odd]\nframework = \"paddle\"\ncolour = \"red\"\n");
  const CliResult result = cli.call_api({"--api_config=" + fake("echo"), "--test-lane=odd"});
  EXPECT_EQ(result.status.code, 2);
  EXPECT_THAT(result.output, HasSubstr("colour"));
}

TEST(Lanes, AnUnknownExecutionIsNoVerdictOnTheFramework) {
  Cli cli;
  add_settings(cli, "[lanes.odd]\nframework = \"paddle\"\nexecution = \"backwards\"\n");
  const CliResult result = cli.call_api({"--api_config=" + fake("echo"), "--test-lane=odd"});
  EXPECT_EQ(result.status.code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("no execution is called backwards"));
}

TEST(Files, TolerancesOfEveryTensorAndOfEveryApi) {
  Cli cli;
  const std::string cases = cli.write_cases({fake("echo"), fake("unsteady")});
  const CliResult result = cli.call_api(
      {"--api_config_file=" + cases, "--test_tol=True", "--values=usual", "--tolerance=engineV2"});
  EXPECT_EQ(result.status.code, 0) << result.output;
  const auto tensors = lines_of(cli.run() / "tol.csv");
  ASSERT_EQ(tensors.size(), 3U);
  EXPECT_EQ(tensors.front(), "API,config,dtype,mode,max_abs_diff,max_rel_diff");
  const auto stats = lines_of(cli.run() / "tol_stat.csv");
  ASSERT_EQ(stats.size(), 3U);
  EXPECT_TRUE(stats.front().starts_with(
      "API,dtype,mode,abs_min,abs_max,abs_mean,rel_min,rel_max,rel_mean,count,atol_at_rtol_0,"));
  EXPECT_TRUE(stats[1].starts_with("paddle.fake.echo,float32,forward,0.000000e+00,")) << stats[1];
  // The fake adds 0.0001, so that is the absolute tolerance it needs; float32 rounds it.
  ASSERT_TRUE(stats[2].starts_with("paddle.fake.unsteady,float32,forward,")) << stats[2];
  const double needed = std::stod(stats[2].substr(stats[2].find("forward,") + 8));
  EXPECT_NEAR(needed, 1e-4, 1e-7);
  const auto shown = page_data(cli.run() / "report.html")["data"]["tolerances"];
  ASSERT_EQ(shown["rows"].size(), 2U);
  EXPECT_EQ(shown["rows"][1][0], "paddle.fake.unsteady");
  EXPECT_EQ(shown["rows"][1][4][0], "0.0001");  // at rtol 0
}

TEST(Files, FailedCasesAsScripts) {
  Cli cli;
  const std::string cases = cli.write_cases({fake("echo"), fake("wrong"), fake("crash")});
  const CliResult result =
      cli.call_api({"--api_config_file=" + cases, "--generate_failed_tests=True"});
  EXPECT_EQ(result.status.code, 1) << result.output;
  std::vector<std::string> apis;
  for (const auto& entry : std::filesystem::directory_iterator(cli.run() / "failed_tests")) {
    const std::string name = entry.path().filename();
    apis.push_back(name.substr(0, name.rfind('_')));
    EXPECT_THAT(read_file(entry.path() / "repro.py").value_or(""), HasSubstr("paddle.fake."));
    EXPECT_EQ(std::filesystem::file_size(entry.path() / "x0.bin"), 12U);
  }
  EXPECT_THAT(apis, UnorderedElementsAre("test_paddle_fake_wrong", "test_paddle_fake_crash"));
}

TEST(Files, OneCaseIsDumpedWholeUnderEachValueRegime) {
  Cli cli;
  const CliResult result = cli.call_api({"--api_config=" + fake("wrong"), "--values=usual,layout",
                                         "--use_dump=True", "--dump_dir=" + cli.folder().string()});
  EXPECT_EQ(result.status.code, 1) << result.output;
  for (const char* values : {"usual", "layout"}) {
    const std::filesystem::path folder = cli.folder() / values;
    const auto facts =
        nlohmann::json::parse(read_file(folder / "paddle.yaml").value_or(""), nullptr, false);
    ASSERT_TRUE(facts.is_object()) << values;
    EXPECT_EQ(facts["values"], values);
    EXPECT_EQ(facts["status"], "done");
    EXPECT_EQ(facts["tensors"].size(), 2U);  // one goes in, one comes out
    for (const char* file : {"paddle_input.npz", "paddle_output.npz", "torch_output.npz"}) {
      EXPECT_GT(std::filesystem::file_size(folder / "tensors" / file), 100U) << file;
    }
  }
}

}  // namespace
}  // namespace assay::testing
