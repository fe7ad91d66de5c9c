#include "schedule/cost.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "case/parser.h"

namespace assay {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();

Cost cost_of(const std::string& text) {
  Case parsed;
  EXPECT_TRUE(parse_case(text, parsed).has_value()) << text;
  return estimate_cost(parsed);
}

// The borders as the engine's users know them: ≤ 1M 90 s, ≤ 10M 300 s, ≤ 100M 1800 s, above 3600 s.
TEST(Cost, LimitsChangeBehindTheirBorders) {
  EXPECT_EQ(time_limit_ms(0), 90'000U);
  EXPECT_EQ(time_limit_ms(1'000'000), 90'000U);
  EXPECT_EQ(time_limit_ms(1'000'001), 300'000U);
  EXPECT_EQ(time_limit_ms(10'000'000), 300'000U);
  EXPECT_EQ(time_limit_ms(10'000'001), 1'800'000U);
  EXPECT_EQ(time_limit_ms(100'000'000), 1'800'000U);
  EXPECT_EQ(time_limit_ms(100'000'001), 3'600'000U);
  EXPECT_EQ(time_limit_ms(kMost), 3'600'000U);
}

TEST(Cost, CountsAllTensorsOfACase) {
  const Cost cost =
      cost_of(R"(paddle.add(Tensor([1000, 500], "float32"), y=Tensor([500001], "int8")))");
  EXPECT_EQ(cost.elements, 1'000'001U);
  EXPECT_GE(cost.bytes, 2 * (500'000 * 4 + 500'001));  // inputs and at least one result
}

// A call that makes a large tensor from a list is not as cheap as its inputs look.
TEST(Cost, AListMayBeAShape) {
  EXPECT_EQ(cost_of("paddle.zeros(list[10000, 10000])").elements, 100'000'000U);
  EXPECT_EQ(cost_of("paddle.zeros(list[10001, 10000])").elements, 100'010'000U);
  EXPECT_GE(cost_of("paddle.zeros(list[10000, 10000])").bytes, 400'000'000U);
  EXPECT_EQ(cost_of(R"(paddle.tile(Tensor([2], "float32"), list[3, 4]))").elements, 2U);
  EXPECT_EQ(cost_of("paddle.full(list[-1, 2000000], 1)").elements, 2'000'000U);
}

// 40 · 76 indices, each a row of 33,712.
TEST(Cost, SomeResultsAreProducts) {
  const char* hot =
      R"(paddle.nn.functional.one_hot(x=Tensor([40, 76],"int64"), num_classes=33712))";
  EXPECT_EQ(cost_of(hot).elements, 3040U + 3040U * 33712U);
  EXPECT_GE(cost_of(hot).bytes, 3040U * 33712U * 4);
  EXPECT_EQ(cost_of(R"(paddle.tile(Tensor([3000], "int8"), [1000, 2]))").elements, 6'003'000U);
  EXPECT_EQ(cost_of(R"(paddle.add(Tensor([3000, 1], "int8"), Tensor([1000], "int8")))").elements,
            3'004'000U);
  EXPECT_EQ(
      cost_of(R"(paddle.gather(Tensor([3000, 1], "int8"), Tensor([1000], "int64")))").elements,
      4000U);
  EXPECT_EQ(cost_of(R"(paddle.add(Tensor([3000, 1000], "int8"), Tensor([1000], "int8")))").elements,
            3'001'000U);
  EXPECT_EQ(cost_of(R"(paddle.matmul(Tensor([3000, 7], "int8"), Tensor([8, 1], "int8")))").elements,
            21'008U);
  EXPECT_EQ(cost_of(R"(paddle.repeat_interleave(Tensor([9, 20], "int8"), 15548, axis=0))").elements,
            180U + 180U * 15548U);
  EXPECT_EQ(cost_of(R"(paddle.nn.functional.interpolate(Tensor([4, 128, 6, 6], "int8"), [64, 64]))")
                .elements,
            4U * 128 * 36 + 4U * 128 * 64 * 64);
  // An empty image is pooled to a full one.
  EXPECT_EQ(cost_of("paddle.nn.functional.adaptive_avg_pool2d(Tensor([128, 1024, 0, 80], "
                    "\"float32\"), [1, 40])")
                .elements,
            128U * 1024 * 40);
  // -1 keeps the extent that lies above it.
  EXPECT_EQ(cost_of(R"(paddle.Tensor.expand(Tensor([30000, 1], "int8"), [2, -1, 50]))").elements,
            3'030'000U);
  EXPECT_EQ(cost_of(R"(paddle.expand(Tensor([30000, 1], "int8"), [30000, 50]))").elements,
            1'530'000U);
  EXPECT_EQ(cost_of("paddle.eye(2000, 3000)").elements, 6'000'000U);
  EXPECT_EQ(cost_of(R"(paddle.roll(Tensor([3000], "int8"), 1000))").elements, 3000U);
}

TEST(Cost, WhatNoMachineHoldsSaturates) {
  const Cost cost =
      cost_of(R"(paddle.abs(Tensor([4294967296, 4294967296, 4294967296], "float32")))");
  EXPECT_EQ(cost.elements, kMost);
  EXPECT_EQ(cost.bytes, kMost);
  EXPECT_EQ(cost_of("paddle.zeros(list[4294967296, 4294967296, 2])").bytes, kMost);
  const char* two = R"(paddle.f(Tensor([9223372036854775807], "int8"), Tensor([2], "int8")))";
  EXPECT_EQ(cost_of(two).bytes, kMost);
  // Between the largest number with a sign and the largest without.
  EXPECT_EQ(cost_of(R"(paddle.split(Tensor([7168, 16384], "int8"), )"
                    "list[512, 1024, 512, 1024, 5120, 8192])")
                .elements,
            kMost);
}

// 2,912 · 512 · 33,712 multiplications take seconds, however few the elements.
TEST(Cost, ProductsTakeTheirTime) {
  constexpr std::uint64_t kSecond = 1'000'000;
  const auto work = [](const char* text) { return cost_of(text).work_us; };
  const auto plain = [](std::uint64_t elements) { return expected_work_us(elements); };
  const std::uint64_t transposed = work(
      R"(paddle.matmul(x=Tensor([112, 26, 512], "float32"), y=Tensor([33712, 512], "float32"), )"
      "transpose_y=True)");
  EXPECT_GT(transposed, 5 * kSecond);
  EXPECT_EQ(transposed, plain(112 * 26 * 512 + 33712 * 512) +
                            (work(R"(paddle.mm(Tensor([2912, 512], "float32"), )"
                                  R"(Tensor([512, 33712], "float32")))") -
                             plain(112 * 26 * 512 + 33712 * 512)));
  // A stack on the right, and vectors.
  EXPECT_GT(work(R"(paddle.matmul(Tensor([90, 256], "int8"), Tensor([4, 256, 67200], "int8")))"),
            plain(90 * 256 + 4 * 256 * 67200) + kSecond);
  EXPECT_EQ(work(R"(paddle.matmul(Tensor([256], "int8"), Tensor([256], "int8")))"), plain(512));
  EXPECT_GT(work(R"(paddle.nn.functional.conv2d(Tensor([30, 256, 160, 160], "int8"), )"
                 R"(Tensor([512, 256, 3, 3], "int8")))"),
            plain(30 * 256 * 160 * 160 + 512 * 256 * 9) + kSecond);
  EXPECT_GT(work(R"(paddle.matmul(Tensor([4611686018427387904, 2], "int8"), )"
                 R"(Tensor([2, 4611686018427387904], "int8")))"),
            kMost / 10'000);
}

// A lane that raised an error may have ended before it took all that it needs. One that ran out of
// memory says what it lacked.
TEST(Cost, MemoryOnAGpuIsThatOfTheLargestLaneThatTellsIt) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::LaneRecord>> lanes;
  for (const auto& [status, kb] :
       {std::pair(wire::Status::ok, 5), std::pair(wire::Status::ok, 7),
        std::pair(wire::Status::out_of_memory, 9), std::pair(wire::Status::raised, 11)}) {
    wire::LaneRecordBuilder lane(builder);
    lane.add_status(status);
    lane.add_device_kb(static_cast<std::uint64_t>(kb));
    lanes.push_back(lane.Finish());
  }
  const auto packed = builder.CreateVector(lanes);
  wire::TrialBuilder trial(builder);
  trial.add_lanes(packed);
  const auto trials = builder.CreateVector(std::vector{trial.Finish()});
  wire::RecordBuilder record(builder);
  record.add_trials(trials);
  builder.Finish(record.Finish());
  EXPECT_EQ(measured_device_bytes(*flatbuffers::GetRoot<wire::Record>(builder.GetBufferPointer())),
            9U * 1024);
}

}  // namespace
}  // namespace assay
