#pragma once

// Reads memory events of PyTorch's and Paddle's profilers ("[memory]"), and finds who allocated:
// the operators and ranges around each event on its thread.

#include <vector>

#include "timeline/importers/chrome_events.h"
#include "timeline/model.h"

namespace assay::timeline {

class MemoryReader {
 public:
  // The header names whether memory was recorded; it comes before the events.
  explicit MemoryReader(const ChromeHeader& header) : header_(header) {}

  // A range of the host that memory can be allocated in; ignored without recorded memory.
  bool wants(const ChromeEvent& event) const {
    return event.phase == 'X' && event.timed && ranges_.size() < kMostRanges &&
           (event.category == "cpu_op" || event.category == "user_annotation") &&
           header_.contains("profile_memory");
  }
  void range(const ChromeEvent& event, std::uint32_t track, Strings& strings) {
    ranges_.push_back(
        {event.begin, event.begin + event.duration, track, strings.intern_valid(event.name)});
  }
  void add(const ChromeEvent& event, std::uint32_t track, Trace& trace);
  // Completes trace.memory.
  void finish(Trace& trace);

 private:
  struct Range {
    Nanos begin = 0;
    Nanos end = 0;
    std::uint32_t track = 0;
    StringId name = 0;
  };
  static constexpr std::size_t kMostRanges = 20'000'000;

  const ChromeHeader& header_;
  std::vector<Range> ranges_;
  std::vector<std::uint32_t> tracks_;  // by point of trace.memory
};

}  // namespace assay::timeline
