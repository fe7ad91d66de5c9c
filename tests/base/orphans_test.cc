#include "base/orphans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/process.h"

namespace assay {
namespace {

// A shell starts a process in a session of its own and ends before it.
TEST(Orphans, AreKilledAndWhatWasSpawnedIsNot) {
  const pid_t earlier = ::fork();
  if (earlier == 0) {
    while (true) ::pause();
  }
  adopt_orphans();
  const FdPair said = *make_pipe();
  SpawnOptions options;
  // The orphan itself says its number: a sweep after that does not meet the process `setsid`.
  options.argv = {"sh", "-c", "setsid sh -c 'echo $$; kill -STOP $$' &"};
  options.fds = {{said.second.get(), 1}};
  Process shell = *Process::spawn(options);
  std::array<char, 32> text{};
  ASSERT_GT(::read(said.first.get(), text.data(), text.size() - 1), 0);
  const pid_t orphan = std::atoi(text.data());
  ASSERT_TRUE(shell.wait()->ok());

  SpawnOptions own;
  own.argv = {"sleep", "100"};
  Process spawned = *Process::spawn(own);
  const OrphanSweep first = sweep_orphans();
  EXPECT_THAT(first.killed, ::testing::ElementsAre("sh"));
  OrphanSweep last = first;
  for (int tries = 0; tries < 3000 && !last.all_gone; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    last = sweep_orphans();
  }
  EXPECT_TRUE(last.all_gone);
  EXPECT_NE(::kill(orphan, 0), 0);
  ExitStatus status;
  EXPECT_FALSE(*spawned.try_wait(status));
  EXPECT_EQ(::kill(earlier, SIGKILL), 0);
  EXPECT_EQ(::waitpid(earlier, nullptr, 0), earlier);
}

}  // namespace
}  // namespace assay
