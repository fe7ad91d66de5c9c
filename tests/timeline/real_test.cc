// Traces that others recorded (shared/timeline/real), against figures that a program of 60 lines
// computed from them with integers.

#include <gmock/gmock.h>

#include "support.h"
#include "timeline/analysis/analysis.h"
#include "timeline/analysis/reports.h"
#include "timeline/load.h"

namespace assay::timeline {
namespace {

TEST(RealTraces, MeetTheirFigures) {
  const auto folder = test::shared_folder() / "real";
  if (test::shared_folder().empty() || !test::fs::exists(folder)) {
    GTEST_SKIP() << "no shared/timeline/real beside the source tree";
  }
  constexpr Nanos kMicrosecond = 1000;
  const auto figures = test::read_json(folder / "figures.json");
  for (const auto& [name, expected] : figures.items()) {
    LoadOptions options;
    options.import.analysis = true;
    const std::vector<test::fs::path> paths{folder / (name + ".gz")};
    const auto trace = load_traces(paths, options);
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_EQ(trace->files[0].dropped(), 0U) << name;
    const auto json = nlohmann::json::parse(analysis_json(analyse(*trace)));
    ASSERT_EQ(json.at("devices").size(), expected.at("devices").size()) << name;
    for (const auto& device : json.at("devices")) {
      EXPECT_EQ(device.at("rank"), expected.at("rank")) << name;
      const auto& figure = expected.at("devices").at(device.at("device").dump());
      for (const auto& [key, value] : figure.items()) {
        const auto ours = device.at("whole").at(key).get<Nanos>();
        EXPECT_NEAR(static_cast<double>(ours), value.get<double>(),
                    key.ends_with("_ns") ? kMicrosecond : 0)
            << name << " " << key;
      }
    }
  }
}

// Two processes of one capture have a GPU each; figures by SQL over the exported tables.
TEST(RealTraces, OfNsysHaveTwoGpus) {
  const auto file = test::shared_folder() / "real/nsys_h100_2gpu.sqlite.gz";
  if (test::shared_folder().empty() || !test::fs::exists(file)) {
    GTEST_SKIP() << "no shared/timeline/real beside the source tree";
  }
  const std::vector<test::fs::path> paths{file};
  const auto trace = load_traces(paths, {});
  ASSERT_TRUE(trace) << trace.error().message;
  const Analysis analysis = analyse(*trace);
  ASSERT_EQ(analysis.devices.size(), 2U);
  // SELECT deviceId, count(*), max(end) - min(start) FROM CUPTI_ACTIVITY_KIND_KERNEL GROUP BY 1
  EXPECT_EQ(analysis.devices[0].counts.kernels, 1721U);
  EXPECT_EQ(analysis.devices[1].counts.kernels, 1721U);
  std::set<std::string> copies;
  for (const Slice& slice : trace->slices) {
    if (slice.kind == Kind::memory) copies.emplace(trace->strings.text(slice.name));
  }
  EXPECT_THAT(copies, testing::Contains("Memcpy DtoD (Device -> Device)"));
}

}  // namespace
}  // namespace assay::timeline
