#pragma once

// What every importer gives and every writer takes: tracks, slices on them, and the Step row.
// Times are nanoseconds in 64 bits, so nothing is rounded between a log and a trace.

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace assay::timeline {

using Nanos = std::int64_t;
using StringId = std::uint32_t;

inline double millis(Nanos time) { return static_cast<double>(time) / 1e6; }

// Each distinct text once. Bounded, so that a hostile file cannot fill memory with names: what
// comes after the limit reads as kOverflow. Bytes that are not UTF-8 become U+FFFD.
class Strings {
 public:
  static constexpr std::size_t kMaxStrings = 1U << 20U;
  static constexpr std::size_t kMaxBytes = 64U << 20U;
  static constexpr StringId kOverflow = 0;

  Strings();
  StringId intern(std::string_view text);
  // The same for a text that is known to be UTF-8.
  StringId intern_valid(std::string_view text);
  std::string_view text(StringId id) const { return texts_[id]; }
  std::size_t size() const { return texts_.size(); }

 private:
  struct Hash {
    std::size_t operator()(std::string_view text) const;
  };
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, StringId, Hash> ids_;
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

// The kind that a kernel's or operator's name tells (kernel_kinds.h has the rules).
Kind kind_of_kernel(std::string_view kernel);
// The kind of a pipeline job ("forward" computes, "send_backward" communicates).
Kind kind_of_job(std::string_view type);

inline constexpr std::int32_t kNone = -1;
inline constexpr std::uint32_t kNoIndex = 0xffffffff;

struct Slice {
  Nanos begin = 0;
  Nanos end = 0;
  std::int64_t job = kNone;  // number of the job within its step; a part of the shown name
  StringId name = 0;
  StringId category = 0;
  std::uint32_t track = 0;
  std::int32_t micro_batch = kNone;
  Kind kind = Kind::other;
  std::uint32_t detail = kNoIndex;  // in Trace::details: what only some slices have
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
  std::int32_t rank = kNone;  // of the process in its job
  std::int64_t pid = kNone;   // of the process that used the device
  std::uint32_t source = 0;   // in Trace::sources
  bool gpu = false;           // slices are GPU time (or jobs, which stand for it)
  bool jobs = false;  // slices are jobs, whose GPU time is that of the device's other tracks
};

struct Step {
  std::int64_t number = 0;
  Nanos begin = std::numeric_limits<Nanos>::max();
  Nanos end = std::numeric_limits<Nanos>::min();
};

// A step as one process marked it; Trace::steps has what all of them make together.
struct RankStep {
  std::uint32_t source = 0;
  Step step;
};

struct ProcessGroup {
  std::string description;  // "default_pg", "mesh_pp"
  std::vector<std::int32_t> ranks;
};

// One process that was traced: who it was in its job.
struct Source {
  std::string path;
  std::string host;
  std::int32_t rank = kNone;
  std::int32_t world_size = kNone;
  std::int64_t pid = kNone;
  std::map<std::string, ProcessGroup> groups;  // by the names that collectives carry
};

// A call of the host's that GPU work may come from.
struct Launch {
  Nanos begin = 0;
  Nanos end = 0;
  std::uint64_t correlation = 0;
  std::uint32_t track = 0;
  StringId name = 0;
};

// What a collective operation is, as its kernel or its host operator says.
struct Collective {
  StringId name = 0;         // "allreduce"
  StringId group = 0;        // "0"
  StringId description = 0;  // "default_pg"
  StringId dtype = 0;
  StringId ranks = 0;  // "[0, 1, 2]"
  std::int64_t in_elements = kNone;
  std::int64_t out_elements = kNone;
  std::int32_t group_size = kNone;
  std::int64_t sequence = kNone;
  std::int64_t bytes = kNone;  // where they are said, not counted from elements
};

// A call of the host's that says which collective the kernels launched within it are.
struct CollectiveRange {
  Nanos begin = 0;
  Nanos end = 0;
  std::uint32_t track = 0;
  std::uint32_t collective = 0;  // in Trace::collectives
};

// What only some slices have.
struct Detail {
  std::uint64_t correlation = 0;  // 0: none
  std::uint64_t args_at = 0;      // in Trace::args: the store's number << 48, and the place
  std::uint32_t args_size = 0;
  std::uint32_t launch = kNoIndex;      // in Trace::launches
  std::uint32_t collective = kNoIndex;  // in Trace::collectives
  std::int64_t bytes = kNone;           // of a copy
};

// What was counted while a kernel ran: of one call.
struct KernelCounters {
  StringId kernel = 0;
  double flop = kUnknown;
  double bytes = kUnknown;  // of the GPU's memory, read and written
  static constexpr double kUnknown = -1;
};

// One end of an arrow between slices.
struct Flow {
  Nanos time = 0;
  StringId id = 0;
  StringId name = 0;
  StringId category = 0;
  std::uint32_t track = 0;
  char phase = 's';  // s, t, f
  bool enclosing = false;
};

// Memory of a device as its allocator told it.
struct MemoryPoint {
  Nanos time = 0;
  std::int64_t allocated = 0;
  std::int64_t reserved = 0;
  std::uint32_t source = 0;
  std::int32_t device = kNone;  // kNone: the host's memory
};

// What a flight recorder kept of one collective that its rank called.
enum class FlightState : std::uint8_t { scheduled, started, completed };
struct FlightEntry {
  std::uint32_t source = 0;
  bool p2p = false;
  FlightState state = FlightState::scheduled;
  std::int64_t sequence = 0;
  Nanos created = 0;
  std::string group;        // "0"
  std::string description;  // "default_pg"
  std::string name;         // "nccl:all_reduce"
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

class ArgsStore;

// A trace in memory, for every format but the logs (which are streamed).
struct Trace {
  Strings strings;
  std::vector<Track> tracks;
  std::vector<Slice> slices;
  std::vector<Step> steps;
  std::vector<Source> sources;
  std::vector<RankStep> rank_steps;
  std::vector<Launch> launches;  // of each source by correlation
  std::vector<Detail> details;
  std::vector<Collective> collectives;
  std::vector<CollectiveRange> collective_ranges;
  std::vector<Flow> flows;
  std::vector<MemoryPoint> memory;
  std::vector<KernelCounters> kernel_counters;
  std::vector<FlightEntry> flight;
  std::vector<Counter> counters;
  std::vector<std::shared_ptr<ArgsStore>> args;  // the text of events' args, a file each
  std::vector<FileReport> files;
  std::vector<std::string> notes;  // clock relations, warnings
  bool one_clock = true;           // times of all machines may be compared

  // Orders slices by begin, the longer first, so that a parent stands before its children.
  void sort();
};

}  // namespace assay::timeline
