#pragma once

// Reads Chrome's trace event JSON as a stream of events. The file may be compressed and of any
// length. An event with invalid JSON is counted and skipped.

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "timeline/model.h"

namespace assay::timeline {

// The args that importers use.
enum class Arg : std::uint8_t {
  name,  // of metadata
  device,
  stream,
  correlation,
  bytes,
  address,
  allocated,
  reserved,
  device_type,
  device_id,
  place,  // "Place(gpu:0)", of Paddle's memory events
  collective,
  in_elements,
  out_elements,
  group_size,
  dtype,
  group,
  group_description,
  group_ranks,
  sequence,
  peer,        // the rank that sends or receives
  input_dims,  // of a host's operator
  input_types,
  input_values,
  grid,  // of a kernel, as are the next two
  flop,
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
  bool timed = false;  // has a valid time
  bool enclosing = false;
  std::string_view name, category, pid, tid, id;
  Nanos begin = 0;
  Nanos duration = 0;
  std::string_view args_text;  // the whole object
  std::array<std::string_view, static_cast<std::size_t>(Arg::count)> args;

  std::string_view arg(Arg what) const { return args[static_cast<std::size_t>(what)]; }
  // `fallback` where there is no such argument, or no number.
  std::int64_t number(Arg what, std::int64_t fallback = kNone) const;
  std::uint32_t blocks() const;  // of a kernel's grid "[800, 1, 1]"; 0: unknown
};

// The members beside traceEvents: scalars as text, short objects and arrays as JSON.
using ChromeHeader = std::map<std::string, std::string>;

// Calls `visit` with each event until it returns false. The report counts events lost to damage. An
// error only for an unreadable file.
Result<FileReport> read_chrome_events(const std::filesystem::path& path, ChromeHeader& header,
                                      const std::function<bool(ChromeEvent&)>& visit);

// The trace of a reader that takes all events.
template <typename Reader>
Result<Trace> import_events(const std::filesystem::path& path, Reader reader) {
  ChromeHeader header;
  ASSAY_TRY(FileReport report, read_chrome_events(path, header, [&](ChromeEvent& event) {
              reader.take(event);
              return true;
            }));
  return reader.finish(path, std::move(report));
}

// Converts microseconds ("12.345", "1.5e3") to nanoseconds, rounded to the nearest. Exact for
// plain decimals.
bool parse_microseconds(std::string_view text, Nanos& time);

}  // namespace assay::timeline
