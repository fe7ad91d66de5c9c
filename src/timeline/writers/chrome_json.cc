#include "timeline/writers/chrome_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace assay::timeline {
namespace {

// Colours of chrome://tracing, by category, as Paddle's users know them.
std::string_view colour_of(std::string_view category) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kColours{{
      {"forward", "thread_state_running"},
      {"backward", "rail_idle"},
      {"optimizer", "rail_response"},
      {"default", "thread_state_unknown"},
      {"step", "thread_state_unknown"},
  }};
  for (const auto& [name, colour] : kColours) {
    if (name == category) return colour;
  }
  return {};
}

}  // namespace

std::vector<std::size_t> process_ids(std::span<const Track> tracks) {
  std::vector<std::string_view> processes;
  std::vector<std::size_t> ids;
  ids.reserve(tracks.size());
  for (const Track& track : tracks) {
    const auto found = std::find(processes.begin(), processes.end(), track.process);
    ids.push_back(static_cast<std::size_t>(found - processes.begin()));
    if (found == processes.end()) processes.emplace_back(track.process);
  }
  return ids;
}

Result<ChromeJsonWriter> ChromeJsonWriter::create(const std::filesystem::path& path,
                                                  JsonFlavour flavour, const TraceHeader& header) {
  ASSAY_TRY(OutputFile file, OutputFile::create(path));
  return ChromeJsonWriter(std::move(file), flavour, header);
}

ChromeJsonWriter::ChromeJsonWriter(OutputFile file, JsonFlavour flavour, const TraceHeader& header)
    : file_(std::move(file)), header_(header) {
  file_.put("{\"traceEvents\": [");
  const std::vector<std::size_t> pids = process_ids(header.tracks);
  std::size_t named_processes = 0;
  for (std::size_t i = 0; i < header.tracks.size(); ++i) {
    const Track& track = header.tracks[i];
    const std::string& text = track.chrome_tid.empty() ? track.label : track.chrome_tid;
    const std::string tid = flavour == JsonFlavour::chrome
                                ? fmt::format("\"{}\"", json_escaped(text))
                                : std::to_string(static_cast<std::size_t>(kFirstTrackId) + i);
    track_texts_.push_back(fmt::format(",\"pid\":{},\"tid\":{}", pids[i], tid));
    if (pids[i] == named_processes && !track.process.empty()) {
      put_metadata("process_name", pids[i], tid, track.process);
    }
    named_processes = std::max(named_processes, pids[i] + 1);
    if (flavour == JsonFlavour::perfetto) put_metadata("thread_name", pids[i], tid, track.label);
  }
  put_counters();
}

void ChromeJsonWriter::separate() {
  file_.put(first_ ? "\n" : ",\n");
  first_ = false;
}

void ChromeJsonWriter::put_metadata(const char* what, std::size_t pid, const std::string& tid,
                                    const std::string& name) {
  separate();
  file_.put(
      fmt::format("{{\"args\": {{\"name\": \"{}\"}}, \"cat\": \"__metadata\", \"name\": \"{}\", "
                  "\"ph\": \"M\", \"pid\": {}, \"tid\": {}, \"ts\": 0}}",
                  json_escaped(name), what, pid, tid));
}

void ChromeJsonWriter::put_counters() {
  for (const Counter& counter : header_.counters) {
    const std::string head = fmt::format("{{\"name\": \"{}\", \"ph\": \"C\", \"pid\": 0, \"ts\": ",
                                         json_escaped(counter.label));
    for (const auto& [time, value] : counter.points) {
      separate();
      file_.put(head);
      file_.put_microseconds(time);
      file_.put(fmt::format(", \"args\": {{\"value\": {}}}}}", value));
    }
  }
}

std::string ChromeJsonWriter::name_text(StringId id) const {
  return "{\"name\":\"" + json_escaped(header_.strings.text(id));
}

ChromeJsonWriter::CategoryTexts ChromeJsonWriter::category_texts(StringId id) const {
  const std::string_view category = header_.strings.text(id);
  const std::string_view colour = colour_of(category);
  return {"\",\"cat\":\"" + json_escaped(category) + "\",\"ph\":\"",
          colour.empty() ? "}" : fmt::format(",\"cname\":\"{}\"}}", colour)};
}

void ChromeJsonWriter::put_name(StringId id) {
  if (id >= kMaxCached) {
    file_.put(name_text(id));
    return;
  }
  if (names_.size() <= id) names_.resize(id + 1);
  if (names_[id].empty()) names_[id] = name_text(id);
  file_.put(names_[id]);
}

const ChromeJsonWriter::CategoryTexts& ChromeJsonWriter::texts_of(StringId id) {
  if (id >= kMaxCached) {
    uncached_ = category_texts(id);
    return uncached_;
  }
  if (categories_.size() <= id) categories_.resize(id + 1);
  if (categories_[id].head.empty()) categories_[id] = category_texts(id);
  return categories_[id];
}

void ChromeJsonWriter::put_event(const Slice& slice, char phase, Nanos time) {
  separate();
  put_name(slice.name);
  if (const Suffix suffix = suffix_of(slice); suffix.mark != 0) {
    file_.put({&suffix.mark, 1});
    file_.put_number(suffix.number);
  }
  const CategoryTexts& category = texts_of(slice.category);
  file_.put(category.head);
  file_.put({&phase, 1});
  file_.put("\",\"ts\":");
  file_.put_microseconds(time);
  file_.put(track_texts_[slice.track]);
  file_.put(category.tail);
}

Status ChromeJsonWriter::finish() {
  file_.put("\n], \"otherData\": {\"assay_timeline_version\": 1, \"notes\": [");
  for (std::size_t i = 0; i < header_.notes.size(); ++i) {
    file_.put(fmt::format("{}\"{}\"", i == 0 ? "" : ", ", json_escaped(header_.notes[i])));
  }
  file_.put("]}}\n");
  return file_.finish();
}

}  // namespace assay::timeline
