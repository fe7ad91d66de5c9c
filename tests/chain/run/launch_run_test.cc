// A launching script, run: its log is followed, its silence ends it, its speed is written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli_run.h"
#include "launch_tools.h"

namespace assay::chain {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFolder = "test_tipc/output/toy_bs8_fp16_DP/N1C1";

CliResult run_toy(const ToySuite& suite, std::vector<std::string> more = {}) {
  std::vector<std::string> words{"run", suite.launch(kToyLaunch), "benchmark_train", "--device",
                                 "cpu"};
  words.insert(words.end(), more.begin(), more.end());
  return run_cli(suite.path(), words, {"BENCHMARK_ROOT="});
}

TEST(LaunchRun, TrainsAndWritesTheSpeed) {
  ToyTraining training;
  training.train =
      "for i in 5 100 102; do echo \"loss: 0.$i ips: $i tokens/s\"; done > ${log_file}";
  const ToySuite suite(training);
  const CliResult result = run_toy(suite);
  ASSERT_EQ(result.code, 0) << result.out;
  const std::string speed =
      slurp(suite.path() / kFolder / "index/ToyRepo_toy_bs8_fp16_DP_N1C1_speed");
  const auto record = nlohmann::json::parse(speed, nullptr, false);
  ASSERT_TRUE(record.is_object()) << speed;
  EXPECT_EQ(record["ips"], 101.0);  // of 100 and 102: the first is skipped
  EXPECT_EQ(record["convergence_value"], "0.102");
  EXPECT_EQ(record["device_num"], "N1C1");
  EXPECT_EQ(run_cli(suite.path(), {"report", std::string(kFolder) + "/chain.db"}).code, 0);
  EXPECT_THAT(slurp(suite.path() / "chain.html"), HasSubstr("ips"));
}

TEST(LaunchRun, ALogThatIsSilentEndsIt) {
  ToyTraining training;
  training.monitor = "# [ \"$no_update_duration\" -ge 1 ]\n";
  training.train = "echo 'ips: 1' > ${log_file}; echo alive; sleep 600";
  const ToySuite suite(training);
  const CliResult result = run_toy(suite);
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("silent"));
  EXPECT_THAT(result.out, HasSubstr("wrote nothing for 1 s"));
}

TEST(LaunchRun, ALogWithoutSpeedsIsNoPass) {
  ToyTraining training;
  training.train = "echo 'nothing to see' > ${log_file}";
  const CliResult result = run_toy(ToySuite(training));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("failed"));
}

TEST(LaunchRun, GpusThatAreNotThereAreUnavailable) {
  const ToySuite suite;
  const CliResult result =
      run_cli(suite.path(), {"run", suite.launch(kToyLaunch), "benchmark_train"});
  if (result.code == 0) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_THAT(result.out, HasSubstr("needs 1 GPU (NVML sees 0)"));
}

TEST(LaunchRun, APlanShowsWhatIsRead) {
  const ToySuite suite;
  const CliResult plan =
      run_cli(suite.path(), {"run", suite.launch(kToyLaunch), "benchmark_train", "--dry-run"});
  ASSERT_EQ(plan.code, 0) << plan.out;
  EXPECT_THAT(plan.out, HasSubstr("speed: the number after `ips:`, in tokens/s, without the "
                                  "first 1"));
  EXPECT_THAT(plan.out, HasSubstr("bash ./test_tipc/toy/benchmark_common/run_benchmark.sh toy fp16 "
                                  "DP N1C1 8"));
  EXPECT_THAT(plan.out, HasSubstr("TRAIN_LOG_DIR="));
  const CliResult check = run_cli(suite.path(), {"check", suite.launch(kToyLaunch)});
  EXPECT_EQ(check.code, 0);
  EXPECT_THAT(check.out, HasSubstr("good (launch of ToyRepo; modes benchmark_train)"));
  EXPECT_THAT(check.out, HasSubstr("on 1 machine with 1 card\n"));
}

TEST(LaunchRun, ASecondTrainingIsRunToo) {
  ToyTraining training;
  training.train =
      "log=${log_file}; [ ${profiling} = true ] && log=${profiling_log_file}; "
      "for i in 5 100 102; do echo \"loss: 0.5 ips: $i\"; done > $log";
  const ToySuite suite(training);
  const std::string text = std::string(kToyLaunch) + "sleep 600\nexport PROFILING=true\n" +
                           "bash ./test_tipc/toy/benchmark_common/run_benchmark.sh toy fp16 DP "
                           "N1C1 8\n";
  const std::string path = suite.launch(text);
  const CliResult plan =
      run_cli(suite.path(), {"run", path, "benchmark_train", "--dry-run", "--json"});
  ASSERT_EQ(plan.code, 0) << plan.out;
  EXPECT_THAT(plan.out, HasSubstr("\"index\":4"));
  EXPECT_THAT(plan.out, HasSubstr("\"needs\":[2]"));  // the record, of the training
  const CliResult result = run_cli(
      suite.path(), {"run", path, "benchmark_train", "--device", "cpu"}, {"BENCHMARK_ROOT="});
  EXPECT_EQ(result.code, 0) << result.out;
  const std::filesystem::path folder = suite.path() / kFolder;
  EXPECT_THAT(slurp(folder / "profiling_log/ToyRepo_toy_bs8_fp16_DP_N1C1_profiling"),
              HasSubstr("ips: 102"));
  EXPECT_TRUE(std::filesystem::exists(folder / "index/ToyRepo_toy_bs8_fp16_DP_N1C1_speed"));
}

// A suite whose recipe asks for a record of the speed.
constexpr const char* kSpeedDialect = R"(dialect Speedy
repository https://example.org/speedy
commit 0123456
folders Speedy

kind race
script race.sh
modes benchmark_train
section race_params
  model_name text = model_name
  python program = python
  train command = train
recipe
  folder ./out
  run train race
    command {python} {train}
    log ./out/race.log
    as trained
  run compare speed
    command {python} ./analysis.py --filename ./out/race.log --speed_log_file ./out/index/speed --model_name m --base_batch_size 4 --run_mode DP --fp_item fp32 --keyword ips: --skip_steps 0 --device_num N1C1 --speed_unit images/s --convergence_key loss:
    speed
    after trained
)";

struct SpeedySuite {
  Scratch scratch;
  SpeedySuite() {
    put(scratch.path() / "speedy.dialect", kSpeedDialect);
    put(scratch.path() / "race.txt",
        "===race_params===\nmodel_name:m\npython:bash\ntrain:race.sh\n");
    put(scratch.path() / "race.sh",
        "for i in 1 2 3 4 5 6 7 8 9 10 11; do echo \"loss: 0.5, ips: $i images/s\"; done\n");
  }
  CliResult run(std::vector<std::string> environment = {}) const {
    return run_cli(scratch.path(),
                   {"run", "race.txt", "benchmark_train", "--dialect-file", "speedy.dialect"},
                   std::move(environment));
  }
};

TEST(LaunchRun, WithoutTheSuitesScriptAssayWritesTheRecord) {
  const SpeedySuite suite;
  const CliResult result = suite.run({"model_branch=main"});
  ASSERT_EQ(result.code, 0) << result.out;
  const auto record =
      nlohmann::json::parse(slurp(suite.scratch.path() / "out/index/speed"), nullptr, false);
  ASSERT_TRUE(record.is_object());
  EXPECT_EQ(record["ips"], 6.0);  // the middle one of eleven
  EXPECT_EQ(record["model_branch"], "main");
  EXPECT_TRUE(record["model_run_time"].is_string()) << record["model_run_time"];
}

TEST(LaunchRun, TheSuitesScriptIsRunWhereItIs) {
  const SpeedySuite suite;
  put(suite.scratch.path() / "analysis.py", "echo mine $model_run_time > ./out/mine\n");
  ASSERT_EQ(suite.run({"model_run_time=77"}).code, 0);
  EXPECT_EQ(slurp(suite.scratch.path() / "out/mine"), "mine 77\n");
  EXPECT_FALSE(std::filesystem::exists(suite.scratch.path() / "out/index/speed"));
}

}  // namespace
}  // namespace assay::chain
