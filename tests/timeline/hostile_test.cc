// Logs made to exhaust memory: it must not depend on what they hold. Each is merged in a process of
// its own, whose peak no other test has raised already.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"
#include "timeline/merge.h"
#include "timeline/slice_source.h"

namespace assay::timeline {
namespace {

using test::TempFolder;

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
constexpr long kSanitizerKilobytes = 1 << 20;  // freed memory is kept, to be watched
#else
constexpr long kSanitizerKilobytes = 0;
#endif

long peak_kilobytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

class Hostile : public testing::Test {
 protected:
  // What the child that merges tells; it lies in memory shared with it.
  struct Told {
    long kilobytes;
    std::uint64_t bytes, records, kept, overlapping, truncated;
  };

  // Merges workerlog.0 of folder_ in a child.
  Told merge() {
    void* const place =
        ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto* const told = new (place) Told{-1, 0, 0, 0, 0, 0};
    const pid_t child = ::fork();
    if (child == 0) {
      const long before = peak_kilobytes();
      const auto result = merge_job_logs({.log_dir = folder_.path(), .devices = {0}}, {},
                                         OutputPaths::in(out_.path()));
      if (!result) ::_exit(1);
      const FileReport& report = result->files[0];
      *told = {peak_kilobytes() - before, report.bytes,    report.records, report.kept,
               report.overlapping,        report.truncated};
      ::_exit(0);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    const Told result = *told;
    ::munmap(place, sizeof(Told));
    return result;
  }
  test::fs::path log() const { return folder_ / "workerlog.0"; }

  TempFolder folder_, out_;
};

// Ten gigabytes without a newline: nothing, a record that breaks off each gigabyte, one whole at
// the end.
TEST_F(Hostile, ASparseLineOfTenGigabytes) {
  constexpr off_t kGigabyte = off_t{1} << 30;
  const std::string line = test::job_line(1, "forward", 0, "10.000000", "11.000000");
  {
    const Fd fd(::open(log().c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    const auto put = [&](std::string_view text, off_t at) {
      ASSERT_EQ(::pwrite(fd.get(), text.data(), text.size(), at),
                static_cast<ssize_t>(text.size()));
    };
    for (off_t i = 1; i < 10; ++i) put(std::string_view(line).substr(0, 100), i * kGigabyte - 50);
    put(line, 10 * kGigabyte);
  }
  const Told told = merge();
  EXPECT_EQ(told.bytes, static_cast<std::uint64_t>(10 * kGigabyte) + line.size());
  EXPECT_EQ(told.kept, 1U);
  EXPECT_EQ(told.truncated, 9U);
  EXPECT_LT(told.kilobytes, 16 * 1024 + kSanitizerKilobytes);
}

// Every job of a type of its own, more of them than names are kept.
TEST_F(Hostile, AMillionAndAHalfNames) {
  constexpr std::uint64_t kLines = 1'500'000;
  {
    std::ofstream file(log());
    for (std::uint64_t i = 0; i < kLines; ++i) {
      file << fmt::format(
          "Profiler Info: Job (1), type = a_rather_long_name_{0}, micro_batch_id = 0, "
          "job_start_time = {0}.0, job_end_time = {0}.5\n",
          i);
    }
  }
  const Told told = merge();
  EXPECT_EQ(told.kept, kLines);
  EXPECT_LT(told.kilobytes, 320 * 1024 + kSanitizerKilobytes);
}

// Every line out of order, every job open for ever.
TEST_F(Hostile, JobsThatNeverEnd) {
  constexpr std::uint64_t kLines = 1'000'000;
  {
    std::ofstream file(log());
    for (std::uint64_t i = 0; i < kLines; ++i) {
      file << fmt::format(
          "Profiler Info: Job ({0}), type = forward, micro_batch_id = 0, "
          "job_start_time = {1}.0, job_end_time = 9000000000000.0\n",
          i, kLines - i);
    }
  }
  const Told told = merge();
  EXPECT_EQ(told.records, kLines);
  EXPECT_EQ(told.kept, kMaxOpen);
  EXPECT_EQ(told.overlapping, kLines - kMaxOpen);
  EXPECT_LT(told.kilobytes, 64 * 1024 + kSanitizerKilobytes);
}

// Steps and ranges that are only ever opened.
TEST_F(Hostile, StepsWithoutEnd) {
  {
    std::ofstream file(log());
    for (int i = 0; i < 1'000'000; ++i) {
      file << fmt::format("NVTX range push: {}, time: {}.5\n", i, i);
      if (i % 2 == 0) file << fmt::format("NVTX range pop, time: {}.6\n", i);
    }
  }
  const Told told = merge();
  EXPECT_EQ(told.records, 1'500'000U);
  EXPECT_LT(told.kilobytes, 96 * 1024 + kSanitizerKilobytes);
}

}  // namespace
}  // namespace assay::timeline
