// A database that stops answering does not make a run deaf to signals.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <pqxx/pqxx>
#include <thread>

#include "../store/postgres_server.h"
#include "cli.h"

namespace assay::testing {
namespace {

// The database's processes for connections: their command is "postgres: USER DATABASE …".
std::vector<pid_t> backends(const std::string& address) {
  const std::size_t begin = address.find("host=") + 5;
  const std::string folder = address.substr(begin, address.find('&', begin) - begin);
  std::vector<pid_t> found;
  for (const pid_t pid : processes_of("postgres: assay runs")) {
    const auto stat = read_file(fmt::format("/proc/{}/stat", pid));
    int parent = 0;
    if (stat) std::sscanf(stat->c_str() + stat->rfind(')') + 2, "%*c %d", &parent);
    const auto command = read_file(fmt::format("/proc/{}/cmdline", parent));
    if (command && command->find(folder) != std::string::npos) found.push_back(pid);
  }
  return found;
}

TEST(DatabaseStall, ASignalEndsARunWhoseDatabaseIsStopped) {
  if (!PostgresServer::programs()) GTEST_SKIP() << "PostgreSQL is not installed: tools/setup dev";
  PostgresServer server;
  const std::string address = server.address("stall");
  Cli cli;
  std::vector<std::string> cases;
  for (int i = 1; i <= 600; ++i) {
    cases.push_back(fmt::format("paddle.fake.slow(Tensor([{}], \"float32\"), 0.05)", i));
  }
  Process run = cli.start(cli.api({"--api_config_file=" + cli.write_cases(cases),
                                   "--num_workers_per_gpu=1", "--store=" + address}));
  std::vector<pid_t> stopped;
  for (int tries = 0; tries < 300 && stopped.empty(); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stopped = backends(address);
  }
  ASSERT_FALSE(stopped.empty());
  std::this_thread::sleep_for(std::chrono::seconds(4));  // it runs cases, and records them
  for (const pid_t backend : backends(address)) ::kill(backend, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(3));  // the next visit has begun to wait
  const auto began = std::chrono::steady_clock::now();
  run.signal(SIGTERM);
  ExitStatus ended;
  bool over = false;
  while (!over && std::chrono::steady_clock::now() - began < std::chrono::seconds(30)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    over = *run.try_wait(ended);
  }
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_TRUE(over);
  EXPECT_LT(took, std::chrono::seconds(9)) << *read_file(cli.folder() / "output.txt");
  for (const pid_t backend : backends(address)) ::kill(backend, SIGCONT);
  std::printf("ended %s after %.2f s\n%s\n", ended.describe().c_str(),
              std::chrono::duration<double>(took).count(),
              read_file(cli.folder() / "output.txt")->c_str());
}

}  // namespace
}  // namespace assay::testing
