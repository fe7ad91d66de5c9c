// Campaigns with real processes: rounds, the background, a second start, stopping.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "../engine/cli.h"
#include "base/atomic_file.h"
#include "campaign/pid_file.h"
#include "store/open_store.h"

namespace assay::testing {
namespace {

namespace fs = std::filesystem;
using campaign::running_process;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string tensor(int size) { return fmt::format("Tensor([{}], \"float32\")", size); }

class ACampaign : public ::testing::Test {
 protected:
  void TearDown() override {
    (void)cli_.call({"stop", "night.yaml"});
    EXPECT_TRUE(all_gone(cli_.folder().string()));
  }

  void write(const std::vector<std::string>& cases, const std::string& more = "") {
    (void)cli_.write_cases(cases);
    ASSERT_TRUE(write_file(cli_.folder() / "night.yaml",
                           "input: {api_config_file: cases.txt}\n"
                           "output: {log_dir: night}\n"
                           "env: {ASSAY_TEST_OF_NIGHT: 7}\n"
                           "engine_args:\n"
                           "  accuracy: true\n"
                           "  num_gpus: 0\n"
                           "  num_workers_per_gpu: 2\n" +
                               more));
  }
  // Runs long enough for a test to act in the middle of it.
  void write_slow() {
    std::vector<std::string> cases;
    for (int size = 1; size <= 200; ++size) {
      cases.push_back(fmt::format("paddle.fake.slow({}, 0.2)", tensor(size)));
    }
    write(cases);
  }
  // Waits until the first round has its cases. From then on it ends in an orderly way when stopped.
  void wait_for_cases() {
    while (running_process(pid_file())) {
      if (status().output.find("cases to run") != std::string::npos) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    FAIL() << status().output;
  }
  static std::map<std::string, std::string> outcomes_in(const fs::path& run) {
    std::map<std::string, std::string> found;
    const auto store = open_store(run, StoreMode::existing);
    EXPECT_TRUE(store.has_value()) << store.error().message;
    EXPECT_TRUE((*store)->each_finished([&](const FinishedCase& finished) -> Status {
      EXPECT_TRUE(found.emplace(finished.text, name(finished.verdict.outcome)).second);
      return {};
    }));
    return found;
  }
  fs::path pid_file() const { return cli_.folder() / ".run" / "night.pid"; }
  CliResult status() { return cli_.call({"status", "night.yaml"}); }

  Cli cli_;
};

TEST_F(ACampaign, TriesAgainWhatFailsRoundByRound) {
  write({"paddle.fake.echo(" + tensor(3) + ")", "paddle.fake.wrong(" + tensor(3) + ")",
         "paddle.fake.wrong(" + tensor(4) + ")", "paddle.fake.crash(" + tensor(5) + ")"},
        "retest: {enabled: true, rounds: 3}\nrunner: {foreground: true}\n");
  const CliResult run = cli_.call({"run", "night.yaml"});
  EXPECT_EQ(run.status.code, 1) << run.output;
  EXPECT_THAT(run.output, HasSubstr("round 1/base"));
  EXPECT_THAT(run.output, HasSubstr("nothing to retest in night/api_config_timeout.txt"));
  EXPECT_EQ(outcomes_in(cli_.folder() / "night").size(), 4U);
  for (const char* round : {"r2", "r3"}) {
    EXPECT_EQ(outcomes_in(cli_.folder() / fmt::format("night_{}_accuracy_error", round)).size(),
              2U);
    EXPECT_EQ(outcomes_in(cli_.folder() / fmt::format("night_{}_crash", round)).size(), 1U);
  }
  EXPECT_FALSE(fs::exists(pid_file()));
  const CliResult after = status();
  EXPECT_THAT(after.output, HasSubstr("night does not run"));
  EXPECT_THAT(after.output, HasSubstr("round 3/crash: exit code 1"));
}

// The same file every night: a rebuilt framework is tested, and a build whose cases have finished
// is not tested again.
TEST_F(ACampaign, ThatFindsAnotherBuildStartsANewFolder) {
  write({"paddle.fake.echo(" + tensor(3) + ")", "paddle.fake.wrong(" + tensor(4) + ")"},
        "retest: {enabled: true, rounds: 2}\nrunner: {foreground: true}\n");
  const auto night = [&](const std::string& build) {
    const fs::path overlay = cli_.folder() / "overlay";
    fs::create_directories(overlay);
    EXPECT_TRUE(write_file(overlay / "sitecustomize.py", "# " + build + "\n"));
    cli_.set_paddle_environment(
        {fmt::format("PYTHONPATH={}/tests/engine/fake:{}", ASSAY_SOURCE_DIR, overlay.string())});
    CliResult run = cli_.call({"run", "night.yaml"});
    EXPECT_EQ(run.status.code, 1) << run.output;
    return run.output;
  };
  EXPECT_THAT(night("first"), Not(HasSubstr("folder of its own")));
  const std::string second = night("second");
  EXPECT_THAT(second, HasSubstr("this build gets a folder of its own, night_build2"));
  EXPECT_EQ(outcomes_in(cli_.folder() / "night_build2").size(), 2U);
  EXPECT_EQ(outcomes_in(cli_.folder() / "night_build2_r2_accuracy_error").size(), 1U);
  EXPECT_THAT(status().output, HasSubstr("exit code 1, 0:00:0"));
  const std::string again = night("second");
  EXPECT_THAT(again, HasSubstr("0 cases to run"));
  EXPECT_THAT(again, Not(HasSubstr("folder of its own")));
  EXPECT_THAT(night("third"), HasSubstr("a folder of its own, night_build3"));
}

TEST_F(ACampaign, InTheBackgroundOutlivesWhoStartedIt) {
  write_slow();
  // Like a login: a session whose leader ends, with SIGHUP for all of its processes.
  const CliResult started = cli_.call_program(
      {"setsid", "--wait", "sh", "-c",
       fmt::format("{} run night.yaml --background; trap '' HUP; kill -HUP 0", ASSAY_PROGRAM)});
  ASSERT_EQ(started.status.code, 0) << started.output;
  const auto running = running_process(pid_file());
  ASSERT_TRUE(running.has_value()) << started.output;
  EXPECT_EQ(::getsid(running->pid), running->pid);
  EXPECT_THAT(status().output, HasSubstr(fmt::format("night runs as process {}", running->pid)));
  EXPECT_THAT(status().output, HasSubstr("round 1/base: runs"));

  const CliResult second = cli_.call({"run", "night.yaml", "--background"});
  EXPECT_EQ(second.status.code, 2);
  EXPECT_THAT(second.output, HasSubstr("the campaign is running as process"));

  wait_for_cases();
  const CliResult stopped = cli_.call({"stop", "night.yaml"});
  EXPECT_EQ(stopped.status.code, 0) << stopped.output;
  EXPECT_THAT(stopped.output, HasSubstr("night is stopped"));
  EXPECT_FALSE(running_process(pid_file()).has_value());
  EXPECT_TRUE(all_gone(cli_.folder().string()));
  EXPECT_THAT(status().output, HasSubstr("round 1/base: exit code 130"));
  EXPECT_THAT(cli_.call({"stop", "night.yaml"}).output, HasSubstr("does not run"));
}

TEST_F(ACampaign, ThatWasStoppedGoesOnWhereItWas) {
  std::vector<std::string> cases;
  for (int size = 1; size <= 40; ++size) {
    cases.push_back(fmt::format("paddle.fake.slow({}, 0.1)", tensor(size)));
  }
  write(cases);
  ASSERT_EQ(cli_.call({"run", "night.yaml", "--background"}).status.code, 0);
  wait_for_cases();
  ASSERT_EQ(cli_.call({"stop", "night.yaml"}).status.code, 0);
  const CliResult again = cli_.call({"run", "night.yaml", "--foreground"});
  EXPECT_EQ(again.status.code, 0) << again.output;
  EXPECT_EQ(outcomes_in(cli_.folder() / "night").size(), 40U);
}

TEST_F(ACampaign, WhoseRunnerIsKilledLeavesNothingBehind) {
  write_slow();
  ASSERT_EQ(cli_.call({"run", "night.yaml", "--background"}).status.code, 0);
  const auto running = running_process(pid_file());
  ASSERT_TRUE(running.has_value());
  ::kill(running->pid, SIGKILL);
  EXPECT_TRUE(all_gone(cli_.folder().string()));
  EXPECT_THAT(status().output, HasSubstr("night does not run"));
  EXPECT_THAT(status().output, HasSubstr("round 1/base: was cut off"));
  const CliResult again = cli_.call({"run", "night.yaml", "--background"});
  EXPECT_EQ(again.status.code, 0) << again.output;
}

TEST_F(ACampaign, HandsItsEnvironmentToTheRounds) {
  write_slow();
  ASSERT_EQ(
      cli_.call({"run", "night.yaml", "--background", "--set-env=ASSAY_TEST_MORE=a b"}).status.code,
      0);
  int found = 0;
  for (const pid_t pid : processes_of(cli_.folder().string())) {
    const auto environment = read_file(fmt::format("/proc/{}/environ", pid));
    if (!environment) continue;
    const bool first =
        environment->find(std::string("ASSAY_TEST_OF_NIGHT=7") + '\0') != std::string::npos;
    const bool second =
        environment->find(std::string("ASSAY_TEST_MORE=a b") + '\0') != std::string::npos;
    found += first && second ? 1 : 0;
  }
  EXPECT_GE(found, 1);
}

TEST_F(ACampaign, ThatCannotBeRunIsOneLine) {
  write({"paddle.fake.echo(" + tensor(3) + ")"},
        "  show_runtime_status: true\n  use_compute_sanitizer: false\n  device_of_tomorrow: "
        "true\n");
  const CliResult refused = cli_.call({"run", "night.yaml"});
  EXPECT_EQ(refused.status.code, 2);
  EXPECT_THAT(refused.output, HasSubstr("night.yaml:10: assay api has no --device_of_tomorrow"));
  const CliResult dry =
      cli_.call({"run", "night.yaml", "--dry-run", "--engine-arg=device_of_tomorrow=False",
                 "--engine-arg=num-gpus=2", "--", "--quiet"});
  EXPECT_EQ(dry.status.code, 0) << dry.output;
  EXPECT_THAT(dry.output, HasSubstr("--api_config_file=cases.txt --log_dir=night"));
  EXPECT_THAT(dry.output, HasSubstr("--num_gpus=2"));
  EXPECT_THAT(dry.output, HasSubstr("--quiet"));
  EXPECT_THAT(dry.output, HasSubstr("--show_runtime_status=True"));
  EXPECT_THAT(dry.output, HasSubstr("assay has no device_of_tomorrow, and it is off"));
  EXPECT_FALSE(fs::exists(cli_.folder() / "night"));
  const CliResult none = cli_.call({"run", "nowhere.yaml"});
  EXPECT_EQ(none.status.code, 2);
  EXPECT_THAT(none.output, HasSubstr("nowhere.yaml"));
  const CliResult trouble =
      cli_.call({"run", "night.yaml", "--foreground", "--engine-arg=device_of_tomorrow=False",
                 "--api-config-file=nowhere.txt"});
  EXPECT_EQ(trouble.status.code, 2) << trouble.output;
}

}  // namespace
}  // namespace assay::testing
