#pragma once

// Writes Chrome's trace event JSON in the two flavours of Paddle's script: tracks with text ids for
// chrome://tracing, and tracks numbered from 2333 (the Step row first) for Perfetto. Job logs
// become paired events (B, E), as in that script. Other traces become complete events (X), which
// keep their durations when slices overlap. They carry args, arrows and the owner of each track, so
// importing the file restores the trace.

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

  // Escaped texts are cached by id up to this limit: a hostile file may have a million names.
  static constexpr std::size_t kMaxCached = 1U << 16U;
  struct CategoryTexts {
    std::string head;  // from the end of the name to the phase
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

// The process id of each track: the index of its Track::process among the distinct ones.
std::vector<std::size_t> process_ids(std::span<const Track> tracks);

// The owner of a track as a JSON object, which our importers read back.
std::string track_description(const Track& track, const std::string& label);

}  // namespace assay::timeline
