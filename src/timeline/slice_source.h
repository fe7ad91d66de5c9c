#pragma once

// Streams of slices, ordered by begin, and what is made of them: one stream of begin and end events
// in the order of time. Memory does not grow with the number of slices.

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

// Takes slices in any order and any number, and gives them back sorted. Sorted runs go to an
// unlinked file in `folder` (48 bytes a slice) and are read back in step; slices that come in order
// make one run. Holds 4 MiB and 32 KiB a run.
class SliceSorter {
 public:
  explicit SliceSorter(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Status add(const Slice& slice) {
    chunk_.push_back(slice);
    return chunk_.size() < kRunSlices ? Status() : spill();
  }
  Result<std::unique_ptr<SliceSource>> finish();

 private:
  static constexpr std::size_t kRunSlices = (4U << 20U) / sizeof(Slice);
  static constexpr std::size_t kSmall = (512U << 10U) / sizeof(Slice);  // stays in memory

  struct Run {
    std::uint64_t first = 0;  // slice in the file
    std::uint64_t count = 0;
  };
  Status spill();

  std::filesystem::path folder_;
  Fd fd_;
  std::vector<Slice> chunk_;
  std::vector<Run> runs_;
  Slice last_;  // of the last run
};

// What a writer knows before the first event. All of it outlives the writer.
struct TraceHeader {
  const Strings& strings;  // may grow while events are written
  std::span<const Track> tracks;
  std::span<const Counter> counters;
  std::span<const std::string> notes;  // clock relations and warnings: they travel in the trace
  // Of a trace in memory: args, arrows and who each track belongs to are written, too. Null for
  // job logs, which are written as Paddle's script writes them.
  const Trace* trace = nullptr;
};

// Takes events in the order of time. Of two on one track at the same time ends come first, so that
// slices always nest. Errors are kept and told by finish().
class TraceWriter {
 public:
  virtual ~TraceWriter() = default;
  virtual void begin_slice(const Slice& slice) = 0;
  virtual void end_slice(const Slice& slice) = 0;
  virtual Status finish() = 0;
};

struct MergeCounts {
  std::uint64_t slices = 0;
  std::vector<std::uint64_t> overlapping;  // a track each: dropped, because kMaxOpen were open
};

// No more than so many slices are open at once on one track; a hostile file could name any number.
inline constexpr std::uint32_t kMaxOpen = 256;

// Feeds the slices of all sources to all writers. `tracks` is the number of tracks.
Result<MergeCounts> merge_slices(std::span<const std::unique_ptr<SliceSource>> sources,
                                 std::span<TraceWriter* const> writers, std::size_t tracks);

}  // namespace assay::timeline
