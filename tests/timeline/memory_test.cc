// Memory: what was alive at the peak, by use and by who allocated it.

#include "timeline/analysis/memory.h"

#include <gmock/gmock.h>

#include "support.h"
#include "timeline/input/byte_source.h"
#include "timeline/load.h"

namespace assay::timeline {
namespace {

namespace fs = std::filesystem;

std::int64_t bytes_of(const MemoryPeak& peak, MemoryCategory category) {
  return peak.by_category[static_cast<std::size_t>(category)];
}

const MemoryPeak* gpu_peak(const std::vector<MemoryPeak>& peaks) {
  const auto found =
      std::ranges::find_if(peaks, [](const MemoryPeak& peak) { return peak.device == 0; });
  return found == peaks.end() ? nullptr : &*found;
}

std::vector<MemoryPeak> peaks_of(const std::string& name, bool analysis = true) {
  const fs::path path = fs::path(ASSAY_SOURCE_DIR) / "tests/timeline/data" / name;
  LoadOptions options;
  options.import.analysis = analysis;
  const auto trace = load_traces(std::vector{path}, options);
  EXPECT_TRUE(trace) << trace.error().message;
  return trace ? memory_peaks(*trace) : std::vector<MemoryPeak>();
}

// PyTorch 2.11 on an H100, three blocks of two linear layers (256 and 1024 wide) with AdamW, three
// steps. The program printed the sums of its parameters and optimiser states,
// max_memory_allocated() and max_memory_reserved(). PyTorch's own memory timeline of the same
// program (which leaves out the workspaces of cuBLAS) has at its peak: gradients 2,102,272, inputs
// 2,097,152, activations 20,972,544, and 29,360,640 that it does not assign or calls details of
// autograd. It counts gradient and value of the loss, 512 bytes each, as activations; here the
// former is temporary.
TEST(MemorySnapshot, TellsWhatThePeakHolds) {
  const auto peaks = peaks_of("memory_snapshot.pickle.gz");
  const MemoryPeak* peak = gpu_peak(peaks);
  ASSERT_NE(peak, nullptr);
  EXPECT_EQ(peak->allocated, 141'610'496);
  EXPECT_EQ(peak->reserved, 180'355'072);
  EXPECT_EQ(bytes_of(*peak, MemoryCategory::parameters), 6'306'816);
  EXPECT_EQ(bytes_of(*peak, MemoryCategory::optimiser), 12'613'632);
  EXPECT_EQ(bytes_of(*peak, MemoryCategory::gradients), 2'102'272);
  EXPECT_EQ(bytes_of(*peak, MemoryCategory::activations), 2'097'152 + 20'972'544 - 512);
  EXPECT_EQ(bytes_of(*peak, MemoryCategory::temporary), 29'360'640 + 512);
  EXPECT_EQ(bytes_of(*peak, MemoryCategory::unknown), 0);
  ASSERT_FALSE(peak->owners.empty());
  EXPECT_EQ(peak->owners[0].where, "mem.py:15 (forward)");
  ASSERT_EQ(peak->segments.size(), 1U);
  EXPECT_EQ(peak->segments[0].idle, 180'355'072 - 87'077'888);
}

// The same program under PyTorch's profiler (profile_memory, two steps). Parameters and optimiser
// states are older than the profile.
TEST(ProfiledMemory, TellsWhatThePeakHolds) {
  for (const bool analysis : {true, false}) {
    const auto peaks = peaks_of("memory_profile.json.gz", analysis);
    const MemoryPeak* peak = gpu_peak(peaks);
    ASSERT_NE(peak, nullptr);
    EXPECT_EQ(peak->allocated, 141'610'496);
    EXPECT_EQ(bytes_of(*peak, MemoryCategory::gradients), 2'102'272);
    EXPECT_GT(bytes_of(*peak, MemoryCategory::unknown), 6'306'816 + 12'613'632);
    const auto owner = std::ranges::find(peak->owners, "AddmmBackward0", &MemoryOwner::where);
    EXPECT_NE(owner, peak->owners.end());
  }
}

// Every cut and every changed byte is read or refused.
TEST(MemorySnapshot, MayBeDamaged) {
  const fs::path path =
      fs::path(ASSAY_SOURCE_DIR) / "tests/timeline/data/memory_snapshot.pickle.gz";
  const auto whole = read_head(path, 1U << 20U);
  ASSERT_TRUE(whole);
  test::TempFolder folder;
  for (std::size_t at = 0; at < whole->size(); at += 997) {
    for (const bool cut : {true, false}) {
      std::string bytes = cut ? whole->substr(0, at) : *whole;
      if (!cut) bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
      const auto trace = import_trace(test::write(folder / "a.pickle", bytes));
      if (trace) memory_peaks(*trace);
    }
  }
}

}  // namespace
}  // namespace assay::timeline
