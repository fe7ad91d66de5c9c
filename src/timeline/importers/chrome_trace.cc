#include "timeline/importers/chrome_trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "timeline/importers/importer.h"

namespace assay::timeline {
namespace {

// A text or number longer than this is no name; the reader ends there instead of holding it.
constexpr std::uint64_t kMaxTokenBytes = 16U << 20U;
constexpr std::size_t kMaxOpenEvents = 4096;

// The bytes of a file, read in blocks; ends early when one token grows beyond all measure.
class FileBytes {
 public:
  explicit FileBytes(int fd) : fd_(fd) {}
  // -1 at the end.
  int next() {
    if (at_ == size_ && !refill()) return -1;
    ++position_;
    return static_cast<unsigned char>(buffer_[at_++]);
  }
  void token_done() { token_began_ = position_; }
  std::uint64_t position() const { return position_; }

 private:
  bool refill() {
    if (position_ - token_began_ > kMaxTokenBytes) return false;
    ssize_t got = 0;
    do {
      got = ::read(fd_, buffer_.data(), buffer_.size());
    } while (got < 0 && errno == EINTR);
    at_ = 0;
    size_ = got > 0 ? static_cast<std::size_t>(got) : 0;
    return size_ > 0;
  }

  int fd_;
  std::array<char, 1 << 16> buffer_;
  std::size_t at_ = 0;
  std::size_t size_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t token_began_ = 0;
};

// The same as an input iterator, which is what the JSON parser reads.
class ByteIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  ByteIterator() = default;
  explicit ByteIterator(FileBytes& bytes) : bytes_(&bytes) { ++*this; }
  reference operator*() const { return value_; }
  ByteIterator& operator++() {
    const int byte = bytes_->next();
    if (byte < 0) {
      bytes_ = nullptr;
    } else {
      value_ = static_cast<char>(byte);
    }
    return *this;
  }
  ByteIterator operator++(int) {
    ByteIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const ByteIterator& a, const ByteIterator& b) {
    return a.bytes_ == b.bytes_;
  }
  friend bool operator!=(const ByteIterator& a, const ByteIterator& b) { return !(a == b); }

 private:
  FileBytes* bytes_ = nullptr;
  char value_ = 0;
};

// Takes the parser's calls apart: scalars of the top object are header, objects of its traceEvents
// (or of a top array) are events.
class EventHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  EventHandler(FileBytes& bytes, ChromeHeader& header, FileReport& report,
               const std::function<void(ChromeEvent&)>& visit)
      : bytes_(bytes), header_(header), report_(report), visit_(visit) {}

  bool null() override { return scalar({}); }
  bool boolean(bool value) override { return scalar(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return scalar(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return scalar(text); }
  bool string(string_t& value) override { return scalar(value); }
  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override {
    bytes_.token_done();
    if (++depth_ > kMaxDepth) return too_deep();
    if (depth_ == event_depth_) event_ = ChromeEvent{};
    in_args_ = depth_ == event_depth_ + 1 && event_depth_ > 0 && key_ == "args";
    return true;
  }
  bool end_object() override {
    bytes_.token_done();
    if (depth_ == event_depth_) {
      ++report_.records;
      visit_(event_);
    }
    in_args_ = false;
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    bytes_.token_done();
    if (++depth_ > kMaxDepth) return too_deep();
    if (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents")) event_depth_ = depth_ + 1;
    return true;
  }
  bool end_array() override {
    bytes_.token_done();
    if (depth_ == event_depth_ - 1) event_depth_ = -1;
    --depth_;
    return true;
  }
  bool key(string_t& value) override {
    bytes_.token_done();
    key_ = value;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    broken_ = true;
    return false;
  }
  bool broken() const { return broken_; }

 private:
  static constexpr int kMaxDepth = 1000;

  bool too_deep() {
    broken_ = true;
    return false;
  }
  bool scalar(const std::string& value) {
    bytes_.token_done();
    if (depth_ == 1 && event_depth_ != 2) {
      constexpr std::size_t kMaxHeader = 256;
      if (header_.size() < kMaxHeader) header_[key_] = value;
    } else if (depth_ == event_depth_) {
      set_field(value);
    } else if (in_args_ && depth_ == event_depth_ + 1) {
      if (key_ == "name") event_.label = value;
      if (key_ == "device") {
        std::from_chars(value.data(), value.data() + value.size(), event_.device);
      }
    }
    return true;
  }

  void set_field(const std::string& value) {
    if (key_ == "ph") {
      event_.phase = value.empty() ? '\0' : value[0];
    } else if (key_ == "name") {
      event_.name = value;
    } else if (key_ == "cat") {
      event_.category = value;
    } else if (key_ == "pid") {
      event_.pid = value;
    } else if (key_ == "tid") {
      event_.tid = value;
    } else if (key_ == "ts") {
      event_.timed = parse_microseconds(value, event_.begin);
    } else if (key_ == "dur" && !parse_microseconds(value, event_.duration)) {
      event_.duration = -1;
    }
  }

  FileBytes& bytes_;
  ChromeHeader& header_;
  FileReport& report_;
  const std::function<void(ChromeEvent&)>& visit_;
  ChromeEvent event_;
  std::string key_;
  int depth_ = 0;
  int event_depth_ = -1;
  bool in_args_ = false;
  bool broken_ = false;
};

// "forward@3" of category "forward" is how a recording's jobs are shown: the name alone stays, and
// its micro batch is given.
std::int32_t take_micro_batch(ChromeEvent& event) {
  const std::size_t at = event.category.size();
  if (at == 0 || event.name.size() < at + 2 || event.name[at] != '@' ||
      !event.name.starts_with(event.category)) {
    return kNone;
  }
  const char* const end = event.name.data() + event.name.size();
  std::int32_t number = 0;
  const auto [stop, error] = std::from_chars(event.name.data() + at + 1, end, number);
  if (error != std::errc() || stop != end || number < 0) return kNone;
  event.name.resize(at);
  return number;
}

struct OpenEvent {
  Slice slice;
  StringId name = 0;
};

// Turns events into slices on tracks.
class TraceBuilder {
 public:
  TraceBuilder(Trace& trace, const ChromeDialect& dialect) : trace_(trace), dialect_(dialect) {}

  void take(ChromeEvent& event, FileReport& counts) {
    if (event.phase == 'M') {
      name_track(event);
      return;
    }
    if (event.phase != 'X' && event.phase != 'B' && event.phase != 'E') {
      ++counts.ignored;
      return;
    }
    if (!event.timed || event.duration < 0) {
      ++counts.malformed;
      return;
    }
    const ChromeDialect::Meaning meaning = dialect_.read(event);
    if (!meaning.keep || trace_.slices.size() >= kMaxImportedSlices) {
      ++(meaning.keep ? counts.overlapping : counts.ignored);
      return;
    }
    const std::uint32_t track = track_of(event, meaning);
    const std::int32_t micro_batch = take_micro_batch(event);
    if (event.phase == 'E') {
      end(event, track, counts);
      return;
    }
    Slice slice{.begin = event.begin,
                .end = event.begin + event.duration,
                .name = trace_.strings.intern(event.name),
                .category = trace_.strings.intern(event.category),
                .track = track,
                .micro_batch = micro_batch,
                .kind = meaning.kind};
    if (meaning.step != kNone && event.phase == 'X') {
      trace_.steps.push_back({meaning.step, slice.begin, slice.end});
    }
    if (event.phase == 'B') {
      if (open_[track].size() < kMaxOpenEvents) {
        open_[track].push_back({slice, slice.name});
      } else {
        ++counts.overlapping;
      }
      return;
    }
    trace_.slices.push_back(slice);
    ++counts.kept;
  }

  void finish(FileReport& counts) {
    for (const auto& [track, events] : open_) counts.truncated += events.size();
    for (auto& [key, index] : tracks_) {
      const auto process = process_names_.find(key.first);
      Track& track = trace_.tracks[index];
      if (process != process_names_.end()) {
        track.process = fmt::format("{} {}", process->second, key.first);
      }
      const auto label = track_names_.find(key);
      if (label != track_names_.end()) track.label = label->second;
    }
    mend_job_tracks();
  }

 private:
  // Perfetto's flavour of a merge names its tracks GPU:0, GPU:1(machine:2), … in metadata that may
  // stand at the file's end: only now is it known that their events are pipeline jobs.
  void mend_job_tracks() {
    for (Track& track : trace_.tracks) track.gpu |= track.label.starts_with("GPU:");
    for (Slice& slice : trace_.slices) {
      if (trace_.tracks[slice.track].label.starts_with("GPU:")) {
        slice.kind = kind_of_job(trace_.strings.text(slice.category));
      }
    }
  }

  void name_track(const ChromeEvent& event) {
    constexpr std::size_t kMaxNames = 1U << 16U;
    if (process_names_.size() + track_names_.size() > kMaxNames) return;
    if (event.name == "process_name") process_names_[event.pid] = event.label;
    if (event.name == "thread_name") track_names_[{event.pid, event.tid}] = event.label;
  }

  std::uint32_t track_of(const ChromeEvent& event, const ChromeDialect::Meaning& meaning) {
    constexpr std::size_t kMaxTracks = 1U << 16U;
    const auto key = std::pair(event.pid, event.tid);
    const auto known = tracks_.find(key);
    if (known != tracks_.end()) {
      trace_.tracks[known->second].gpu |= meaning.gpu;
      return known->second;
    }
    if (trace_.tracks.size() >= kMaxTracks) return static_cast<std::uint32_t>(kMaxTracks - 1);
    const auto index = static_cast<std::uint32_t>(trace_.tracks.size());
    Track track;
    track.gpu = meaning.gpu;
    track.process = event.pid;
    track.label = event.tid;
    track.device = static_cast<std::int32_t>(event.device);
    if (meaning.gpu && event.device != kNone) {
      track.label = fmt::format("GPU {} stream {}", event.device, event.tid);
    }
    trace_.tracks.push_back(std::move(track));
    tracks_.emplace(key, index);
    return index;
  }

  void end(const ChromeEvent& event, std::uint32_t track, FileReport& counts) {
    std::vector<OpenEvent>& open = open_[track];
    const StringId name = trace_.strings.intern(event.name);
    // Ends close the innermost event of their name: not every writer nests.
    for (auto it = open.rbegin(); it != open.rend(); ++it) {
      if (it->name != name && !event.name.empty()) continue;
      it->slice.end = event.begin;
      const bool forward = it->slice.end >= it->slice.begin;
      if (forward) {
        trace_.slices.push_back(it->slice);
        ++counts.kept;
        const std::int64_t step = dialect_step(it->slice);
        if (step != kNone) trace_.steps.push_back({step, it->slice.begin, it->slice.end});
      } else {
        ++counts.backwards;
      }
      open.erase(std::next(it).base());
      return;
    }
    ++counts.malformed;
  }

  std::int64_t dialect_step(const Slice& slice) const {
    ChromeEvent event;
    event.name = trace_.strings.text(slice.name);
    event.category = trace_.strings.text(slice.category);
    return dialect_.read(event).step;
  }

  Trace& trace_;
  const ChromeDialect& dialect_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> tracks_;
  std::map<std::string, std::string> process_names_;
  std::map<std::pair<std::string, std::string>, std::string> track_names_;
  std::map<std::uint32_t, std::vector<OpenEvent>> open_;
};

// Steps are marked by every process; a row of them has each once.
void fold_steps(std::vector<Step>& steps) {
  std::map<std::int64_t, Step> folded;
  for (const Step& step : steps) {
    Step& entry = folded[step.number];
    entry.number = step.number;
    entry.begin = std::min(entry.begin, step.begin);
    entry.end = std::max(entry.end, step.end);
  }
  steps.clear();
  for (const auto& [number, step] : folded) steps.push_back(step);
}

}  // namespace

bool parse_microseconds(const std::string& text, Nanos& time) {
  const bool negative = text.starts_with('-');
  const char* p = text.data() + (negative ? 1 : 0);
  const char* const end = text.data() + text.size();
  std::int64_t whole = 0;
  const auto integer = std::from_chars(p, end, whole);
  constexpr std::int64_t kMaxMicros = std::numeric_limits<Nanos>::max() / 1000 / 4;
  if (integer.ec != std::errc() || whole > kMaxMicros) return false;
  p = integer.ptr;
  std::int64_t fraction = 0;
  if (p < end && *p == '.') {
    int digits = 0;
    for (++p; p < end && *p >= '0' && *p <= '9'; ++p, ++digits) {
      if (digits < 3) fraction = fraction * 10 + (*p - '0');
    }
    for (; digits < 3; ++digits) fraction *= 10;
  }
  time = whole * 1000 + fraction;
  if (p < end) {  // an exponent
    double value = 0;
    const auto number = std::from_chars(text.data(), end, value);
    if (number.ptr != end || !(std::abs(value) < static_cast<double>(kMaxMicros))) return false;
    time = static_cast<Nanos>(std::llround(value * 1000.0));
    return true;
  }
  if (negative) time = -time;
  return true;
}

std::int64_t step_number(const std::string& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return kNone;
  std::int64_t number = kNone;
  std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
  return number;
}

Result<FileReport> read_chrome_trace(const std::filesystem::path& path, ChromeHeader& header,
                                     const std::function<void(ChromeEvent&)>& visit) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(fmt::format("cannot read {}", path.string()));
  FileReport report;
  report.path = path.string();
  FileBytes bytes(fd.get());
  EventHandler handler(bytes, header, report, visit);
  try {
    nlohmann::json::sax_parse(ByteIterator(bytes), ByteIterator(), &handler);
  } catch (const std::exception& error) {
    report.notes.emplace_back(error.what());
  }
  report.bytes = bytes.position();
  if (handler.broken()) {
    ++report.truncated;
    report.notes.push_back(
        fmt::format("the JSON breaks at byte {}: what came before is kept", bytes.position()));
  }
  return report;
}

Result<Trace> import_chrome_trace(const std::filesystem::path& path, const ChromeDialect& dialect) {
  Trace trace;
  ChromeHeader header;
  FileReport counts;
  TraceBuilder builder(trace, dialect);
  ASSAY_TRY(FileReport report, read_chrome_trace(path, header, [&](ChromeEvent& event) {
              builder.take(event, counts);
            }));
  builder.finish(counts);
  report.format = dialect.format;
  report.kept = counts.kept;
  report.ignored = counts.ignored;
  report.malformed += counts.malformed;
  report.truncated += counts.truncated;
  report.backwards = counts.backwards;
  report.overlapping = counts.overlapping;
  trace.files.push_back(std::move(report));

  // Kineto counts from a base that it names beside the events.
  Nanos base = 0;
  if (const auto found = header.find("baseTimeNanoseconds"); found != header.end()) {
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), base);
    if (base < 0 || base > std::numeric_limits<Nanos>::max() / 2) base = 0;
  }
  for (Slice& slice : trace.slices) {
    slice.begin += base;
    slice.end += base;
  }
  for (Step& step : trace.steps) {
    step.begin += base;
    step.end += base;
  }
  if (const auto host = header.find("host_name"); host != header.end()) {
    for (Track& track : trace.tracks) track.machine = host->second;
  }
  fold_steps(trace.steps);
  trace.sort();
  return trace;
}

}  // namespace assay::timeline
