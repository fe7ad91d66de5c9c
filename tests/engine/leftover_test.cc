// What cases start ends with the run, also where it left its lane's process group.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/atomic_file.h"
#include "cli.h"

namespace assay::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// The fake framework; each lane's first echo() leaves a sleeper in the lane's group and one in a
// session of its own. Their environment names the test's folder, and all_gone() finds them by that.
constexpr const char* kLeaving = R"(import subprocess
import fake_framework
from fake_framework import create
def echo(self, x, tag=None):
    if not hasattr(self, "left"):
        self.left = [subprocess.Popen(["sleep", "300"], start_new_session=own) for own in (False, True)]
    return x.copy()
fake_framework.Fake.do_echo = echo
)";

class Leftovers : public ::testing::Test {
 protected:
  Leftovers() {
    EXPECT_TRUE(write_file(cli_.folder() / "leaving.py", kLeaving));
    const char* preload = std::getenv("ASSAY_TEST_PRELOAD");
    const std::string entries =
        fmt::format(R"("ASSAY_FRAMEWORK_MODULE=leaving", "PYTHONPATH={0}/tests/engine/fake:{1}", )"
                    R"("ASSAY_TEST={1}", "LD_PRELOAD={2}")",
                    ASSAY_SOURCE_DIR, cli_.folder().string(), preload == nullptr ? "" : preload);
    const std::string settings = fmt::format(
        "version = 1\n[frameworks.paddle]\npython = \"python3\"\nenvironment = [{0}]\n"
        "[frameworks.torch]\npython = \"python3\"\nenvironment = [{0}]\n",
        entries);
    EXPECT_TRUE(write_file(cli_.folder() / "assay.toml", settings));
  }
  ~Leftovers() override {
    for (const pid_t pid : processes_of(cli_.folder().string())) ::kill(pid, SIGKILL);
  }

  // A run that has left sleepers and goes on for some seconds.
  Process start_run() {
    std::vector<std::string> lines{R"(paddle.fake.echo(Tensor([3], "float32")))"};
    for (int size = 1; size <= 60; ++size) {
      lines.push_back(fmt::format("paddle.fake.slow(Tensor([{}], \"float32\"), 0.1)", size));
    }
    const std::string cases = cli_.write_cases(lines);
    Process run = cli_.start(cli_.api({"--api_config_file=" + cases, "--num_workers_per_gpu=1"}));
    for (int tries = 0; tries < 1200 && sleepers().empty(); ++tries) {
      std::this_thread::sleep_for(milliseconds(50));
    }
    EXPECT_FALSE(sleepers().empty());
    return run;
  }
  std::vector<pid_t> found(const char* command) const {
    std::vector<pid_t> all;
    for (const pid_t pid : processes_of(cli_.folder().string())) {
      const auto line = read_file(fmt::format("/proc/{}/cmdline", pid));
      if (line && line->find(command) != std::string::npos) all.push_back(pid);
    }
    return all;
  }
  std::vector<pid_t> sleepers() const { return found("sleep"); }

  Cli cli_;
};

TEST_F(Leftovers, OfARunThatEndsByItselfAreEndedAndReported) {
  const CliResult result =
      cli_.call_api({R"(--api_config=paddle.fake.echo(Tensor([3], "float32")))"});
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("killed processes that cases had left running: sleep"));
  std::string logs;
  for (const auto& log : std::filesystem::directory_iterator(cli_.run() / "lanes")) {
    logs += read_file(log.path()).value_or("");
  }
  EXPECT_EQ(cli_.report()["flags"]["left_processes"], 1);
  EXPECT_THAT(logs, HasSubstr("LEAK: paddle.fake.echo left processes running: sleep, sleep"));
  EXPECT_TRUE(all_gone(cli_.folder().string()));
}

TEST_F(Leftovers, OfALaneThatCrashesAreEndedAndReported) {
  const std::string cases = cli_.write_cases({
      R"(paddle.fake.echo(Tensor([3], "float32")))",
      R"(paddle.fake.crash(Tensor([5], "float32")))",
      R"(paddle.fake.slow(Tensor([4], "float32"), 2.5))",
  });
  const CliResult result = cli_.call_api({"--api_config_file=" + cases, "--num_workers_per_gpu=1"});
  EXPECT_EQ(result.status.code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("killed processes that cases had left running: sleep"));
  EXPECT_TRUE(all_gone(cli_.folder().string()));
}

TEST_F(Leftovers, OfAKilledForkServerAreEnded) {
  Process run = start_run();
  for (const pid_t server : found("assay.server")) ::kill(server, SIGKILL);
  std::this_thread::sleep_for(milliseconds(1500));
  // New lanes leave their own; the old ones are gone at the end at the latest.
  EXPECT_EQ(run.wait()->code, 0);
  EXPECT_TRUE(all_gone(cli_.folder().string()));
}

TEST_F(Leftovers, OfAKilledSupervisorAreEnded) {
  Process run = start_run();
  run.signal(SIGKILL);
  (void)run.wait();
  EXPECT_TRUE(all_gone(cli_.folder().string()));
}

TEST_F(Leftovers, OfAKilledSupervisorWithStoppedServersAreEnded) {
  Process run = start_run();
  for (const pid_t server : found("assay.server")) ::kill(server, SIGSTOP);
  run.signal(SIGKILL);
  (void)run.wait();
  EXPECT_TRUE(all_gone(cli_.folder().string()));
}

}  // namespace
}  // namespace assay::testing
