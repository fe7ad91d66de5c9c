#pragma once

// Chrome's trace event JSON, which PyTorch's profiler (Kineto), Paddle's profiler and our own merge
// write, each in a dialect. The file is read as a stream; events reach a visitor one by one.

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "base/result.h"
#include "timeline/model.h"

namespace assay::timeline {

struct ChromeEvent {
  char phase = 0;
  std::string name;
  std::string category;
  std::string pid;
  std::string tid;
  bool timed = false;  // has a time that could be read
  Nanos begin = 0;
  Nanos duration = 0;
  std::int64_t device = kNone;  // args.device
  std::string label;            // args.name, of metadata
};

// The scalars beside traceEvents, as text.
using ChromeHeader = std::map<std::string, std::string>;

// Reads the events of a file. Malformed JSON ends the reading: what came before is kept, and the
// report says where it broke. Gives an error only when the file cannot be read at all.
Result<FileReport> read_chrome_trace(const std::filesystem::path& path, ChromeHeader& header,
                                     const std::function<void(ChromeEvent&)>& visit);

// "12.345" or "1.5e3" to nanoseconds, digits beyond the nanosecond cut; the unit is microseconds.
// Plain decimals are exact.
bool parse_microseconds(const std::string& text, Nanos& time);

// How a dialect tells what an event is.
struct ChromeDialect {
  std::string format;
  // The slice's kind, whether it ran on a GPU, and the step number it marks (kNone: no step). May
  // mend the event's name.
  struct Meaning {
    Kind kind = Kind::host;
    bool gpu = false;
    std::int64_t step = kNone;
    bool keep = true;
  };
  std::function<Meaning(ChromeEvent&)> read;
};

// Builds a trace of complete (X) and paired (B, E) events, one track a (pid, tid).
Result<Trace> import_chrome_trace(const std::filesystem::path& path, const ChromeDialect& dialect);

// The number at the end of "ProfilerStep#12", or kNone.
std::int64_t step_number(const std::string& name, std::string_view prefix);

}  // namespace assay::timeline
