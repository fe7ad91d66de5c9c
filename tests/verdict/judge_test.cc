// judge(): all outcomes, which of two outcomes takes precedence, and the messages of mismatches.

#include "verdict/judge.h"

#include <gmock/gmock.h>

#include <array>
#include <csignal>
#include <limits>

#include "record.h"
#include "verdict/bar.h"
#include "verdict/messages.h"

namespace assay {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::LeafParts;
using testing::measured_leaf;
using ::testing::Not;
using testing::RecordParts;

Verdict judged(const RecordParts& parts, Policy policy = {},
               Agreement agreement = Agreement::within) {
  const wire::Bytes bytes = testing::make_record(parts);
  const auto record = wire::open<wire::Record>(bytes);
  EXPECT_TRUE(record.has_value());
  Rules rules;
  rules.agreement = agreement;
  rules.settings.error_bar = false;
  return judge(**record, policy, rules);
}

LeafParts floats(std::vector<float> left, std::vector<float> right) {
  return measured_leaf(DType::float32, left, right);
}

RecordParts with_output(const LeafParts& leaf) {
  RecordParts parts;
  parts.outputs = {leaf};
  return parts;
}

RecordParts lanes(wire::Status test, wire::Status reference) {
  RecordParts parts;
  parts.test.status = test;
  parts.reference.status = reference;
  return parts;
}

TEST(Judge, AgreeingResultsPass) {
  const Verdict verdict = judged(with_output(floats({1, 2}, {1, 2})));
  EXPECT_EQ(verdict.outcome, Outcome::pass);
  EXPECT_EQ(verdict.mismatch, 0);
  EXPECT_EQ(verdict.flags, 0);
  EXPECT_EQ(verdict.message, "");
}

struct LaneCase {
  wire::Status status;
  Outcome outcome;
};

// Outcomes that one lane decides, whichever lane it is.
TEST(Judge, OneLaneDecides) {
  const std::array<LaneCase, 7> cases{{
      {wire::Status::refused, Outcome::invalid},
      {wire::Status::unsupported, Outcome::unsupported},
      {wire::Status::skipped, Outcome::skip},
      {wire::Status::no_kernel, Outcome::no_kernel},
      {wire::Status::timed_out, Outcome::timeout},
      {wire::Status::out_of_memory, Outcome::oom},
      {wire::Status::crashed, Outcome::crash},
  }};
  for (const auto& [status, outcome] : cases) {
    const Verdict test = judged(lanes(status, wire::Status::ok));
    EXPECT_EQ(test.outcome, outcome) << wire::EnumNameStatus(status);
    EXPECT_EQ(test.lane, "paddle");
    const Verdict reference = judged(lanes(wire::Status::ok, status));
    EXPECT_EQ(reference.outcome, outcome) << wire::EnumNameStatus(status);
    EXPECT_EQ(reference.lane, "torch");
  }
}

TEST(Judge, AnExceptionIsAttributedToItsLane) {
  EXPECT_EQ(judged(lanes(wire::Status::raised, wire::Status::ok)).outcome, Outcome::test_error);
  EXPECT_EQ(judged(lanes(wire::Status::ok, wire::Status::raised)).outcome,
            Outcome::reference_error);
  EXPECT_EQ(judged(lanes(wire::Status::raised, wire::Status::raised)).outcome, Outcome::rejected);
}

// Both calls succeeded, but neither result could be copied: neither lane rejected the call.
TEST(Judge, ResultsThatCannotBeCopiedAreNoRejection) {
  RecordParts parts = lanes(wire::Status::raised, wire::Status::raised);
  parts.test.phase = parts.reference.phase = "copy";
  EXPECT_EQ(judged(parts).outcome, Outcome::test_error);
}

// The lane under test decides first: a reference without a kernel does not hide its crash.
TEST(Judge, TheTestLaneDecidesFirst) {
  const std::array<LaneCase, 8> ends{{
      {wire::Status::refused, Outcome::invalid},
      {wire::Status::unsupported, Outcome::unsupported},
      {wire::Status::skipped, Outcome::skip},
      {wire::Status::no_kernel, Outcome::no_kernel},
      {wire::Status::timed_out, Outcome::timeout},
      {wire::Status::out_of_memory, Outcome::oom},
      {wire::Status::crashed, Outcome::crash},
      {wire::Status::raised, Outcome::test_error},
  }};
  for (const LaneCase& test : ends) {
    for (const LaneCase& reference : ends) {
      const bool both =
          test.status == wire::Status::raised && reference.status == wire::Status::raised;
      EXPECT_EQ(judged(lanes(test.status, reference.status)).outcome,
                both ? Outcome::rejected : test.outcome)
          << wire::EnumNameStatus(test.status) << " and " << wire::EnumNameStatus(reference.status);
    }
  }
}

// A SIGKILL means a lack of memory only if the kernel reports one.
TEST(Judge, ADeathIsNamedBySignal) {
  RecordParts parts = lanes(wire::Status::crashed, wire::Status::ok);
  parts.test.signal = SIGFPE;
  EXPECT_EQ(judged(parts).outcome, Outcome::crash);
  EXPECT_THAT(judged(parts).message, HasSubstr("SIGFPE"));
  parts.test.signal = SIGKILL;
  EXPECT_EQ(judged(parts).outcome, Outcome::crash);
  parts.test.oom_killed = true;
  EXPECT_EQ(judged(parts).outcome, Outcome::oom);
  parts.test.status = wire::Status::timed_out;  // then it was assay that killed it
  EXPECT_EQ(judged(parts).outcome, Outcome::timeout);
}

TEST(Judge, AnErrorTellsItsPhaseOnOneLine) {
  RecordParts parts = lanes(wire::Status::raised, wire::Status::ok);
  parts.test.phase = "build";
  parts.test.error = "ValueError: a\nb";
  EXPECT_EQ(judged(parts).message, "in build: ValueError: a b");
}

TEST(Judge, KindsDoNotHideEachOther) {
  LeafParts leaf;
  leaf.left_shape = {2, 3};
  leaf.right_shape = {3, 2};
  leaf.left_dtype = DType::float64;
  RecordParts parts = with_output(leaf);
  LeafParts missing;
  missing.right_missing = true;
  missing.scalar_equal = false;
  parts.outputs.push_back(missing);
  parts.outputs.push_back(floats({1}, {2}));
  parts.gradients = {floats({1}, {2})};
  const Verdict verdict = judged(parts);
  EXPECT_EQ(verdict.outcome, Outcome::mismatch);
  EXPECT_EQ(verdict.mismatch, kStructure | kShape | kDtype | kValue | kGradient);
  EXPECT_EQ(describe_mismatch(verdict.mismatch), "structure, shape, dtype, value, gradient");
  EXPECT_THAT(verdict.message, HasSubstr("got float64[2, 3], expected float32[3, 2]"));
}

// Each kind of mismatch alone: nothing else is reported.
TEST(Judge, EachKindAlone) {
  LeafParts shape;
  shape.left_shape = {2};
  shape.right_shape = {1, 2};
  EXPECT_EQ(judged(with_output(shape)).mismatch, kShape);
  LeafParts dtype = floats({1}, {1});
  dtype.left_dtype = DType::float64;
  EXPECT_EQ(judged(with_output(dtype)).mismatch, kDtype);
  LeafParts kind;
  kind.right_kind = wire::LeafKind::integer;
  kind.scalar_equal = false;
  EXPECT_EQ(judged(with_output(kind)).mismatch, kStructure);
  LeafParts scalar;
  scalar.left_kind = scalar.right_kind = wire::LeafKind::text;
  scalar.scalar_equal = false;
  EXPECT_EQ(judged(with_output(scalar)).mismatch, kValue);
  EXPECT_EQ(judged(with_output(floats({1}, {2}))).mismatch, kValue);
  RecordParts gradient = with_output(floats({1}, {1}));
  gradient.gradients = {floats({1}, {2})};
  EXPECT_EQ(judged(gradient).mismatch, kGradient);
}

// The slot treats a missing gradient and a gradient of zeros as equal.
TEST(Judge, AnEqualMissingSideIsNoMismatch) {
  RecordParts parts = with_output(floats({1}, {1}));
  LeafParts left_out;
  left_out.right_missing = true;
  parts.gradients = {left_out};
  EXPECT_EQ(judged(parts).outcome, Outcome::pass);
}

TEST(Judge, ABrokenDistributionIsAValueMismatch) {
  LeafParts leaf;
  leaf.right_kind = wire::LeafKind::distribution;
  leaf.broken_distribution = "0.9 of the elements are kept, 0.5 were promised";
  const Verdict verdict = judged(with_output(leaf));
  EXPECT_EQ(verdict.mismatch, kValue);
  EXPECT_THAT(verdict.message, HasSubstr("0.5 were promised"));
}

TEST(Judge, WholeNumbersMustBeEqual) {
  const LeafParts leaf = measured_leaf<std::int64_t>(DType::int64, {1000, 5}, {1001, 5});
  const Verdict verdict = judged(with_output(leaf));  // 1000 and 1001 differ by less than rtol
  EXPECT_EQ(verdict.mismatch, kValue);
  EXPECT_THAT(verdict.message, HasSubstr("1 of 2 elements differ"));
  Policy loose;
  loose.exact_integers = false;
  EXPECT_EQ(judged(with_output(leaf), loose).outcome, Outcome::pass);
  // Above 2^53, neighbouring integers are the same double but still differ.
  const std::int64_t large = (std::int64_t{1} << 60) + 1;
  const auto far = measured_leaf<std::int64_t>(DType::int64, {large}, {large - 1});
  EXPECT_EQ(judged(with_output(far)).mismatch, kValue);
  const auto truth = measured_leaf<std::uint8_t>(DType::boolean, {1}, {0});
  EXPECT_EQ(judged(with_output(truth), {2, 2, true, ""}).mismatch, kValue);
}

TEST(Judge, APolicyMayAllowAShareOfOutliers) {
  std::vector<float> left(1000, 1.0F);
  const std::vector<float> right = left;
  left[7] = 5;
  Policy lenient;
  lenient.outliers = 0.001;
  EXPECT_EQ(judged(with_output(floats(left, right))).mismatch, kValue);
  EXPECT_EQ(judged(with_output(floats(left, right)), lenient).outcome, Outcome::pass);
  left[8] = 5;
  EXPECT_EQ(judged(with_output(floats(left, right)), lenient).mismatch, kValue);
  left[8] = 1;
  left[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(judged(with_output(floats(left, right)), lenient).mismatch, kValue);
}

TEST(Judge, ShapeEqualityAsksForNoValues) {
  LeafParts leaf = floats({1}, {9});
  leaf.equality = wire::Equality::shape;
  EXPECT_EQ(judged(with_output(leaf)).outcome, Outcome::pass);
  leaf.left_dtype = DType::int32;
  EXPECT_EQ(judged(with_output(leaf)).mismatch, kDtype);
}

TEST(Judge, NanAndInfinityCountAgainst) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(judged(with_output(floats({nan, inf}, {nan, inf}))).outcome, Outcome::pass);
  const Policy wide{1e30, 1e30, true, ""};
  EXPECT_EQ(judged(with_output(floats({nan}, {1})), wide).outcome, Outcome::mismatch);
  EXPECT_EQ(judged(with_output(floats({1}, {nan})), wide).outcome, Outcome::mismatch);
  EXPECT_EQ(judged(with_output(floats({inf}, {-inf})), wide).outcome, Outcome::mismatch);
}

TEST(Judge, TheRunsSettingsSwitchTheErrorBar) {
  LeafParts leaf = floats({1}, {1.5});  // far beyond atol and rtol
  leaf.apart = 0.5;                     // and within what rounding can do
  const wire::Bytes bytes = testing::make_record(with_output(leaf));
  const auto record = wire::open<wire::Record>(bytes);
  Rules rules;
  rules.settings.error_bar = true;
  EXPECT_EQ(judge(**record, {}, rules).outcome, Outcome::pass);
  rules.settings.error_bar = false;
  EXPECT_EQ(judge(**record, {}, rules).outcome, Outcome::mismatch);
}

TEST(Judge, AStatementThatIsNotTrueIsNamed) {
  LeafParts leaf;
  leaf.path = "result.the extreme is there";
  leaf.left_kind = leaf.right_kind = wire::LeafKind::boolean;
  leaf.left_text = "False";
  leaf.scalar_equal = false;
  EXPECT_THAT(judged(with_output(leaf)).message, EndsWith("this does not hold"));
  leaf.left_text = "True";
  EXPECT_THAT(judged(with_output(leaf)).message, EndsWith("does not hold for the reference"));
  leaf.left_text = "False";
  leaf.path = "[0]";
  EXPECT_THAT(judged(with_output(leaf)).message, HasSubstr("got boolean False, expected boolean"));
}

TEST(Judge, EqualBitsMeansTheSignsOfZeros) {
  const auto verdict = [](float left, float right) {
    LeafParts leaf = floats({left, 1}, {right, 1});
    leaf.equality = wire::Equality::bits;
    const wire::Bytes bytes = testing::make_record(with_output(leaf));
    Rules rules;
    rules.settings.error_bar = true;
    return judge(**wire::open<wire::Record>(bytes), {}, rules);
  };
  EXPECT_EQ(verdict(0.0F, 0.0F).outcome, Outcome::pass);
  EXPECT_THAT(verdict(0.0F, -0.0F).message,
              HasSubstr("1 of 2 elements are zeros of the other sign"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(verdict(nan, -nan).outcome, Outcome::pass);
}

TEST(Judge, AToleranceOfItsOwnGoesBeforeTheErrorBarAndOutliersDoNot) {
  LeafParts leaf = floats({1}, {1.5});
  leaf.apart = 0.5;
  const wire::Bytes bytes = testing::make_record(with_output(leaf));
  const auto record = wire::open<wire::Record>(bytes);
  Rules rules;
  rules.settings.error_bar = true;
  Policy policy;
  policy.reason = "why";
  EXPECT_EQ(judge(**record, policy, rules).outcome, Outcome::mismatch);
  policy.outliers = 1e-6;
  EXPECT_EQ(judge(**record, policy, rules).outcome, Outcome::pass);
}

// Errors are in units of the possible rounding error.
TEST(Judge, TheReferenceIsBlamedOnlyForLargeErrors) {
  const auto verdict = [](double test, double reference) {
    flatbuffers::FlatBufferBuilder builder;
    const auto of_test = wire::CreateDistance(builder, test);
    const auto of_reference = wire::CreateDistance(builder, reference);
    builder.Finish(wire::CreateBar(builder, of_test, of_reference));
    return judge_bar(*flatbuffers::GetRoot<wire::Bar>(builder.GetBufferPointer()));
  };
  EXPECT_EQ(verdict(7, 0), BarVerdict::right);
  EXPECT_EQ(verdict(9, 0), BarVerdict::test_wrong);
  EXPECT_EQ(verdict(9, 3), BarVerdict::right);
  EXPECT_EQ(verdict(0, 9), BarVerdict::right);  // PyTorch's noise
  EXPECT_EQ(verdict(0, 65), BarVerdict::reference_wrong);
  EXPECT_EQ(verdict(20, 65), BarVerdict::right);
}

TEST(Judge, TheMessageSaysWhatIsWrongOrMissing) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  flatbuffers::FlatBufferBuilder builder;
  const auto test = wire::CreateDistance(builder, 0, 3, 0, 2);
  const auto reference = wire::CreateDistance(builder, 0, 3);
  const auto bar = wire::CreateBar(builder, test, reference, 0, kNan, kNan);
  const auto measured = wire::CreateMeasurement(builder, 8, 6);
  wire::SideBuilder side(builder);
  side.add_dtype(static_cast<std::uint8_t>(DType::float32));
  const auto left = side.Finish();
  wire::ComparisonBuilder made(builder);
  made.add_left(left);
  made.add_measurement(measured);
  made.add_bar(bar);
  builder.Finish(made.Finish());
  EXPECT_EQ(
      bar_text(*flatbuffers::GetRoot<wire::Comparison>(builder.GetBufferPointer())),
      "2 of 8 elements differ; at element 3: 0 where nan is right (nan by the reference): NaN "
      "or infinity is wrong or missing in 2 elements; the reference: exact");
}

TEST(Judge, StableModeAsksForTheSameBits) {
  const auto almost = floats({1.0F}, {1.0F + std::numeric_limits<float>::epsilon()});
  EXPECT_EQ(judged(with_output(almost), {}, Agreement::within).outcome, Outcome::pass);
  EXPECT_EQ(judged(with_output(almost), {}, Agreement::bits).outcome, Outcome::unstable);
  EXPECT_EQ(judged(with_output(floats({0.0F}, {-0.0F})), {}, Agreement::bits).outcome,
            Outcome::unstable);
  EXPECT_EQ(judged(with_output(floats({3}, {3})), {}, Agreement::bits).outcome, Outcome::pass);
}

TEST(Judge, AloneAsksOnlyWhetherItRuns) {
  RecordParts parts;
  parts.two_lanes = false;
  EXPECT_EQ(judged(parts, {}, Agreement::runs).outcome, Outcome::pass);
  parts.test.status = wire::Status::raised;
  EXPECT_EQ(judged(parts, {}, Agreement::runs).outcome, Outcome::test_error);
}

TEST(Judge, GoldensOfOtherInputsAreNoResults) {
  RecordParts parts = with_output(floats({1, 2}, {1, 2}));
  parts.reference.goldens = "assay 0.0.9";
  EXPECT_EQ(judged(parts).outcome, Outcome::pass);
  parts.reference.checksums = {8};
  const Verdict verdict = judged(parts);
  EXPECT_EQ(verdict.outcome, Outcome::invalid);
  EXPECT_THAT(verdict.message, HasSubstr("the goldens, which assay 0.0.9 recorded"));
}

TEST(Judge, AnAbsentGoldenIsNoPass) {
  const Verdict verdict = judged(lanes(wire::Status::ok, wire::Status::absent));
  EXPECT_EQ(verdict.outcome, Outcome::no_golden);
  EXPECT_EQ(judged(lanes(wire::Status::crashed, wire::Status::absent)).outcome, Outcome::crash);
}

// With different inputs there is nothing to compare.
TEST(Judge, DifferentInputsAreNoVerdict) {
  RecordParts parts = with_output(floats({1}, {2}));
  parts.reference.checksums = {8};
  EXPECT_EQ(judged(parts).outcome, Outcome::invalid);
  parts.reference.checksums = {7, 7};
  EXPECT_EQ(judged(parts).outcome, Outcome::invalid);
}

// A lane that raised only in backward has its outputs, and they are compared.
TEST(Judge, OutputsCountWhenOnlyBackwardFailed) {
  RecordParts parts = with_output(floats({1}, {2}));
  parts.test.status = wire::Status::raised;
  parts.test.phase = "backward";
  EXPECT_EQ(judged(parts).outcome, Outcome::mismatch);
  parts.outputs = {floats({1}, {1})};
  EXPECT_EQ(judged(parts).outcome, Outcome::test_error);
  parts.reference.status = wire::Status::raised;
  parts.reference.phase = "backward";
  EXPECT_EQ(judged(parts).outcome,
            Outcome::rejected);  // both refuse to differentiate: said, not passed
}

TEST(Judge, ALeakIsAFlagBesideAnyOutcome) {
  RecordParts parts = with_output(floats({1}, {2}));
  parts.reference.grown_kb = 513 * 1024;
  EXPECT_EQ(judged(parts).outcome, Outcome::mismatch);
  EXPECT_EQ(judged(parts).flags, kLeaked);
  EXPECT_EQ(describe_flags(kLeaked | kFlaky | kContaminated), "contaminated, flaky, leaked");
  parts.reference.grown_kb = 512 * 1024;
  EXPECT_EQ(judged(parts).flags, 0);
  parts.test.left_running = true;
  EXPECT_EQ(judged(parts).flags, kLeftRunning);
  parts.test.changed_state = true;
  EXPECT_EQ(judged(parts).flags, kLeftRunning | kChangedState);
  EXPECT_EQ(describe_flags(kLeftRunning | kWeak), "left processes, weak");
}

TEST(Judge, AComparisonWithItselfIsNoPassAndHidesNoFault) {
  RecordParts parts = with_output(floats({1}, {1}));
  EXPECT_EQ(judged(parts).outcome, Outcome::pass);
  parts.test.self_only = true;
  EXPECT_EQ(judged(parts).outcome, Outcome::self_only);
  EXPECT_THAT(judged(parts).message, HasSubstr("compared only with itself"));
  parts = with_output(floats({1}, {2}));
  parts.test.self_only = true;
  EXPECT_EQ(judged(parts).outcome, Outcome::mismatch);
}

// Two frameworks run a case twice each: bits must be equal within a framework, results across.
Verdict judged_stable(const std::vector<float>& test_again, const std::vector<float>& reference) {
  const std::vector<float> first{1.0F, 2.0F};
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::LaneRecord>> lanes;
  for (const char* name : {"paddle#1", "paddle#2", "torch#1", "torch#2"}) {
    const bool test = std::string_view(name).starts_with("paddle");
    lanes.push_back(
        testing::add_lane(builder, {}, name, test ? wire::Role::test : wire::Role::reference));
  }
  const std::array<std::vector<float>, 4> results{first, test_again, reference, reference};
  std::vector<flatbuffers::Offset<wire::Pair>> pairs;
  for (std::uint8_t left = 0; left < 4; ++left) {
    for (std::uint8_t right = left + 1; right < 4; ++right) {
      const auto outputs = builder.CreateVector(std::vector<flatbuffers::Offset<wire::Comparison>>{
          testing::add_leaf(builder, floats(results[left], results[right]))});
      pairs.push_back(wire::CreatePair(builder, left, right, outputs, 0, false));
    }
  }
  const auto lane_vector = builder.CreateVector(lanes);
  const auto pair_vector = builder.CreateVector(pairs);
  const auto values = builder.CreateString("usual");
  const auto trials = builder.CreateVector(std::vector<flatbuffers::Offset<wire::Trial>>{
      wire::CreateTrial(builder, values, lane_vector, pair_vector)});
  builder.Finish(wire::CreateRecord(builder, wire::kVersion, 1, 1, false, 0, trials, 0.01, 0.01));
  const auto bytes = wire::bytes_of(builder);
  const wire::Bytes record(bytes.begin(), bytes.end());
  return judge(**wire::open<wire::Record>(record), {}, {{}, Agreement::stable});
}

TEST(Judge, StabilityWantsBitsWithinAFrameworkAndTheToleranceAcross) {
  EXPECT_EQ(judged_stable({1.0F, 2.0F}, {1.0F, 2.001F}).outcome, Outcome::pass);
  const Verdict unstable = judged_stable({1.0F, 2.0001F}, {1.0F, 2.0F});
  EXPECT_EQ(unstable.outcome, Outcome::unstable);
  EXPECT_EQ(unstable.lane, "paddle#1");
  EXPECT_THAT(unstable.message, HasSubstr("paddle#1 against paddle#2"));
  const Verdict mismatch = judged_stable({1.0F, 2.0F}, {1.0F, 3.0F});
  EXPECT_EQ(mismatch.outcome, Outcome::mismatch);
  EXPECT_THAT(mismatch.message, HasSubstr("paddle#1 against torch#1"));
  // Both at once: unstable takes precedence.
  EXPECT_EQ(judged_stable({1.0F, 5.0F}, {1.0F, 3.0F}).outcome, Outcome::unstable);
}

TEST(Judge, AFailureUnderOtherValuesIsNotHiddenByAMissingKernel) {
  flatbuffers::FlatBufferBuilder builder;
  const auto trial = [&](const char* values, wire::Status status) {
    testing::LaneParts parts;
    parts.status = status;
    const auto test = testing::add_lane(builder, parts, "paddle", wire::Role::test);
    const auto reference = testing::add_lane(builder, {}, "torch", wire::Role::reference);
    const auto lanes_of_trial = builder.CreateVector(std::vector{test, reference});
    return wire::CreateTrial(builder, builder.CreateString(values), lanes_of_trial, 0);
  };
  const auto trials = builder.CreateVector(std::vector{trial("usual", wire::Status::ok),
                                                       trial("exact", wire::Status::no_kernel),
                                                       trial("layout", wire::Status::raised)});
  builder.Finish(wire::CreateRecord(builder, wire::kVersion, 1, 1, false, 0, trials, 0.01, 0.01));
  const auto bytes = wire::bytes_of(builder);
  const wire::Bytes record(bytes.begin(), bytes.end());
  const Verdict verdict = judge(**wire::open<wire::Record>(record), {}, Rules());
  EXPECT_EQ(verdict.outcome, Outcome::test_error);
  EXPECT_THAT(verdict.message, HasSubstr("layout values"));
}

}  // namespace
}  // namespace assay
