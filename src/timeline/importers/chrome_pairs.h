#pragma once

// Pairs begin (B) and end (E) events of Chrome traces.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "timeline/importers/chrome_trace.h"
#include "timeline/model.h"

namespace assay::timeline {

// A begin without its end yet. Those that are left out of the trace are remembered, too: an end
// without a name closes the last begin.
struct OpenEvent {
  Slice slice;
  EventKind kind = EventKind::other;
  bool kept = false;
};

class OpenEvents {
 public:
  // False with too many open events on the thread.
  bool push(std::uint64_t thread, const OpenEvent& event) {
    constexpr std::size_t kMaxOpenEvents = 4096;
    auto& opened = threads_[thread];
    if (opened.size() == kMaxOpenEvents) return false;
    opened.push_back(event);
    return true;
  }

  // An end closes the innermost event of its name, because some writers do not nest events; an end
  // without a name closes the innermost one.
  std::optional<OpenEvent> close(std::uint64_t thread, StringId name, bool nameless) {
    const auto found = threads_.find(thread);
    if (found == threads_.end()) return std::nullopt;
    auto& opened = found->second;
    const auto it = std::find_if(opened.rbegin(), opened.rend(), [&](const OpenEvent& one) {
      return nameless || one.slice.name == name;
    });
    if (it == opened.rend()) return std::nullopt;
    const OpenEvent closed = *it;
    opened.erase(std::next(it).base());
    return closed;
  }

  // The number of kept events without an end.
  std::uint64_t left() const {
    std::uint64_t count = 0;
    for (const auto& [thread, opened] : threads_) {
      count += static_cast<std::uint64_t>(std::ranges::count_if(opened, &OpenEvent::kept));
    }
    return count;
  }

 private:
  std::unordered_map<std::uint64_t, std::vector<OpenEvent>> threads_;
};

}  // namespace assay::timeline
