// Perfetto's binary traces: our own are read back, and others' with interned names, default tracks
// and clocks that count from the last packet.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <protozero/pbf_writer.hpp>

#include "support.h"
#include "timeline/analysis/analysis.h"
#include "timeline/load.h"
#include "timeline/merge.h"

namespace assay::timeline {
namespace {

using protozero::pbf_writer;
using testing::ElementsAre;

// Each slice and step as text, in nanoseconds.
std::vector<std::string> contents(const Trace& trace) {
  std::vector<std::string> all;
  for (const Slice& slice : trace.slices) {
    const Track& track = trace.tracks[slice.track];
    all.push_back(fmt::format("{} {} {} {} {} {} {} {}", trace.strings.text(slice.name),
                              slice.begin, slice.end, name(slice.kind), track.label, track.rank,
                              track.device, slice.micro_batch));
  }
  for (const Step& step : trace.steps) {
    all.push_back(fmt::format("step {} {} {}", step.number, step.begin, step.end));
  }
  std::ranges::sort(all);
  return all;
}

TEST(Perfetto, OurOwnTracesAreReadBack) {
  const test::fs::path data = test::fs::path(ASSAY_SOURCE_DIR) / "tests/timeline/data";
  for (const char* name : {"kineto_1f1b.json", "kineto_streams.json"}) {
    const test::TempFolder folder;
    auto trace = load_traces(std::vector{data / name}, {});
    ASSERT_TRUE(trace) << trace.error().message;
    const OutputPaths paths = OutputPaths::in(folder.path());
    ASSERT_TRUE(write_trace(*trace, paths));
    const auto json = load_traces(std::vector{paths.chrome}, {});
    const auto binary = load_traces(std::vector{paths.perfetto_binary}, {});
    ASSERT_TRUE(json) << json.error().message;
    ASSERT_TRUE(binary) << binary.error().message;
    EXPECT_GT(json->slices.size(), 100U);
    EXPECT_EQ(contents(*binary), contents(*json));
    EXPECT_EQ(analyse(*binary).lengths, analyse(*json).lengths);
  }
}

// A kernel and its step, by a writer that interns all and counts time from the last packet in
// microseconds.
TEST(Perfetto, InternedNamesAndIncrementalClocksAreRead) {
  std::string trace;
  const auto packet = [&](std::uint64_t delta, const auto& fill) {
    std::string bytes;
    pbf_writer one(bytes);
    one.add_uint64(8, delta);
    one.add_uint32(10, 3);
    fill(one);
    pbf_writer(trace).add_message(1, bytes);
  };
  packet(0, [](pbf_writer& one) {
    one.add_uint32(13, 1);
    pbf_writer snapshot(one, 6);
    pbf_writer clock(snapshot, 1);
    clock.add_uint32(1, 64);
    clock.add_uint64(2, 5000);
    clock.add_bool(3, true);
    clock.add_uint64(4, 1000);
  });
  packet(0, [](pbf_writer& one) {
    pbf_writer defaults(one, 59);
    defaults.add_uint32(58, 64);
    pbf_writer event(defaults, 11);
    event.add_uint64(11, 77);
  });
  packet(0, [](pbf_writer& one) {
    pbf_writer track(one, 60);
    track.add_uint64(1, 77);
    track.add_string(2, "stream 7");
    pbf_writer process(track, 3);
    process.add_int32(1, 0);
  });
  packet(10, [](pbf_writer& one) {
    {
      pbf_writer interned(one, 12);
      for (const auto& [tag, text] : {std::pair(1U, "kernel"), {2U, "gemm"}, {3U, "device"}}) {
        pbf_writer entry(interned, tag);
        entry.add_uint64(1, 9);
        entry.add_string(2, text);
      }
    }
    pbf_writer event(one, 11);
    event.add_uint64(3, 9);
    event.add_enum(9, 1);
    event.add_uint64(10, 9);
    pbf_writer arg(event, 4);
    arg.add_uint64(1, 9);
    arg.add_uint64(3, 2);
  });
  packet(25, [](pbf_writer& one) {
    pbf_writer event(one, 11);
    event.add_enum(9, 2);
  });
  const test::TempFolder folder;
  for (const bool whole : {true, false}) {
    const std::string bytes = whole ? trace : trace.substr(0, trace.size() - 3);
    const auto read = load_traces(std::vector{test::write(folder / "t.pftrace", bytes)}, {});
    ASSERT_TRUE(read) << read.error().message;
    if (whole) {
      EXPECT_THAT(contents(*read),
                  ElementsAre("gemm 5010000 5035000 compute GPU 2 · stream 7 -1 2 -1"));
    }
    EXPECT_EQ(read->files.at(0).truncated, whole ? 0U : 2U);  // the packet, and the open slice
  }
}

}  // namespace
}  // namespace assay::timeline
