#pragma once

// Merges streams of slices, each ordered by begin, into one stream of begin and end events in time
// order. Memory does not grow with the number of slices.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "timeline/model.h"

namespace assay::timeline {

class SliceSource {
 public:
  virtual ~SliceSource() = default;
  // False when there are no more.
  virtual Result<bool> next(Slice& slice) = 0;
};

// The slices of a trace in memory (sorted: Trace::sort).
class MemorySource : public SliceSource {
 public:
  explicit MemorySource(std::span<const Slice> slices) : slices_(slices) {}
  Result<bool> next(Slice& slice) override;

 private:
  std::span<const Slice> slices_;
};

// An external merge sort of slices. Writes sorted runs to a nameless file in `folder` (48 bytes a
// slice). Slices that arrive in order make one run. Uses 4 MiB and 32 KiB a run of memory.
class SliceSorter {
 public:
  explicit SliceSorter(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Status add(const Slice& slice) {
    chunk_.push_back(slice);
    return chunk_.size() < kRunSlices ? Status() : spill();
  }
  // Adds what holds the slices: together, in order.
  Status finish(std::vector<std::unique_ptr<SliceSource>>& sources);

 private:
  static constexpr std::size_t kRunSlices = (4U << 20U) / sizeof(Slice);
  static constexpr std::size_t kSmall = (512U << 10U) / sizeof(Slice);  // stays in memory

  struct Run {
    std::uint64_t first = 0;  // index of its first slice in the file
    std::uint64_t count = 0;
  };
  Status spill();

  std::filesystem::path folder_;
  std::shared_ptr<Fd> fd_;
  std::vector<Slice> chunk_;
  std::vector<Run> runs_;
  Slice last_;  // of the last run
};

// What a writer needs before the first event. The referenced objects outlive the writer.
struct TraceHeader {
  const Strings& strings;  // may grow during writing
  std::span<const Track> tracks;
  std::span<const Counter> counters;
  std::span<const std::string> notes;  // clock relations and warnings, stored in the trace
  // Set for a trace in memory: its args, arrows and track owners are written. Null for job logs,
  // which have the layout of Paddle's script.
  const Trace* trace = nullptr;
};

// Receives events in time order. At equal times on one track, ends precede begins, so slices always
// nest. finish() reports the first error.
class TraceWriter {
 public:
  virtual ~TraceWriter() = default;
  virtual void begin_slice(const Slice& slice) = 0;
  virtual void end_slice(const Slice& slice) = 0;
  virtual Status finish() = 0;
};

struct MergeCounts {
  std::uint64_t slices = 0;
  std::vector<std::uint64_t> overlapping;  // by track: slices dropped because kMaxOpen were open
};

// Most slices open at once on one track; bounds the memory that a hostile file can take.
inline constexpr std::uint32_t kMaxOpen = 256;

// Feeds the slices of all sources to all writers.
Result<MergeCounts> merge_slices(std::span<const std::unique_ptr<SliceSource>> sources,
                                 std::span<const std::unique_ptr<TraceWriter>> writers,
                                 std::size_t tracks);

}  // namespace assay::timeline
