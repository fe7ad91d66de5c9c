#include "base/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

namespace assay {
namespace {

// The child has exactly the requested descriptors, under the requested numbers.
TEST(Process, InheritsAllThatItIsGiven) {
  const auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  constexpr int kFirst = 60;  // the range overlaps the numbers that descriptors are lifted to
  constexpr int kCount = 40;
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c",
                  "n=60; while [ $n -lt 100 ]; do [ -e /proc/self/fd/$n ] || exit 1; n=$((n+1)); "
                  "done; [ ! -e /proc/self/fd/100 ]"};
  for (int i = 0; i < kCount; ++i) options.fds.emplace_back(pipe->first.get(), kFirst + i);
  auto process = Process::spawn(options);
  ASSERT_TRUE(process) << process.error().message;
  const auto status = process->wait();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->describe(), "exit code 0");
}

// The names match those of the C library, which has them from 2.32 on.
TEST(Process, SignalsHaveTheirNames) {
  EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(signal_name(12345), "signal 12345");
#if __GLIBC_PREREQ(2, 32)
  for (int number = 1; number < SIGRTMAX; ++number) {
    const char* abbreviation = ::sigabbrev_np(number);
    EXPECT_EQ(signal_name(number), abbreviation == nullptr ? "signal " + std::to_string(number)
                                                           : std::string("SIG") + abbreviation);
  }
#endif
}

// A shell starts a sleeper and prints its pid. The sleeper is the shell's child, not ours.
TEST(Process, OneOfAnotherIsEndedAndNobodyKnowsHow) {
  const FdPair said = *make_pipe();
  SpawnOptions options;
  options.argv = {"sh", "-c", "setsid sleep 100 & echo $!; wait"};
  options.fds = {{said.second.get(), 1}};
  Process shell = *Process::spawn(options);
  std::array<char, 32> text{};
  ASSERT_GT(::read(said.first.get(), text.data(), text.size() - 1), 0);
  const pid_t pid = std::atoi(text.data());
  Process sleeper = Process::adopt(pid, Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))));
  ExitStatus status;
  EXPECT_FALSE(*sleeper.try_wait(status));
  status = *sleeper.stop(std::chrono::seconds(60));
  EXPECT_FALSE(sleeper.running());
  EXPECT_FALSE(status.known);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(shell.wait()->code, 0);
}

}  // namespace
}  // namespace assay
