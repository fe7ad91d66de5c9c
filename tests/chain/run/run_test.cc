// What a chain does when its stages do not behave.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "chain/results/chain_store.h"
#include "chain/stage/bounded_log.h"
#include "cli_run.h"

namespace assay::chain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// States of the latest run's stages, by the store.
std::vector<std::string> states(const Project& project) {
  auto store = results::ChainStore::open(project.results() / "chain.db", OpenMode::existing);
  EXPECT_TRUE(store) << (store ? "" : store.error().message);
  std::vector<std::string> list;
  if (!store) return list;
  const auto runs = store->runs();
  const auto stages = store->stages(runs->back().id);
  for (const results::StoredStage& stage : *stages) list.push_back(stage.state);
  return list;
}

// The child that a hanging stage had started, by its log; it must be gone.
bool child_is_gone(const Project& project, const std::string& log) {
  const std::string text = project.log(log);
  const std::size_t at = text.find("child ");
  EXPECT_NE(at, std::string::npos) << text;
  return at != std::string::npos && is_gone(static_cast<pid_t>(std::stoi(text.substr(at + 6))));
}

// Runs with a limit that grows until it was long enough for `enough`: how fast a machine is must
// decide nothing.
CliResult run_until(const std::function<std::vector<std::string>(double)>& options,
                    const Project& project, const std::function<bool(const CliResult&)>& enough) {
  CliResult result;
  for (const double limit : {0.4, 4.0, 40.0}) {
    result = project.run(options(limit));
    if (enough(result)) break;
  }
  return result;
}

std::string seconds(double value) { return fmt::format("{:g}", value); }

// While a training still runs, its losses are in the store and on the page.
TEST(Run, ThePageShowsARunThatGoesOn) {
  const Project project({.train = "\"say=loss: 0.25 ips: 8\" make=last.w await=go"});
  std::thread run([&] { project.run({"--page", "page.html"}); });
  const bool shown = comes_true([&] {
    const std::string page = slurp(project.path() / "page.html");
    return page.find("\"exit_code\":-1") != std::string::npos &&
           page.find("\"loss\":[0.25]") != std::string::npos;
  });
  put(project.path() / "go", "");
  run.join();
  EXPECT_TRUE(shown) << slurp(project.path() / "page.html");
  const std::string page = slurp(project.path() / "page.html");
  EXPECT_THAT(page, HasSubstr("\"exit_code\":0"));
}

TEST(Run, AFailedTrainingBlocksWhatNeedsIt) {
  const Project project({.train = "exit=3"});
  const CliResult result = project.run();
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(states(project), ElementsAre("failed", "blocked", "blocked", "blocked"));
  EXPECT_THAT(result.out, HasSubstr("exit code 3"));
}

// Ended when it is seen: without that this training would hang.
TEST(Run, ALossThatIsNoNumberEndsItsTraining) {
  const Project project({.train = "'say=loss: 2.5, ips: 3' 'say=loss: nan, ips: 3' hang"});
  const CliResult result = project.run({"--stop-on", "nan,slow"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("loss 2 is nan"));
  EXPECT_THAT(states(project), ElementsAre("failed", "blocked", "blocked", "blocked"));
}

// One that ends as soon as it has said so has failed all the same; nobody asked: it is only told.
TEST(Run, ALossThatIsNoNumberIsToldInAnyCase) {
  const Project project({.train = "'say=loss: inf' make=last.w"});
  const CliResult told = project.run({"--lenient"});
  EXPECT_EQ(told.code, 0) << told.out;
  EXPECT_THAT(told.out, HasSubstr("norm_train: nan: loss 1 is inf"));
  EXPECT_THAT(told.out, HasSubstr("which operator? assay capture --summaries --judge -- "));
  EXPECT_EQ(project.run().code, 1);
  EXPECT_EQ(project.run({"--stop-on", "nan", "--lenient"}).code, 1);
  EXPECT_THAT(project.run({"--stop-on", "bad_loss"}).out, HasSubstr("bad_loss not in {nan,"));
}

// Whatever a stage fails of: the last error line of its log and the log's path stand beside it.
TEST(Run, AFailureHasItsErrorLineAndItsLog) {
  const std::string error = "\"say=RuntimeError: no data\" ";
  for (const char* fault : {"exit=1", "\"say=loss: nan\" make=last.w", "\"say=loss: 1\"",
                            "make=last.w", "\"say=epoch: 1/9 loss: 1\" make=last.w"}) {
    const Project project({.train = error + fault});
    const CliResult result = project.run({"--page", "page.html"});
    EXPECT_EQ(result.code, 1) << fault;
    const std::string log = "lite_train_lite_infer/norm_train.log";
    for (const std::string& text : {result.out, slurp(project.path() / "page.html")}) {
      EXPECT_THAT(text, HasSubstr("RuntimeError: no data")) << fault;
      EXPECT_THAT(text, HasSubstr(log)) << fault;
    }
  }
}

// An old checkpoint lies there, training ends well and writes nothing: nothing may be believed.
TEST(Run, AStaleCheckpointIsNotBelieved) {
  const Project project({.train = "say=trained"});
  put(project.trained() / "last.w", "of yesterday");
  const CliResult result = project.run();
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("made no new"));
  EXPECT_THAT(result.out, HasSubstr("there is an older one"));
  EXPECT_THAT(states(project), ElementsAre("not_made", "blocked", "blocked", "blocked"));
}

// Ends at its time limit, once it has said that it hangs.
CliResult hung(const Project& project, const std::string& log) {
  return run_until(
      [](double limit) {
        return std::vector<std::string>{"--stage-limit", seconds(limit)};
      },
      project,
      [&](const CliResult&) { return project.log(log).find("child ") != std::string::npos; });
}

TEST(Run, AHangEndsAtTheStageLimitWithAllItsChildren) {
  const Project project({.train = "hang"});
  const std::string log = "norm_train.log";
  const CliResult result = hung(project, log);
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("ran over its limit of "));
  EXPECT_THAT(states(project), ElementsAre("timed_out", "blocked", "blocked", "blocked"));
  EXPECT_TRUE(child_is_gone(project, log));
}

TEST(Run, WhatIgnoresSigtermIsKilled) {
  const Project project({.train = "stubborn"});
  const std::string log = "norm_train.log";
  EXPECT_EQ(hung(project, log).code, 1);
  EXPECT_TRUE(child_is_gone(project, log));
}

TEST(Run, SilenceEndsAtTheIdleLimitButTalkDoesNot) {
  const Project silent({.train = "hang"});
  EXPECT_THAT(silent.run({"--idle-limit", "0.4"}).out, HasSubstr("wrote nothing for 0.4 s"));
  EXPECT_THAT(states(silent).front(), "silent");
  const Project talking({.train = "chatter"});
  const auto over = [](const CliResult& result) {
    return result.out.find("over its limit") != std::string::npos;
  };
  EXPECT_TRUE(over(run_until(
      [](double limit) {
        return std::vector<std::string>{"--idle-limit", seconds(limit), "--stage-limit",
                                        seconds(3 * limit)};
      },
      talking, over)));
}

TEST(Run, AChildLeftBehindIsEndedAndHoldsNobodyUp) {
  for (const std::string child : {"orphan", "orphan_apart"}) {
    const Project project({.train = "\"say=loss: 1\" make=last.w " + child});
    const CliResult result = project.run();
    EXPECT_EQ(result.code, 0) << result.out;
    EXPECT_TRUE(child_is_gone(project, "norm_train.log")) << child;
  }
}

TEST(Run, InterruptingEndsEverythingAndResumesLater) {
  Project project({.eval = "hang"});
  SpawnOptions options;
  options.argv = {CHAIN_CLI, "chain", "run", "params.txt", "lite_train_lite_infer"};
  options.directory = project.path().string();
  auto process = Process::spawn(options);
  ASSERT_TRUE(process);
  const std::string eval_log = "eval.log";
  ASSERT_TRUE(comes_true([&] { return project.log(eval_log).find("child") != std::string::npos; }));
  process->signal(SIGINT);
  const auto status = process->wait();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 130);
  EXPECT_THAT(states(project), ElementsAre("passed", "interrupted"));
  EXPECT_TRUE(child_is_gone(project, eval_log));

  project.write({});  // the evaluation works now: another argv, run anew
  const CliResult resumed = project.run({"--resume"});
  EXPECT_EQ(resumed.code, 0) << resumed.out;
  EXPECT_THAT(resumed.out, HasSubstr("kept from an earlier run: norm_train"));
  EXPECT_THAT(states(project), ElementsAre("passed", "passed", "passed"));  // eval, export, infer
}

TEST(Run, ResumeTrainsAgainWhenTheCheckpointHasChanged) {
  const Project project;
  ASSERT_EQ(project.run().code, 0);
  put(project.trained() / "last.w", "someone else's");
  const CliResult resumed = project.run({"--resume"});
  EXPECT_EQ(resumed.code, 0);
  EXPECT_THAT(resumed.out, Not(HasSubstr("kept from an earlier run")));
  EXPECT_EQ(states(project).size(), 4U);
}

// Asked twice, it leaves a stage no time to tidy up.
TEST(Run, InterruptingTwiceKills) {
  const Project project({.train = "stubborn"});
  SpawnOptions options;
  options.argv = {CHAIN_CLI, "chain", "run", "params.txt", "lite_train_lite_infer"};
  options.directory = project.path().string();
  auto process = Process::spawn(options);
  ASSERT_TRUE(process);
  const std::string log = "norm_train.log";
  ASSERT_TRUE(comes_true([&] { return project.log(log).find("child") != std::string::npos; }));
  ExitStatus status;
  ASSERT_TRUE(comes_true([&] {
    process->signal(SIGINT);
    return *process->try_wait(status);
  }));
  // A third may come when all is over and nobody listens any more.
  EXPECT_TRUE(status.code == 130 || status.signal == SIGINT) << status.describe();
  EXPECT_TRUE(child_is_gone(project, log));
  auto store = results::ChainStore::open(project.results() / "chain.db", OpenMode::existing);
  ASSERT_TRUE(store);
  EXPECT_EQ(store->stages(1)->front().detail, "the run was ended at once");
}

// Also the second process of a stage, which nothing but the guard ends.
class KilledRun : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Children, KilledRun, ::testing::Values("hang", "hang_apart"));

TEST_P(KilledRun, LeavesNoStage) {
  const Project project({.train = GetParam()});
  SpawnOptions options;
  options.argv = {CHAIN_CLI, "chain", "run", "params.txt", "lite_train_lite_infer"};
  options.directory = project.path().string();
  auto process = Process::spawn(options);
  ASSERT_TRUE(process);
  const std::string log = "norm_train.log";
  ASSERT_TRUE(comes_true([&] { return project.log(log).find("child") != std::string::npos; }));
  const std::string child = project.log(log).substr(6);
  std::ifstream stat("/proc/" + std::to_string(std::stoi(child)) + "/stat");
  std::string skipped;
  pid_t stage = 0;
  stat >> skipped >> skipped >> skipped >> stage;  // the fourth is the parent
  ASSERT_GT(stage, 1);
  process->signal(SIGKILL);
  ASSERT_TRUE(process->wait());
  EXPECT_TRUE(is_gone(stage));
  EXPECT_TRUE(child_is_gone(project, log));
}

TEST(Run, AFloodOfOutputIsBoundedAndItsEndIsKept) {
  const Project project({.train = "make=last.w say=the-first-line flood=128"});
  const CliResult result = project.run();
  EXPECT_EQ(result.code, 0) << result.out;
  const auto log = project.results() / "norm_train.log";
  EXPECT_LE(std::filesystem::file_size(log),
            stage::BoundedLog::kHead + stage::BoundedLog::kTail + 1000);
  const std::string text = slurp(log);
  EXPECT_THAT(text.substr(0, 100), HasSubstr("the-first-line"));
  EXPECT_THAT(text.substr(text.size() - 100), HasSubstr("the last line"));
  EXPECT_THAT(text.substr(stage::BoundedLog::kHead, 200), HasSubstr("bytes omitted here"));
}

// A file system of 2 MB, full: the stage that cannot write fails, and so does the chain.
TEST(Run, AFullDiskIsAFailureAndNotASuccess) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to mount a small file system";
  const Project project({.train = "make=last.w flood=4"});
  std::filesystem::create_directories(project.path() / "test_tipc");
  if (::mount("assay", (project.path() / "test_tipc").c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "cannot mount a small file system here";
  }
  const CliResult result = project.run({"--store", "results.db"});
  EXPECT_NE(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("No space left on device"));
  ::umount2((project.path() / "test_tipc").c_str(), MNT_DETACH);
  auto store = results::ChainStore::open(project.path() / "results.db", OpenMode::existing);
  ASSERT_TRUE(store);
  EXPECT_EQ(store->stages(1)->front().state, "disk_full");
}

TEST(Run, AProgramThatIsNotThereIsAFailureWithItsName) {
  const Project project({.python = "./no-such-python"});
  const CliResult result = project.run();
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("cannot start ./no-such-python"));
}

// A CPU-only Paddle told to use a GPU only prints an error and goes on: AutoLog's runtime_device
// tells. The line is the one of the material's logs.
TEST(Run, AGpuInferenceThatRanOnTheCpuDoesNotPass) {
  const Project project({.infer = "\"say=[2026/11/20 23:56:31] root INFO:  runtime_device: cpu\"",
                         .infer_use_gpu = "True"});
  const CliResult result = project.run();
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("asked for the gpu and ran on the cpu"));
}

TEST(Run, NothingOfAParamsFileIsExecuted) {
  const Project project({.train = "\"say=loss: 1\" make=last.w ; touch INJECTED",
                         .eval = "$(touch INJECTED2) `touch X` *"});
  EXPECT_EQ(project.run().code, 0);
  EXPECT_FALSE(std::filesystem::exists(project.path() / "INJECTED"));
  EXPECT_FALSE(std::filesystem::exists(project.path() / "INJECTED2"));
  EXPECT_FALSE(std::filesystem::exists(project.path() / "X"));
}

TEST(Run, TheEnvironmentIsSetBeforeTraining) {
  const Project project({.train = "env=CUDA_VISIBLE_DEVICES \"say=loss: 1\" make=last.w",
                         .gpu_list = "3",
                         .trainer = "norm_train"});
  ASSERT_EQ(project.run().code, 0);
  EXPECT_EQ(project.log("norm_train.log"), "CUDA_VISIBLE_DEVICES=3\nloss: 1\n");
}

TEST(Run, ABrokenFileIsRefusedBeforeAnythingRuns) {
  Project project({.gpu_list = "*"});
  const CliResult result = project.run();
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, HasSubstr("params.txt:4:10: `gpu_list`"));
  EXPECT_FALSE(std::filesystem::exists(project.path() / "test_tipc"));
  project.write({});
  const CliResult mode = run_cli(project.path(), {"run", "params.txt", "lite_train"});
  EXPECT_EQ(mode.code, 2);
  EXPECT_THAT(mode.out, HasSubstr("unknown mode lite_train: the standard script runs lite_train_"));
}

TEST(Run, ReadingsOfTheTrainingLogAreKept) {
  const Project project(
      {.train = "make=last.w \"say=[Epoch 0, iter: 0] loss: 6.87252, avg_batch_cost: 0.97362 sec, "
                "avg_ips: 4.10839 images/sec.\" \"say=[Epoch 1, iter: 0] loss: 5.5, avg_ips: 6 "
                "images/sec.\""});
  ASSERT_EQ(project.run().code, 0);
  auto store = results::ChainStore::open(project.results() / "chain.db", OpenMode::existing);
  ASSERT_TRUE(store);
  const std::int64_t train = store->stages(1)->front().id;
  std::vector<double> losses;
  const auto readings = store->readings(train);
  for (const results::StoredReading& reading : *readings) {
    if (reading.name == "loss") losses.push_back(reading.value);
  }
  EXPECT_THAT(losses, ElementsAre(6.87252, 5.5));
  const auto nodes = store->nodes(train);
  ASSERT_EQ(nodes->size(), 1U);
  EXPECT_EQ(nodes->front().model, "tiny");
  EXPECT_EQ(nodes->front().batch_size, "4");
  EXPECT_NEAR(nodes->front().ips, (4.10839 + 6) / 2, 1e-9);
}

// The report in AutoLog's form beside each inference's log, of what was measured from outside.
TEST(Run, AnInferenceHasAnAutoLogReport) {
  std::string report;
  for (const char* length : {"0.3", "3", "30"}) {  // long enough to be looked at
    const Project project(
        {.infer = "\"say=[2026/11/20 23:54:10] root INFO:  preprocess_time(ms): 2.5, "
                  "inference_time(ms): 7.5, postprocess_time(ms): 0.5\" sleep=" +
                  std::string(length)});
    ASSERT_EQ(project.run().code, 0);
    report = project.log("inference.log.autolog");
    if (report.find("cpu_rss(MB): None") == std::string::npos) break;
  }
  EXPECT_THAT(report, HasSubstr("model_name: tiny"));
  EXPECT_THAT(report, HasSubstr("inference_time(ms): 7.5"));
  EXPECT_THAT(report, Not(HasSubstr("cpu_rss(MB): None")));
}

TEST(Run, APreparationThatFailsEndsTheRun) {
  const Project project;
  put(project.path() / "prepare.sh", "echo preparing $2; exit 4\n");
  const CliResult result = project.run({"--prepare", "prepare.sh"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(states(project), ElementsAre("failed"));
  EXPECT_EQ(project.log("script.log"), "preparing lite_train_lite_infer\n");
}

// docs/reference/chain.md's first run.
TEST(Example, TheNewcomersFirstRunPasses) {
  const Scratch scratch;
  const auto folder = scratch.path() / "chain";
  std::filesystem::copy(std::filesystem::path(ASSAY_SOURCE_DIR) / "examples/chain", folder);
  EXPECT_EQ(run_cli(folder, {"check", "train_infer_python.txt"}).code, 0);
  const CliResult result =
      run_cli(folder, {"run", "train_infer_python.txt", "lite_train_lite_infer"});
  EXPECT_EQ(result.code, 0) << result.out;
  const std::string log =
      slurp(folder / "test_tipc/assay/line/train_infer_python/lite_train_lite_infer/inference.log");
  // The points lie near y = 3 x - 1: at x = -1 that is -4, at 0.5 it is 0.5.
  const std::size_t at = log.find("x=-1.0\t[");
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_NEAR(std::stod(log.substr(at + 8)), -4, 0.1);
}

TEST(Check, SaysGoodOrTheProblemsAndRunsNothing) {
  const Project project;
  put(project.path() / "bad.txt", "===train_params===\n");
  const CliResult result = run_cli(project.path(), {"check", "params.txt", "bad.txt"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out,
              HasSubstr("params.txt: good (the standard script, mode lite_train_lite_infer)"));
  EXPECT_THAT(result.out, HasSubstr("params.txt: no script found: the standard script is used"));
  EXPECT_THAT(result.out, HasSubstr("bad.txt:2:1: "));
  EXPECT_EQ(run_cli(project.path(), {"check", "params.txt"}).code, 0);
}

TEST(BoundedLogFile, KeepsHeadAndTailOnly) {
  const Scratch scratch;
  const std::string path = (scratch.path() / "a/b.log").string();
  auto log = stage::BoundedLog::create(path, 10, 5);
  ASSERT_TRUE(log);
  for (const char* part : {"01234", "56789", "xxxxxxxx", "ABC", "DE"})
    ASSERT_TRUE(log->append(part));
  ASSERT_TRUE(log->close());
  EXPECT_EQ(slurp(path), "0123456789\n[assay: 8 bytes omitted here]\nABCDE");
  EXPECT_EQ(log->bytes(), 23U);
}

TEST(ChainOptions, WhatMeansNothingIsRefused) {
  const Project project;
  const auto told = [&](std::vector<std::string> more) {
    const CliResult result = project.run(std::move(more));
    EXPECT_NE(result.code, 0) << result.out;
    return result.out;
  };
  EXPECT_THAT(told({"-j", "0"}), HasSubstr("--jobs: expected 1 or more, found 0"));
  EXPECT_THAT(told({"-j", "2"}), HasSubstr("--jobs is for lists of stages (.toml)"));
  EXPECT_THAT(told({"--stage-limit", "-5"}), HasSubstr("expected 0 or more, found -5"));
  EXPECT_THAT(told({"--json"}), HasSubstr("--json requires --dry-run"));
  EXPECT_FALSE(std::filesystem::exists(project.results()));
}

}  // namespace
}  // namespace assay::chain
