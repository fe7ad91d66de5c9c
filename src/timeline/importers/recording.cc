// Imports assay's own recordings (recording_format.h). Counts and skips damaged blocks.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "base/fd.h"
#include "timeline/importers/builder.h"
#include "timeline/importers/importer.h"
#include "timeline/importers/job_logs.h"
#include "timeline/importers/recording_format.h"
#include "timeline/input/byte_source.h"
#include "timeline/input/bytes.h"

namespace assay::timeline {
namespace {

struct RangeLaunch {
  std::uint32_t correlation = 0;
  std::uint64_t range = 0;
  friend auto operator<=>(const RangeLaunch&, const RangeLaunch&) = default;
};
struct Range {
  std::uint64_t parent = 0;
  StringId name = 0;
  std::int32_t micro_batch = kNone;
};

struct GpuWork {
  std::uint32_t correlation = 0;
  std::int32_t device = kNone;
  Span span;
};

class RecordingReader {
 public:
  RecordingReader() { trace_.sources.emplace_back(); }
  void read(std::string_view file) {
    Bytes bytes{file};
    bytes.get_bytes(recording::kMagic.size());
    const auto version = bytes.get<std::uint32_t>();
    pid_ = bytes.get<std::uint32_t>();
    const std::string_view host = bytes.get_bytes(recording::kHostBytes);
    host_ = host.substr(0, host.find('\0'));
    if (!bytes.ok || version != recording::kVersion) {
      report_.notes.push_back(fmt::format("unknown version {}", version));
      return;
    }
    while (!bytes.rest.empty()) read_block(bytes);
  }

  Trace finish(const std::string& path, std::size_t size) {
    join_launches();
    report_.path = path;
    report_.format = "assay recording";
    report_.bytes = size;
    Source& source = trace_.sources[0];
    source.path = path;
    source.host = host_;
    source.pid = pid_;
    for (FlightEntry& entry : trace_.flight) {
      entry.group = entry.description = kAllCommunicators;
    }
    // The group contains ranks without a recording.
    for (std::int32_t rank = 0; !trace_.flight.empty() && rank < source.world_size; ++rank) {
      source.groups[kAllCommunicators].ranks.push_back(rank);
    }
    if (!steps_.empty()) {
      for (const auto& [id, step] : steps_) trace_.steps.push_back(step);
      Track row;
      row.label = "STEP";
      row.process = fmt::format("{} pid {}", host_, pid_);
      const std::uint32_t track = builder_.add_track(std::move(row));
      for (Slice step : step_slices(trace_.steps, trace_.strings)) {
        step.track = track;
        trace_.slices.push_back(step);
      }
    }
    return builder_.finish();
  }

 private:
  static constexpr std::size_t kMaxNotes = 16;
  // A recorder counts the collectives of a process over all communicators.
  static constexpr const char* kAllCommunicators = "all communicators";
  static constexpr Nanos kMaxTime = std::numeric_limits<Nanos>::max() / 2;

  void read_block(Bytes& bytes) {
    Bytes head = bytes;
    const auto magic = head.get<std::uint32_t>();
    const auto size = head.get<std::uint32_t>();
    const auto sum = head.get<std::uint64_t>();
    const std::string_view payload = head.get_bytes(size);
    if (head.ok && magic == recording::kBlockMagic && recording::checksum(payload) == sum) {
      bytes = head;
      read_payload(payload);
      return;
    }
    ++(head.ok ? report_.malformed : report_.truncated);
    const std::string_view mark("BLK1");
    const std::size_t next = bytes.rest.find(mark, 1);
    bytes.rest.remove_prefix(next == std::string_view::npos ? bytes.rest.size() : next);
  }

  void read_payload(std::string_view payload) {
    std::map<std::uint32_t, StringId> names;
    Bytes bytes{payload};
    while (!bytes.rest.empty()) {
      const auto what = static_cast<recording::What>(bytes.get<std::uint8_t>());
      const auto size = bytes.get<std::uint16_t>();
      Bytes record{bytes.get_bytes(size)};
      if (!bytes.ok) {
        ++report_.malformed;
        return;
      }
      ++report_.records;
      switch (what) {
        case recording::What::name: {
          const auto id = record.get<std::uint32_t>();
          names[id] = trace_.strings.intern(record.rest);
          break;
        }
        case recording::What::slice:
          read_slice(record, names);
          break;
        case recording::What::step:
          read_step(record);
          break;
        case recording::What::launches:
          read_launches(record);
          break;
        case recording::What::note:
          if (report_.notes.size() < kMaxNotes) report_.notes.emplace_back(record.rest);
          break;
        case recording::What::lost:
          report_.notes.push_back(
              fmt::format("the recorder had no room for {} records", record.get<std::uint64_t>()));
          break;
        case recording::What::identity:
          trace_.sources[0].rank = record.get<std::int32_t>();
          trace_.sources[0].world_size = record.get<std::int32_t>();
          break;
        case recording::What::collective:
          read_collective(record);
          break;
        default:
          ++report_.ignored;  // a record of a later, compatible version
      }
    }
  }

  void read_slice(Bytes& record, const std::map<std::uint32_t, StringId>& names) {
    const auto name = names.find(record.get<std::uint32_t>());
    const auto kind = record.get<std::uint8_t>();
    const auto flags = record.get<std::uint8_t>();
    const auto device = record.get<std::int32_t>();
    const auto lane = record.get<std::uint64_t>();
    Slice slice;
    slice.begin = record.get<Nanos>();
    slice.end = record.get<Nanos>();
    slice.micro_batch = record.get<std::int32_t>();
    const auto id = record.get<std::uint64_t>();
    const bool gpu = (flags & 1U) != 0;
    const std::uint64_t parent = gpu ? 0 : record.get<std::uint64_t>();
    if (!record.ok || name == names.end() || kind > static_cast<std::uint8_t>(Kind::other) ||
        slice.begin < 0 || slice.end > kMaxTime) {
      ++report_.malformed;
      return;
    }
    if (slice.end < slice.begin) {
      ++report_.backwards;
      return;
    }
    if (!builder_.has_room()) return;
    const bool job = (flags & 2U) != 0;
    slice.name = name->second;
    slice.category = job ? name->second : trace_.strings.intern(timeline::name(Kind{kind}));
    slice.kind = Kind{kind};
    slice.track = track_of(gpu, false, device, lane);
    if (gpu && id != 0) {
      gpu_work_.push_back({static_cast<std::uint32_t>(id), device, {slice.begin, slice.end}});
    }
    if (!gpu && id != 0) ranges_[id] = {parent, slice.name, slice.micro_batch};
    builder_.add(slice);
  }

  void read_step(Bytes& record) {
    const Step step{record.get<std::int64_t>(), record.get<Nanos>(), record.get<Nanos>()};
    const auto id = record.get<std::uint64_t>();
    constexpr std::size_t kMaxSteps = 1U << 18U;
    if (!record.ok || step.end < step.begin || steps_.size() >= kMaxSteps) {
      ++report_.malformed;
      return;
    }
    steps_[id] = step;
  }

  void read_collective(Bytes& record) {
    FlightEntry entry;
    entry.sequence = record.get<std::int64_t>();
    entry.created = record.get<Nanos>();
    entry.state = record.get<std::uint8_t>() != 0 ? FlightState::completed : FlightState::started;
    entry.name = record.rest;
    constexpr std::size_t kMaxEntries = 1U << 16U;
    if (!record.ok || trace_.flight.size() >= kMaxEntries) {
      ++report_.malformed;
      return;
    }
    trace_.flight.push_back(std::move(entry));
  }

  void read_launches(Bytes& record) {
    const auto range = record.get<std::uint64_t>();
    while (record.ok && !record.rest.empty() && launches_.size() < kMaxImportedSlices) {
      launches_.push_back({record.get<std::uint32_t>(), range});
    }
    if (!record.ok) ++report_.malformed;
  }

  // Computes the GPU time of each range and step from the work launched in it, including nested
  // ranges.
  void join_launches() {
    std::ranges::sort(launches_);
    std::map<std::pair<std::uint64_t, std::int32_t>, Span, std::greater<>> spans;
    for (const GpuWork& work : gpu_work_) {
      const auto launch = std::ranges::lower_bound(launches_, RangeLaunch{work.correlation, 0});
      if (launch == launches_.end() || launch->correlation != work.correlation) continue;
      widen(spans[{launch->range, work.device}], work.span);
    }
    // In descending order of ids, children precede their parents.
    for (const auto& [key, span] : spans) {
      const auto& [id, device] = key;
      if (const auto step = steps_.find(id); step != steps_.end()) {
        widen(gpu_steps_[id], span);
        continue;
      }
      const auto range = ranges_.find(id);
      if (range == ranges_.end()) continue;
      add_job(range->second, device, span);
      const std::uint64_t parent = range->second.parent;
      if (parent != 0 && parent < id) widen(spans[{parent, device}], span);
    }
    for (const auto& [id, span] : gpu_steps_) {
      steps_[id].begin = span.begin;
      steps_[id].end = span.end;
    }
    // A step lasts until the next one begins: the host's time between them is part of it.
    for (auto it = steps_.begin(); it != steps_.end(); ++it) {
      const auto next = std::next(it);
      if (next == steps_.end() || next->second.number != it->second.number + 1) continue;
      it->second.end = std::max(it->second.end, next->second.begin);
    }
  }

  void add_job(const Range& range, std::int32_t device, const Span& span) {
    if (trace_.slices.size() == kMaxImportedSlices) return;
    Slice job;
    job.begin = span.begin;
    job.end = span.end;
    job.micro_batch = range.micro_batch;
    job.name = job.category = range.name;
    job.kind = kind_of_job(trace_.strings.text(range.name));
    job.track = track_of(true, true, device, 0);
    trace_.slices.push_back(job);
  }

  std::uint32_t track_of(bool gpu, bool job, std::int32_t device, std::uint64_t lane) {
    return tracks_.find(std::tuple(gpu, job, device, lane), [&] {
      Track track;
      track.gpu = gpu;
      track.jobs = job;
      track.device = device;
      track.process = fmt::format("{} pid {}", host_, pid_);
      track.label = gpu ? (job ? fmt::format("GPU:{} jobs", device)
                               : fmt::format("GPU:{} stream {}", device, lane))
                        : fmt::format("thread {}", lane);
      return track;
    });
  }

  std::vector<RangeLaunch> launches_;
  std::vector<GpuWork> gpu_work_;
  std::map<std::uint64_t, Range> ranges_;  // by id, and so by time
  std::map<std::uint64_t, Step> steps_;
  std::map<std::uint64_t, Span> gpu_steps_;
  TraceBuilder builder_;
  Trace& trace_ = builder_.trace();
  FileReport& report_ = builder_.report();
  TrackTable<std::tuple<bool, bool, std::int32_t, std::uint64_t>> tracks_{builder_};
  std::string host_;
  std::uint32_t pid_ = 0;
};

bool recognises(const Sniff& sniff) { return sniff.head.starts_with(recording::kMagic); }

Result<Trace> import(const std::filesystem::path& path, const ImportOptions&) {
  ASSAY_TRY(const Fd fd, open_unpacked(path));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(path.string());
  const auto size = static_cast<std::size_t>(status.st_size);
  ASSAY_TRY(const Mapping mapping, Mapping::map(fd.get(), size, false));
  RecordingReader reader;
  reader.read({reinterpret_cast<const char*>(mapping.data()), size});
  return reader.finish(path.string(), size);
}

}  // namespace

const Importer kRecording{"assay recording", "the first bytes of an .assayrec file", recognises,
                          import};

}  // namespace assay::timeline
