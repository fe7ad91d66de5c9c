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
  std::vector<std::string> track_texts_;
  bool first_ = true;
};

// The process ids of tracks: one for each distinct Track::process, from 0.
std::vector<std::size_t> process_ids(std::span<const Track> tracks);

}  // namespace assay::timeline
