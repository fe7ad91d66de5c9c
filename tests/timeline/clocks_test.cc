// Clocks: made logs and probes whose true offset is known must give an interval that holds it.

#include "timeline/clocks.h"

#include <gmock/gmock.h>

#include <random>

#include "support.h"
#include "timeline/merge.h"

namespace assay::timeline {
namespace {

using test::TempFolder;

// The other machine's clock shows `skew` more than ours; messages take 10 to 200 µs each way.
ClockProbe probe(std::mt19937& random, Nanos skew, Nanos now) {
  const auto delay = [&] { return Nanos{10'000} + static_cast<Nanos>(random() % 190'000); };
  const Nanos t2 = now + delay();
  const Nanos t3 = t2 + 5'000;
  const Nanos t4 = t3 + delay();
  return {"0", "1", now, t2 + skew, t3 + skew, t4};
}

TEST(Probes, BoundTheTrueOffset) {
  std::mt19937 random(1);
  for (const Nanos skew : {Nanos{0}, Nanos{1'600'000}, Nanos{-70'000'000}}) {
    std::vector<ClockProbe> probes;
    for (int i = 0; i < 100; ++i)
      probes.push_back(probe(random, skew, 1'000'000'000 + i * 1'000'000));
    const auto bounds = bounds_of_probes(probes, "0", "1");
    ASSERT_TRUE(bounds);
    EXPECT_LE(bounds->low, -skew);
    EXPECT_GE(bounds->high, -skew);
    EXPECT_LT(bounds->high - bounds->low, 80'000);  // well below one round trip
    const auto back = bounds_of_probes(probes, "1", "0");
    EXPECT_EQ(back->low, -bounds->high);
    EXPECT_EQ(back->high, -bounds->low);
  }
}

TEST(Probes, OfAClockThatWasSetContradict) {
  std::mt19937 random(1);
  const std::vector<ClockProbe> probes{probe(random, 0, 1'000'000'000),
                                       probe(random, 50'000'000, 2'000'000'000)};
  EXPECT_FALSE(bounds_of_probes(probes, "0", "1"));
}

class Clocks : public testing::Test {
 protected:
  // A pipeline of two stages on two machines; the second one's clock shows `skew` ms more.
  void write_pipeline(double skew) {
    for (int machine = 0; machine < 2; ++machine) {
      std::string text;
      for (int step = 0; step < 2; ++step) {
        for (int micro = 0; micro < 3; ++micro) {
          const double begin = 1000 + step * 100 + micro * 10 + machine * 10.5 + machine * skew;
          text += line("forward", micro, begin, begin + 10);
        }
        for (int micro = 0; micro < 3; ++micro) {
          const double begin =
              1000 + step * 100 + 45 + micro * 12 + (machine == 0 ? 12.25 : 0) + machine * skew;
          text += line("backward", micro, begin, begin + 12);
        }
      }
      test::write(folder_ / ("machine" + std::to_string(machine) + "/workerlog.0"), text);
    }
  }
  static std::string line(const char* type, int micro, double begin, double end) {
    return test::job_line(0, type, micro, std::to_string(begin), std::to_string(end));
  }
  Result<MergeResult> merge(const ClockOptions& clocks) {
    return merge_job_logs({.log_dir = folder_.path(), .devices = {0}, .multi_machine = true},
                          clocks, OutputPaths::in(out_.path()));
  }
  double first_of_machine_1() {
    const auto trace = test::read_json(out_ / "pipeline_profile.json");
    for (const auto& event : trace.at("traceEvents")) {
      if (event.at("tid") == "GPU0(machine:1)") return event.at("ts").get<double>();
    }
    return -1;
  }
  TempFolder folder_, out_;
};

// Stage 1 takes what stage 0 gave 0.5 ms after, and gives back what stage 0 takes 0.25 ms after:
// the offset lies in an interval of 0.75 ms, whose middle is 0.125 ms off the truth.
TEST_F(Clocks, PairsBoundTheOffset) {
  write_pipeline(30);
  const auto result = merge({.manifest = "", .probes = "", .pairs = true});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(
      result->notes,
      testing::ElementsAre(testing::HasSubstr(
          "shifted by -30125.000 µs ± 375.000 µs to match machine 0 (12 send/receive pairs)")));
  EXPECT_DOUBLE_EQ(first_of_machine_1(), (1010.5 - 0.125) * 1000);
}

TEST_F(Clocks, AManifestIsTakenAtItsWord) {
  write_pipeline(30);
  const auto manifest = test::write(
      out_ / "clocks.json",
      R"({"version": 1, "offsets": [{"machine": 1, "offset_us": -30000, "uncertainty_us": 2.5}]})");
  const auto result = merge({.manifest = manifest, .probes = "", .pairs = false});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->notes[0],
              testing::HasSubstr("-30000.000 µs ± 2.500 µs to match machine 0 (manifest)"));
  EXPECT_DOUBLE_EQ(first_of_machine_1(), 1010.5 * 1000);
}

TEST_F(Clocks, WithoutARelationEachMachineKeepsItsClock) {
  write_pipeline(30);
  const auto result = merge({});
  ASSERT_TRUE(result);
  EXPECT_THAT(result->notes,
              testing::ElementsAre(testing::StartsWith("warning: the clocks of machines")));
  EXPECT_DOUBLE_EQ(first_of_machine_1(), 1040.5 * 1000);
}

TEST_F(Clocks, BadManifestsAreUsageErrors) {
  write_pipeline(0);
  for (
      const char* text :
      {"", "[]", R"({"version": 2, "offsets": []})",
       R"({"version": 1, "offsets": [{"machine": 1, "offset_us": 1e300, "uncertainty_us": 0}]})"}) {
    const auto manifest = test::write(out_ / "clocks.json", text);
    const auto result = merge({.manifest = manifest, .probes = "", .pairs = false});
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().kind, ErrorKind::usage);
  }
}

}  // namespace
}  // namespace assay::timeline
