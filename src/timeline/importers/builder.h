#pragma once

// Shared by all importers: the table of tracks, the limits of a trace in memory, and the steps
// after a file is read.

#include <cstddef>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "timeline/model.h"

namespace assay::timeline {

// 1.1 GB of memory. Further slices are dropped and counted.
inline constexpr std::size_t kMaxImportedSlices = 20'000'000;

// The metadata event with which our own merge describes a track (chrome_json.cc).
inline constexpr std::string_view kTrackMetadata = "assay_track";

class TraceBuilder {
 public:
  Trace& trace() { return trace_; }
  FileReport& report() { return report_; }

  // Returns the index. Beyond a limit, all new tracks share the last one.
  std::uint32_t add_track(Track track);

  // Counts a dropped slice when it returns false.
  bool has_room() {
    if (trace_.slices.size() < kMaxImportedSlices) return true;
    ++report_.overlapping;
    return false;
  }
  void add(const Slice& slice) {
    trace_.slices.push_back(slice);
    ++report_.kept;
  }
  // Returns the value for Slice::detail.
  std::uint32_t add_detail(const Detail& detail) {
    trace_.details.push_back(detail);
    return static_cast<std::uint32_t>(trace_.details.size() - 1);
  }

  // Sets path, size and format of the file.
  void describe(const std::filesystem::path& path, std::string_view format);
  // Adds the counts of the file's reader.
  void add_counts(FileReport counts);

  // Completes the trace: identifies tracks by their source, joins GPU work with its launch, merges
  // the steps of all sources and sorts the slices.
  Trace finish();

 private:
  void identify_tracks();
  void join_launches();
  void join_collectives();
  void fold_steps();
  void drop_repeated();

  Trace trace_;
  FileReport report_;
};

// Track indices by a format's own key.
template <typename Key>
class TrackTable {
 public:
  explicit TrackTable(TraceBuilder& builder) : builder_(builder) {}

  // `make` returns the Track of a new key.
  template <typename Make>
  std::uint32_t find(const Key& key, Make make) {
    const auto known = tracks_.find(key);
    if (known != tracks_.end()) return known->second;
    const std::uint32_t track = builder_.add_track(make());
    tracks_.emplace(key, track);
    return track;
  }

 private:
  TraceBuilder& builder_;
  std::map<Key, std::uint32_t> tracks_;
};

}  // namespace assay::timeline
