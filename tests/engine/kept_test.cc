// Frameworks that stay imported for the next run: what they save, when they may not be used, and
// that nothing is left behind.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <set>
#include <thread>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "cli.h"

namespace assay::testing {
namespace {

// A framework that writes down when it is imported, by whichever process.
constexpr const char* kCounted = R"(import os
with open(os.path.join(os.path.dirname(__file__), "imports"), "a") as file:
    file.write("x")
from fake_framework import create
)";
constexpr const char* kKeeping = R"(version = 1
keep_frameworks = {keep}
[frameworks.paddle]
python = "python3"
environment = [{entries}]
[frameworks.torch]
python = "python3"
environment = [{entries}]
)";

class Kept : public ::testing::Test {
 protected:
  Kept() {
    (void)write_file(cli_.folder() / "counted.py", kCounted);
    keep(2);
  }
  // assay.toml with this time and one more entry for the environment.
  void keep(int seconds, const std::string& entry = "A=1") const {
    const char* preload = std::getenv("ASSAY_TEST_PRELOAD");
    const std::string entries = fmt::format(
        R"("ASSAY_FRAMEWORK_MODULE=counted", "PYTHONPATH={0}/tests/engine/fake:{1}", )"
        R"("ASSAY_TEST={1}", "LD_PRELOAD={2}", "{3}")",
        ASSAY_SOURCE_DIR, cli_.folder().string(), preload == nullptr ? "" : preload, entry);
    (void)write_file(cli_.folder() / "assay.toml",
                     fmt::format(fmt::runtime(kKeeping), fmt::arg("keep", seconds),
                                 fmt::arg("entries", entries)));
  }
  std::size_t imports() const { return read_file(cli_.folder() / "imports").value_or("").size(); }
  // Runs three cases in a new folder; gives the outcomes.
  std::map<std::string, std::string> run() const {
    std::error_code ignored;
    std::filesystem::remove_all(cli_.run(), ignored);
    const std::string cases = cli_.folder() / "cases.txt";
    (void)write_file(cases, R"(paddle.fake.echo(Tensor([3], "float32"))
paddle.fake.wrong(Tensor([4], "float32"))
paddle.fake.crash(Tensor([5], "float32"))
)");
    const CliResult result = cli_.call_api({"--api_config_file=" + cases});
    EXPECT_EQ(result.status.code, 1) << result.output;
    return cli_.outcomes();
  }

  // Cases for some seconds, and one that needs the servers at the end.
  Process start_slow() const {
    std::error_code ignored;
    std::filesystem::remove_all(cli_.run(), ignored);
    std::string lines = "paddle.fake.wrong(Tensor([4], \"float32\"))\n";
    for (int size = 1; size <= kSlow; ++size) {
      lines += fmt::format("paddle.fake.slow(Tensor([{}], \"float32\"), 0.1)\n", size);
    }
    (void)write_file(cli_.folder() / "slow.txt", lines);
    return cli_.start(cli_.api({"--api_config_file=slow.txt", "--num_workers_per_gpu=1"}));
  }
  // A fork server that was made for a run and has a lane; 0 where none comes.
  pid_t wait_for_server() const {
    const auto parent = [](pid_t pid) {
      const auto stat = read_file(fmt::format("/proc/{}/stat", pid));
      int found = 0;
      if (stat) std::sscanf(stat->c_str() + stat->rfind(')') + 2, "%*c %d", &found);
      return found;
    };
    constexpr int kTries = 300;
    for (int tries = 0; tries < kTries; ++tries) {
      std::set<pid_t> pythons;
      for (const pid_t pid : processes_of(cli_.folder().string())) {
        const auto command = read_file(fmt::format("/proc/{}/cmdline", pid));
        if (command && command->find("assay.server") != std::string::npos) pythons.insert(pid);
      }
      for (const pid_t lane : pythons) {
        const pid_t server = parent(lane);
        if (pythons.contains(server) && pythons.contains(parent(server))) return server;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return 0;
  }

  static constexpr int kSlow = 40;
  Cli cli_;
};

TEST_F(Kept, AnotherRunImportsNothingAndComesToTheSame) {
  keep(0);
  const auto outcomes = run();
  EXPECT_EQ(imports(), 2U);
  EXPECT_TRUE(all_gone(cli_.folder().string()));
  keep(20);
  EXPECT_EQ(run(), outcomes);
  EXPECT_EQ(imports(), 4U);
  EXPECT_EQ(run(), outcomes);
  EXPECT_EQ(run(), outcomes);
  EXPECT_EQ(imports(), 4U);
}

TEST_F(Kept, AFileThatHasChangedIsImportedAgain) {
  keep(20);
  run();
  EXPECT_EQ(imports(), 2U);
  (void)write_file(cli_.folder() / "counted.py", std::string(kCounted) + "# another\n");
  run();
  EXPECT_EQ(imports(), 4U);
}

TEST_F(Kept, AnotherEnvironmentIsImportedForItself) {
  keep(20);
  run();
  keep(20, "A=2");
  run();
  EXPECT_EQ(imports(), 4U);
  keep(20);
  run();
  EXPECT_EQ(imports(), 4U);
}

TEST_F(Kept, NothingIsLeftAfterTheTime) {
  run();
  EXPECT_FALSE(processes_of(cli_.folder().string()).empty());
  EXPECT_TRUE(all_gone(cli_.folder().string()));
}

TEST_F(Kept, AKilledRunLeavesNoLane) {
  run();
  Process process = start_slow();
  ASSERT_NE(wait_for_server(), 0);
  process.signal(SIGKILL);
  (void)process.wait();
  // An interpreter ends after the last server that it made.
  EXPECT_TRUE(all_gone(cli_.folder().string()));
}

TEST_F(Kept, AKilledServerIsReplaced) {
  run();
  Process process = start_slow();
  const pid_t server = wait_for_server();
  ASSERT_NE(server, 0);
  ::kill(server, SIGKILL);
  EXPECT_EQ(process.wait()->code, 1);
  EXPECT_THAT(*read_file(cli_.folder() / "output.txt"),
              ::testing::HasSubstr("starting another in its place"));
  EXPECT_EQ(cli_.outcomes().size(), kSlow + 1U);
}

TEST_F(Kept, WhatIsNoTimeIsRefused) {
  const CliResult result =
      cli_.call_api({"--api_config=paddle.fake.echo()", "--keep_frameworks=-1"});
  EXPECT_EQ(result.status.code, 2);
  EXPECT_THAT(result.output, ::testing::HasSubstr("--keep_frameworks takes seconds, 0 to 86400"));
}

}  // namespace
}  // namespace assay::testing
