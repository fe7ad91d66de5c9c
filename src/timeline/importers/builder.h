#pragma once

// What all importers share: a table of tracks, the limits of a trace in memory, and what is done
// with a trace when its file has been read.

#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

#include "timeline/model.h"

namespace assay::timeline {

// What is beyond is counted as dropped: 1.1 GB of memory.
inline constexpr std::size_t kMaxImportedSlices = 20'000'000;

// What our own merge calls the metadata that describes a track (chrome_json.cc writes it).
inline constexpr std::string_view kTrackMetadata = "assay_track";

class TraceBuilder {
 public:
  Trace& trace() { return trace_; }
  FileReport& report() { return report_; }

  // Beyond the limit, all new tracks are the last one.
  std::uint32_t add_track(Track track);

  // Counts what is dropped when there is none.
  bool has_room() {
    if (trace_.slices.size() < kMaxImportedSlices) return true;
    ++report_.overlapping;
    return false;
  }
  void add(const Slice& slice) {
    trace_.slices.push_back(slice);
    ++report_.kept;
  }

  // Adds what the reader of the file counted.
  void add_counts(FileReport counts);

  // Gives each track the identity of its source, GPU work its launch, folds the steps of all
  // sources into one list, and sorts the slices.
  Trace finish();

 private:
  void identify_tracks();
  void join_launches();
  void join_collectives();
  void fold_steps();

  Trace trace_;
  FileReport report_;
};

// Tracks by what tells them apart in a format.
template <typename Key>
class TrackTable {
 public:
  explicit TrackTable(TraceBuilder& builder) : builder_(builder) {}

  // `make` gives the Track of a new key.
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
