// Timings of records, and what the judge makes of them.

#include "verdict/timings.h"

#include <gmock/gmock.h>

#include "verdict/judge.h"
#include "wire/frame.h"

namespace assay {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct LaneTimings {
  std::vector<TimeSeries> series;
  wire::Status status = wire::Status::ok;
  std::uint64_t checksum = 7;
};

// Three samples a turn around `nanoseconds`, the turns a little apart.
TimeSeries steady(const std::string& what, double nanoseconds, std::uint32_t turns = 12,
                  std::uint32_t turns_of_lane = 1) {
  TimeSeries series{what, 4, {}, {}, turns_of_lane};
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    const double of_turn = nanoseconds * (1 + 0.001 * (turn % 3));
    for (const double off : {0.99, 1.0, 1.4}) series.nanoseconds.push_back(of_turn * off);
    series.turns.push_back(3);
  }
  return series;
}

wire::Bytes record_of(const std::vector<LaneTimings>& lanes) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::LaneRecord>> records;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    std::vector<flatbuffers::Offset<wire::Timing>> timings;
    for (const TimeSeries& series : lanes[i].series) {
      const auto what = builder.CreateString(series.what);
      const auto samples = builder.CreateVector(series.nanoseconds);
      const auto turns = builder.CreateVector(series.turns);
      timings.push_back(
          wire::CreateTiming(builder, what, series.calls, samples, turns, series.turns_of_lane));
    }
    const auto vector = builder.CreateVector(timings);
    const auto inputs = builder.CreateVector(std::vector<flatbuffers::Offset<wire::Filling>>{
        wire::CreateFilling(builder, 0, 0, 1, 1, 0, lanes[i].checksum)});
    const auto name = builder.CreateString(i == 0 ? "paddle" : "torch");
    wire::LaneRecordBuilder lane(builder);
    lane.add_name(name);
    lane.add_status(lanes[i].status);
    lane.add_role(i == 0 ? wire::Role::test : wire::Role::reference);
    lane.add_inputs(inputs);
    lane.add_timings(vector);
    records.push_back(lane.Finish());
  }
  const auto lane_vector = builder.CreateVector(records);
  const auto values = builder.CreateString("usual");
  const auto trials = builder.CreateVector(std::vector<flatbuffers::Offset<wire::Trial>>{
      wire::CreateTrial(builder, values, lane_vector)});
  wire::RecordBuilder record(builder);
  record.add_version(wire::kVersion);
  record.add_trials(trials);
  builder.Finish(record.Finish());
  const auto bytes = wire::bytes_of(builder);
  return {bytes.begin(), bytes.end()};
}

const wire::Record& root(const wire::Bytes& bytes) {
  return *flatbuffers::GetRoot<wire::Record>(bytes.data());
}

Verdict judged(const std::vector<LaneTimings>& lanes) {
  const wire::Bytes bytes = record_of(lanes);
  Rules rules;
  rules.agreement = Agreement::speed;
  return judge(root(bytes), {}, rules);
}

TEST(Timings, ATurnCountsOnceByItsLeastSample) {
  const TimeSeries series{"forward host warm", 1, {5, 1, 3, 10, 20}, {3, 0, 2}, 1};
  EXPECT_THAT(turn_times(series), ElementsAre(1, 0, 10));
  // A record that promises more samples than it has is read as far as it goes.
  EXPECT_THAT(turn_times({"", 1, {4}, {1, 9}, 1}), ElementsAre(4, 0));
}

TEST(Timings, PartsAreJudgedOneByOneAndTheWorstIsTheCase) {
  const Verdict verdict =
      judged({{{steady("forward host warm", 1000), steady("backward host warm", 22'000)}},
              {{steady("forward host warm", 1000), steady("backward host warm", 20'000)}}});
  EXPECT_EQ(verdict.outcome, Outcome::slow);
  EXPECT_EQ(verdict.message,
            "backward host warm: 22 µs against 20 µs, 1.100 times as long (1.100 to 1.100)");
}

TEST(Timings, EveryVerdictOfSpeed) {
  const auto of = [](double test, double reference, std::uint32_t turns = 12) {
    return judged({{{steady("forward host warm", test, turns)}},
                   {{steady("forward host warm", reference, turns)}}})
        .outcome;
  };
  EXPECT_EQ(of(10'500, 10'000), Outcome::slow);
  EXPECT_EQ(of(10'000, 10'500), Outcome::fast);
  EXPECT_EQ(of(1000, 1010), Outcome::same);
  EXPECT_EQ(of(2000, 1000, 5), Outcome::unsure);  // five turns prove nothing
}

TEST(Timings, ColdCachesAreReportedButDoNotDecide) {
  const std::vector<LaneTimings> lanes{
      {{steady("forward host warm", 1000), steady("forward host cold", 9000)}},
      {{steady("forward host warm", 1000), steady("forward host cold", 3000)}}};
  EXPECT_EQ(judged(lanes).outcome, Outcome::same);
  const wire::Bytes bytes = record_of(lanes);
  const auto rows = speed_rows(root(bytes), 0.025);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].what, "forward host cold");
  EXPECT_EQ(rows[1].speed, Speed::slow);
  EXPECT_FALSE(rows[1].decides);
}

TEST(Timings, TheDevicesClockDecidesWhereBothLanesHaveIt) {
  const auto host = steady("forward host warm", 3000);
  EXPECT_EQ(judged({{{host, steady("forward device warm", 1000)}},
                    {{steady("forward host warm", 1000), steady("forward device warm", 1000)}}})
                .outcome,
            Outcome::same);
  EXPECT_EQ(
      judged({{{host, steady("forward device warm", 1000)}}, {{steady("forward host warm", 1000)}}})
          .outcome,
      Outcome::slow);
}

// The same kernels of one build took 3.94 and 3.06 µs, 18 and 17.15 µs, in two processes on an
// H200.
TEST(Timings, DifferencesBelowAMicrosecondOnTheDevicesClockDoNotCount) {
  const auto of = [](const std::string& what, double test, double reference) {
    return judged({{{steady(what, test)}}, {{steady(what, reference)}}}).outcome;
  };
  EXPECT_EQ(of("forward device warm", 3200, 3000), Outcome::unsure);
  EXPECT_EQ(of("forward device warm", 3000, 3200), Outcome::unsure);
  EXPECT_EQ(of("forward device warm", 17'990, 17'150), Outcome::slow)
      << "four calls in a sample, which are 3.4 µs apart";
  EXPECT_EQ(of("forward device warm", 3000, 3000), Outcome::same);
  EXPECT_EQ(of("forward device warm", 105'000, 100'000), Outcome::slow);
  EXPECT_EQ(of("forward host warm", 10'500, 10'000), Outcome::slow)
      << "the host's clock has a finer grain";
}

// A call of 1.8 µs took 2.5% longer in another process of the same build.
TEST(Timings, DifferencesBelowATwentiethOfAMicrosecondOnTheHostsClockDoNotCount) {
  const auto of = [](double test, double reference) {
    return judged(
               {{{steady("forward host warm", test)}}, {{steady("forward host warm", reference)}}})
        .outcome;
  };
  EXPECT_EQ(of(1848, 1800), Outcome::unsure);
  EXPECT_EQ(of(1753, 1800), Outcome::unsure);
  EXPECT_EQ(of(1575, 1500), Outcome::slow);
  EXPECT_EQ(of(2720, 2720), Outcome::same);
}

TEST(Timings, HowALaneEndedComesFirst) {
  EXPECT_EQ(judged({{{}, wire::Status::raised}, {{steady("forward host warm", 1000)}}}).outcome,
            Outcome::test_error);
  EXPECT_EQ(judged({{{}, wire::Status::raised}, {{}, wire::Status::raised}}).outcome,
            Outcome::rejected);
}

TEST(Timings, WithDifferentInputsThereIsNoVerdict) {
  const Verdict verdict = judged({{{steady("forward host warm", 1000)}},
                                  {{steady("forward host warm", 1000)}, wire::Status::ok, 8}});
  EXPECT_EQ(verdict.outcome, Outcome::invalid);
  EXPECT_THAT(verdict.message, HasSubstr("had different inputs"));
}

TEST(Timings, ALaneAlonePassesAndKeepsItsTimes) {
  const std::vector<LaneTimings> lanes{{{steady("forward host warm", 1000, 2, 2)}}};
  EXPECT_EQ(judged(lanes).outcome, Outcome::pass);
  const wire::Bytes bytes = record_of(lanes);
  const auto parts = timed_parts(root(bytes));
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_THAT(parts[0].alone, ElementsAre(DoubleEq((990 + 990.99) / 2)));
  EXPECT_THAT(parts[0].beside_reference, IsEmpty());
}

// A lane is as fast as its memory lies, in all of its turns.
TEST(Timings, ForAnotherRunEachLaneCountsOnce) {
  const wire::Bytes bytes = record_of(
      {{{steady("forward host warm", 1000, 8, 3), steady("backward device warm", 1000, 4, 3)}}});
  const auto parts = timed_parts(root(bytes));
  ASSERT_EQ(parts.size(), 2U);
  // Its turns are 0, 0.1 and 0.2% longer than 990.
  EXPECT_THAT(parts[0].alone,
              ElementsAre(DoubleEq(990.99), DoubleEq(990.99), DoubleEq((990 + 990.99) / 2)));
  // A lane on a GPU stays.
  EXPECT_THAT(parts[1].alone, SizeIs(4));
}

// Four lanes of eight turns each prove no more than four turns of lanes that are apart.
TEST(Timings, AgainstAReferenceEachPairOfLanesCountsOnce) {
  const auto of = [](std::uint32_t turns, std::uint32_t turns_of_lane) {
    return judged({{{steady("forward host warm", 10'500, turns, turns_of_lane)}},
                   {{steady("forward host warm", 10'000, turns, turns_of_lane)}}})
        .outcome;
  };
  EXPECT_EQ(of(32, 8), Outcome::unsure);
  EXPECT_EQ(of(96, 8), Outcome::slow);
  EXPECT_EQ(of(32, 1), Outcome::slow);
}

TEST(Timings, AnOlderRecordHasThreeTurnsOfALane) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(wire::CreateTiming(builder));
  EXPECT_EQ(flatbuffers::GetRoot<wire::Timing>(builder.GetBufferPointer())->turns_of_lane(), 3U);
}

TEST(Timings, WithAReferenceTimesAreRelativeToIt) {
  const wire::Bytes bytes = record_of(
      {{{steady("forward host warm", 1500, 6, 3)}}, {{steady("forward host warm", 1000, 4, 3)}}});
  const auto parts = timed_parts(root(bytes));
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_THAT(parts[0].beside_reference, ElementsAre(DoubleEq(1.5), DoubleEq(1.5)));
}

TEST(Timings, TimesForPeople) {
  EXPECT_EQ(time_text(12.3), "12.3 ns");
  EXPECT_EQ(time_text(2100000), "2.1 ms");
  EXPECT_EQ(time_text(3.5e12), "3.5e+03 s");
}

}  // namespace
}  // namespace assay
