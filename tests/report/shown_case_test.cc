// The values at the element that shows a fault, and everything that is known of one case.

#include "report/shown_case.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "../verdict/record.h"
#include "base/fd.h"
#include "report/findings.h"
#include "report/junit.h"
#include "stored_run.h"
#include "verdict/judge.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using testing::measured_leaf;
using ::testing::Not;
using testing::RecordParts;
using ::testing::SizeIs;
using testing::StoredRun;

// Adds a case whose inputs have these values, with the verdict of its record.
std::uint64_t add_failure(StoredRun& run, const std::string& text, RecordParts parts) {
  parts.reference.values = parts.test.values;
  const wire::Bytes record = testing::make_record(parts);
  const auto opened = StoredRun::must(wire::open<wire::Record>(record));
  return run.add(text, judge(*opened, {}, Rules()), record, 31'000);
}

ShownCase shown_of(StoredRun& run, const std::string& wanted) {
  const FoundCase found = StoredRun::must(find_planned_case(run.store(), wanted));
  const auto properties = StoredRun::must(run.store().properties());
  return StoredRun::must(shown_case(properties, found, run.folder().path()));
}

// paddle.add of [2, 3] and [3]: its element [1, 1] is wrong.
RecordParts wrong_sum() {
  RecordParts parts;
  parts.test.values = {{1, 2, 3, 4, 5, 6}, {10, 20, 30}};
  parts.outputs = {measured_leaf<double>(DType::float64, {11, 22, 33, 14, 25.000000000000004, 36},
                                         {11, 22, 33, 14, 26, 36})};
  parts.outputs[0].left_shape = parts.outputs[0].right_shape = {2, 3};
  return parts;
}

const std::string kSum = R"(paddle.add(Tensor([2, 3], "float64"), Tensor([3], "float64")))";

TEST(FaultElement, HasResultsAndInputsInFullPrecision) {
  StoredRun run;
  add_failure(run, kSum, wrong_sum());
  const ShownCase shows = shown_of(run, kSum);
  ASSERT_THAT(shows.elements, SizeIs(1));
  const FaultElement& element = shows.elements[0];
  EXPECT_EQ(element.where, "result[0]");
  EXPECT_EQ(element.position, "[1, 1]");
  EXPECT_EQ(element.index, 4U);
  EXPECT_EQ(element.got, "25.000000000000004");
  EXPECT_EQ(element.expected, "26");
  EXPECT_EQ(element.inputs_line(), "x0[1, 1] = 5.0, x1[1] = 20.0");
  ASSERT_THAT(element.inputs, SizeIs(2));
  EXPECT_EQ(element.inputs[0].whole, "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]");
  EXPECT_EQ(element.inputs[1].type, "float64[3]");
}

// An axis of extent 1 is repeated; a shape that cannot be broadcast has no element there.
TEST(FaultElement, FollowsBroadcasting) {
  StoredRun run;
  RecordParts parts = wrong_sum();
  parts.test.values = {{1, 2}, {7}, {1, 2, 3, 4}};
  add_failure(run,
              R"(paddle.f(Tensor([2, 1], "float32"), Tensor([], "int64"), Tensor([4], "float16")))",
              parts);
  const ShownCase shows = shown_of(run, "paddle.f");
  ASSERT_THAT(shows.elements, SizeIs(1));
  EXPECT_EQ(shows.elements[0].inputs_line(), "x0[1, 0] = 2.0, x1 = 7, x2 = [1.0, 2.0, 3.0, 4.0]");
}

TEST(FaultElement, LargeTensorsAreNotShownWhole) {
  StoredRun run;
  RecordParts parts;
  parts.test.values = {std::vector<double>(5000, 0.25), {1}};
  std::vector<float> right(5000, 1);
  std::vector<float> left = right;
  left[4321] = 3;
  parts.outputs = {measured_leaf(DType::float32, left, right)};
  add_failure(run, R"(paddle.g(Tensor([5000], "float32"), Tensor([1], "float32")))", parts);
  const ShownCase shows = shown_of(run, "paddle.g");
  ASSERT_THAT(shows.elements, SizeIs(1));
  EXPECT_EQ(shows.elements[0].inputs_line(), "x0[4321] = 0.25, x1[0] = 1.0");
  EXPECT_EQ(shows.elements[0].inputs[0].whole, "");
}

TEST(FaultElement, OfAShapeOrAnErrorIsWhatCame) {
  StoredRun run;
  RecordParts shape;
  shape.test.values = {{1}};
  shape.outputs = {measured_leaf<float>(DType::float32, {1}, {1})};
  shape.outputs[0].left_shape = {1, 1};
  add_failure(run, R"(paddle.f(Tensor([1], "float32")))", shape);
  EXPECT_EQ(shown_of(run, "paddle.f").elements.at(0).got, "float32[1, 1]");
  EXPECT_EQ(shown_of(run, "paddle.f").elements.at(0).expected, "float32[1]");
  RecordParts raises;
  raises.test.values = {{1}};
  raises.test.status = wire::Status::raised;
  raises.test.error = "ValueError: no";
  add_failure(run, R"(paddle.g(Tensor([1], "float32")))", raises);
  const FaultElement element = shown_of(run, "paddle.g").elements.at(0);
  EXPECT_EQ(element.got, "ValueError: no");
  EXPECT_EQ(element.position, "");
  EXPECT_EQ(element.inputs_line(), "x0 = [1.0]");
}

TEST(ShownCase, HasEverythingThatIsKnown) {
  StoredRun run;
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"mode", "accuracy"},
                                          {"test.lane", "paddle"},
                                          {"test.framework", "paddle"},
                                          {"paddle", "3.3.1"},
                                          {"paddle.build", "3.3.1, commit abc"},
                                          {"test.device", "cpu"},
                                          {"test.execution", "eager"}}) {
    StoredRun::must(run.store().set_property(key, value));
  }
  const std::uint64_t id = add_failure(run, kSum, wrong_sum());
  std::filesystem::create_directories(run.folder() / "lanes");
  StoredRun::must(open_for_append(run.folder() / "lanes" / "slot0-paddle-test.log"));
  const ShownCase shows = shown_of(run, format_case_id(id));
  EXPECT_EQ(shows.json["faults"][0]["element"]["inputs"][1]["value"], "20.0");
  const std::string page = case_page(shows, {});
  for (const std::string& text : std::vector<std::string>{
           kSum, format_case_id(id), "mismatch", "1 attempt, 0.031 s in its slot",
           "usual values, result[·]: value", "at [1, 1] (element 4) of result[0]",
           "got       25.000000000000004", "expected  26", "input     x1 float64[3] at [1]: 20.0",
           "3.3.1, commit abc, device cpu, eager", "usual      paddle ok", "slot0-paddle-test.log",
           fmt::format("api --api_config='{}'", kSum), "repro"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
}

TEST(ShownCase, ACaseWithoutARecordIsShown) {
  StoredRun run;
  run.plan("paddle.later(1)");
  run.add("paddle.odd(1)", {Outcome::unsupported, 0, 0, "", "no reference is registered"});
  EXPECT_THAT(case_page(shown_of(run, "paddle.later"), {}), HasSubstr("not finished: resume"));
  const std::string page = case_page(shown_of(run, "paddle.odd"), {});
  EXPECT_THAT(page, HasSubstr("unsupported"));
  EXPECT_THAT(page, HasSubstr("no reference is registered"));
}

TEST(ShownCase, ASkippedTrialHasItsReasonAndNoLanes) {
  StoredRun run;
  run.add_filled("paddle.abs(1)", {});
  const ShownCase shows = shown_of(run, "paddle.abs(1)");
  EXPECT_EQ(shows.json["trials"][1]["skipped"], "integers have no wide values");
  EXPECT_EQ(shows.json["trials"][1]["lanes"].size(), 0U);
}

// Blanks, quotes and trailing commas need not be those of the stored text.
TEST(ShownCase, IsFoundByAnySpellingOfItsText) {
  StoredRun run;
  add_failure(run, kSum, wrong_sum());
  EXPECT_EQ(
      shown_of(run, "paddle.add(Tensor([2,3],'float64'),Tensor([3], 'float64'),)").json["case"],
      kSum);
}

TEST(FaultElement, FindingsAndJunitHaveIt) {
  StoredRun run;
  add_failure(run, kSum, wrong_sum());
  auto findings = StoredRun::must(findings_of(run.store(), nullptr));
  StoredRun::must(add_elements(run.store(), findings));
  EXPECT_THAT(findings_table(findings, false, {}), HasSubstr("with x0[1, 1] = 5.0, x1[1] = 20.0"));
  EXPECT_EQ(findings_json(findings)[0]["element"]["got"], "25.000000000000004");
  const std::filesystem::path file = run.folder() / "junit.xml";
  StoredRun::must(write_junit(run.store(), {}, file));
  const std::string junit = StoredRun::must(read_file(file));
  EXPECT_THAT(junit, HasSubstr("got       25.000000000000004&#10;expected  26&#10;"));
  EXPECT_THAT(junit, HasSubstr("input     x0 float64[2, 3] at [1, 1]: 5.0"));
}

}  // namespace
}  // namespace assay
