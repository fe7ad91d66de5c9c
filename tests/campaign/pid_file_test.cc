// Whom a pid file means, and logs that are cut.

#include "campaign/pid_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "../store/folder.h"
#include "base/fd.h"
#include "base/process.h"
#include "campaign/rotating_log.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

TEST(APidFile, IsThereAsLongAsItsProcess) {
  const testing::Folder folder;
  const auto path = folder / "run" / "a.pid";
  {
    const auto taken = PidFile::take(path);
    ASSERT_TRUE(taken.has_value()) << taken.error().message;
    const auto running = running_process(path);
    ASSERT_TRUE(running.has_value());
    EXPECT_EQ(running->pid, ::getpid());
    EXPECT_GE(running->seconds, 0);
    EXPECT_LT(running->seconds, 3600);
    const auto second = PidFile::take(path);
    ASSERT_FALSE(second.has_value());
    EXPECT_THAT(second.error().message, HasSubstr("runs already"));
    EXPECT_TRUE(running_process(path).has_value());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(running_process(path).has_value());
}

// A file that is left over, and its number has gone to another process: this one.
TEST(APidFile, DoesNotMeanAnotherProcessOfThatNumber) {
  const testing::Folder folder;
  const auto path = folder / "a.pid";
  std::string text;
  {
    const auto taken = PidFile::take(path);
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
    EXPECT_FALSE(*signal_process(path, SIGKILL));  // or this test would end here
    EXPECT_TRUE(PidFile::take(path).has_value());
  }
  std::ofstream(path) << "nonsense";
  EXPECT_FALSE(running_process(path).has_value());
}

TEST(ALog, IsCutIntoFilesAtLines) {
  const testing::Folder folder;
  const auto path = folder / "log";
  std::string all;
  {
    auto log = RotatingLog::open(path, 100, 3);
    ASSERT_TRUE(log.has_value());
    for (int i = 0; i < 10; ++i) {
      const std::string text = "line " + std::to_string(i) + " of the log\nand another\n";
      all += text;
      ASSERT_TRUE(log->write(text));
    }
  }
  auto again = RotatingLog::open(path, 100, 3);  // goes on behind what is there
  ASSERT_TRUE(again->write("the end\n"));
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
  ASSERT_TRUE(again->write(std::string(250, 'x')));  // longer than a file: in one piece
  EXPECT_EQ(std::filesystem::file_size(path), 250U);
}

}  // namespace
}  // namespace assay
