// Imports Perfetto's binary traces (a protobuf, protos/perfetto/trace in Perfetto): slices of track
// events. They become Chrome JSON, whose importers know the programs that write events.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <protozero/exception.hpp>
// A field may have another wire type than its number says. protozero would assert that it has not.
#define protozero_assert(x) \
  ((x) ? static_cast<void>(0) : throw protozero::unknown_pbf_wire_type_exception())
#include <protozero/pbf_reader.hpp>
#include <unordered_map>

#include "base/fd.h"
#include "base/json.h"
#include "timeline/importers/builder.h"
#include "timeline/importers/importer.h"
#include "timeline/input/byte_source.h"

namespace assay::timeline {
namespace {

using nlohmann::json;
using protozero::pbf_reader;

std::string text_of(pbf_reader& reader) {
  const auto view = reader.get_view();
  return {view.data(), view.size()};
}

std::string json_text(const std::string& text) { return dumped(json(text)); }

using Interned = std::unordered_map<std::uint64_t, std::string>;

// What the packets of one writer share.
struct Sequence {
  Interned categories, names, keys, values;
  std::uint64_t track = 0;                             // of events without one
  std::uint32_t clock = 0;                             // of packets without one; 0: the trace's
  std::map<std::uint32_t, std::uint64_t> incremental;  // clocks: the last time
  std::map<std::uint32_t, std::uint64_t> units;        // of these clocks, in nanoseconds
};

struct PerfettoTrack {
  std::string name, process, description;
  std::int64_t pid = kNone;
  std::uint64_t parent = 0;
};

struct PerfettoSlice {
  Nanos begin = 0;
  std::string head;  // JSON: name, category and args
};

class PerfettoReader {
 public:
  // Throws protozero's exceptions where the trace ends early.
  void read(std::string_view bytes) {
    pbf_reader trace(bytes.data(), bytes.size());
    constexpr std::uint32_t kPacket = 1;
    while (trace.next()) {
      if (trace.tag() == kPacket) {
        packet(trace.get_message());
      } else {
        trace.skip();
      }
    }
  }

  // Chrome JSON, the tracks first.
  std::string finish() const {
    std::string text = "{\"traceEvents\": [\n";
    for (const auto& [uuid, track] : tracks_) {
      const bool ours = track.description.starts_with("{\"name\": ");
      text += fmt::format(
          R"({{"ph":"M","name":"{}","pid":{},"tid":{},"ts":0,"args":{}}},)",
          ours ? "assay_track" : "thread_name", json_text(process_of(track)),
          json_text(label_of(uuid, track)),
          ours ? track.description : fmt::format(R"({{"name":{}}})", json_text(track.name)));
      text += '\n';
    }
    return text + events_ + "{}]}";
  }

  std::uint64_t open() const {
    std::uint64_t count = 0;
    for (const auto& [uuid, stack] : open_) count += stack.size();
    return count;
  }

 private:
  void packet(pbf_reader reader) {
    std::uint64_t time = 0;
    std::uint32_t clock = 0;
    std::uint32_t writer = 0;
    std::optional<pbf_reader> event, defaults, interned;
    bool cleared = false;
    while (reader.next()) {
      switch (reader.tag()) {
        case 6:
          clocks(reader.get_message(), writer);
          break;
        case 8:
          time = reader.get_uint64();
          break;
        case 10:
          writer = reader.get_uint32();
          break;
        case 11:
          event = reader.get_message();
          break;
        case 12:
          interned = reader.get_message();
          break;
        case 13:
          cleared |= (reader.get_uint32() & 1U) != 0;
          break;
        case 41:
          cleared |= reader.get_bool();
          break;
        case 58:
          clock = reader.get_uint32();
          break;
        case 59:
          defaults = reader.get_message();
          break;
        case 60:
          track(reader.get_message());
          break;
        default:
          reader.skip();
      }
    }
    Sequence& sequence = sequences_[writer];
    if (cleared) sequence.categories = sequence.names = sequence.keys = sequence.values = {};
    if (interned) intern(*interned, sequence);
    if (defaults) read_defaults(*defaults, sequence);
    if (!event) return;
    slice(*event, sequence, time_of(sequence, clock == 0 ? sequence.clock : clock, time));
  }

  // Clocks from 64 on belong to one writer; their packets may have the time since the last one.
  static Nanos time_of(Sequence& sequence, std::uint32_t clock, std::uint64_t time) {
    const auto unit = sequence.units.find(clock);
    if (const auto last = sequence.incremental.find(clock); last != sequence.incremental.end()) {
      last->second += time;
      time = last->second;
    }
    if (unit != sequence.units.end() && unit->second > 1) time *= unit->second;
    return static_cast<Nanos>(std::min(time, kLatest));
  }

  void clocks(pbf_reader snapshot, std::uint32_t writer) {
    constexpr std::uint32_t kFirstOfWriter = 64;
    while (snapshot.next(1)) {
      pbf_reader clock = snapshot.get_message();
      std::uint32_t id = 0;
      std::uint64_t time = 0;
      std::uint64_t unit = 1;
      bool incremental = false;
      while (clock.next()) {
        if (clock.tag() == 1)
          id = clock.get_uint32();
        else if (clock.tag() == 2)
          time = clock.get_uint64();
        else if (clock.tag() == 3)
          incremental = clock.get_bool();
        else if (clock.tag() == 4)
          unit = clock.get_uint64();
        else
          clock.skip();
      }
      if (id < kFirstOfWriter) continue;
      if (incremental) sequences_[writer].incremental[id] = time;
      sequences_[writer].units[id] = unit;
    }
  }

  static void read_defaults(pbf_reader defaults, Sequence& sequence) {
    while (defaults.next()) {
      if (defaults.tag() == 58) {
        sequence.clock = defaults.get_uint32();
      } else if (defaults.tag() == 11) {
        pbf_reader event = defaults.get_message();
        while (event.next()) {
          if (event.tag() == 11)
            sequence.track = event.get_uint64();
          else
            event.skip();
        }
      } else {
        defaults.skip();
      }
    }
  }

  static void intern(pbf_reader data, Sequence& sequence) {
    while (data.next()) {
      Interned* table = nullptr;
      if (data.tag() == 1) table = &sequence.categories;
      if (data.tag() == 2) table = &sequence.names;
      if (data.tag() == 3) table = &sequence.keys;
      if (data.tag() == 29) table = &sequence.values;
      if (table == nullptr) {
        data.skip();
        continue;
      }
      pbf_reader entry = data.get_message();
      std::uint64_t id = 0;
      std::string text;
      while (entry.next()) {
        if (entry.tag() == 1)
          id = entry.get_uint64();
        else if (entry.tag() == 2)
          text = text_of(entry);
        else
          entry.skip();
      }
      (*table)[id] = std::move(text);
    }
  }

  void track(pbf_reader reader) {
    PerfettoTrack track;
    std::uint64_t uuid = 0;
    while (reader.next()) {
      switch (reader.tag()) {
        case 1:
          uuid = reader.get_uint64();
          break;
        case 2:
        case 10:
          track.name = text_of(reader);
          break;
        case 3:
        case 4: {
          const bool process = reader.tag() == 3;
          pbf_reader part = reader.get_message();
          while (part.next()) {
            if (part.tag() == 1)
              track.pid = part.get_int32();
            else if (part.tag() == 6 && process)
              track.process = text_of(part);
            else if (part.tag() == 5 && !process)
              track.name = text_of(part);
            else
              part.skip();
          }
          break;
        }
        case 5:
          track.parent = reader.get_uint64();
          break;
        case 14:
          track.description = text_of(reader);
          break;
        default:
          reader.skip();
      }
    }
    if (tracks_.size() < kMostTracks) tracks_[uuid] = std::move(track);
  }

  void slice(pbf_reader reader, const Sequence& sequence, Nanos time) {
    std::uint64_t uuid = sequence.track;
    std::string name, category, args;
    std::int32_t type = 0;
    while (reader.next()) {
      switch (reader.tag()) {
        case 3: {
          const std::uint64_t id = reader.get_uint64();
          if (category.empty()) category = text_in(sequence.categories, id);
          break;
        }
        case 4:
          add_arg(reader.get_message(), sequence, args);
          break;
        case 9:
          type = reader.get_enum();
          break;
        case 10:
          name = text_in(sequence.names, reader.get_uint64());
          break;
        case 11:
          uuid = reader.get_uint64();
          break;
        case 22:
          category = text_of(reader);
          break;
        case 23:
          name = text_of(reader);
          break;
        default:
          reader.skip();
      }
    }
    auto& stack = open_[uuid];
    constexpr std::int32_t kBegin = 1;
    constexpr std::int32_t kEnd = 2;
    if (type == kBegin && stack.size() < kDeepest) {
      stack.push_back({time, fmt::format(R"("name":{},"cat":{},"args":{{{}}})", json_text(name),
                                         json_text(category), args)});
    } else if (type == kEnd && !stack.empty()) {
      emit(uuid, stack.back(), time);
      stack.pop_back();
    }
  }

  void emit(std::uint64_t uuid, const PerfettoSlice& slice, Nanos end) {
    constexpr Nanos kMicro = 1000;
    const PerfettoTrack& track = tracks_[uuid];
    const Nanos length = std::max<Nanos>(0, end - slice.begin);
    events_ += fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{}.{:03},"dur":{}.{:03},{}}},)",
                           json_text(process_of(track)), json_text(label_of(uuid, track)),
                           slice.begin / kMicro, slice.begin % kMicro, length / kMicro,
                           length % kMicro, slice.head);
    events_ += '\n';
  }

  static std::string text_in(const Interned& table, std::uint64_t id) {
    const auto found = table.find(id);
    return found == table.end() ? std::string() : found->second;
  }

  static void add_arg(pbf_reader reader, const Sequence& sequence, std::string& args) {
    std::string key, value;
    while (reader.next()) {
      switch (reader.tag()) {
        case 1:
          key = text_in(sequence.keys, reader.get_uint64());
          break;
        case 2:
          value = reader.get_bool() ? "true" : "false";
          break;
        case 3:
          value = std::to_string(reader.get_uint64());
          break;
        case 4:
          value = std::to_string(reader.get_int64());
          break;
        case 5:
          value = json(reader.get_double()).dump();
          break;
        case 6:
          value = json_text(text_of(reader));
          break;
        case 9:
          value = text_of(reader);
          break;
        case 10:
          key = text_of(reader);
          break;
        case 17:
          value = json_text(text_in(sequence.values, reader.get_uint64()));
          break;
        default:
          reader.skip();
      }
    }
    if (value.empty()) return;
    if (!args.empty()) args += ',';
    args += json_text(key) + ':' + value;
  }

  std::string process_of(const PerfettoTrack& track) const {
    const PerfettoTrack* at = &track;
    constexpr int kMostParents = 16;
    for (int i = 0; i < kMostParents && at->process.empty() && at->parent != 0; ++i) {
      const auto parent = tracks_.find(at->parent);
      if (parent == tracks_.end()) break;
      at = &parent->second;
    }
    if (!at->process.empty()) return at->process;
    return at->pid == kNone ? at->name : std::to_string(at->pid);
  }

  static std::string label_of(std::uint64_t uuid, const PerfettoTrack& track) {
    return track.name.empty() ? std::to_string(uuid) : track.name;
  }

  static constexpr std::uint64_t kLatest = std::uint64_t{1} << 62U;
  static constexpr std::size_t kMostTracks = 1U << 16U;
  static constexpr std::size_t kDeepest = 10'000;

  std::map<std::uint32_t, Sequence> sequences_;
  std::map<std::uint64_t, PerfettoTrack> tracks_;
  std::map<std::uint64_t, std::vector<PerfettoSlice>> open_;  // by track
  std::string events_;
};

// The first packets: each is field 1 with its length, and one has a field of Perfetto's.
bool recognises(const Sniff& sniff) {
  if (!sniff.head.starts_with('\n') || sniff.json) return false;
  bool known = false;
  try {
    pbf_reader trace(sniff.head.data(), sniff.head.size());
    while (trace.next()) {
      if (trace.tag() != 1) return false;
      pbf_reader packet = trace.get_message();
      while (packet.next()) {
        known |= packet.tag() == 10 || packet.tag() == 60 || packet.tag() == 6;
        packet.skip();
      }
    }
  } catch (const protozero::exception&) {
    return known;  // the head ends within a packet
  }
  return known;
}

Result<Trace> import(const std::filesystem::path& path, const ImportOptions& options) {
  constexpr std::size_t kMaxFile = std::size_t{2} << 30U;
  ASSAY_TRY(const std::string bytes, read_head(path, kMaxFile));
  PerfettoReader reader;
  bool cut = false;
  try {
    reader.read(bytes);
  } catch (const protozero::exception&) {
    cut = true;
  }
  ASSAY_TRY(const Fd file, make_memory_file("perfetto"));
  const std::string text = reader.finish();
  ASSAY_CHECK(write_all(file.get(), std::as_bytes(std::span(text))));
  ASSAY_TRY(Trace trace, import_trace(fmt::format("/proc/self/fd/{}", file.get()), options));
  for (FileReport& report : trace.files) {
    report.path = path.string();
    report.format = "Perfetto, " + report.format;
    report.bytes = bytes.size();
    report.truncated += reader.open() + (cut ? 1 : 0);
  }
  for (Source& source : trace.sources) source.path = path.string();
  return trace;
}

}  // namespace

const Importer kPerfetto{"Perfetto", "a protobuf with Perfetto's packets", recognises, import};

}  // namespace assay::timeline
