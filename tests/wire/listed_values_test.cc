// Records of cases that pass do not repeat long lists of input values.

#include "wire/listed_values.h"

#include <gmock/gmock.h>

#include <numeric>

#include "wire/messages_generated.h"

namespace assay::wire {
namespace {

Bytes record_with(const std::vector<std::vector<double>>& lists) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<Filling>> fillings;
  for (const std::vector<double>& list : lists) {
    const auto literal = builder.CreateVector(list);
    fillings.push_back(CreateFilling(builder, 3, 0.5, 2, 7, literal, 0xABCD));
  }
  const auto inputs = builder.CreateVector(fillings);
  LaneRecordBuilder lane(builder);
  lane.add_inputs(inputs);
  const auto lanes = builder.CreateVector(std::vector{lane.Finish()});
  const auto trials = builder.CreateVector(std::vector{CreateTrial(builder, 0, lanes)});
  RecordBuilder record(builder);
  record.add_version(kVersion);
  record.add_trials(trials);
  builder.Finish(record.Finish());
  return {bytes_of(builder).begin(), bytes_of(builder).end()};
}

TEST(ListedValues, LongListsBecomeEmptyAndAllElseStays) {
  std::vector<double> many(1000);
  std::iota(many.begin(), many.end(), 1);
  const Bytes whole = record_with({{1, 2, 3}, many});
  const Bytes smaller = without_listed_values(whole);
  const auto record = open<Record>(smaller);
  ASSERT_TRUE(record);
  const auto& inputs = *(*record)->trials()->Get(0)->lanes()->Get(0)->inputs();
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_THAT(*inputs.Get(0)->literal(), ::testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(inputs.Get(1)->literal()->size(), 0U);
  EXPECT_EQ(inputs.Get(1)->checksum(), 0xABCDU);
  EXPECT_EQ(inputs.Get(1)->extent(), 7);
  const auto zeros = std::count(smaller.begin(), smaller.end(), 0);
  EXPECT_GT(zeros, 8000);
}

TEST(ListedValues, ARecordWithoutTrialsStaysAsItIs) {
  flatbuffers::FlatBufferBuilder builder;
  RecordBuilder record(builder);
  record.add_version(kVersion);
  builder.Finish(record.Finish());
  const Bytes bytes(bytes_of(builder).begin(), bytes_of(builder).end());
  EXPECT_EQ(without_listed_values(bytes), bytes);
}

}  // namespace
}  // namespace assay::wire
