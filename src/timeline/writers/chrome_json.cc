#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "timeline/input/args_store.h"
#include "timeline/writers/lanes.h"
#include "timeline/writers/output_file.h"
#include "timeline/writers/writers.h"

namespace assay::timeline {
namespace {

// Colours of chrome://tracing by category, as in Paddle's script.
std::string_view colour_of(std::string_view category) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNames{{
      {"forward", "thread_state_running"},
      {"backward", "rail_idle"},
      {"optimizer", "rail_response"},
      {"default", "thread_state_unknown"},
      {"step", "thread_state_unknown"},
  }};
  for (const auto& [name, colour] : kNames) {
    if (name == category) return colour;
  }
  return {};
}

class ChromeJsonWriter : public TraceWriter {
 public:
  ChromeJsonWriter(OutputFile file, JsonFlavour flavour, const TraceHeader& header)
      : file_(std::move(file)),
        header_(header),
        flavour_(flavour),
        pids_(process_ids(header.tracks)),
        lanes_(header.tracks.size()) {
    file_.put("{\"traceEvents\": [");
    std::size_t named_processes = 0;
    for (std::size_t i = 0; i < header.tracks.size(); ++i) {
      const Track& track = header.tracks[i];
      const std::string tid = tid_text(i, 0);
      track_texts_.push_back({track_text(i, tid)});
      if (pids_[i] == named_processes && !track.process.empty()) {
        put_metadata("process_name", pids_[i], tid, track.process);
      }
      named_processes = std::max(named_processes, pids_[i] + 1);
      if (flavour == JsonFlavour::perfetto) put_metadata("thread_name", pids_[i], tid, track.label);
      describe_track(i, tid, track.label);
    }
    put_counters();
  }

  void begin_slice(const Slice& slice) override {
    if (header_.trace == nullptr) {
      put_event(slice, 'B', slice.begin);
    } else {
      put_complete(slice);
    }
  }

  void end_slice(const Slice& slice) override {
    if (header_.trace == nullptr) {
      put_event(slice, 'E', slice.end);
    } else {
      lanes_.close(slice);
    }
  }

  Status finish() override {
    put_flows();
    file_.put("\n], \"otherData\": {\"assay_timeline_version\": 1, \"notes\": [");
    for (std::size_t i = 0; i < header_.notes.size(); ++i) {
      file_.put(fmt::format("{}\"{}\"", i == 0 ? "" : ", ", json_escaped(header_.notes[i])));
    }
    file_.put("]}}\n");
    return file_.finish();
  }

 private:
  // Escaped texts are cached by id up to this limit: a hostile file may have a million names.
  static constexpr std::size_t kMaxCached = 1U << 16U;
  static constexpr std::size_t kFirstTrackId = 2333;
  struct CategoryTexts {
    std::string head;  // from the end of the name to the phase
    std::string tail;  // colour and closing brace
  };

  std::string track_text(std::size_t track, const std::string& tid) const {
    return fmt::format(",\"pid\":{},\"tid\":{}", pids_[track], tid);
  }

  // Extra lanes get numbers after all tracks.
  std::string tid_text(std::size_t track, std::size_t lane) const {
    if (flavour_ == JsonFlavour::perfetto) {
      const std::size_t place = lane == 0 ? track : header_.tracks.size() + extra_lanes_;
      return std::to_string(kFirstTrackId + place);
    }
    const Track& described = header_.tracks[track];
    const std::string& text = described.chrome_tid.empty() ? described.label : described.chrome_tid;
    return lane == 0 ? fmt::format("\"{}\"", json_escaped(text))
                     : fmt::format("\"{} (overlap {})\"", json_escaped(text), lane);
  }

  void describe_track(std::size_t track, const std::string& tid, const std::string& label) {
    if (header_.trace == nullptr) return;
    const Track& described = header_.tracks[track];
    separate();
    file_.put(
        fmt::format("{{\"name\": \"assay_track\", \"ph\": \"M\", \"pid\": {}, \"tid\": {}, \"ts\": "
                    "0, \"args\": {}}}",
                    pids_[track], tid, track_description(described, label)));
  }

  const std::string& lane_text(std::size_t track, std::size_t lane) {
    auto& texts = track_texts_[track];
    while (texts.size() <= lane) {
      const std::size_t number = texts.size();
      const std::string tid = tid_text(track, number);
      const std::string label = fmt::format("{} (overlap {})", header_.tracks[track].label, number);
      if (flavour_ == JsonFlavour::perfetto) put_metadata("thread_name", pids_[track], tid, label);
      describe_track(track, tid, label);
      texts.push_back(track_text(track, tid));
      ++extra_lanes_;
    }
    return texts[lane];
  }

  void separate() {
    file_.put(first_ ? "\n" : ",\n");
    first_ = false;
  }

  void put_metadata(const char* what, std::size_t pid, const std::string& tid,
                    const std::string& name) {
    separate();
    file_.put(
        fmt::format("{{\"args\": {{\"name\": \"{}\"}}, \"cat\": \"__metadata\", \"name\": \"{}\", "
                    "\"ph\": \"M\", \"pid\": {}, \"tid\": {}, \"ts\": 0}}",
                    json_escaped(name), what, pid, tid));
  }

  void put_counters() {
    for (const Counter& counter : header_.counters) {
      const std::string head = fmt::format(
          "{{\"name\": \"{}\", \"ph\": \"C\", \"pid\": 0, \"ts\": ", json_escaped(counter.label));
      for (const auto& [time, value] : counter.points) {
        separate();
        file_.put(head);
        file_.put_microseconds(time);
        file_.put(fmt::format(", \"args\": {{\"value\": {}}}}}", value));
      }
    }
  }

  std::string name_text(StringId id) const {
    return "{\"name\":\"" + json_escaped(header_.strings.text(id));
  }

  CategoryTexts category_texts(StringId id) const {
    const std::string_view category = header_.strings.text(id);
    const std::string_view colour = colour_of(category);
    return {"\",\"cat\":\"" + json_escaped(category) + "\",\"ph\":\"",
            colour.empty() ? "}" : fmt::format(",\"cname\":\"{}\"}}", colour)};
  }

  void put_name(StringId id) {
    if (id >= kMaxCached) {
      file_.put(name_text(id));
      return;
    }
    if (names_.size() <= id) names_.resize(id + 1);
    if (names_[id].empty()) names_[id] = name_text(id);
    file_.put(names_[id]);
  }

  const CategoryTexts& texts_of(StringId id) {
    if (id >= kMaxCached) {
      uncached_ = category_texts(id);
      return uncached_;
    }
    if (categories_.size() <= id) categories_.resize(id + 1);
    if (categories_[id].head.empty()) categories_[id] = category_texts(id);
    return categories_[id];
  }

  void put_head(const Slice& slice, char phase, Nanos time) {
    separate();
    put_name(slice.name);
    if (const Suffix suffix = suffix_of(slice); suffix.mark != 0) {
      file_.put({&suffix.mark, 1});
      file_.put_number(suffix.number);
    }
    file_.put(texts_of(slice.category).head);
    file_.put({&phase, 1});
    file_.put("\",\"ts\":");
    file_.put_microseconds(time);
  }

  void put_event(const Slice& slice, char phase, Nanos time) {
    put_head(slice, phase, time);
    file_.put(track_texts_[slice.track][0]);
    file_.put(texts_of(slice.category).tail);
  }

  void put_complete(const Slice& slice) {
    const std::string& lane = lane_text(slice.track, lanes_.open(slice));
    put_head(slice, 'X', slice.begin);
    file_.put(",\"dur\":");
    file_.put_microseconds(slice.end - slice.begin);
    file_.put(lane);
    const std::string args = args_text(*header_.trace, slice);
    if (!args.empty()) {
      file_.put(",\"args\":");
      file_.put(args);
    }
    file_.put(texts_of(slice.category).tail);
  }

  void put_flows() {
    if (header_.trace == nullptr) return;
    for (const Flow& flow : header_.trace->flows) {
      separate();
      put_name(flow.name);
      file_.put(texts_of(flow.category).head);
      file_.put({&flow.phase, 1});
      file_.put("\",\"id\":\"");
      file_.put(json_escaped(header_.strings.text(flow.id)));
      file_.put("\",\"ts\":");
      file_.put_microseconds(flow.time);
      file_.put(track_texts_[flow.track][0]);
      file_.put(flow.enclosing ? ",\"bp\":\"e\"}" : "}");
    }
  }

  OutputFile file_;
  TraceHeader header_;
  std::vector<std::string> names_;
  std::vector<CategoryTexts> categories_;
  CategoryTexts uncached_;
  JsonFlavour flavour_;
  std::vector<std::size_t> pids_;                      // by track
  std::vector<std::vector<std::string>> track_texts_;  // by track, by lane
  std::size_t extra_lanes_ = 0;
  Lanes lanes_;
  bool first_ = true;
};

}  // namespace

std::vector<std::size_t> process_ids(std::span<const Track> tracks) {
  std::vector<std::string_view> processes;
  std::vector<std::size_t> ids;
  ids.reserve(tracks.size());
  for (const Track& track : tracks) {
    const auto found = std::ranges::find(processes, track.process);
    ids.push_back(static_cast<std::size_t>(found - processes.begin()));
    if (found == processes.end()) processes.emplace_back(track.process);
  }
  return ids;
}

std::string track_description(const Track& track, const std::string& label) {
  return fmt::format(
      "{{\"name\": \"{}\", \"process\": \"{}\", \"machine\": \"{}\", \"rank\": {}, \"pid\": {}, "
      "\"device\": {}, \"gpu\": {}, \"jobs\": {}}}",
      json_escaped(label), json_escaped(track.process), json_escaped(track.machine), track.rank,
      track.pid, track.device, track.gpu, track.jobs);
}

Result<std::unique_ptr<TraceWriter>> chrome_json_writer(const std::filesystem::path& path,
                                                        JsonFlavour flavour,
                                                        const TraceHeader& header) {
  ASSAY_TRY(OutputFile file, OutputFile::create(path));
  return std::make_unique<ChromeJsonWriter>(std::move(file), flavour, header);
}

}  // namespace assay::timeline
