// A suite's own script drives a run. The interpreter of the scripts is the test child.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>

#include <deque>
#include <limits>
#include <nlohmann/json.hpp>

#include "chain/results/chain_store.h"
#include "chain/run/inputs.h"
#include "cli_run.h"
#include "little_memory.h"

namespace assay::chain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// As the suites' scripts are: values by name, one log for each command, exit codes swallowed.
constexpr const char* kScript = R"sh(
file=$1
value() { grep "^$1:" $file | head -1 | cut -d: -f2-; }
python=$(value python)
out=./test_tipc/output/tiny/$2
mkdir -p $out
eval "$python $(value norm_train) --out=$out/w --epochs=2" > $out/train.log 2>&1
eval "$python $(value eval) --weights=$out/w/last.w" > $out/eval.log 2>&1
eval "$python $(value norm_export) --out=$out/model --weights=$out/w/last.w" 2>&1 | tee $out/export.log
eval "$python $(value inference) --model_dir=$out/model" > $out/infer.log 2>&1
)sh";

struct Suite {
  std::string train = "\"say=epoch 1/2 loss: 0.5\" \"say=epoch 2/2 loss: 0.4\" make=last.w";
  std::string eval = "say=evaluated";
  std::string exporter = "say=exported make=inference.pdmodel make=inference.pdiparams";
  std::string inference = "say=inferred";
  std::string script = kScript;
};

class SuiteProject {
 public:
  explicit SuiteProject(const Suite& suite = {}) { write(suite); }
  void write(const Suite& suite) const {
    put(path() / "test_tipc/test_train_inference_python.sh", suite.script);
    put(path() / "f.txt", std::string("model_name:tiny\npython:") + CHAIN_CHILD +
                              "\nnorm_train:train.py " + suite.train + "\neval:eval.py " +
                              suite.eval + "\nnorm_export:export.py " + suite.exporter +
                              "\ninference:infer.py " + suite.inference + "\n");
  }
  std::filesystem::path path() const { return scratch_.path(); }
  std::filesystem::path results() const {
    return path() / "test_tipc/assay/tiny/f/lite_train_lite_infer";
  }
  std::filesystem::path output() const {
    return path() / "test_tipc/output/tiny/lite_train_lite_infer";
  }
  CliResult run(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"run", "f.txt", "lite_train_lite_infer"};
    words.insert(words.end(), more.begin(), more.end());
    return run_cli(path(), words);
  }
  // Names and states of the latest run's stages.
  std::vector<std::string> states() const {
    auto store = results::ChainStore::open(results() / "chain.db", OpenMode::existing);
    EXPECT_TRUE(store) << (store ? "" : store.error().message);
    std::vector<std::string> list;
    if (!store) return list;
    const auto runs = store->runs();
    const auto stages = store->stages(runs->back().id);
    for (const results::StoredStage& stage : *stages) {
      list.push_back(stage.name + " " + stage.state);
    }
    return list;
  }

 private:
  Scratch scratch_;
};

TEST(ScriptRun, TheScriptSeesOutputAndExitCodesAsWithoutAssay) {
  const SuiteProject project({.eval = "say=evaluated exit=3"});
  project.write(
      {.eval = "say=evaluated exit=3", .script = std::string(kScript) + "echo code $?\n"});
  const CliResult result = project.run();
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_THAT(project.states(), ElementsAre("norm_train passed", "eval failed",
                                            "norm_export passed", "inference passed"));
  EXPECT_EQ(slurp(project.output() / "infer.log"), "inferred\n");
  EXPECT_EQ(slurp(project.output() / "export.log"), "exported\n");
  EXPECT_EQ(slurp(project.results() / "norm_export.log"), "exported\n");
  EXPECT_THAT(slurp(project.results() / "script.log"), HasSubstr("exported\ncode 0\n"));
  EXPECT_THAT(result.out, HasSubstr("exit code 3"));
}

TEST(ScriptRun, StdoutStderrAndStdinStayApart) {
  const SuiteProject project;
  put(project.path() / "test_tipc/test_train_inference_python.sh",
      "echo asked | python3 train.py > out.txt 2> err.txt\npython3 infer.py\n"
      "python3 -c 'print(1 + 1)' > errand.txt\n");
  put(project.path() / "f.txt", "model_name:tiny\n");
  put(project.path() / "train.py",
      "import sys\nprint('loss: 1.0')\nprint(input())\nprint('low', file=sys.stderr)\n");
  put(project.path() / "infer.py", "print('inferred')\n");
  const CliResult result = project.run();
  EXPECT_EQ(result.code, 0) << result.out;
  EXPECT_EQ(slurp(project.path() / "out.txt"), "loss: 1.0\nasked\n");
  EXPECT_EQ(slurp(project.path() / "err.txt"), "low\n");
  EXPECT_EQ(slurp(project.path() / "errand.txt"), "2\n");
  EXPECT_THAT(project.states(), ElementsAre("train passed", "infer passed"));
}

// What assay puts in the script's way must not reach the real command.
TEST(ScriptRun, CommandsSeeTheScriptsEnvironmentAndNoShim) {
  const SuiteProject project({.train = "env=PATH env=ASSAY_SHIM_SOCKET env=OWN env=GONE "
                                       "\"say=loss: 1\" make=last.w"});
  put(project.path() / "test_tipc/test_train_inference_python.sh",
      "export OWN=1; unset GONE\n" + std::string(kScript));
  const CliResult result =
      run_cli(project.path(), {"run", "f.txt", "lite_train_lite_infer"}, {"GONE=here"});
  EXPECT_EQ(result.code, 0) << result.out;
  const std::string log = slurp(project.output() / "train.log");
  EXPECT_THAT(log, HasSubstr("OWN=1\n"));
  EXPECT_THAT(log, HasSubstr("GONE=(unset)\n"));
  EXPECT_THAT(log, HasSubstr("ASSAY_SHIM_SOCKET=(unset)\n"));
  EXPECT_THAT(log, Not(HasSubstr("assay-script")));
}

// ---- what breaks, each with a word of its own; every script here ends with 0 ----

TEST(ScriptRun, EachBreakHasItsOwnWord) {
  struct Break {
    Suite suite;
    std::string state;
    std::string told;
  };
  const std::string good = Suite().train;
  const std::vector<Break> breaks{
      {{.train = "\"say=epoch 2/2 loss: 1\""}, "not_made", "made no new"},
      {{.train = "\"say=Traceback (most recent call last):\" \"say=ValueError: no\" " + good},
       "traceback",
       "ValueError: no"},
      {{.train = "\"say=loss: nan\" " + good}, "not_finite", "loss 1 is nan"},
      {{.train = "\"say=epoch 1/20 loss: 0.5\" make=last.w"}, "unfinished", "epoch 1 of 20"},
      {{.train = "say=hello make=last.w"}, "unfinished", "no loss found in this log"},
      {{.train = "exit=4"}, "failed", "exit code 4"},
      {{.train = "crash"}, "failed", "SIGSEGV"},
      {{.train = good + " \"say=OSError: No space left on device\" exit=1"},
       "disk_full",
       "OSError: No space left on device"},
      {{.exporter = "make=inference.pdiparams"}, "passed", ""},
  };
  for (const Break& one : breaks) {
    const SuiteProject project(one.suite);
    const CliResult result = project.run();
    EXPECT_EQ(project.states().front().substr(11), one.state) << result.out;
    EXPECT_THAT(result.out, HasSubstr(one.told));
    EXPECT_EQ(result.code, one.state == "passed" ? 0 : 1) << one.state;
  }
}

TEST(ScriptRun, AStageThatTheKernelKillsIsNamed) {
  const LittleMemory memory("67108864");
  if (!memory.why_not().empty()) GTEST_SKIP() << memory.why_not();
  const SuiteProject project({.train = "eat=200 " + Suite().train});
  const CliResult result = run_command(
      project.path(), memory.inside({CHAIN_CLI, "chain", "run", "f.txt", "lite_train_lite_infer"}));
  EXPECT_EQ(result.code, 1) << result.out;
  ASSERT_FALSE(project.states().empty()) << result.out;
  EXPECT_EQ(project.states().front(), "norm_train out_of_memory");
  EXPECT_THAT(result.out, HasSubstr("the kernel ended it because memory was used up"));
}

// The time of change that the kernel keeps counts, not the one that a program, a copy or a wrong
// clock writes.
TEST(ScriptRun, ATimeOfTheFutureOrThePastIsNoSignOfAge) {
  for (const char* time : {"2099-01-01", "1999-01-01"}) {
    std::string script = kScript;
    const std::string after = "train.log 2>&1\n";
    script.insert(script.find(after) + after.size(),
                  std::string("touch -d ") + time + " $out/w/last.w\n");
    const SuiteProject project({.script = script});
    const CliResult result = project.run();
    EXPECT_EQ(result.code, 0) << time << result.out;
    // A training that makes nothing leaves the old file, whatever its time says.
    project.write({.train = "\"say=epoch 2/2 loss: 0.5\"", .script = script});
    EXPECT_EQ(project.run().code, 1) << time;
    EXPECT_THAT(project.states(), ElementsAre("norm_train not_made", "eval blocked",
                                              "norm_export blocked", "inference blocked"))
        << time;
  }
}

// A clock that jumps back gives what a stage of this run makes a time before the run's start.
TEST(StaleInput, IsNoneThatAStageOfThisRunMade) {
  const Scratch scratch;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(scratch.path());
  put("results/m/last.w", "weights");
  plan::Stage train;
  train.output = "./results/m/";
  plan::Stage exporter;
  exporter.argv = {"export.py", "--weights=./results/m/last.w"};
  constexpr std::int64_t kLater = std::numeric_limits<std::int64_t>::max();
  std::deque<run::Job> jobs(2);
  jobs[0].stage = &train;
  jobs[1].stage = &exporter;
  EXPECT_THAT(run::stale_input(jobs, jobs[1], "results", kLater), HasSubstr("no stage made it"));
  jobs[0].made = stage::mark_files("", train.output);
  EXPECT_EQ(run::stale_input(jobs, jobs[1], "results", kLater), "");
  std::filesystem::current_path(before);
}

TEST(UnmadeInput, AnExportIntoTheFolderOfAFailedTrainingIsBlocked) {
  plan::Stage train;
  train.name = "train";
  train.kind = plan::StageKind::train;
  train.output = "out";
  plan::Stage exporter;
  exporter.kind = plan::StageKind::export_model;
  exporter.argv = {"export.py", "--save_dir=out"};
  exporter.output = "out";
  std::deque<run::Job> jobs(2);
  jobs[0].stage = &train;
  jobs[0].done = true;
  jobs[0].outcome.state = stage::StageState::failed;
  jobs[1].stage = &exporter;
  EXPECT_EQ(run::unmade_input(jobs, jobs[1]), "train failed");
  exporter.kind = plan::StageKind::train;  // another training that writes there
  EXPECT_EQ(run::unmade_input(jobs, jobs[1]), "");
}

TEST(ScriptRun, AModelOfYesterdayIsNotBelieved) {
  // The export makes one half of the model; the other half is there already.
  const SuiteProject project({.exporter = "make=inference.pdiparams"});
  put(project.output() / "model/inference.pdmodel", "of yesterday");
  const CliResult result = project.run();
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(project.states(), ElementsAre("norm_train passed", "eval passed",
                                            "norm_export not_made", "inference blocked"));
  EXPECT_THAT(result.out, HasSubstr("inference.pdmodel as it was"));
  // Nothing of this run makes the model at all.
  Suite bare;
  bare.script = R"sh(
out=./test_tipc/output/tiny/$2
python3 train.py "say=loss: 1"
python3 infer.py --model_dir=$out/model
)sh";
  project.write(bare);
  EXPECT_EQ(project.run().code, 1);
  EXPECT_THAT(project.states(), ElementsAre("train passed", "infer stale"));
}

TEST(ScriptRun, AHangEndsAndTheScriptGoesOn) {
  const SuiteProject project({.eval = "hang"});
  const CliResult result = project.run({"--idle-limit", "1.5"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(project.states(), ElementsAre("norm_train passed", "eval silent",
                                            "norm_export passed", "inference passed"));
  const std::string log = slurp(project.results() / "eval.log");
  ASSERT_THAT(log, HasSubstr("child "));
  EXPECT_TRUE(is_gone(std::stoi(log.substr(log.find("child ") + 6))));
}

TEST(ScriptRun, AScriptThatHangsItselfEnds) {
  Suite suite;
  suite.script = std::string(kScript) + "sleep 1000\n";
  const SuiteProject project(suite);
  const CliResult result = project.run({"--idle-limit", "1.5"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(project.states().back(), "script silent");
}

TEST(ScriptRun, AModeThatRunsLessThanItPromisesFails) {
  Suite suite;
  suite.script = "python3 infer.py\n";
  const SuiteProject project(suite);
  put(project.path() / "infer.py", "print(1)\n");
  const CliResult result = project.run();
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("promises a training, and the script started none"));
}

// A program that no shim stands for failed: the script's own status line tells.
TEST(ScriptRun, AFailureThatOnlyTheScriptTellsIsAFailure) {
  Suite suite;
  suite.script = std::string(kScript) +
                 "false || echo -e '\\033[33m Run failed with command - ./build/x!  \\033[0m'\n";
  const SuiteProject project(suite);
  const CliResult result = project.run();
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("Run failed with command - ./build/x!"));
  EXPECT_EQ(project.run({"--lenient"}).code, 0);
}

TEST(ScriptRun, AServerLivesUntilItWasAsked) {
  Suite suite;
  suite.script = R"sh(
python web_service.py make=up await=asked &
server=$!
python client.py await=up make=asked
kill -9 $server
)sh";
  const SuiteProject project(suite);
  const auto run = [&] {
    return run_cli(project.path(), {"run", "f.txt", "serving_infer", "--script",
                                    "test_tipc/test_train_inference_python.sh"});
  };
  const CliResult result = run();
  EXPECT_EQ(result.code, 0) << result.out;
  suite.script = "python web_service.py say=down & wait; sleep 0.2; python client.py\n";
  project.write(suite);
  const CliResult early = run();
  EXPECT_EQ(early.code, 1);
  EXPECT_THAT(early.out, HasSubstr("the server ended before anything asked it"));
}

TEST(ScriptRun, TwoRunsDoNotShareAFolder) {
  const SuiteProject project({.eval = "await=go"});
  std::thread first([&] { EXPECT_EQ(project.run().code, 0); });
  EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(project.output() / "eval.log"); }));
  const CliResult second = project.run();
  EXPECT_EQ(second.code, 2) << second.out;
  EXPECT_THAT(second.out, HasSubstr("another run uses "));
  const CliResult elsewhere = project.run({"--output-root", "elsewhere"});
  EXPECT_EQ(elsewhere.code, 2) << "the script writes to the same folder";
  put(project.path() / "go", "");
  first.join();
}

TEST(ScriptRun, InterruptedItResumesWithWhatIsUnchanged) {
  const SuiteProject project({.eval = "await=go"});
  SpawnOptions options;
  options.argv = {CHAIN_CLI, "chain", "run", "f.txt", "lite_train_lite_infer"};
  options.directory = project.path().string();
  auto process = Process::spawn(options);
  ASSERT_TRUE(process);
  ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(project.output() / "eval.log"); }));
  process->signal(SIGINT);
  const auto status = process->wait();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 130);
  put(project.path() / "go", "");
  const CliResult resumed = project.run({"--resume"});
  EXPECT_EQ(resumed.code, 0) << resumed.out;
  EXPECT_THAT(resumed.out, HasSubstr("kept from an earlier run: norm_train"));
  EXPECT_THAT(slurp(project.output() / "train.log"), HasSubstr("epoch 2/2 loss: 0.4"));
  // A source that changed: nothing is kept.
  put(project.path() / "model.py", "x = 1\n");
  EXPECT_THAT(project.run({"--resume"}).out, Not(HasSubstr("kept from")));
}

// What a rehearsal lacks decides nothing: `wget` does nothing there.
TEST(ScriptRun, ARunGoesOnWhereTheRehearsalFindsNothing) {
  Suite suite;
  suite.script = "wget -q http://example.invalid/data\n[ -e data ] || exit 1\n" + suite.script;
  const SuiteProject project(suite);
  put(project.path() / "bin/wget", "#!/bin/sh\ntouch data\n");
  std::filesystem::permissions(project.path() / "bin/wget", std::filesystem::perms::owner_all);
  const std::vector<std::string> words{"run", "f.txt", "lite_train_lite_infer"};
  const char* path = std::getenv("PATH");
  const CliResult result =
      run_cli(project.path(), words,
              {"PATH=" + (project.path() / "bin").string() + ":" + (path == nullptr ? "" : path)});
  EXPECT_EQ(result.code, 0) << result.out;
  EXPECT_THAT(result.out, HasSubstr("warning: its stages are not known before it runs: "));
  // And a script that starts nothing does not pass.
  suite.script = "true\n";
  project.write(suite);
  const CliResult nothing = run_cli(project.path(), {"run", "f.txt", "other", "--script",
                                                     "test_tipc/test_train_inference_python.sh"});
  EXPECT_EQ(nothing.code, 1) << nothing.out;
  EXPECT_THAT(nothing.out, HasSubstr("the script started no command in mode other"));
}

// What a training writes below its output folder is no changed source.
TEST(ScriptRun, SettingsThatAStageWritesDoNotEndAResume) {
  const SuiteProject project(
      {.train = Suite().train + " make=config.json",
       .script = "python3=1; value() { grep \"^$1:\" $file | cut -d: -f2-; }; file=$1\n"
                 "eval \"$(value python) $(value norm_train) --out=./trained --epochs=2\"\n"
                 "eval \"$(value python) $(value inference)\"\n"});
  EXPECT_EQ(project.run().code, 0);
  EXPECT_THAT(project.run({"--resume"}).out, HasSubstr("kept from an earlier run: norm_train"));
}

TEST(ScriptRun, AFilterRunsTheStagesThatItNames) {
  const SuiteProject project;
  const CliResult result = project.run({"-k", "norm_export"});
  EXPECT_EQ(result.code, 0) << result.out;
  EXPECT_THAT(project.states(), ElementsAre("norm_train passed", "norm_export passed"));
}

TEST(ScriptRun, KillingAssayEndsEverything) {
  const SuiteProject project({.train = "hang"});
  SpawnOptions options;
  options.argv = {CHAIN_CLI, "chain", "run", "f.txt", "lite_train_lite_infer"};
  options.directory = project.path().string();
  auto process = Process::spawn(options);
  ASSERT_TRUE(process);
  const auto log = project.results() / "norm_train.log";
  ASSERT_TRUE(comes_true([&] { return slurp(log).find("child ") != std::string::npos; }));
  const pid_t child = std::stoi(slurp(log).substr(6));
  process->signal(SIGKILL);
  ASSERT_TRUE(process->wait());
  EXPECT_TRUE(is_gone(child));
}

// A launching script without the benchmark repository: assay makes the record of its speed.
TEST(ScriptRun, ALaunchingScriptTrainsAndLeavesItsRecord) {
  const SuiteProject project;
  put(project.path() / "N1C1/toy_bs8.sh", "bash run_benchmark.sh toy 8\n");
  put(project.path() / "run_benchmark.sh", R"sh(
_set_params() { model_name=$1_bs$2; base_batch_size=$2; keyword=ips:; skip_steps=1; device_num=N1C1
  run_mode=DP; fp_item=fp32; speed_unit=tokens/s; convergence_key=loss:; model_mode=5
  log_file=toy_log; speed_log_file=toy_speed; }
_train() {
  python train.py "say=loss: 0.5 ips: 5 tokens/s" "say=loss: 0.4 ips: 100 tokens/s" "say=loss: 0.3 ips: 102 tokens/s" > $log_file 2>&1
  if [ $? -ne 0 ]; then echo "$model_name, FAIL"; else echo "$model_name, SUCCESS"; fi
}
source ${BENCHMARK_ROOT}/scripts/run_model.sh
_set_params $@
_run
)sh");
  const CliResult result = run_cli(
      project.path(), {"run", "N1C1/toy_bs8.sh", "benchmark_train", "--python", CHAIN_CHILD},
      {"BENCHMARK_ROOT="});
  EXPECT_EQ(result.code, 0) << result.out;
  const auto record = nlohmann::json::parse(slurp(project.path() / "toy_speed"), nullptr, false);
  ASSERT_TRUE(record.is_object()) << slurp(project.path() / "toy_speed");
  EXPECT_EQ(record["ips"], 101.0);  // of 100 and 102: the first is skipped
}

}  // namespace
}  // namespace assay::chain
