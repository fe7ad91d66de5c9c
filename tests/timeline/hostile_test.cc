// Logs made to exhaust memory: it must not depend on what they hold.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support.h"
#include "timeline/merge.h"

namespace assay::timeline {
namespace {

using test::TempFolder;

long peak_kilobytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Three gigabytes without a newline, one record at the very end.
TEST(Hostile, ASparseLogTakesNoMemory) {
  const TempFolder folder;
  const TempFolder out;
  constexpr off_t kBytes = off_t{3} << 30;
  const std::string line = test::job_line(1, "forward", 0, "10.000000", "11.000000");
  {
    const Fd fd(::open((folder / "workerlog.0").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ASSERT_EQ(::pwrite(fd.get(), line.data(), line.size(), kBytes),
              static_cast<ssize_t>(line.size()));
  }
  const long before = peak_kilobytes();
  const auto result =
      merge_job_logs({.log_dir = folder.path(), .devices = {0}}, {}, OutputPaths::in(out.path()));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->files[0].kept, 1U);
  EXPECT_EQ(result->files[0].bytes, static_cast<std::uint64_t>(kBytes) + line.size());
  EXPECT_LT(peak_kilobytes() - before, 32 * 1024);
}

// Every line out of order, every job of a new type, every job open for ever: all at once.
TEST(Hostile, AWildLogTakesBoundedMemory) {
  const TempFolder folder;
  const TempFolder out;
  constexpr int kLines = 400'000;
  {
    std::ofstream log(folder / "workerlog.0");
    for (int i = 0; i < kLines; ++i) {
      log << test::job_line(i, "type" + std::to_string(i), 0, std::to_string(kLines - i) + ".0",
                            "9000000000000.0");
    }
  }
  const long before = peak_kilobytes();
  const auto result =
      merge_job_logs({.log_dir = folder.path(), .devices = {0}}, {}, OutputPaths::in(out.path()));
  ASSERT_TRUE(result) << result.error().message;
  const FileReport& report = result->files[0];
  EXPECT_EQ(report.records, static_cast<std::uint64_t>(kLines));
  EXPECT_EQ(report.kept, kMaxOpen);
  EXPECT_EQ(report.overlapping, static_cast<std::uint64_t>(kLines) - kMaxOpen);
  EXPECT_LT(peak_kilobytes() - before, 256 * 1024);
}

}  // namespace
}  // namespace assay::timeline
