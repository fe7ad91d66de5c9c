// The supervisor goes on whatever happens to its fork servers, and a signal always ends it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "cli.h"

namespace assay::testing {
namespace {

using std::chrono::milliseconds;

constexpr int kLines = 300'000;  // planning them takes longer than the fake frameworks' import
constexpr std::chrono::seconds kEndLimit{100};  // a hang has no end

// The fork servers of the run: Python processes whose parent is the supervisor.
std::vector<pid_t> servers_of(const Cli& cli, pid_t supervisor) {
  std::vector<pid_t> found;
  for (const pid_t pid : processes_of(cli.folder().string())) {
    const auto command = read_file(fmt::format("/proc/{}/cmdline", pid));
    const auto stat = read_file(fmt::format("/proc/{}/stat", pid));
    if (!command || !stat || command->find("assay.server") == std::string::npos) continue;
    int parent = 0;
    std::sscanf(stat->c_str() + stat->rfind(')') + 2, "%*c %d", &parent);
    if (parent == supervisor) found.push_back(pid);
  }
  return found;
}

std::vector<pid_t> wait_for_servers(const Cli& cli, pid_t supervisor) {
  for (int tries = 0; tries < 6000; ++tries) {
    std::vector<pid_t> servers = servers_of(cli, supervisor);
    if (servers.size() == 2) return servers;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return {};
}

// Kills fork servers while the supervisor plans or stands still, so that their end and their last
// words are there at once when it looks. It replaces them, and ends when it is told to.
TEST(Supervisor, NeitherHangsNorIgnoresASignalWhenServersDieAtTheStart) {
  const auto number = [](const char* variable, int usual) {
    const char* given = std::getenv(variable);
    return given != nullptr ? std::atoi(given) : usual;
  };
  const int rounds = number("ASSAY_TEST_ROUNDS", 4);  // a long run: 500, with several seeds
  std::mt19937 random(static_cast<unsigned>(number("ASSAY_TEST_SEED", 20261125)));
  std::vector<std::string> lines;
  lines.reserve(kLines);
  for (int size = 1; size <= kLines; ++size) {
    lines.push_back(fmt::format("paddle.fake.slow(Tensor([{}], \"float32\"), 0.01)", size));
  }
  for (int round = 0; round < rounds; ++round) {
    Cli cli;
    const std::string cases = cli.write_cases(lines);
    Process run = cli.start(
        cli.api({"--api_config_file=" + cases, "--num_workers_per_gpu=1", "--quiet=True"}));
    const std::vector<pid_t> servers = wait_for_servers(cli, run.pid());
    ASSERT_EQ(servers.size(), 2U) << *read_file(cli.folder() / "output.txt");
    std::this_thread::sleep_for(milliseconds(random() % 1500));
    run.signal(SIGSTOP);
    std::this_thread::sleep_for(milliseconds(200));
    for (const pid_t server : servers) ::kill(server, SIGKILL);
    std::this_thread::sleep_for(milliseconds(100));
    run.signal(SIGCONT);
    std::this_thread::sleep_for(std::chrono::seconds(2));
    run.signal(SIGINT);
    const ExitStatus ended = *run.wait_at_most(kEndLimit);
    // Before the run's own signals are watched, the signal itself ends it.
    EXPECT_TRUE(ended.code == 130 || ended.signal == SIGINT)
        << round << ": " << ended.describe() << "\n"
        << *read_file(cli.folder() / "output.txt");
    EXPECT_TRUE(all_gone(cli.folder().string())) << round;
  }
}

}  // namespace
}  // namespace assay::testing
