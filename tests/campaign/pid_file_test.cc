// Pid files and rotating logs.

#include "campaign/pid_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "../store/folder.h"
#include "base/fd.h"
#include "base/process.h"
#include "campaign/runner.h"

namespace assay::campaign {
namespace {

using ::testing::HasSubstr;

TEST(APidFile, NamesTheProcessThatTookIt) {
  const assay::testing::Folder folder;
  const auto path = folder / "run" / "a.pid";
  const auto taken = take_pid_file(path);
  ASSERT_TRUE(taken.has_value()) << taken.error().message;
  const auto running = running_process(path);
  ASSERT_TRUE(running.has_value());
  EXPECT_EQ(running->pid, ::getpid());
  EXPECT_GE(running->seconds, 0);
  EXPECT_LT(running->seconds, 3600);
  const auto second = take_pid_file(path);
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message, HasSubstr("is running as process"));
  EXPECT_TRUE(running_process(path).has_value());
  std::filesystem::remove(path);
  EXPECT_FALSE(running_process(path).has_value());
}

// A leftover file whose process id belongs to another process now: this one.
TEST(APidFile, DoesNotNameAnotherProcessWithTheSameId) {
  const assay::testing::Folder folder;
  const auto path = folder / "a.pid";
  std::string text;
  {
    const auto taken = take_pid_file(path);
    text = *read_file(path);
  }
  std::istringstream lines(text);
  std::int64_t pid = 0;
  std::uint64_t started = 0;
  std::string boot;
  lines >> pid >> started >> boot;
  for (const auto& [other_start, other_boot] :
       {std::pair{started - 1, boot}, {started, std::string("another-boot")}}) {
    std::ofstream(path) << pid << '\n' << other_start << '\n' << other_boot << '\n';
    EXPECT_FALSE(running_process(path).has_value());
    EXPECT_FALSE(*signal_process(path, SIGKILL));  // otherwise this test would die
    EXPECT_TRUE(take_pid_file(path).has_value());
  }
  std::ofstream(path) << "nonsense";
  EXPECT_FALSE(running_process(path).has_value());
}

// Another user can lock a file for reading that he may read, and name any process in his own.
TEST(APidFile, OfAnotherUserNamesNoProcessOfOurs) {
  const assay::testing::Folder folder;
  const auto path = folder / "a.pid";
  struct flock lock {};
  lock.l_type = F_RDLCK;
  std::ofstream(path) << ::getpid() << '\n';
  {
    const Fd reader(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::fcntl(reader.get(), F_OFD_SETLK, &lock), 0);
    EXPECT_FALSE(running_process(path).has_value());
    EXPECT_FALSE(*signal_process(path, SIGKILL));  // otherwise this test would die
    EXPECT_THAT(take_pid_file(path).error().message, HasSubstr("no campaign"));
  }
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const Fd writer(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  lock.l_type = F_WRLCK;
  ASSERT_EQ(::fcntl(writer.get(), F_OFD_SETLK, &lock), 0);
  EXPECT_TRUE(running_process(path).has_value());
  ASSERT_EQ(::fchown(writer.get(), 65534, 65534), 0);
  EXPECT_FALSE(running_process(path).has_value());
  EXPECT_FALSE(*signal_process(path, SIGKILL));
  EXPECT_THAT(take_pid_file(path).error().message, HasSubstr("another user"));
}

TEST(ALog, IsCutBetweenLines) {
  const assay::testing::Folder folder;
  const auto path = folder / "log";
  std::string all;
  for (int i = 0; i < 10; ++i) {
    const std::string text = "line " + std::to_string(i) + " of the log\nand another\n";
    all += text;
    ASSERT_TRUE(append_to_log(path, text, 100, 3));
  }
  ASSERT_TRUE(append_to_log(path, "the end\n", 100, 3));
  all += "the end\n";
  const std::string kept =
      *read_file(folder / "log.2") + *read_file(folder / "log.1") + *read_file(path);
  EXPECT_TRUE(all.ends_with(kept));
  EXPECT_GT(kept.size(), 150U);
  EXPECT_FALSE(std::filesystem::exists(folder / "log.3"));
  for (const char* name : {"log", "log.1", "log.2"}) {
    EXPECT_LE(std::filesystem::file_size(folder / name), 100U);
    EXPECT_TRUE(read_file(folder / name)->ends_with('\n'));
  }
  ASSERT_TRUE(
      append_to_log(path, std::string(250, 'x'), 100, 3));  // longer than a file, so not cut
  EXPECT_EQ(std::filesystem::file_size(path), 250U);
}

}  // namespace
}  // namespace assay::campaign
