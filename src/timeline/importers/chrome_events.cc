#include "timeline/importers/chrome_events.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <deque>
#include <limits>

#include "base/utf8.h"
#include "timeline/input/json_window.h"
#include "timeline/names.h"

namespace assay::timeline {
namespace {

struct ArgName {
  std::string_view text;
  Arg arg;
};
// Writers and versions use different names for the same arg.
constexpr std::array<ArgName, 41> kArgNames{{
    {"name", Arg::name},
    {"device", Arg::device},
    {"stream", Arg::stream},
    {"correlation", Arg::correlation},
    {"correlation id", Arg::correlation},
    {"bytes", Arg::bytes},
    {"Bytes", Arg::bytes},
    {"Addr", Arg::address},
    {"Total Allocated", Arg::allocated},
    {"Total Reserved", Arg::reserved},
    {"current_allocated", Arg::allocated},
    {"current_reserved", Arg::reserved},
    {"place", Arg::place},
    {"Device Type", Arg::device_type},
    {"Device Id", Arg::device_id},
    {"Collective name", Arg::collective},
    {"In msg nelems", Arg::in_elements},
    {"In msg size", Arg::in_elements},
    {"Out msg nelems", Arg::out_elements},
    {"Out msg size", Arg::out_elements},
    {"Group size", Arg::group_size},
    {"dtype", Arg::dtype},
    {"Process Group Name", Arg::group},
    {"Process Group Description", Arg::group_description},
    {"Process Group Ranks", Arg::group_ranks},
    {"Seq", Arg::sequence},
    {"Src Rank", Arg::peer},
    {"Dst Rank", Arg::peer},
    {"Input Dims", Arg::input_dims},
    {"Input type", Arg::input_types},
    {"Concrete Inputs", Arg::input_values},
    {"grid", Arg::grid},
    {"kernel_flop", Arg::flop},
    {"kernel_num_gb", Arg::gigabytes},
    {"value", Arg::value},
    {"rank", Arg::rank},
    {"machine", Arg::machine},
    {"process", Arg::process},
    {"gpu", Arg::gpu},
    {"jobs", Arg::jobs},
    {"pid", Arg::pid},
}};

// A hash index of kArgNames by length and first letter: most keys cost one look-up.
class ArgIndex {
 public:
  constexpr ArgIndex() {
    for (const ArgName& name : kArgNames) {
      slots_[slot(name.text)] = true;
    }
  }
  Arg find(std::string_view key) const {
    if (key.empty() || !slots_[slot(key)]) return Arg::count;
    for (const ArgName& name : kArgNames) {
      if (name.text == key) return name.arg;
    }
    return Arg::count;
  }

 private:
  static constexpr std::size_t kSlots = 512;
  static constexpr std::size_t slot(std::string_view key) {
    return (key.size() * 31 + static_cast<unsigned char>(key[0])) % kSlots;
  }
  std::array<bool, kSlots> slots_{};
};
constexpr ArgIndex kArgIndex;

// Reads one event. Decodes strings with escapes outside the window.
class EventReader {
 public:
  void read(JsonCursor& cursor, ChromeEvent& event) {
    event = ChromeEvent{};
    used_ = 0;
    if (!cursor.take('{')) return;
    if (cursor.peek() == '}') {
      cursor.take('}');
      return;
    }
    do {
      const std::string_view key = cursor.string().raw;
      if (!cursor.take(':')) return;
      field(cursor, key, event);
    } while (cursor.good() && cursor.next_element('}'));
  }

 private:
  void field(JsonCursor& cursor, std::string_view key, ChromeEvent& event) {
    for (const auto& [name, text_field] : kTexts) {
      if (key == name) {
        event.*text_field = text(cursor);
        return;
      }
    }
    if (key == "ts") {
      event.timed = parse_microseconds(cursor.scalar().raw, event.begin);
    } else if (key == "dur") {
      if (!parse_microseconds(cursor.scalar().raw, event.duration)) event.duration = -1;
    } else if (key == "ph") {
      const std::string_view phase = cursor.scalar().raw;
      event.phase = phase.empty() ? '\0' : phase[0];
    } else if (key == "args" && cursor.peek() == '{') {
      args(cursor, event);
    } else if (key == "bp") {
      event.enclosing = cursor.scalar().raw == "e";
    } else {
      cursor.skip();
    }
  }

  void args(JsonCursor& cursor, ChromeEvent& event) {
    const char* const begin = cursor.at();
    cursor.take('{');
    if (cursor.peek() == '}') {
      cursor.take('}');
    } else {
      do {
        const std::string_view key = cursor.string().raw;
        if (!cursor.take(':')) return;
        const Arg arg = kArgIndex.find(key);
        if (arg == Arg::count) {
          cursor.skip();
          continue;
        }
        cursor.peek();
        const char* const from = cursor.at();
        const std::string_view value = text(cursor);
        // A list of ranks or shapes stays raw text.
        event.args[static_cast<std::size_t>(arg)] =
            value.empty() && cursor.good() && *from == '['
                ? std::string_view(from, static_cast<std::size_t>(cursor.at() - from))
                : value;
      } while (cursor.good() && cursor.next_element('}'));
    }
    event.args_text = {begin, static_cast<std::size_t>(cursor.at() - begin)};
    if (cursor.good() && (cursor.damaged() || cursor.odd())) {
      event.args_text = keep(as_json(event.args_text));
    }
  }

  std::string_view keep(std::string text) {
    if (used_ == decoded_.size()) decoded_.emplace_back();
    return decoded_[used_++] = std::move(text);
  }

  // Writers copy args as they are: NaN and Infinity become null, bytes that are not UTF-8 "?".
  static std::string as_json(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::size_t begin = i;
      if (text[i] == '"') {
        for (++i; i + 1 < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
        out += text.substr(begin, i + 1 - begin);
        continue;
      }
      const std::string_view rest = text.substr(i + (text[i] == '-' ? 1 : 0));
      for (const std::string_view word : {"NaN", "nan", "Infinity", "inf"}) {
        if (rest.starts_with(word))
          i = static_cast<std::size_t>(rest.data() - text.data()) + word.size();
      }
      if (i > begin) {
        out += "null";
        --i;
      } else {
        out += text[i];
      }
    }
    return replace_bad_bytes(out);
  }

  std::string_view text(JsonCursor& cursor) {
    const JsonCursor::String value = cursor.scalar();
    if (!value.escaped && !value.damaged) return value.raw;
    std::string out;
    if (!json_decode(value.raw, out)) out = value.raw;
    return keep(value.damaged ? replace_bad_bytes(out) : std::move(out));
  }

  static constexpr std::array<std::pair<std::string_view, std::string_view ChromeEvent::*>, 5>
      kTexts{{{"name", &ChromeEvent::name},
              {"cat", &ChromeEvent::category},
              {"pid", &ChromeEvent::pid},
              {"tid", &ChromeEvent::tid},
              {"id", &ChromeEvent::id}}};

  std::deque<std::string> decoded_;  // of this event; reused by the next one
  std::size_t used_ = 0;
};

class FileReader {
 public:
  FileReader(std::unique_ptr<ByteSource> source, ChromeHeader& header, FileReport& report,
             const std::function<bool(ChromeEvent&)>& visit)
      : window_(std::move(source)), header_(header), report_(report), visit_(visit) {}

  // A file may hold several documents, one after another.
  void read() {
    // A byte order mark.
    if (window_.ahead(0) == '\xef' && window_.ahead(1) == '\xbb' && window_.ahead(2) == '\xbf') {
      window_.move_to(window_.at() + 3);
    }
    while (!stopped_ && report_.truncated == 0 && !window_.at_end()) {
      if (*window_.at() == '[') {
        events(true);
      } else if (*window_.at() == '{') {
        top_object();
      } else {
        broken();
      }
    }
    report_.bytes = window_.position();
    if (!window_.damage().empty()) {
      if (report_.truncated == 0) broken();
      report_.notes.push_back(window_.damage());
    }
  }

 private:
  static constexpr std::size_t kMaxHeader = 256;
  static constexpr std::size_t kMaxHeaderText = 1U << 20U;

  void broken() {
    if (stopped_ || report_.truncated > 0) return;
    ++report_.truncated;
    report_.notes.push_back(fmt::format(
        "the JSON is damaged at byte {}: only earlier events are used", window_.position()));
  }

  void top_object() {
    window_.move_to(window_.at() + 1);
    bool more = window_.ahead(0) != 0;
    for (bool first = true; more && !stopped_; first = false) {
      std::string key;
      bool closed = false;
      const JsonStop stop = window_.parse([&](JsonCursor& cursor) {
        closed = first && cursor.peek() == '}';
        if (closed) return;
        key = cursor.string().raw;
        cursor.take(':');
        cursor.peek();
      });
      if (closed) return;
      if (stop != JsonStop::none) return broken();
      value(key);
      if (stopped_) return;
      const JsonStop separated =
          window_.parse([&](JsonCursor& cursor) { more = cursor.next_element('}'); });
      if (separated != JsonStop::none) return broken();
    }
  }

  void value(const std::string& key) {
    const char first = *window_.at();
    if (first == '[' && key == "traceEvents") {
      header_[key].clear();
      return events(false);
    }
    if (first == '{' || first == '[') {
      std::string text;
      window_.skip_roughly(&text, kMaxHeaderText);
      if (text.size() == kMaxHeaderText) text.clear();
      if (header_.size() < kMaxHeader) header_[key] = std::move(text);
      return;
    }
    std::string text;
    const JsonStop stop = window_.parse([&](JsonCursor& cursor) {
      const JsonCursor::String scalar = cursor.scalar();
      if (!scalar.escaped || !json_decode(scalar.raw, text)) text = scalar.raw;
    });
    if (stop == JsonStop::bad) window_.skip_roughly();
    if (stop == JsonStop::none && header_.size() < kMaxHeader) header_[key] = text;
  }

  // An array of events. At the top level, the closing bracket is optional.
  void events(bool top) {
    window_.move_to(window_.at() + 1);
    const std::function<void(JsonCursor&)> parse = [this](JsonCursor& cursor) {
      reader_.read(cursor, event_);
      damaged_ = cursor.damaged();
    };
    for (;;) {
      if (window_.at_end()) return top ? void() : broken();
      if (*window_.at() == ']') {  // after a trailing comma
        window_.move_to(window_.at() + 1);
        return;
      }
      const JsonStop stop = window_.parse(parse);
      if (stop == JsonStop::end) return broken();
      if (stop == JsonStop::bad) {
        if (!bad_event()) return broken();
      } else {
        ++report_.records;
        if (damaged_) ++report_.repaired;
        if (!visit_(event_)) {
          stopped_ = true;
          return;
        }
      }
      if (window_.at_end()) return top ? void() : broken();
      const char c = *window_.at();
      if (c == ',') {
        window_.move_to(window_.at() + 1);
      } else if (c == ']') {
        window_.move_to(window_.at() + 1);
        return;
      } else if (c != '{' && !bad_event()) {  // an event after a missing quote needs no comma
        return broken();
      }
    }
  }

  bool bad_event() {
    ++report_.malformed;
    constexpr std::size_t kMaxNotes = 3;
    if (report_.malformed <= kMaxNotes) {
      report_.notes.push_back(
          fmt::format("invalid JSON in the event at byte {}: skipped", window_.position()));
    }
    const std::uint64_t before = window_.position();
    if (!window_.skip_roughly()) return false;
    if (window_.position() == before) window_.move_to(window_.at() + 1);  // a stray byte
    return true;
  }

  JsonWindow window_;
  ChromeHeader& header_;
  FileReport& report_;
  const std::function<bool(ChromeEvent&)>& visit_;
  EventReader reader_;
  ChromeEvent event_;
  bool damaged_ = false;  // the event has text that is not UTF-8
  bool stopped_ = false;
};

}  // namespace

std::uint32_t ChromeEvent::blocks() const {
  const std::string_view grid = arg(Arg::grid);
  std::uint64_t product = grid.empty() ? 0 : 1;
  const char* const end = grid.data() + grid.size();
  for (const char* at = grid.data(); at < end;) {
    std::uint32_t number = 0;
    const auto [behind, error] = std::from_chars(at, end, number);
    if (error == std::errc()) product *= number;
    if (product > std::numeric_limits<std::uint32_t>::max()) return 0;
    at = behind == at ? at + 1 : behind;
  }
  return static_cast<std::uint32_t>(product);
}

std::int64_t ChromeEvent::number(Arg what, std::int64_t fallback) const {
  return leading_number(arg(what), fallback);
}

bool parse_microseconds(std::string_view text, Nanos& time) {
  constexpr std::int64_t kMost = std::numeric_limits<Nanos>::max() / 1000 / 4;
  const char* p = text.data();
  const char* const end = p + text.size();
  const bool negative = p < end && *p == '-';
  if (negative) ++p;
  const char* const digits = p;
  std::int64_t whole = 0;
  for (; p < end && *p >= '0' && *p <= '9'; ++p) {
    whole = whole * 10 + (*p - '0');
    if (whole > kMost) return false;
  }
  if (p == digits) return false;
  std::int64_t fraction = 0;
  if (p < end && *p == '.') {
    int count = 0;
    bool up = false;
    for (++p; p < end && *p >= '0' && *p <= '9'; ++p, ++count) {
      if (count < 3) fraction = fraction * 10 + (*p - '0');
      if (count == 3) up = *p >= '5';
    }
    for (; count < 3; ++count) fraction *= 10;
    if (up) ++fraction;
  }
  if (p < end) {  // an exponent, or no number
    double value = 0;
    const auto number = std::from_chars(text.data(), end, value);
    if (number.ec != std::errc() || number.ptr != end ||
        !(std::abs(value) < static_cast<double>(kMost))) {
      return false;
    }
    time = static_cast<Nanos>(std::llround(value * 1000.0));
    return true;
  }
  time = whole * 1000 + fraction;
  if (negative) time = -time;
  return true;
}

Result<FileReport> read_chrome_events(const std::filesystem::path& path, ChromeHeader& header,
                                      const std::function<bool(ChromeEvent&)>& visit) {
  ASSAY_TRY(auto source, open_bytes(path));
  if (source->packed()) source = read_ahead(std::move(source));
  FileReport report;
  report.path = path.string();
  FileReader(std::move(source), header, report, visit).read();
  return report;
}

}  // namespace assay::timeline
