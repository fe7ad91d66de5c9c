#pragma once

// Chrome's trace event JSON in the two flavours that Paddle's script writes: tracks named by text
// for chrome://tracing, and numbered from 2333 on (the Step row first) for Perfetto.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "timeline/slice_source.h"
#include "timeline/writers/output_file.h"

namespace assay::timeline {

enum class JsonFlavour : std::uint8_t { chrome, perfetto };

class ChromeJsonWriter : public TraceWriter {
 public:
  static constexpr int kFirstTrackId = 2333;

  static Result<ChromeJsonWriter> create(const std::filesystem::path& path, JsonFlavour flavour,
                                         const TraceHeader& header);
  void begin_slice(const Slice& slice) override { put_event(slice, 'B', slice.begin); }
  void end_slice(const Slice& slice) override { put_event(slice, 'E', slice.end); }
  Status finish() override;

 private:
  ChromeJsonWriter(OutputFile file, JsonFlavour flavour, const TraceHeader& header);
  void put_event(const Slice& slice, char phase, Nanos time);
  void put_metadata(const char* what, std::size_t pid, const std::string& tid,
                    const std::string& name);
  void put_counters();
  void separate();

  // Escaped once: the texts that every event of a name, category or track repeats.
  const std::string& name_text(StringId id);
  const std::string& category_text(StringId id);

  OutputFile file_;
  TraceHeader header_;
  std::vector<std::string> names_;
  std::vector<std::string> categories_;
  std::vector<std::string> tails_;  // of a category: colour and closing brace
  std::vector<std::string> track_texts_;
  bool first_ = true;
};

// The process ids of tracks: one for each distinct Track::process, from 0.
std::vector<std::size_t> process_ids(std::span<const Track> tracks);

}  // namespace assay::timeline
