#include "base/system_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/fd.h"

namespace assay {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;

class SystemMemoryTest : public ::testing::Test {
 protected:
  SystemMemoryTest() {
    write("proc/meminfo",
          "MemTotal:        8388608 kB\nMemFree:   1 kB\nMemAvailable:    4194304 kB\n");
  }
  ~SystemMemoryTest() override { std::filesystem::remove_all(root_); }
  SystemMemoryTest(const SystemMemoryTest&) = delete;
  SystemMemoryTest& operator=(const SystemMemoryTest&) = delete;

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    ASSERT_TRUE(write_file(root_ / file, text));
  }
  void expect(std::uint64_t total_mib, std::uint64_t available_mib) const {
    const auto memory = system_memory(root_);
    ASSERT_TRUE(memory) << memory.error().message;
    EXPECT_EQ(memory->total, total_mib * kMiB);
    EXPECT_EQ(memory->available, available_mib * kMiB);
  }

  std::filesystem::path root_ =
      std::filesystem::path(::testing::TempDir()) / ("assay-memory-" + std::to_string(::getpid()));
};

TEST_F(SystemMemoryTest, TheMachineIsTheLimitWhereNoGroupIs) { expect(8192, 4096); }

TEST_F(SystemMemoryTest, AContainerHasLess) {
  write("sys/fs/cgroup/memory.max", "2147483648\n");
  write("sys/fs/cgroup/memory.current", "1610612736\n");
  write("sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 536870912\n");
  expect(2048, 1024);  // 2 GiB - (1.5 GiB - 0.5 GiB of file pages)
}

TEST_F(SystemMemoryTest, TheOlderGroupsCountToo) {
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2147483648\n");  // briefly above the limit
  expect(1024, 0);
}

TEST_F(SystemMemoryTest, AJobOfSlurmHasTheLimitOfItsOwnGroup) {
  write("proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0\n");
  write("sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/memory.max", "1073741824\n");
  write("sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/memory.current", "536870912\n");
  write("sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/memory.max", "max\n");
  write("sys/fs/cgroup/system.slice/slurmstepd.scope/job_8/memory.max", "1048576\n");
  expect(1024, 512);
}

TEST_F(SystemMemoryTest, AJobOfSlurmInOlderGroupsToo) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:/slurm/uid_0/job_7\n");
  write("sys/fs/cgroup/memory/slurm/uid_0/job_7/memory.limit_in_bytes", "1073741824\n");
  write("sys/fs/cgroup/memory/slurm/uid_0/job_7/memory.usage_in_bytes", "0\n");
  write("sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1048576\n");
  expect(1024, 1024);
}

TEST_F(SystemMemoryTest, NoLimitIsNone) {
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  expect(8192, 4096);
}

TEST_F(SystemMemoryTest, WithoutMeminfoThereIsAnError) {
  std::filesystem::remove(root_ / "proc/meminfo");
  EXPECT_FALSE(system_memory(root_));
}

// Any machine has memory, and at most all of it is free.
TEST(SystemMemory, IsReadHere) {
  const auto memory = system_memory();
  ASSERT_TRUE(memory);
  EXPECT_GT(memory->total, 0U);
  EXPECT_LE(memory->available, memory->total);
}

}  // namespace
}  // namespace assay
