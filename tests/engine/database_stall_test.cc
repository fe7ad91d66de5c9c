// A database that stops answering does not make a run deaf to signals.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
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

// Asks again for up to a minute: assay opens a connection, closes it and opens the next one while
// it starts.
std::vector<pid_t> backends_soon(const std::string& address) {
  std::vector<pid_t> found = backends(address);
  for (int tries = 0; tries < 600 && found.empty(); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    found = backends(address);
  }
  return found;
}

// A listener that accepts and says nothing; its port stands in the address.
class SilentListener {
 public:
  explicit SilentListener(std::uint16_t port = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const int yes = 1;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&name), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 64), 0);  // the kernel accepts
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
    port_ = ntohs(name.sin_port);
  }
  std::string address() const { return fmt::format("postgresql://assay@127.0.0.1:{}/runs", port_); }

 private:
  Fd socket_;
  std::uint16_t port_ = 0;
};

// How long the program still runs; nullopt: 50 s and longer. A database has 60 s for an answer.
std::optional<double> seconds_until_end(Process& program) {
  const auto began = std::chrono::steady_clock::now();
  ExitStatus ended;
  while (!*program.try_wait(ended)) {
    if (std::chrono::steady_clock::now() - began > std::chrono::seconds(50)) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

std::optional<double> seconds_to_end(Process& program) {
  program.signal(SIGTERM);
  return seconds_until_end(program);
}

// What each verb does with a database that never answers: it ends at a signal.
TEST(DatabaseStall, ASignalEndsEveryVerbThatConnectsToASilentListener) {
  const SilentListener silent;
  const std::string address = silent.address() + "?connect_timeout=600";
  Cli cli;
  const std::string cases = cli.write_cases({"paddle.fake.echo(Tensor([1], \"float32\"))"});
  const std::vector<std::vector<std::string>> verbs{
      cli.api({"--api_config_file=" + cases, "--store=" + address}),
      {"plan", cases, "--accuracy=True", "--store=" + address},
      {"work", "--store=" + address},
      {"report", address},
      {"serve", address},
  };
  for (const auto& verb : verbs) {
    Process program = cli.start(verb);
    std::this_thread::sleep_for(std::chrono::seconds(1));  // it has connected
    const auto took = seconds_to_end(program);
    ASSERT_TRUE(took) << verb[0];
    std::printf("%s ended after %.2f s\n", verb[0].c_str(), *took);
  }
}

TEST(DatabaseStall, ASilentListenerIsAnErrorWithinTheLimit) {
  const SilentListener silent;
  Cli cli;
  const CliResult result = cli.call({"report", silent.address() + "?connect_timeout=2"});
  EXPECT_EQ(result.status.code, 3) << result.output;
  EXPECT_THAT(result.output, ::testing::HasSubstr("the database: timeout expired"));
}

// The page's reader waits for the database in a thread of its own.
TEST(DatabaseStall, ASignalEndsAPageWhoseDatabaseIsStopped) {
  if (!PostgresServer::programs()) GTEST_SKIP() << "PostgreSQL is not installed: tools/setup dev";
  PostgresServer server;
  const std::string address = server.address("page");
  Cli cli;
  const std::string cases = cli.write_cases({"paddle.fake.echo(Tensor([1], \"float32\"))"});
  ASSERT_EQ(cli.call({"plan", cases, "--accuracy=True", "--store=" + address}).status.code, 0);
  Process page = cli.start({"serve", address});
  ASSERT_FALSE(backends_soon(address).empty());
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const std::vector<pid_t> stopped = backends_soon(address);
  ASSERT_FALSE(stopped.empty());
  for (const pid_t backend : stopped) ::kill(backend, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(3));  // it reads once a second
  const auto took = seconds_to_end(page);
  for (const pid_t backend : stopped) ::kill(backend, SIGCONT);
  ASSERT_TRUE(took);
  std::printf("serve ended after %.2f s\n", *took);
}

// A run of 600 slow cases in one slot, some of whose results are recorded.
class RunWithDatabase : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!PostgresServer::programs()) GTEST_SKIP() << "PostgreSQL is not installed: tools/setup dev";
    server_.emplace();
    address_ = server_->address("stall");
  }
  void begin(double seconds_of_a_case) {
    std::vector<std::string> cases;
    for (int i = 1; i <= 600; ++i) {
      cases.push_back(
          fmt::format("paddle.fake.slow(Tensor([{}], \"float32\"), {})", i, seconds_of_a_case));
    }
    run_.emplace(cli_.start(cli_.api({"--api_config_file=" + cli_.write_cases(cases),
                                      "--num_workers_per_gpu=1", "--store=" + address_})));
    ASSERT_FALSE(backends_soon(address_).empty());
    std::this_thread::sleep_for(std::chrono::seconds(4));  // it runs cases, and records them
  }
  void stop_database() {
    stopped_ = backends_soon(address_);
    ASSERT_FALSE(stopped_.empty());
    for (const pid_t backend : stopped_) ::kill(backend, SIGSTOP);
  }
  void expect_end() {
    const auto took = seconds_until_end(*run_);
    for (const pid_t backend : stopped_) ::kill(backend, SIGCONT);
    const std::string output = *read_file(cli_.folder() / "output.txt");
    ASSERT_TRUE(took) << output;
    std::printf("ended after %.2f s\n%s\n", *took, output.c_str());
  }

  std::optional<PostgresServer> server_;
  std::string address_;
  std::vector<pid_t> stopped_;
  Cli cli_;
  std::optional<Process> run_;
};

TEST_F(RunWithDatabase, ASignalEndsItWhenTheDatabaseIsStopped) {
  ASSERT_NO_FATAL_FAILURE(begin(0.05));
  ASSERT_NO_FATAL_FAILURE(stop_database());
  std::this_thread::sleep_for(std::chrono::seconds(3));  // the next visit has begun to wait
  run_->signal(SIGTERM);
  expect_end();
}

TEST_F(RunWithDatabase, ASignalEndsItWhenTheDatabaseStopsAfterwards) {
  ASSERT_NO_FATAL_FAILURE(begin(3));
  run_->signal(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the run has taken the signal
  ASSERT_NO_FATAL_FAILURE(stop_database());
  expect_end();
}

}  // namespace
}  // namespace assay::testing
