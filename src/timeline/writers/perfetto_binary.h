#pragma once

// Writes Perfetto's binary format: length-delimited protobuf TracePackets, with protozero. Field
// numbers are those of Perfetto's protos/perfetto/trace/trace_packet.proto and the files that it
// imports.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "timeline/slice_source.h"
#include "timeline/writers/flow_points.h"
#include "timeline/writers/lanes.h"
#include "timeline/writers/output_file.h"

namespace assay::timeline {

class PerfettoWriter : public TraceWriter {
 public:
  static Result<PerfettoWriter> create(const std::filesystem::path& path,
                                       const TraceHeader& header);
  void begin_slice(const Slice& slice) override;
  void end_slice(const Slice& slice) override;
  Status finish() override { return file_.finish(); }

 private:
  PerfettoWriter(OutputFile file, const TraceHeader& header);
  void put_processes_and_tracks();
  void put_track(std::uint64_t uuid, std::uint64_t parent, const std::string& name,
                 std::size_t rank);
  void put_counters();
  void put_notes(Nanos time);
  void put_packet();
  // Writes a packet whose message `field` is filled by `fill`.
  template <typename Fill>
  void put(std::optional<Nanos> time, std::uint32_t field, const Fill& fill);

  std::uint64_t lane_for(const Slice& slice);
  void put_flows(protozero::pbf_writer& event, const Slice& slice);
  void put_args(protozero::pbf_writer& event, const Slice& slice);

  OutputFile file_;
  TraceHeader header_;
  Lanes lanes_;
  std::optional<FlowPoints> flows_;
  std::vector<std::vector<std::uint64_t>> lane_ids_;  // by track, by lane: uuids
  std::vector<std::uint64_t> parents_;                // by track: uuid of its process, or 0
  std::unordered_map<std::uint64_t, std::uint32_t> name_ids_;
  std::vector<bool> category_known_;
  bool notes_written_ = false;
  std::uint64_t next_uuid_ = 1;
  std::string packet_;
};

}  // namespace assay::timeline
