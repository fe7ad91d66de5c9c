#pragma once

// What every importer gives and every writer takes: tracks, slices on them, and the Step row.
// Times are nanoseconds in 64 bits, so nothing is rounded between a log and a trace.

#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace assay::timeline {

using Nanos = std::int64_t;
using StringId = std::uint32_t;

// Each distinct text once. Bounded, so that a hostile file cannot fill memory with names: what
// comes after the limit reads as kOverflow. Bytes that are not UTF-8 become U+FFFD.
class Strings {
 public:
  static constexpr std::size_t kMaxStrings = 1U << 20U;
  static constexpr std::size_t kMaxBytes = 64U << 20U;
  static constexpr StringId kOverflow = 0;

  Strings();
  StringId intern(std::string_view text);
  std::string_view text(StringId id) const { return texts_[id]; }
  std::size_t size() const { return texts_.size(); }

 private:
  StringId intern_valid(std::string_view text);

  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, StringId> ids_;
  std::size_t bytes_ = 0;
};

// What the time of a slice was spent on; the analysis knows nothing finer.
enum class Kind : std::uint8_t {
  compute,
  communication,
  memory,  // copies and fills
  host,    // the CPU's side: calls, operators, waits
  other,
};

std::string_view name(Kind kind);

// The kind that a kernel's or operator's name tells ("ncclDevKernel_…" is communication).
Kind kind_of_kernel(std::string_view kernel);
// The kind of a pipeline job ("forward" computes, "send_backward" communicates).
Kind kind_of_job(std::string_view type);

inline constexpr std::int32_t kNone = -1;

struct Slice {
  Nanos begin = 0;
  Nanos end = 0;
  std::int64_t job = kNone;  // number of the job within its step; a part of the shown name
  StringId name = 0;
  StringId category = 0;
  std::uint32_t track = 0;
  std::int32_t micro_batch = kNone;
  Kind kind = Kind::other;
};

// What a trace shows behind a slice's name: "_4" of a log's job, "@3" of a recorded micro batch, or
// nothing.
struct Suffix {
  char mark = 0;
  std::int64_t number = 0;
};
inline Suffix suffix_of(const Slice& slice) {
  if (slice.job != kNone) return {'_', slice.job};
  if (slice.micro_batch != kNone) return {'@', slice.micro_batch};
  return {};
}

struct Track {
  std::string label;       // "GPU:0", "GPU:1(machine:2)", "stream 7"
  std::string chrome_tid;  // what Chrome's JSON calls it: "GPU0(machine:1)"; empty: the label
  std::string process;     // what Perfetto groups tracks by; empty: one group without a name
  std::string machine;     // empty where only one is known
  std::int32_t device = kNone;
  bool gpu = false;   // slices are GPU time (or jobs, which stand for it)
  bool jobs = false;  // slices are jobs, whose GPU time is that of the device's other tracks
};

struct Step {
  std::int64_t number = 0;
  Nanos begin = std::numeric_limits<Nanos>::max();
  Nanos end = std::numeric_limits<Nanos>::min();
};

// A value over time, for Perfetto's counter tracks.
struct Counter {
  std::string label;
  std::vector<std::pair<Nanos, double>> points;  // sorted
};

// What one input file held and what became of it.
struct FileReport {
  std::string path;
  std::string format;
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;          // well-formed ones
  std::uint64_t kept = 0;             // slices that are in the trace
  std::uint64_t ignored = 0;          // records that the format says to leave out
  std::uint64_t malformed = 0;        // dropped
  std::uint64_t truncated = 0;        // dropped: the record breaks off
  std::uint64_t interleaved = 0;      // kept: other text shares its line
  std::uint64_t non_monotonic = 0;    // kept and sorted: begins before the record above it
  std::uint64_t backwards = 0;        // dropped: ends before it begins
  std::uint64_t overlapping = 0;      // dropped: too many open at once on one track
  std::uint64_t unmatched_steps = 0;  // step marks without their other half
  std::vector<std::string> notes;     // one line each

  bool unrelated() const { return records == 0; }
  std::uint64_t dropped() const { return malformed + truncated + backwards + overlapping; }
};

// A trace in memory, for every format but the logs (which are streamed).
struct Trace {
  Strings strings;
  std::vector<Track> tracks;
  std::vector<Slice> slices;
  std::vector<Step> steps;
  std::vector<Counter> counters;
  std::vector<FileReport> files;
  std::vector<std::string> notes;  // clock relations, warnings

  // Orders slices by begin, the longer first, so that a parent stands before its children.
  void sort();
};

}  // namespace assay::timeline
