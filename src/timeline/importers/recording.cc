// assay's own recording (recording_format.h). Damaged blocks are counted and passed over.

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <cstring>
#include <map>
#include <tuple>

#include "base/fd.h"
#include "timeline/importers/importer.h"
#include "timeline/importers/job_logs.h"
#include "timeline/importers/recording_format.h"

namespace assay::timeline {
namespace {

// Takes values from the front of a text; `ok` tells whether all of them were there.
struct Bytes {
  std::string_view rest;
  bool ok = true;

  template <typename T>
  T get() {
    T value{};
    if (rest.size() < sizeof value) {
      ok = false;
      return value;
    }
    std::memcpy(&value, rest.data(), sizeof value);
    rest.remove_prefix(sizeof value);
    return value;
  }
  std::string_view get_bytes(std::size_t count) {
    if (rest.size() < count) {
      ok = false;
      return {};
    }
    const std::string_view bytes = rest.substr(0, count);
    rest.remove_prefix(count);
    return bytes;
  }
};

class RecordingReader {
 public:
  void read(std::string_view file) {
    Bytes bytes{file};
    bytes.get_bytes(recording::kMagic.size());
    const auto version = bytes.get<std::uint32_t>();
    pid_ = bytes.get<std::uint32_t>();
    const std::string_view host = bytes.get_bytes(recording::kHostBytes);
    host_ = host.substr(0, host.find('\0'));
    if (!bytes.ok || version != recording::kVersion) {
      report_.notes.push_back(fmt::format("version {} is not known", version));
      return;
    }
    while (!bytes.rest.empty()) read_block(bytes);
  }

  Trace finish(const std::string& path, std::size_t size) {
    report_.path = path;
    report_.format = "assay recording";
    report_.bytes = size;
    trace_.files.push_back(std::move(report_));
    if (!trace_.steps.empty()) {
      Track row;
      row.label = "STEP";
      row.process = fmt::format("{} pid {}", host_, pid_);
      for (Slice step : step_slices(trace_.steps, trace_.strings)) {
        step.track = static_cast<std::uint32_t>(trace_.tracks.size());
        trace_.slices.push_back(step);
      }
      trace_.tracks.push_back(std::move(row));
    }
    trace_.sort();
    return std::move(trace_);
  }

 private:
  static constexpr Nanos kMaxTime = std::numeric_limits<Nanos>::max() / 2;

  void read_block(Bytes& bytes) {
    Bytes head = bytes;
    const auto magic = head.get<std::uint32_t>();
    const auto size = head.get<std::uint32_t>();
    const auto sum = head.get<std::uint64_t>();
    const std::string_view payload = head.get_bytes(size);
    if (head.ok && magic == recording::kBlockMagic &&
        XXH64(payload.data(), payload.size(), 0) == sum) {
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
        case recording::What::lost:
          report_.notes.push_back(
              fmt::format("the recorder had no room for {} records", record.get<std::uint64_t>()));
          break;
        default:
          ++report_.ignored;  // of a later version that kept this one's meaning
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
    if (!record.ok || name == names.end() || kind > static_cast<std::uint8_t>(Kind::other) ||
        slice.begin < 0 || slice.end > kMaxTime) {
      ++report_.malformed;
      return;
    }
    if (slice.end < slice.begin) {
      ++report_.backwards;
      return;
    }
    if (trace_.slices.size() == kMaxImportedSlices) {
      ++report_.overlapping;
      return;
    }
    const bool job = (flags & 2U) != 0;
    slice.name = name->second;
    slice.category = job ? name->second : trace_.strings.intern(timeline::name(Kind{kind}));
    slice.kind = Kind{kind};
    slice.track = track_of((flags & 1U) != 0, job, device, lane);
    trace_.slices.push_back(slice);
    ++report_.kept;
  }

  void read_step(Bytes& record) {
    const Step step{record.get<std::int64_t>(), record.get<Nanos>(), record.get<Nanos>()};
    constexpr std::size_t kMaxSteps = 1U << 18U;
    if (!record.ok || step.end < step.begin || trace_.steps.size() >= kMaxSteps) {
      ++report_.malformed;
      return;
    }
    trace_.steps.push_back(step);
  }

  std::uint32_t track_of(bool gpu, bool job, std::int32_t device, std::uint64_t lane) {
    constexpr std::size_t kMaxTracks = 1U << 16U;
    const auto key = std::tuple(gpu, job, device, lane);
    const auto known = tracks_.find(key);
    if (known != tracks_.end()) return known->second;
    if (trace_.tracks.size() >= kMaxTracks) return 0;
    Track track;
    track.gpu = gpu;
    track.device = device;
    track.machine = host_;
    track.process = fmt::format("{} pid {}", host_, pid_);
    track.label = gpu ? (job ? fmt::format("GPU:{} jobs", device)
                             : fmt::format("GPU:{} stream {}", device, lane))
                      : fmt::format("thread {}", lane);
    const auto index = static_cast<std::uint32_t>(trace_.tracks.size());
    trace_.tracks.push_back(std::move(track));
    tracks_.emplace(key, index);
    return index;
  }

  Trace trace_;
  FileReport report_;
  std::string host_;
  std::uint32_t pid_ = 0;
  std::map<std::tuple<bool, bool, std::int32_t, std::uint64_t>, std::uint32_t> tracks_;
};

bool recognises(std::string_view head) { return head.starts_with(recording::kMagic); }

Result<Trace> import(const std::filesystem::path& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(fmt::format("cannot read {}", path.string()));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(path.string());
  const auto size = static_cast<std::size_t>(status.st_size);
  ASSAY_TRY(const Mapping mapping, Mapping::map(fd.get(), size, false));
  RecordingReader reader;
  reader.read({reinterpret_cast<const char*>(mapping.data()), size});
  return reader.finish(path.string(), size);
}

}  // namespace

const Importer kRecording{"assay recording", recognises, import};

}  // namespace assay::timeline
