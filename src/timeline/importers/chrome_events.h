#pragma once

// Chrome's trace event JSON as a stream of events. The file may be packed and of any length; an
// event with a token that is no JSON is passed over and counted, and reading goes on behind it.

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "timeline/model.h"

namespace assay::timeline {

// What of an event's args means something here.
enum class Arg : std::uint8_t {
  name,  // of metadata
  device,
  stream,
  correlation,
  bytes,
  allocated,
  reserved,
  device_type,
  device_id,
  collective,
  in_elements,
  out_elements,
  group_size,
  dtype,
  group,
  group_description,
  group_ranks,
  sequence,
  input_dims,  // of a host's operator
  input_types,
  flop,  // of a kernel
  gigabytes,
  value,  // of our own merge's tracks
  rank,
  machine,
  process,
  gpu,
  jobs,
  pid,
  count,
};

// The texts are valid until the next event.
struct ChromeEvent {
  char phase = 0;
  bool timed = false;  // has a time that could be read
  bool enclosing = false;
  std::string_view name, category, pid, tid, id;
  Nanos begin = 0;
  Nanos duration = 0;
  std::string_view args_text;  // the whole object
  std::array<std::string_view, static_cast<std::size_t>(Arg::count)> args;

  std::string_view arg(Arg what) const { return args[static_cast<std::size_t>(what)]; }
  // `fallback` where there is no such argument, or no number.
  std::int64_t number(Arg what, std::int64_t fallback = kNone) const;
};

// What stands beside traceEvents: scalars as their text, objects and arrays as JSON (as far as
// they are short).
using ChromeHeader = std::map<std::string, std::string>;

// Reads the events of a file; `visit` gives false to stop early. What came before damage is kept,
// and the report says what was lost. Gives an error only when the file cannot be read at all.
Result<FileReport> read_chrome_events(const std::filesystem::path& path, ChromeHeader& header,
                                      const std::function<bool(ChromeEvent&)>& visit);

// "12.345" or "1.5e3" to nanoseconds, digits beyond the nanosecond cut; the unit is microseconds.
// Plain decimals are exact.
bool parse_microseconds(std::string_view text, Nanos& time);

}  // namespace assay::timeline
