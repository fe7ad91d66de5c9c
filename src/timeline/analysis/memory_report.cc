#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "timeline/analysis/report_text.h"
#include "timeline/analysis/reports.h"

namespace assay::timeline {
namespace {

using nlohmann::ordered_json;

constexpr double kMega = 1e6;

std::string megabytes(std::int64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / kMega);
}

// What the peak holds, by category and by who allocated it.
std::string content_table(const MemoryPeak& peak) {
  if (peak.owners.empty()) return {};
  std::string text;
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    if (peak.by_category[i] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "  at the peak: " : ", ",
                        name(static_cast<MemoryCategory>(i)), megabytes(peak.by_category[i]));
  }
  text += '\n';
  for (std::size_t i = 0; i < peak.owners.size() && i < kMaxRows; ++i) {
    const MemoryOwner& owner = peak.owners[i];
    text += fmt::format("  {:>12}  {:<12}{:>6} blocks  {}\n", megabytes(owner.bytes),
                        name(owner.category), owner.blocks, owner.where);
  }
  if (peak.owners.size() > kMaxRows) {
    text += fmt::format("  ({} more places)\n", peak.owners.size() - kMaxRows);
  }
  return text;
}

std::string fragmentation_line(const MemoryPeak& peak) {
  std::string text;
  if (peak.reserved_then > peak.allocated) {
    text = fmt::format("  reserved and not allocated at the peak: {} ({:.1f}%)\n",
                       megabytes(peak.reserved_then - peak.allocated),
                       100.0 * static_cast<double>(peak.reserved_then - peak.allocated) /
                           static_cast<double>(peak.reserved_then));
  }
  for (const MemorySegments& end : peak.segments) {
    text += fmt::format(
        "  reserved and not allocated at the end: {}, of it {} in segments that hold other blocks; "
        "the largest idle block has {}\n",
        megabytes(end.idle), megabytes(end.fragmented), megabytes(end.largest_idle));
  }
  return text;
}

}  // namespace

std::string memory_table(std::vector<MemoryPeak> peaks) {
  std::string text;
  constexpr std::size_t kMostPeaks = 16;
  constexpr std::size_t kMostContents = 2;  // devices whose content is shown
  if (peaks.size() > kMostPeaks) {
    std::ranges::stable_sort(peaks, std::greater{}, &MemoryPeak::allocated);
    text += fmt::format("the {} highest peaks of {}:\n", kMaxRows, peaks.size());
    peaks.resize(kMaxRows);
  }
  std::size_t shown = 0;
  for (const MemoryPeak& peak : peaks) {
    text += fmt::format("memory of {}: peak {} allocated, {} reserved\n",
                        device_name(peak.rank, peak.device), megabytes(peak.allocated),
                        megabytes(peak.reserved));
    if (peak.device == kNone && peaks.size() > 1) continue;
    if (shown++ < kMostContents) text += content_table(peak) + fragmentation_line(peak);
  }
  return text.empty() ? text : '\n' + text;
}

ordered_json memory_json(const std::vector<MemoryPeak>& peaks) {
  ordered_json array = ordered_json::array();
  for (const MemoryPeak& peak : peaks) {
    ordered_json object{{"rank", peak.rank},
                        {"device", peak.device},
                        {"allocated_bytes", peak.allocated},
                        {"reserved_bytes", peak.reserved},
                        {"reserved_then_bytes", peak.reserved_then},
                        {"at_ns", peak.at}};
    if (!peak.owners.empty()) {
      for (std::size_t i = 0; i < kMemoryCategories; ++i) {
        object["by_category"][std::string(name(static_cast<MemoryCategory>(i)))] =
            peak.by_category[i];
      }
      object["alive"] = ordered_json::array();
      constexpr std::size_t kMostOwners = 100;
      for (std::size_t i = 0; i < peak.owners.size() && i < kMostOwners; ++i) {
        const MemoryOwner& owner = peak.owners[i];
        object["alive"].push_back({{"where", owner.where},
                                   {"category", name(owner.category)},
                                   {"bytes", owner.bytes},
                                   {"blocks", owner.blocks}});
      }
    }
    for (const MemorySegments& end : peak.segments) {
      object["idle_at_end"] = {{"bytes", end.idle},
                               {"fragmented_bytes", end.fragmented},
                               {"largest_block_bytes", end.largest_idle}};
    }
    array.push_back(std::move(object));
  }
  return array;
}

}  // namespace assay::timeline
