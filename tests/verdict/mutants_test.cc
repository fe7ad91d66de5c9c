// Planted faults: each gets a fate, and verdicts ignore them.

#include "verdict/mutants.h"

#include <gmock/gmock.h>

#include "record.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using testing::LaneParts;
using testing::LeafParts;
using testing::measured_leaf;

// A trial whose only result is this far from the reference.
struct TrialParts {
  std::string mutant;
  std::string values = "usual";
  float off = 0;
  std::string skipped = {};
};

flatbuffers::Offset<wire::Trial> add_trial(flatbuffers::FlatBufferBuilder& builder,
                                           const TrialParts& parts) {
  const auto values = builder.CreateString(parts.values);
  const auto mutant = parts.mutant.empty() ? flatbuffers::Offset<flatbuffers::String>()
                                           : builder.CreateString(parts.mutant);
  if (!parts.skipped.empty()) {
    const auto skipped = builder.CreateString(parts.skipped);
    return wire::CreateTrial(builder, values, 0, 0, skipped, mutant);
  }
  LaneParts planted;
  planted.error = parts.mutant.empty() ? "" : "float32 result[0]";
  const auto test = testing::add_lane(builder, planted, "paddle", wire::Role::test);
  const auto reference = testing::add_lane(builder, {}, "torch", wire::Role::reference);
  const auto lanes =
      builder.CreateVector(std::vector<flatbuffers::Offset<wire::LaneRecord>>{test, reference});
  const LeafParts leaf =
      measured_leaf<float>(DType::float32, {1 + parts.off, 2}, {1, 2}, {0.01, 0.01});
  const auto outputs = builder.CreateVector(
      std::vector<flatbuffers::Offset<wire::Comparison>>{testing::add_leaf(builder, leaf)});
  const auto pairs = builder.CreateVector(std::vector<flatbuffers::Offset<wire::Pair>>{
      wire::CreatePair(builder, 0, 1, outputs, 0, false)});
  return wire::CreateTrial(builder, values, lanes, pairs, 0, mutant);
}

wire::Bytes record_of(const std::vector<TrialParts>& parts) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::Trial>> trials;
  for (const TrialParts& trial : parts) trials.push_back(add_trial(builder, trial));
  const auto vector = builder.CreateVector(trials);
  builder.Finish(wire::CreateRecord(builder, wire::kVersion, 1, 1, false, 0, vector, 0.01, 0.01));
  const auto bytes = wire::bytes_of(builder);
  return {bytes.begin(), bytes.end()};
}

std::vector<Mutant> mutants_of(const std::vector<TrialParts>& parts) {
  const wire::Bytes bytes = record_of(parts);
  return judge_mutants(**wire::open<wire::Record>(bytes), {}, Rules());
}

TEST(Mutants, AFaultBeyondTheToleranceIsKilledAndOneWithinSurvives) {
  const auto found = mutants_of({{}, {"large", "usual", 1}, {"small", "usual", 0.001F}});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].fault, "large");
  EXPECT_EQ(found[0].fate, Fate::killed);
  EXPECT_EQ(found[0].planted, "float32 result[0]");
  EXPECT_THAT(found[0].message, HasSubstr("1 of 2 elements differ"));
  EXPECT_EQ(found[1].fate, Fate::survived);
}

TEST(Mutants, TheReasonWhyThereIsNoMutantIsKept) {
  const auto found = mutants_of({{},
                                 {"one", "usual", 0, "equivalent: not a bit differs"},
                                 {"other", "usual", 0, "inapplicable: no NaN"}});
  EXPECT_EQ(found[0].fate, Fate::equivalent);
  EXPECT_EQ(found[1].fate, Fate::inapplicable);
  EXPECT_EQ(found[1].message, "inapplicable: no NaN");
}

TEST(Mutants, AreNotJudgedInRegimesInWhichTheCaseFailsAnyway) {
  const auto found = mutants_of(
      {{}, {"", "wide", 1}, {"large", "usual", 1}, {"large", "wide", 2}, {"large", "nan", 2}});
  EXPECT_EQ(found[0].fate, Fate::killed);
  EXPECT_EQ(found[1].fate, Fate::unjudged);  // it fails there without the fault
  EXPECT_EQ(found[2].fate, Fate::unjudged);  // it was not run there without the fault
}

TEST(Mutants, DoNotChangeTheVerdict) {
  const wire::Bytes bytes = record_of({{}, {"large", "usual", 1}});
  EXPECT_EQ(judge(**wire::open<wire::Record>(bytes), {}, Rules()).outcome, Outcome::pass);
}

}  // namespace
}  // namespace assay
