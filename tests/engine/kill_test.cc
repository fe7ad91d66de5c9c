// Kills each kind of process at random moments: no verdict is lost, none is doubled, none changes.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <thread>

#include "base/atomic_file.h"
#include "cli.h"

namespace assay::testing {
namespace {

constexpr int kKills = 50;
constexpr int kCases = 400;
constexpr int kLent = 3'000'000;

std::vector<std::string> mixed_cases() {
  std::vector<std::string> lines;
  for (int size = 1; size <= kCases; ++size) {
    const char* name = size % 40 == 0 ? "wrong" : size % 50 == 1 ? "crash" : "slow";
    const char* more = std::string_view(name) == "slow" ? ", 0.02" : "";
    // Some are so large that they run alone and their results stay in the lanes until compared.
    const int elements = size % 20 == 0 ? kLent + size : size;
    lines.push_back(
        fmt::format("paddle.fake.{}(Tensor([{}], \"float32\"){})", name, elements, more));
  }
  return lines;
}

enum class Kind { supervisor, slot, server, lane };

// Processes of the run by what they are; lanes are the children of servers.
std::vector<pid_t> find_processes(const Cli& cli, Kind kind) {
  std::vector<pid_t> found;
  for (const pid_t pid : processes_of(cli.folder().string())) {
    const std::string proc = fmt::format("/proc/{}/", pid);
    const auto command = read_file(proc + "cmdline");
    const auto stat = read_file(proc + "stat");
    if (!command || !stat) continue;
    const bool python = command->find("assay.server") != std::string::npos;
    const bool slot = command->find(std::string("assay") + '\0' + "slot") != std::string::npos;
    int parent = 0;
    std::sscanf(stat->c_str() + stat->rfind(')') + 2, "%*c %d", &parent);
    const auto parent_command = read_file(fmt::format("/proc/{}/cmdline", parent));
    const bool lane =
        python && parent_command && parent_command->find("assay.server") != std::string::npos;
    const Kind is = lane     ? Kind::lane
                    : python ? Kind::server
                    : slot   ? Kind::slot
                             : Kind::supervisor;
    if (is == kind) found.push_back(pid);
  }
  return found;
}

// Waits until the run has recorded something more. A case whose slot was killed 21 times in a row
// counts as crashed, and on a slow machine kills may come faster than cases end.
void wait_for_progress(const Cli& cli, const Process& process) {
  const auto written = [&] {
    std::error_code gone;
    return std::filesystem::last_write_time(cli.run() / "run.db-wal", gone);
  };
  const auto before = written();
  pollfd ended{process.pidfd(), POLLIN, 0};
  constexpr int kTries = 600;
  for (int tries = 0; tries < kTries && written() == before; ++tries) {
    if (::poll(&ended, 1, 100) == 1) return;
  }
}

class Kills : public ::testing::TestWithParam<std::pair<Kind, const char*>> {};

TEST_P(Kills, LoseNothingDoubleNothingChangeNothing) {
  const Kind kind = GetParam().first;
  const Cli temporary;
  ::setenv("TMPDIR", temporary.folder().c_str(), 1);
  Cli undisturbed;
  const std::string plain = undisturbed.write_cases(mixed_cases());
  undisturbed.call_api({"--api_config_file=" + plain, "--num_workers_per_gpu=2", "--quiet=True"});

  Cli cli;
  const std::string cases = cli.write_cases(mixed_cases());
  const auto arguments =
      cli.api({"--api_config_file=" + cases, "--num_workers_per_gpu=2", "--quiet=True"});
  std::mt19937 random(20261121);
  Process process = cli.start(arguments);
  int kills = 0;
  ExitStatus status;
  while (kills < kKills) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 180));
    if (*process.try_wait(status)) {
      // Code 3: a server was killed before it was ready. Else all cases are done.
      if (status.signal == 0 && status.code != 3) break;
      process = cli.start(arguments);
      continue;
    }
    // Not by its name: between fork and exec a server has that, too.
    const std::vector<pid_t> targets =
        kind == Kind::supervisor ? std::vector<pid_t>{process.pid()} : find_processes(cli, kind);
    if (targets.empty()) continue;
    ::kill(targets[random() % targets.size()], SIGKILL);
    if (++kills % 5 == 0) wait_for_progress(cli, process);
  }
  if (process.running()) status = *process.wait();
  if (status.signal != 0 || status.code == 3) {
    Process last = cli.start(arguments);
    status = *last.wait();
  }
  EXPECT_EQ(status.code, 1);  // some cases crash and differ, as they should
  EXPECT_GT(kills, 5);
  EXPECT_EQ(cli.outcomes(), undisturbed.outcomes());
  EXPECT_EQ(cli.report()["unfinished"], 0);
  EXPECT_TRUE(all_gone(cli.folder().string()));
  ::unsetenv("TMPDIR");
  for (const auto& left : std::filesystem::directory_iterator(temporary.folder())) {
    EXPECT_FALSE(left.path().filename().string().starts_with("assay-lanes-")) << left.path();
  }
}

INSTANTIATE_TEST_SUITE_P(EachKind, Kills,
                         ::testing::Values(std::pair{Kind::supervisor, "supervisor"},
                                           std::pair{Kind::slot, "slot"},
                                           std::pair{Kind::server, "server"},
                                           std::pair{Kind::lane, "lane"}),
                         [](const auto& of) { return of.param.second; });

// The import waits for the file `go`. Signals that come from outside say nothing about it.
TEST(Server, IsReplacedWhateverSignalEndsItsImport) {
  ::signal(SIGINT, SIG_DFL);  // which a program that a script starts with & ignores
  Cli cli;
  const std::filesystem::path go = cli.folder() / "go";
  cli.set_paddle_environment(
      {"FAKE_IMPORT_WAITS_FOR_OPENING=1", "FAKE_TELLS_OF_OPENING=" + go.string()});
  Process process =
      cli.start(cli.api({R"(--api_config=paddle.fake.echo(Tensor([3], "float32")))"}));
  pid_t before = 0;
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGKILL}) {
    pid_t importing = 0;
    while (importing == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ExitStatus ended;
      ASSERT_FALSE(*process.try_wait(ended)) << *read_file(cli.folder() / "output.txt");
      for (const pid_t pid : processes_of(go.string())) {  // `python3` may be a script of pyenv
        const auto comm = read_file(fmt::format("/proc/{}/comm", pid));
        if (pid != before && comm && comm->starts_with("python")) importing = pid;
      }
    }
    ::kill(importing, number);
    before = importing;
  }
  ASSERT_TRUE(write_file(go, ""));
  const ExitStatus status = *process.wait();
  EXPECT_EQ(status.code, 0) << *read_file(cli.folder() / "output.txt");
}

// Sends bytes that are no message to the supervisor in a slot's name; false where the kernel
// forbids to borrow its socket.
bool talk_nonsense_for(pid_t slot) {
  constexpr int kSlotSocket = 3;
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, slot, 0)));
  const Fd socket(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), kSlotSocket, 0)));
  // A length of four bytes, and as many that are none of ours.
  constexpr std::array<std::uint8_t, 8> kNonsense{4, 0, 0, 0, 255, 255, 255, 255};
  return socket && send_all(socket.get(), std::as_bytes(std::span(kNonsense))).has_value();
}

TEST(Slot, ThatTalksNonsenseIsReplacedAndNothingIsLost) {
  Cli cli;
  std::vector<std::string> lines;
  for (int i = 1; i <= 60; ++i) {
    lines.push_back(fmt::format("paddle.fake.slow(Tensor([{}], \"float32\"), 0.1)", i));
  }
  const std::string cases = cli.write_cases(lines);
  Process process = cli.start(cli.api({"--api_config_file=" + cases, "--num_workers_per_gpu=1"}));
  std::vector<pid_t> slots;
  for (int tries = 0; tries < 1200 && slots.empty(); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    slots = find_processes(cli, Kind::slot);
  }
  ASSERT_EQ(slots.size(), 1U);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  if (!talk_nonsense_for(slots.front())) {
    process.signal(SIGKILL);
    GTEST_SKIP() << "this kernel lets nobody borrow another process's socket";
  }
  EXPECT_EQ(process.wait()->code, 0);
  const auto output = read_file(cli.folder() / "output.txt");  // before the next call writes there
  EXPECT_NE(output->find("slot 0: a message is damaged"), std::string::npos) << *output;
  EXPECT_EQ(cli.report()["outcomes"]["pass"], 60);
  EXPECT_TRUE(all_gone(cli.folder().string()));
}

}  // namespace
}  // namespace assay::testing
