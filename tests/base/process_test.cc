#include "base/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace assay {
namespace {

// As many descriptors as asked for are inherited, under the numbers asked for, and no other.
TEST(Process, InheritsAllThatItIsGiven) {
  const auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  constexpr int kFirst = 60;  // beyond where descriptors are lifted to, and on both sides of it
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

}  // namespace
}  // namespace assay
