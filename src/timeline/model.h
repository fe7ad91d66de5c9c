#pragma once

// The trace model between importers, analyses and writers: tracks, slices on tracks, and steps.
// Times are integer nanoseconds, so no step between a log and a trace rounds them.

#include <algorithm>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
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

// Interned texts. Beyond its limits, which stop a hostile file from filling memory, intern()
// returns kOverflow. Invalid UTF-8 becomes U+FFFD.
class Strings {
 public:
  static constexpr std::size_t kMaxStrings = 1U << 20U;
  static constexpr std::size_t kMaxBytes = 64U << 20U;
  static constexpr StringId kOverflow = 0;

  Strings();
  StringId intern(std::string_view text);
  // For a text that is valid UTF-8.
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

// How the analysis classifies the time of a slice.
enum class Kind : std::uint8_t {
  compute,
  communication,
  memory,  // copies and fills
  host,    // the CPU: calls, operators, waits
  other,
};

std::string_view name(Kind kind);
inline bool is_gpu_work(Kind kind) { return kind != Kind::host && kind != Kind::other; }

// The kind of a kernel or operator, by the rules of kernel_kinds.h.
Kind kind_of_kernel(std::string_view kernel);
// The kind of a pipeline job: "forward" is compute, "send_backward" is communication.
Kind kind_of_job(std::string_view type);

inline constexpr std::int32_t kNone = -1;
inline constexpr std::uint32_t kNoIndex = 0xffffffff;

// Empty (begin > end) until widened.
struct Span {
  Nanos begin = std::numeric_limits<Nanos>::max();
  Nanos end = std::numeric_limits<Nanos>::min();
};

// Extends `span`, which has begin and end, to contain `other`.
template <typename To, typename From>
void widen(To& span, const From& other) {
  span.begin = std::min(span.begin, other.begin);
  span.end = std::max(span.end, other.end);
}

struct Slice {
  Nanos begin = 0;
  Nanos end = 0;
  std::int64_t job = kNone;  // number of the job within its step; part of the displayed name
  StringId name = 0;
  StringId category = 0;
  std::uint32_t track = 0;
  std::int32_t micro_batch = kNone;
  Kind kind = Kind::other;
  std::uint32_t detail = kNoIndex;  // index into Trace::details
};

// The suffix of a slice's displayed name: "_4" for job 4 of a log, "@3" for micro batch 3 of a
// recording.
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
  std::string chrome_tid;  // in Chrome's JSON: "GPU0(machine:1)"; empty: the label
  std::string process;     // Perfetto's group of tracks; empty: the nameless group
  std::string machine;     // empty for a single machine
  std::int32_t device = kNone;
  std::int32_t rank = kNone;  // of the process
  std::int64_t pid = kNone;   // of the process
  std::uint32_t source = 0;   // index into Trace::sources
  bool gpu = false;           // slices are GPU work or jobs
  bool jobs = false;          // slices are jobs; the device's other tracks hold their GPU work
};

struct Step {
  std::int64_t number = 0;
  Nanos begin = std::numeric_limits<Nanos>::max();
  Nanos end = std::numeric_limits<Nanos>::min();
};

// A step as one process marked it. Trace::steps has the union over processes.
struct RankStep {
  std::uint32_t source = 0;
  Step step;
};

struct ProcessGroup {
  std::string description;  // "default_pg", "mesh_pp"
  std::vector<std::int32_t> ranks;
};

// One traced process.
struct Source {
  std::string path;
  std::string host;
  std::string device = {};  // the name of its first GPU
  std::int32_t rank = kNone;
  std::int32_t world_size = kNone;
  std::int64_t pid = kNone;
  std::map<std::string, ProcessGroup> groups;  // by the name in its collectives
  bool dump = false;                           // of a flight recorder
  bool untimed = false;                        // its slices have durations, and made-up times
};

// A host call that can launch GPU work.
struct Launch {
  Nanos begin = 0;
  Nanos end = 0;
  std::uint64_t correlation = 0;
  std::uint32_t track = 0;
  StringId name = 0;
};

// A call or Python function of the host of a millisecond or more.
struct HostCall {
  Nanos begin = 0;
  Nanos end = 0;
  std::uint32_t track = 0;
  StringId name = 0;
};

// A collective operation, as described by its kernel or its host operator.
struct Collective {
  StringId name = 0;         // "allreduce"
  StringId group = 0;        // "0"
  StringId description = 0;  // "default_pg"
  StringId dtype = 0;
  StringId ranks = 0;  // "[0, 1, 2]"
  std::int64_t in_elements = kNone;
  std::int64_t out_elements = kNone;
  std::int32_t group_size = kNone;
  std::int32_t peer = kNone;  // of a send or receive: a rank, or a position in `ranks`
  std::int64_t sequence = kNone;
  std::int64_t bytes = kNone;  // as reported; kNone: computed from the elements
  bool numbered = false;       // the sequence identifies the call within its group
};

// A host call that describes the collective of the kernels launched within it.
struct CollectiveRange {
  Nanos begin = 0;
  Nanos end = 0;
  std::uint32_t track = 0;
  std::uint32_t collective = 0;  // index into Trace::collectives
};

// Properties that only some slices have.
struct Detail {
  std::uint64_t correlation = 0;  // 0: none
  std::uint64_t args_at = 0;      // in Trace::args: the store's index << 48, plus the offset
  std::uint32_t args_size = 0;
  std::uint32_t launch = kNoIndex;      // index into Trace::launches
  std::uint32_t collective = kNoIndex;  // index into Trace::collectives
  std::uint32_t blocks = 0;             // of a kernel's grid; 0: unknown
  std::int64_t bytes = kNone;           // of a copy
};

// An operator with the same arguments: what one call computes.
struct OperatorKind {
  StringId name = 0;    // "aten::mm"
  StringId dtype = 0;   // "bf16"
  StringId shapes = 0;  // "64x128, 128x32"
  double flop = kUnknown;
  double bytes = 0;        // 0: unknown
  bool composite = false;  // the operators that it calls count instead, if they are recorded
  static constexpr double kUnknown = -1;
};
struct OperatorCall {
  Nanos begin = 0;
  Nanos end = 0;
  std::uint32_t track = 0;
  std::uint32_t kind = 0;  // index into Trace::operator_kinds
};

// Hardware counters of one kernel call.
struct KernelCounters {
  StringId kernel = 0;
  double flop = kUnknown;
  double bytes = kUnknown;  // read from and written to GPU memory
  static constexpr double kUnknown = -1;
};

// One end of an arrow between slices, as in Chrome's JSON.
struct Flow {
  Nanos time = 0;
  StringId id = 0;
  StringId name = 0;
  StringId category = 0;
  std::uint32_t track = 0;
  char phase = 's';  // s, t, f
  bool enclosing = false;
};

// What the program did when it allocated memory.
enum class MemoryPhase : std::uint8_t { unknown, setup, forward, backward, optimiser };

// A device's memory after an allocation or release, as its allocator reported it.
struct MemoryPoint {
  Nanos time = 0;
  std::int64_t allocated = 0;
  std::int64_t reserved = 0;
  std::uint32_t source = 0;
  std::int32_t device = kNone;  // kNone: the host's memory
  std::int64_t bytes = 0;       // negative: released; 0: unknown, or only reserved
  std::uint64_t address = 0;
  StringId where = kNoIndex;  // who allocated: the user's line, or the operator; kNoIndex: unknown
  MemoryPhase phase = MemoryPhase::unknown;
};

// What a device's allocator holds at the end, in segments that it got from the driver.
struct MemorySegments {
  std::uint32_t source = 0;
  std::int32_t device = kNone;
  std::int64_t idle = 0;          // reserved, not allocated
  std::int64_t fragmented = 0;    // the part of it in segments that also hold allocated blocks
  std::int64_t largest_idle = 0;  // one block
};

// One collective in a flight recorder dump.
enum class FlightState : std::uint8_t { scheduled, started, completed };
struct FlightEntry {
  std::uint32_t source = 0;
  bool p2p = false;
  FlightState state = FlightState::scheduled;
  std::int64_t sequence = 0;
  Nanos created = 0;
  std::string group;              // "0"
  std::string description;        // "default_pg"
  std::string name;               // "nccl:all_reduce"
  std::string shapes;             // "[[1024]] Float": of the tensors that all ranks must have alike
  std::int64_t elements = kNone;  // of these tensors
  std::string dtype;
  std::int64_t root = kNone;
  std::string frame;  // "/app/model.py:42 (forward)": the user's code that called it
};

// "GPU 1", "rank 3 · GPU 1", "host".
std::string device_name(std::int32_t rank, std::int32_t device);

// A value over time, for Perfetto's counter tracks.
struct Counter {
  std::string label;
  std::vector<std::pair<Nanos, double>> points;  // sorted
};

// Counts of what was read from one input file.
struct FileReport {
  std::string path;
  std::string format;
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;          // well-formed
  std::uint64_t kept = 0;             // slices in the trace
  std::uint64_t ignored = 0;          // left out by a rule of the format
  std::uint64_t malformed = 0;        // dropped
  std::uint64_t truncated = 0;        // dropped: the record is incomplete
  std::uint64_t interleaved = 0;      // kept: other text shares its line
  std::uint64_t repaired = 0;         // kept: text that is not UTF-8 was replaced
  std::uint64_t non_monotonic = 0;    // kept and sorted: begins before the record above it
  std::uint64_t backwards = 0;        // dropped: ends before it begins
  std::uint64_t overlapping = 0;      // dropped: too many open at once on one track
  std::uint64_t unmatched_steps = 0;  // step marks without their counterpart
  std::vector<std::string> notes;     // one line each

  bool unrelated() const { return records == 0; }
  std::uint64_t dropped() const { return malformed + truncated + backwards + overlapping; }
};

class ArgsStore;

// What a batch computes: the prompts of new requests (prefill), or one or several tokens of running
// ones (decode), or both. kNone: the trace does not tell.
struct ServingBatch {
  static constexpr std::string_view kPrefill = "prefill";
  static constexpr std::string_view kDecode = "decode";
  static constexpr std::string_view kMixed = "prefill and decode";
  static constexpr std::string_view kUnknown = "not told apart";

  std::string_view phase = kUnknown;
  std::int64_t requests = kNone;
  std::int64_t prefill_tokens = kNone;
  std::int64_t decode_tokens = kNone;
  friend auto operator<=>(const ServingBatch&, const ServingBatch&) = default;

  // Whether an equal batch is as much work.
  bool sized() const { return requests != kNone && prefill_tokens != kNone; }
};

// A trace in memory. Merging job logs streams instead.
struct Trace {
  Strings strings;
  std::vector<Track> tracks;
  std::vector<Slice> slices;
  std::vector<Step> steps;
  std::vector<Source> sources;
  std::vector<RankStep> rank_steps;
  std::map<std::int64_t, ServingBatch> batches;  // of a server's steps, by number
  std::vector<Launch> launches;                  // by source, then by correlation
  std::vector<HostCall> host_calls;              // only for an analysis
  std::vector<Detail> details;
  std::vector<Collective> collectives;
  std::vector<CollectiveRange> collective_ranges;
  std::vector<Flow> flows;
  std::vector<MemoryPoint> memory;
  std::vector<MemorySegments> memory_segments;
  std::vector<OperatorKind> operator_kinds;
  std::vector<OperatorCall> operator_calls;
  std::vector<KernelCounters> kernel_counters;
  std::vector<FlightEntry> flight;
  std::vector<Counter> counters;
  std::vector<std::shared_ptr<ArgsStore>> args;  // the events' args, one store a file
  std::vector<FileReport> files;
  std::vector<std::string> notes;  // clock relations, warnings
  bool one_clock = true;           // times of all machines are comparable
  bool clocks_assumed = false;     // nothing tells whether they are: who waits is not known

  // Orders slices by begin, then the longer first: a parent precedes its children.
  void sort();

  // Adds offsets to all times, by track and by source.
  void shift(const std::vector<Nanos>& of_track, const std::vector<Nanos>& of_source);

  // Replaces each time by what `clock` makes of it, by source, and the common steps accordingly.
  void move_times(const std::function<Nanos(std::uint32_t source, Nanos time)>& clock);

  // The call that launched the slice, or null.
  const Launch* launch_of(const Slice& slice) const {
    if (slice.detail == kNoIndex || details[slice.detail].launch == kNoIndex) return nullptr;
    return &launches[details[slice.detail].launch];
  }
};

}  // namespace assay::timeline
