// The engine as a whole, with frameworks that misbehave on demand.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "../serve/page_data.h"
#include "base/fd.h"
#include "cli.h"
#include "store/open_store.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

TEST(Engine, GivesEveryCaseItsOutcome) {
  Cli cli;
  const std::string cases = cli.write_cases({
      fake("echo"),
      fake("crash"),
      fake("exit"),
      fake("wrong"),
      fake("raises"),
      fake("raises_no_text"),
      fake("exits_by_exception"),
      fake("interrupts_itself"),
      fake("gives_no_text"),
      fake("gives_no_shape"),
      fake("nonsense"),
      fake("both_raise"),
      fake("no_kernel"),
      fake("out_of_memory"),
      fake("reference_crash"),
      "paddle.fake.unknown(" + tensor(3) + ")",
      "paddle.fake._private(" + tensor(3) + ")",
      "this is no case",
  });
  const CliResult result = cli.call_api({"--api_config_file=" + cases, "--num_workers_per_gpu=2"});
  EXPECT_EQ(result.status.code, 1) << result.output;
  EXPECT_THAT(
      cli.outcomes(),
      UnorderedElementsAre(
          Pair(fake("echo"), "pass"), Pair(fake("crash"), "crash"), Pair(fake("exit"), "crash"),
          Pair(fake("wrong"), "mismatch"), Pair(fake("raises"), "test_error"),
          Pair(fake("raises_no_text"), "test_error"), Pair(fake("gives_no_text"), "test_error"),
          Pair(fake("exits_by_exception"), "test_error"),
          Pair(fake("interrupts_itself"), "test_error"), Pair(fake("gives_no_shape"), "test_error"),
          Pair(fake("nonsense"), "crash"), Pair(fake("both_raise"), "rejected"),
          Pair(fake("no_kernel"), "no_kernel"), Pair(fake("out_of_memory"), "oom"),
          Pair(fake("reference_crash"), "crash"), Pair(fake("unknown"), "invalid"),
          Pair(fake("_private"), "invalid")));
  EXPECT_EQ(cli.report()["outcomes"]["invalid"], 3);
  EXPECT_THAT(result.output, HasSubstr("cases.txt:18: column 1: "));
  EXPECT_THAT(result.output, HasSubstr("the paddle lane died of SIGSEGV"));
  EXPECT_THAT(result.output, HasSubstr("the torch lane died of SIGABRT"));
  EXPECT_THAT(result.output, HasSubstr("the paddle lane was ended: its answer is damaged"));
  EXPECT_TRUE(all_gone(cli.folder().string()));
}

TEST(Engine, AllGoodIsExitCodeZero) {
  Cli cli;
  const std::string cases = cli.write_cases({fake("echo"), fake("both_raise"), fake("no_kernel")});
  EXPECT_EQ(cli.call_api({"--api_config_file=" + cases}).status.code, 0);
}

TEST(Engine, TakesTheFlagsOfUpstreamsEngines) {
  Cli cli;
  const std::string cases = "--api_config_file=" + cli.write_cases({fake("echo")});
  const CliResult run = cli.call_api(
      {cases, "--bitwise_alignment=True", "--show_runtime_status=False", "--use_gpu_mode=True",
       "--sanitizer_command=compute-sanitizer --target-processes all",
       "--sanitizer_error_exitcode=86"});
  EXPECT_EQ(run.status.code, 0) << run.output;
  for (const char* flag : {"use_gpu_mode", "sanitizer_command", "sanitizer_error_exitcode"}) {
    EXPECT_THAT(run.output, HasSubstr(fmt::format("--{}", flag)));
  }
  EXPECT_THAT(run.output, Not(HasSubstr("cases to run")));
  EXPECT_THAT(run.output, Not(HasSubstr("[100%]")));
  const nlohmann::json properties = cli.report()["properties"];
  for (const char* tolerance : {"atol", "rtol"}) EXPECT_EQ(properties[tolerance], "0");
  EXPECT_EQ(properties["error_bar"], "false");
  const CliResult both = cli.call_api({cases, "--bitwise_alignment=True", "--rtol=0.1"});
  EXPECT_EQ(both.status.code, 2);
  EXPECT_THAT(both.output, HasSubstr("leave out --atol and --rtol"));
}

TEST(Engine, KnownDeviationsAreKeptWithTheRun) {
  Cli cli;
  const std::string cases = cli.write_cases({fake("echo"), fake("where")});
  EXPECT_EQ(cli.call_api({"--api_config_file=" + cases}).status.code, 0);
  const nlohmann::json report = cli.report();
  EXPECT_EQ(report["flags"]["accommodated"], 1);
  EXPECT_EQ(report["accommodations"]["paddle.fake.where"][0], "follows: it says where it is");
}

// Of both kinds: a case may leave either lane changed.
TEST(Engine, OnACpuEachRetryHasLanesOfItsOwn) {
  Cli cli;
  ::setenv("FAKE_TELLS_OF_LANES", "1", 1);
  const std::string cases = cli.write_cases({fake("wrong", 3), fake("wrong", 4), fake("wrong", 5)});
  const CliResult result = cli.call_api({"--api_config_file=" + cases, "--num_workers_per_gpu=1"});
  ::unsetenv("FAKE_TELLS_OF_LANES");
  EXPECT_EQ(cli.outcomes().at(fake("wrong", 5)), "mismatch") << result.output;
  const auto lanes = [&](const std::string& log) {
    const auto text = read_file(cli.run() / "lanes" / log);
    return text ? times(*text, "its first case") : 0;
  };
  EXPECT_EQ(lanes("slot0-paddle-test.log"), 1U + 3U);
  EXPECT_EQ(lanes("slot0-torch-reference.log"), 1U + 3U);
  const auto slot = read_file(cli.run() / "lanes" / "slot0.log");
  ASSERT_TRUE(slot);
  EXPECT_EQ(times(*slot, "retries "), 3U) << *slot;
  EXPECT_EQ(times(*slot, "#2, paddle lane "), 3U) << *slot;
}

// Each takes longer than records wait to be sent, and runs by itself.
std::string large(const std::string& name, int size) {
  return fmt::format("paddle.fake.{}({}, 0.06)", name, tensor(1'000'000 + size));
}

// After a case that poisons, its lane computes wrong results, in the same way each time. In any
// order of the retries such a case would be before the innocents.
TEST(Engine, ACaseIsNotBlamedForOneThatFailedBeforeItInItsLane) {
  Cli cli;
  std::vector<std::string> lines{large("poisons", 0)};
  for (int size = 1; size < 6; ++size) lines.push_back(large("poisoned", size));
  lines.push_back(large("poisons", 6));
  const std::string cases = cli.write_cases(lines);
  const CliResult result =
      cli.call_api({"--api_config_file=" + cases, "--num_workers_per_gpu=1", "--values=usual"});
  const auto outcomes = cli.outcomes();
  EXPECT_EQ(outcomes.at(lines.front()), "mismatch") << result.output;
  EXPECT_EQ(outcomes.at(lines.back()), "mismatch");
  for (std::size_t i = 1; i < 6; ++i) EXPECT_EQ(outcomes.at(lines[i]), "pass");
  EXPECT_EQ(cli.report()["flags"]["flaky"], 5);
}

TEST(Engine, WhatACaseChangesInItsLaneIsSetBackAndTheCaseIsMarked) {
  Cli cli;
  std::vector<std::string> lines{fake("changes_mode", 1)};
  for (int size = 2; size < 8; ++size) lines.push_back(fake("needs_mode", size));
  const CliResult result = cli.call_api(
      {"--api_config_file=" + cli.write_cases(lines), "--num_workers_per_gpu=1", "--values=usual"});
  EXPECT_EQ(result.status.code, 0) << result.output;
  const nlohmann::json flags = cli.report()["flags"];
  EXPECT_EQ(flags["changed_state"], 1);
  EXPECT_EQ(flags["flaky"], 0);
  const std::string run = cli.run().string();
  EXPECT_EQ(cli.call({"report", run, "--list=changed state"}).output, lines.front() + "\n");
  EXPECT_THAT(*read_file(cli.run() / "lanes" / "slot0-paddle-test.log"),
              HasSubstr("STATE: paddle.fake.changes_mode has changed mode"));
}

// By then the lanes of all slots have run something, and would stay for the next case.
TEST(Engine, WhatRanOutOfMemoryIsAloneOnTheMachineWhenItRunsAgain) {
  Cli cli;
  const std::string notes = (cli.folder() / "notes").string();
  std::vector<std::string> all{"paddle.fake.needs_all_memory(" + tensor(100) + ", \"" + notes +
                               "\")"};
  for (int size = 1; size <= 30; ++size) all.push_back(fake("echo", size));
  const CliResult result =
      cli.call_api({"--api_config_file=" + cli.write_cases(all), "--num_workers_per_gpu=3"});
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_THAT(*read_file(notes), AllOf(StartsWith("not alone\nalone\n"), Not(HasSubstr("\nnot"))));
  EXPECT_EQ(cli.report()["flags"]["contaminated"], 1);
  EXPECT_EQ(cli.outcomes().size(), all.size());
}

TEST(Engine, AHangEndsAtItsLimitAndHarmsNobody) {
  Cli cli;
  const std::string cases = cli.write_cases({fake("echo", 1), fake("hang", 2), fake("echo", 3)});
  cli.call_api({"--api_config_file=" + cases, "--timeout=1", "--num_workers_per_gpu=1"});
  EXPECT_THAT(cli.outcomes(),
              UnorderedElementsAre(Pair(fake("echo", 1), "pass"), Pair(fake("hang", 2), "timeout"),
                                   Pair(fake("echo", 3), "pass")));
  // The time is known, though its lane could no longer report it.
  EXPECT_GE(cli.report()["seconds"]["paddle"]["forward"].get<double>(), 1.0);
}

// Both lanes sleep: that is slow, and a retry would show no more. A hang shows by the time of the
// other lane.
TEST(Engine, SlowIsToldFromStuck) {
  Cli cli;
  const std::string slow = "paddle.fake.slow(" + tensor(1) + ", 60)";
  const std::string cases = cli.write_cases({slow, fake("hang", 2)});
  cli.call_api({"--api_config_file=" + cases, "--timeout=1", "--num_workers_per_gpu=2"});
  EXPECT_THAT(cli.outcomes(),
              UnorderedElementsAre(Pair(slow, "timeout"), Pair(fake("hang", 2), "timeout")));
  const auto store = open_store(cli.run(), StoreMode::existing);
  ASSERT_TRUE(store);
  const Status read = (*store)->each_finished([&](const FinishedCase& finished) -> Status {
    const bool stuck = finished.text == fake("hang", 2);
    EXPECT_EQ(finished.attempts, stuck ? 2U : 1U) << finished.text;
    const bool told = finished.verdict.message.find("; the torch lane took") != std::string::npos;
    EXPECT_EQ(told, stuck) << finished.verdict.message;
    const bool both =
        finished.verdict.message.find("; the torch lane as well") != std::string::npos;
    EXPECT_NE(both, stuck) << finished.verdict.message;
    return {};
  });
  EXPECT_TRUE(read);
}

// It writes into its arena that it starts in a hundred years, or that its lane is idle.
TEST(Engine, ACaseCannotHideThatItsTimeIsUp) {
  Cli cli;
  const std::string cases = cli.write_cases(
      {fake("echo", 1), fake("hides_its_start", 2), fake("hides_as_idle", 3), fake("echo", 4)});
  cli.call_api({"--api_config_file=" + cases, "--timeout=3", "--num_workers_per_gpu=1"});
  EXPECT_THAT(cli.outcomes(), UnorderedElementsAre(Pair(fake("echo", 1), "pass"),
                                                   Pair(fake("hides_its_start", 2), "timeout"),
                                                   Pair(fake("hides_as_idle", 3), "timeout"),
                                                   Pair(fake("echo", 4), "pass")));
}

TEST(Engine, ACaseThatCutsItsLaneOffIsBlamedAlone) {
  Cli cli;
  const std::string cases =
      cli.write_cases({fake("echo", 1), fake("prevents_its_answer", 2), fake("echo", 3),
                       fake("closes_its_channel", 4), fake("echo", 5)});
  cli.call_api({"--api_config_file=" + cases, "--num_workers_per_gpu=1", "--values=usual"});
  EXPECT_THAT(cli.outcomes(), UnorderedElementsAre(Pair(fake("echo", 1), "pass"),
                                                   Pair(fake("prevents_its_answer", 2), "crash"),
                                                   Pair(fake("echo", 3), "pass"),
                                                   Pair(fake("closes_its_channel", 4), "crash"),
                                                   Pair(fake("echo", 5), "pass")));
}

TEST(Engine, ACaseThatFailsOnlyInAUsedLaneIsMarked) {
  Cli cli;
  // Small cases come first, so the fifth finds a lane that has run four.
  std::vector<std::string> lines{fake("contaminated", 5)};
  for (int size : {1, 2, 3, 4, 6, 7}) lines.push_back(fake("echo", size));
  const std::string cases = cli.write_cases(lines);
  // Under other values it would also find its own lane used.
  const CliResult result =
      cli.call_api({"--api_config_file=" + cases, "--num_workers_per_gpu=1", "--values=usual"});
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_EQ(cli.outcomes()[fake("contaminated", 5)], "pass");
  const auto flags = cli.report()["flags"];
  EXPECT_EQ(flags["flaky"], 1);
  EXPECT_EQ(flags["contaminated"], 0);
  const std::string run = cli.run().string();
  EXPECT_EQ(cli.call({"report", run, "--list=flaky"}).output, fake("contaminated", 5) + "\n");
  EXPECT_EQ(cli.call({"report", run, "--list=contaminated"}).output, "");
  EXPECT_EQ(cli.call({"report", run, "--fail-on=any"}).status.code, 0);
  EXPECT_EQ(cli.call({"report", run, "--fail-on=any", "--strict"}).status.code, 1);
}

// A run has one build, so nothing was mended in between.
TEST(Engine, ACaseThatFailsNoMoreAfterARetestIsFlaky) {
  Cli cli;
  const std::string line = fake("flawed_at_times");
  ::setenv("FAKE_BROKEN", "1", 1);
  EXPECT_EQ(cli.call_api({"--api_config_file=" + cli.write_cases({line})}).status.code, 1);
  ::unsetenv("FAKE_BROKEN");
  EXPECT_EQ(cli.call_api({"--retest=True"}).status.code, 0);
  EXPECT_EQ(cli.outcomes().at(line), "pass");
  EXPECT_EQ(cli.report()["flags"]["flaky"], 1);
  EXPECT_EQ(cli.call_api({"--retest=pass", "--fail-on=any", "--strict"}).status.code, 1);
  EXPECT_EQ(cli.call_api({"--rerun", "--fail-on=any", "--strict"}).status.code, 0);
  EXPECT_EQ(cli.report()["flags"]["flaky"], 0);
}

// For each case a lane reports once under which values it does not run, and does not run these
// trials.
TEST(Engine, WhatIsNotJudgedUnderAKindOfValuesIsSaid) {
  Cli cli;
  const std::string cases = cli.write_cases({fake("echo", 1), fake("echo", 2), fake("wrong", 3)});
  cli.call_api({"--api_config_file=" + cases, "--num_workers_per_gpu=1"});
  const std::string unseen = "this family's behaviour under this regime has not been specified";
  nlohmann::json expected;
  for (const char* values : {"wide", "nan", "infinity", "bulk", "exact"}) {
    expected[values][unseen] = 3;
  }
  EXPECT_EQ(cli.report()["not_judged"], expected);
}

TEST(Engine, AStormOfCrashesBlamesEachAndSparesItsNeighbours) {
  Cli cli;
  std::vector<std::string> lines;
  for (int size = 1; size <= 60; ++size) {
    lines.push_back(fake("crash", size));
    lines.push_back(fake("echo", size));
  }
  const std::string cases = cli.write_cases(lines);
  cli.call_api({"--api_config_file=" + cases, "--num_workers_per_gpu=2", "--quiet=True"});
  const auto outcomes = cli.outcomes();
  EXPECT_EQ(outcomes.size(), lines.size());
  for (const auto& [text, outcome] : outcomes) {
    EXPECT_EQ(outcome, text.find("crash") != std::string::npos ? "crash" : "pass") << text;
  }
}

TEST(Engine, CasesAreDeduplicatedByMeaning) {
  Cli cli;
  const std::string cases = cli.write_cases({R"(paddle.fake.echo(Tensor([3],"float32"), ))",
                                             R"(paddle.fake.echo(Tensor([3], 'float32')))"});
  cli.call_api({"--api_config_file=" + cases});
  EXPECT_EQ(cli.outcomes().size(), 1U);
}

TEST(Engine, ResumesWhatIsLeftAndRunsNothingTwice) {
  Cli cli;
  const std::string first = cli.write_cases({fake("echo", 1), fake("echo", 2)}, "first.txt");
  const std::string both =
      cli.write_cases({fake("echo", 1), fake("echo", 2), fake("echo", 3)}, "both.txt");
  cli.call_api({"--api_config_file=" + first});
  const CliResult again = cli.call_api({"--api_config_file=" + both});
  EXPECT_THAT(again.output, HasSubstr("1 case to run"));
  EXPECT_THAT(again.output, HasSubstr("2 finished in earlier sessions"));
  EXPECT_EQ(cli.outcomes().size(), 3U);
}

TEST(Engine, RetestRunsOnlyTheNamedOutcomesAgain) {
  Cli cli;
  const std::string cases = cli.write_cases({fake("echo"), fake("wrong"), fake("raises")});
  cli.call_api({"--api_config_file=" + cases});
  const CliResult again = cli.call_api({"--retest=mismatch"});
  EXPECT_THAT(again.output, HasSubstr("1 case to run"));
  EXPECT_EQ(cli.outcomes().size(), 3U);
}

TEST(Engine, WritesTheLogsOfEngineV2) {
  Cli cli;
  const std::string cases = cli.write_cases({fake("echo"), fake("wrong"), fake("raises")});
  cli.call_api({"--api_config_file=" + cases});
  EXPECT_EQ(*read_file(cli.run() / "api_config_pass.txt"), fake("echo") + "\n");
  EXPECT_EQ(*read_file(cli.run() / "api_config_accuracy_error.txt"), fake("wrong") + "\n");
  EXPECT_EQ(*read_file(cli.run() / "api_config_paddle_error.txt"), fake("raises") + "\n");
  EXPECT_FALSE(std::filesystem::exists(cli.run() / "api_config_crash.txt"));
  EXPECT_THAT(*read_file(cli.run() / "checkpoint.txt"), HasSubstr(fake("wrong")));
  EXPECT_THAT(*read_file(cli.run() / "log_inorder.log"), HasSubstr("assay api --api_config='"));
  EXPECT_EQ(page_data(cli.run() / "report.html")["data"]["properties"]["mode"], "accuracy");
}

TEST(Engine, AFirstCtrlCKeepsEverythingAndSaysHowToGoOn) {
  Cli cli;
  std::vector<std::string> lines;
  for (int size = 1; size <= 40; ++size) {
    lines.push_back("paddle.fake.slow(" + tensor(size) + ", 0.2)");
  }
  const std::string cases = cli.write_cases(lines);
  Process process = cli.start(cli.api({"--api_config_file=" + cases, "--num_workers_per_gpu=1"}));
  std::this_thread::sleep_for(std::chrono::seconds(3));
  process.signal(SIGINT);
  EXPECT_EQ(process.wait()->code, 130);
  EXPECT_THAT(*read_file(cli.folder() / "output.txt"), HasSubstr("continue with"));
  EXPECT_TRUE(all_gone(cli.folder().string()));
  cli.call_api({"--api_config_file=" + cases, "--num_workers_per_gpu=2"});
  EXPECT_EQ(cli.outcomes().size(), lines.size());
}

TEST(Engine, ASecondEngineOnOneFolderIsRefused) {
  Cli cli;
  const std::string cases = cli.write_cases({"paddle.fake.slow(" + tensor(1) + ", 4)"});
  Process first = cli.start(cli.api({"--api_config_file=" + cases}));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  SpawnOptions options;
  const std::string other = cli.write_cases({fake("echo")}, "other.txt");
  Process second = cli.start(cli.api({"--api_config_file=" + other}));
  EXPECT_EQ(second.wait()->code, 3);
  EXPECT_EQ(first.wait()->code, 0);
  EXPECT_THAT(*read_file(cli.folder() / "output.txt"), HasSubstr("in use by another process"));
}

const std::string kSlot("assay\0slot", 10);
const std::string kServer = "assay.server";

// Waits for a process of the run with this word in its command line; returns its id.
pid_t wait_for_process(const Cli& cli, const std::string& word) {
  for (int tries = 0; tries < 1200; ++tries) {
    for (const pid_t pid : processes_of(cli.folder().string())) {
      const auto command = read_file("/proc/" + std::to_string(pid) + "/cmdline");
      if (command && command->find(word) != std::string::npos) return pid;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return 0;
}

// A stopped process neither ends nor answers: only its silence shows.
class Hang : public ::testing::TestWithParam<std::pair<const char*, std::string>> {};

TEST_P(Hang, IsReplacedAndNothingIsLost) {
  Cli cli;
  std::vector<std::string> lines;
  for (int size = 1; size <= 40; ++size) {
    lines.push_back("paddle.fake.slow(" + tensor(size) + ", 0.1)");
  }
  // Each forks its own lanes, so the server is needed until the end.
  for (int size = 1; size <= 5; ++size) lines.push_back(fake("wrong", size));
  const std::string cases = cli.write_cases(lines);
  Process process = cli.start(
      cli.api({"--api_config_file=" + cases, "--num_workers_per_gpu=1", "--hang_timeout=3"}));
  ASSERT_NE(wait_for_process(cli, kSlot), 0);  // a slot: the servers are ready
  const pid_t stopped = wait_for_process(cli, GetParam().second);
  ASSERT_NE(stopped, 0);
  ::kill(stopped, SIGSTOP);
  EXPECT_EQ(process.wait()->code, 1);
  const auto output = read_file(cli.folder() / "output.txt");
  EXPECT_THAT(*output, HasSubstr("sign of life for 3 s"));
  EXPECT_THAT(*output, HasSubstr("starting another in its place"));
  EXPECT_EQ(cli.outcomes().size(), lines.size());
  EXPECT_TRUE(all_gone(cli.folder().string()));
}

INSTANTIATE_TEST_SUITE_P(EachKind, Hang,
                         ::testing::Values(std::pair{"slot", kSlot}, std::pair{"server", kServer}),
                         [](const auto& of) { return std::string(of.param.first); });

TEST(Engine, WhatACaseLeavesBehindEndsWithTheRun) {
  Cli cli;
  cli.call_api({"--api_config=" + fake("child")});
  EXPECT_TRUE(all_gone(cli.folder().string()));
}

}  // namespace
}  // namespace assay::testing
