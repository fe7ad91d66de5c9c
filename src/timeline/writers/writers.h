#pragma once

// Writers of traces.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "timeline/slice_source.h"

namespace assay::timeline {

enum class JsonFlavour : std::uint8_t { chrome, perfetto };

// Chrome's trace event JSON in the two flavours of Paddle's script: tracks with text ids for
// chrome://tracing, and tracks numbered from 2333 (the Step row first) for Perfetto. Job logs
// become paired events (B, E), as in that script. Other traces become complete events (X), which
// keep their durations when slices overlap. They carry args, arrows and the owner of each track, so
// importing the file restores the trace.
Result<std::unique_ptr<TraceWriter>> chrome_json_writer(const std::filesystem::path& path,
                                                        JsonFlavour flavour,
                                                        const TraceHeader& header);

// Perfetto's binary format: length-delimited protobuf TracePackets, with protozero. Field numbers
// are those of Perfetto's protos/perfetto/trace/trace_packet.proto and the files that it imports.
Result<std::unique_ptr<TraceWriter>> perfetto_writer(const std::filesystem::path& path,
                                                     const TraceHeader& header);

// The process id of each track: the index of its Track::process among the distinct ones.
std::vector<std::size_t> process_ids(std::span<const Track> tracks);

// The owner of a track as a JSON object, which our importers read back.
std::string track_description(const Track& track, const std::string& label);

}  // namespace assay::timeline
