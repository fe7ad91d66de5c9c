#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <tuple>
#include <unordered_map>

#include "timeline/input/args_store.h"
#include "timeline/input/json_cursor.h"
#include "timeline/writers/lanes.h"
#include "timeline/writers/output_file.h"
#include "timeline/writers/writers.h"

namespace assay::timeline {
namespace {

namespace packet {
constexpr protozero::pbf_tag_type kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kInterned = 12,
                                  kSequenceFlags = 13, kTrackDescriptor = 60;
}
namespace event {
constexpr protozero::pbf_tag_type kCategoryIds = 3, kDebugAnnotations = 4, kType = 9, kNameId = 10,
                                  kTrack = 11, kName = 23, kDoubleCounter = 44, kFlows = 47,
                                  kTerminatingFlows = 48;
constexpr std::int32_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4;
}  // namespace event
namespace annotation {
constexpr protozero::pbf_tag_type kStringValue = 6, kJsonValue = 9, kName = 10;
}
namespace interned {
constexpr protozero::pbf_tag_type kCategories = 1, kNames = 2, kId = 1, kText = 2;
}
namespace descriptor {
constexpr protozero::pbf_tag_type kUuid = 1, kName = 2, kProcess = 3, kParent = 5, kCounter = 8,
                                  kOrdering = 11, kRank = 12, kDescription = 14;
constexpr protozero::pbf_tag_type kPid = 1, kProcessName = 6;
constexpr std::int32_t kOrderExplicit = 3;
}  // namespace descriptor

constexpr std::uint32_t kSequenceId = 1;
constexpr std::uint32_t kStateCleared = 1;
constexpr std::uint32_t kNeedsState = 2;
// Readers keep interned names in memory. Names beyond this number are repeated in each event.
constexpr std::size_t kMaxInterned = 1U << 16U;

std::string shown_name(const Strings& strings, const Slice& slice) {
  const std::string_view text = strings.text(slice.name);
  const Suffix suffix = suffix_of(slice);
  return suffix.mark == 0 ? std::string(text)
                          : fmt::format("{}{}{}", text, suffix.mark, suffix.number);
}

using SpansOfTrack = std::vector<std::pair<Nanos, Nanos>>;  // begin, end; sorted

std::optional<Nanos> slice_at(const SpansOfTrack& spans, Nanos time) {
  constexpr int kMaxLook = 1000;  // most earlier siblings to search
  auto it = std::ranges::upper_bound(spans, time, {}, &SpansOfTrack::value_type::first);
  for (int looked = 0; it != spans.begin() && looked < kMaxLook; ++looked) {
    --it;
    if (time <= it->second) return it->first;
  }
  return std::nullopt;
}

// Finds the slices at the ends of arrows.
class FlowPoints {
 public:
  struct Point {
    std::uint32_t track = 0;
    Nanos begin = 0;       // of its slice
    std::uint64_t id = 0;  // of the arrow; never 0; unique across categories
    bool last = false;     // the arrow ends here
  };

  // Attaches each end to the innermost slice at its time and track. Drops ends without a slice.
  explicit FlowPoints(const Trace& trace)
      : taken_(trace.tracks.size(), std::numeric_limits<Nanos>::min()) {
    if (trace.flows.empty()) return;
    std::vector<SpansOfTrack> spans(trace.tracks.size());
    for (const Slice& slice : trace.slices) spans[slice.track].emplace_back(slice.begin, slice.end);
    for (const Flow& flow : trace.flows) {
      const auto begin = slice_at(spans[flow.track], flow.time);
      if (!begin) continue;
      const std::uint64_t id = (std::uint64_t{flow.category} << 32U | flow.id) + 1;
      points_.push_back({flow.track, *begin, id, flow.phase == 'f'});
    }
    std::ranges::sort(points_, [](const Point& a, const Point& b) {
      return std::tie(a.track, a.begin, a.id) < std::tie(b.track, b.begin, b.id);
    });
  }

  // The points of the slice that begins at this time. If several begin, the first call gets all.
  std::span<const Point> take(std::uint32_t track, Nanos begin) {
    if (points_.empty() || taken_[track] == begin) return {};
    const auto first = std::ranges::partition_point(points_, [&](const Point& point) {
      return std::tie(point.track, point.begin) < std::tie(track, begin);
    });
    const auto last = std::partition_point(first, points_.end(), [&](const Point& point) {
      return point.track == track && point.begin == begin;
    });
    if (first == last) return {};
    taken_[track] = begin;
    return {first, last};
  }

 private:
  std::vector<Point> points_;  // sorted by track and begin
  std::vector<Nanos> taken_;   // by track: the last begin
};

class PerfettoWriter : public TraceWriter {
 public:
  PerfettoWriter(OutputFile file, const TraceHeader& header)
      : file_(std::move(file)),
        header_(header),
        lanes_(header.tracks.size()),
        lane_ids_(header.tracks.size()) {
    if (header.trace != nullptr) flows_.emplace(*header.trace);
    {
      protozero::pbf_writer first(packet_);
      first.add_uint32(packet::kSequence, kSequenceId);
      first.add_uint32(packet::kSequenceFlags, kStateCleared);
    }
    put_packet();
    put_processes_and_tracks();
    put_counters();
  }

  void begin_slice(const Slice& slice) override {
    if (!notes_written_) put_notes(slice.begin);
    const std::uint64_t lane = lane_for(slice);

    // Key: string id, mark and number of the suffix.
    const Suffix suffix = suffix_of(slice);
    const std::uint64_t key = (static_cast<std::uint64_t>(slice.name) << 40U) |
                              (static_cast<std::uint64_t>(suffix.mark) << 32U) |
                              static_cast<std::uint64_t>(suffix.number);
    const bool internable = suffix.number < (std::int64_t{1} << 32);
    const auto known = name_ids_.find(key);
    const bool is_new = known == name_ids_.end() && internable && name_ids_.size() < kMaxInterned;
    const auto name_id = is_new ? static_cast<std::uint32_t>(name_ids_.size() + 1)
                                : (known == name_ids_.end() ? 0 : known->second);
    if (is_new) name_ids_.emplace(key, name_id);
    if (category_known_.size() <= slice.category) category_known_.resize(slice.category + 1);
    const bool new_category = !category_known_[slice.category];
    category_known_[slice.category] = true;
    {
      protozero::pbf_writer whole(packet_);
      whole.add_uint64(packet::kTimestamp, static_cast<std::uint64_t>(slice.begin));
      whole.add_uint32(packet::kSequence, kSequenceId);
      whole.add_uint32(packet::kSequenceFlags, kNeedsState);
      if (is_new || new_category) {
        protozero::pbf_writer data(whole, packet::kInterned);
        if (new_category) {
          protozero::pbf_writer category(data, interned::kCategories);
          category.add_uint64(interned::kId, slice.category + 1);
          category.add_string(interned::kText, std::string(header_.strings.text(slice.category)));
        }
        if (is_new) {
          protozero::pbf_writer name(data, interned::kNames);
          name.add_uint64(interned::kId, name_id);
          name.add_string(interned::kText, shown_name(header_.strings, slice));
        }
      }
      protozero::pbf_writer begin(whole, packet::kTrackEvent);
      begin.add_uint64(event::kCategoryIds, slice.category + 1);
      begin.add_enum(event::kType, event::kSliceBegin);
      if (name_id != 0) begin.add_uint64(event::kNameId, name_id);
      begin.add_uint64(event::kTrack, lane);
      if (name_id == 0) begin.add_string(event::kName, shown_name(header_.strings, slice));
      put_flows(begin, slice);
      put_args(begin, slice);
    }
    put_packet();
  }

  void end_slice(const Slice& slice) override {
    const std::size_t lane = lanes_.close(slice);
    if (lane >= lane_ids_[slice.track].size()) return;
    put(slice.end, packet::kTrackEvent, [&](protozero::pbf_writer& end) {
      end.add_enum(event::kType, event::kSliceEnd);
      end.add_uint64(event::kTrack, lane_ids_[slice.track][lane]);
    });
  }

  Status finish() override { return file_.finish(); }

 private:
  // Writes packet_ as one element of Trace.packet (field 1, length-delimited) and empties it.
  void put_packet() {
    std::array<char, 11> head{};
    head[0] = (1 << 3) | 2;
    const int length = protozero::write_varint(head.data() + 1, packet_.size());
    file_.put({head.data(), static_cast<std::size_t>(length) + 1});
    file_.put(packet_);
    packet_.clear();
  }

  // Writes a packet whose message `field` is filled by `fill`.
  template <typename Fill>
  void put(std::optional<Nanos> time, std::uint32_t field, const Fill& fill) {
    {
      protozero::pbf_writer whole(packet_);
      if (time) whole.add_uint64(packet::kTimestamp, static_cast<std::uint64_t>(*time));
      whole.add_uint32(packet::kSequence, kSequenceId);
      protozero::pbf_writer message(whole, field);
      fill(message);
    }
    put_packet();
  }

  void put_processes_and_tracks() {
    const std::vector<std::size_t> pids = process_ids(header_.tracks);
    std::vector<std::uint64_t> processes;
    for (std::size_t i = 0; i < header_.tracks.size(); ++i) {
      const Track& track = header_.tracks[i];
      if (pids[i] == processes.size()) {
        processes.push_back(next_uuid_++);
        put(std::nullopt, packet::kTrackDescriptor, [&](protozero::pbf_writer& process) {
          process.add_uint64(descriptor::kUuid, processes.back());
          process.add_int32(descriptor::kOrdering, descriptor::kOrderExplicit);
          if (track.process.empty()) return process.add_string(descriptor::kName, "pipeline");
          protozero::pbf_writer detail(process, descriptor::kProcess);
          // For Perfetto, pid 0 is the idle task.
          detail.add_int32(descriptor::kPid, static_cast<std::int32_t>(pids[i]) + 1);
          detail.add_string(descriptor::kProcessName, track.process);
        });
      }
      parents_.push_back(processes[pids[i]]);
      lane_ids_[i].push_back(next_uuid_);
      put_track(next_uuid_++, parents_[i], track.label, i);
    }
  }

  void put_track(std::uint64_t uuid, std::uint64_t parent, const std::string& name,
                 std::size_t rank) {
    put(std::nullopt, packet::kTrackDescriptor, [&](protozero::pbf_writer& track) {
      track.add_uint64(descriptor::kUuid, uuid);
      if (parent != 0) track.add_uint64(descriptor::kParent, parent);
      track.add_string(descriptor::kName, name);
      track.add_int32(descriptor::kRank, static_cast<std::int32_t>(rank));
      if (header_.trace != nullptr && rank < header_.tracks.size()) {
        track.add_string(descriptor::kDescription, track_description(header_.tracks[rank], name));
      }
    });
  }

  void put_counters() {
    for (const Counter& counter : header_.counters) {
      const std::uint64_t uuid = next_uuid_++;
      put(std::nullopt, packet::kTrackDescriptor, [&](protozero::pbf_writer& track) {
        track.add_uint64(descriptor::kUuid, uuid);
        track.add_string(descriptor::kName, counter.label);
        track.add_message(descriptor::kCounter, std::string());
      });
      for (const auto& [time, value] : counter.points) {
        put(time, packet::kTrackEvent, [&, number = value](protozero::pbf_writer& point) {
          point.add_enum(event::kType, event::kCounter);
          point.add_uint64(event::kTrack, uuid);
          point.add_double(event::kDoubleCounter, number);
        });
      }
    }
  }

  // Writes notes, such as clock relations, as annotations of an instant at the first slice.
  void put_notes(Nanos time) {
    notes_written_ = true;
    if (header_.notes.empty()) return;
    const std::uint64_t uuid = next_uuid_++;
    put_track(uuid, 0, "assay notes", header_.tracks.size());
    put(time, packet::kTrackEvent, [&](protozero::pbf_writer& instant) {
      instant.add_enum(event::kType, event::kInstant);
      instant.add_uint64(event::kTrack, uuid);
      instant.add_string(event::kName, "notes");
      for (const std::string& note : header_.notes) {
        protozero::pbf_writer detail(instant, event::kDebugAnnotations);
        detail.add_string(annotation::kName, "note");
        detail.add_string(annotation::kStringValue, note);
      }
    });
  }

  std::uint64_t lane_for(const Slice& slice) {
    std::vector<std::uint64_t>& ids = lane_ids_[slice.track];
    const std::size_t lane = lanes_.open(slice);
    if (lane == ids.size()) {
      ids.push_back(next_uuid_++);
      put_track(ids.back(), parents_[slice.track],
                fmt::format("{} (overlap {})", header_.tracks[slice.track].label, lane),
                slice.track);
    }
    return ids[lane];
  }

  void put_flows(protozero::pbf_writer& event, const Slice& slice) {
    if (!flows_) return;
    for (const FlowPoints::Point& point : flows_->take(slice.track, slice.begin)) {
      event.add_fixed64(point.last ? event::kTerminatingFlows : event::kFlows, point.id);
    }
  }

  // Texts stay texts; other values become JSON.
  void put_args(protozero::pbf_writer& event, const Slice& slice) {
    if (header_.trace == nullptr) return;
    const std::string args = args_text(*header_.trace, slice);
    if (args.size() < 2) return;
    std::string padded = args;
    padded.append(kJsonPadding, '\0');
    JsonCursor json(padded.data(), padded.data() + args.size());
    if (!json.take('{') || json.peek() == '}') return;
    std::string text;
    do {
      const JsonCursor::String key = json.string();
      if (!json.take(':')) return;
      const bool is_text = json.peek() == '"';
      const char* const begin = json.at();
      const JsonCursor::String value = json.scalar();
      if (!json.good()) return;
      protozero::pbf_writer detail(event, event::kDebugAnnotations);
      json_decode(key.raw, text);
      detail.add_string(annotation::kName, text);
      if (is_text) {
        json_decode(value.raw, text);
        detail.add_string(annotation::kStringValue, text);
      } else {
        detail.add_string(annotation::kJsonValue, begin,
                          static_cast<std::size_t>(json.at() - begin));
      }
    } while (json.good() && json.next_element('}'));
  }

  OutputFile file_;
  TraceHeader header_;
  Lanes lanes_;
  std::optional<FlowPoints> flows_;
  std::vector<std::vector<std::uint64_t>> lane_ids_;  // by track, by lane: uuids
  std::vector<std::uint64_t> parents_;                // by track: uuid of its process, or 0
  std::unordered_map<std::uint64_t, std::uint32_t> name_ids_;
  std::vector<bool> category_known_;
  bool notes_written_ = false;
  std::uint64_t next_uuid_ = 1;
  std::string packet_;
};

}  // namespace

Result<std::unique_ptr<TraceWriter>> perfetto_writer(const std::filesystem::path& path,
                                                     const TraceHeader& header) {
  ASSAY_TRY(OutputFile file, OutputFile::create(path));
  return std::make_unique<PerfettoWriter>(std::move(file), header);
}

}  // namespace assay::timeline
