#pragma once

// Chrome's trace event JSON in the two flavours that Paddle's script writes: tracks named by text
// for chrome://tracing, and numbered from 2333 on (the Step row first) for Perfetto. Logs become
// pairs of events (B, E) as that script writes them; other traces complete events (X), which keep
// their durations when slices of a track overlap, with their args, arrows between them, and
// metadata that says of each track whose it is, so that what is read back is what was written.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "timeline/slice_source.h"
#include "timeline/writers/lanes.h"
#include "timeline/writers/output_file.h"

namespace assay::timeline {

enum class JsonFlavour : std::uint8_t { chrome, perfetto };

class ChromeJsonWriter : public TraceWriter {
 public:
  static constexpr int kFirstTrackId = 2333;

  static Result<ChromeJsonWriter> create(const std::filesystem::path& path, JsonFlavour flavour,
                                         const TraceHeader& header);
  void begin_slice(const Slice& slice) override;
  void end_slice(const Slice& slice) override;
  Status finish() override;

 private:
  ChromeJsonWriter(OutputFile file, JsonFlavour flavour, const TraceHeader& header);
  void put_event(const Slice& slice, char phase, Nanos time);
  void put_complete(const Slice& slice);
  void put_head(const Slice& slice, char phase, Nanos time);
  std::string track_text(std::size_t track, const std::string& tid) const;
  std::string tid_text(std::size_t track, std::size_t lane) const;
  void describe_track(std::size_t track, const std::string& tid, const std::string& label);
  const std::string& lane_text(std::size_t track, std::size_t lane);
  void put_flows();
  void put_metadata(const char* what, std::size_t pid, const std::string& tid,
                    const std::string& name);
  void put_counters();
  void separate();

  // What every event of a name, category or track repeats is escaped once. A hostile file may have
  // a million names: those with higher ids are escaped each time instead of kept.
  static constexpr std::size_t kMaxCached = 1U << 16U;
  struct CategoryTexts {
    std::string head;  // from the name's end to the phase
    std::string tail;  // colour and closing brace
  };
  std::string name_text(StringId id) const;
  CategoryTexts category_texts(StringId id) const;
  const CategoryTexts& texts_of(StringId id);
  void put_name(StringId id);

  OutputFile file_;
  TraceHeader header_;
  std::vector<std::string> names_;
  std::vector<CategoryTexts> categories_;
  CategoryTexts uncached_;
  JsonFlavour flavour_;
  std::vector<std::size_t> pids_;                      // by track
  std::vector<std::vector<std::string>> track_texts_;  // by track, by lane
  std::size_t extra_lanes_ = 0;
  Lanes lanes_;
  bool first_ = true;
};

// The process ids of tracks: one for each distinct Track::process, from 0.
std::vector<std::size_t> process_ids(std::span<const Track> tracks);

}  // namespace assay::timeline
