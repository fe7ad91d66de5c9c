// Traces of PyTorch's profiler, and what Holistic Trace Analysis said of them (hta_figures.py).

#include <gmock/gmock.h>

#include "support.h"
#include "timeline/analysis/analysis.h"
#include "timeline/importers/importer.h"

namespace assay::timeline {
namespace {

class Hta : public testing::TestWithParam<const char*> {};

// HTA tells kernel time by what ran at once: its sums over such classes are our shares.
TEST_P(Hta, SaysTheSame) {
  const test::fs::path data = test::fs::path(ASSAY_SOURCE_DIR) / "tests/timeline/data";
  const auto theirs = test::read_json(data / "hta_figures.json").at(GetParam());
  const auto trace = import_trace(data / GetParam());
  ASSERT_TRUE(trace) << trace.error().message;
  const Analysis analysis = analyse(*trace);
  ASSERT_EQ(analysis.devices.size(), 1U);
  const TimeShare& ours = analysis.devices[0].total;
  const auto micros = [&](const char* figure) {
    return static_cast<Nanos>(theirs.value(figure, 0.0) * 1000);
  };
  EXPECT_EQ(ours.span, micros("kernel_time(us)"));
  EXPECT_EQ(ours.compute, micros("compute_time(us)"));
  EXPECT_EQ(ours.idle, micros("idle_time(us)"));
  EXPECT_EQ(ours.exposed_communication() + ours.memory, micros("non_compute_time(us)"));
  EXPECT_EQ(ours.memory, micros("MEMORY"));
  EXPECT_EQ(ours.hidden_communication,
            micros("COMPUTATION overlapping COMMUNICATION") +
                micros("COMPUTATION overlapping COMMUNICATION overlapping MEMORY"));
  EXPECT_EQ(ours.exposed_communication(),
            micros("COMMUNICATION") + micros("COMMUNICATION overlapping MEMORY"));
  EXPECT_NEAR(100.0 * static_cast<double>(ours.hidden_communication) /
                  static_cast<double>(ours.communication),
              theirs.at("comp_comm_overlap_pctg").get<double>(), 0.005);
}

INSTANTIATE_TEST_SUITE_P(Traces, Hta, testing::Values("kineto_1f1b.json", "kineto_streams.json"));

}  // namespace
}  // namespace assay::timeline
