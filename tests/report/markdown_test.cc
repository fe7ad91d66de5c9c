// The job summary of a run: its verdict first, a table of faults, never more than 60 lines.

#include "report/markdown.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "base/text.h"
#include "stored_run.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using testing::StoredRun;

Fault wrong_in(std::string leaf, std::string values = "usual") {
  Fault fault;
  fault.values = std::move(values);
  fault.leaf = std::move(leaf);
  fault.kinds = kValue;
  fault.dtype = "float32";
  fault.message = "got 3, expected 4";
  return fault;
}

Verdict mismatch_of(std::vector<Fault> faults) {
  return {Outcome::mismatch, kValue, 0, "", "got 3, expected 4", std::move(faults)};
}

PastRun baseline_of(std::string name = "known.toml") {
  PastRun past;
  past.name = std::move(name);
  past.is_baseline = true;
  past.coverage_is_complete = true;
  return past;
}

std::string summary_of(StoredRun& run, const PastRun* before = nullptr) {
  StoredRun::must(run.store().commit());
  const RunReport report = StoredRun::must(load_report(run.store()));
  std::optional<RunComparison> comparison;
  if (before != nullptr) comparison = StoredRun::must(compare_runs(run.store(), *before, false));
  const RunComparison* compared = comparison ? &*comparison : nullptr;
  const auto findings = StoredRun::must(findings_of(run.store(), compared));
  const RunVerdict verdict = verdict_of(report, compared, false, false);
  return markdown_summary({report, verdict, findings, compared, "my run"});
}

std::vector<std::string> rows_of(const std::string& summary) {
  std::vector<std::string> rows;
  for (const std::string& line : split_at(summary, '\n')) {
    if (line.starts_with("| ") && !line.starts_with("|  |")) rows.push_back(line);
  }
  return rows;
}

std::size_t cells_of(const std::string& row) {
  std::size_t bars = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] == '|' && (i == 0 || row[i - 1] != '\\')) ++bars;
  }
  return bars - 1;
}

TEST(Markdown, TheVerdictComesFirstAndThenWhatIsWorse) {
  StoredRun run;
  run.add("paddle.broke(Tensor([2], \"float32\"))",
          mismatch_of({wrong_in(""), wrong_in("", "nan")}));
  run.add("paddle.grew(1)", mismatch_of({wrong_in("[0]", "infinity")}));
  run.add("paddle.good(1)", {});
  run.add("paddle.mended(1)", {});
  run.add("paddle.lost(1)", {Outcome::no_kernel, 0, 0, "", "no kernel"});
  PastRun before = baseline_of();
  KnownFault& grew = before.faults[{"paddle.grew", Outcome::mismatch, "result[·]", "value"}];
  grew.sums = {1, {{"usual"}, {"float32"}, 0}};
  KnownFault& mended = before.faults[{"paddle.mended", Outcome::crash, "the test lane", "SIGSEGV"}];
  mended.sums.cases = 1;
  mended.upstream = "https://example.com/1";
  const std::string text = summary_of(run, &before);
  EXPECT_THAT(text, StartsWith("### :x: assay fails: 1 new fault, 1 fault that grew, 1 loss of "
                               "coverage against known.toml; 0 known, 1 fixed\n\n|  | API |"));
  const auto rows = rows_of(text);
  ASSERT_THAT(rows, SizeIs(4));
  EXPECT_THAT(rows[0], StartsWith("| new | `paddle.broke` | result | mismatch: value | got 3, "
                                  "expected 4 | nan, usual | float32 | 1 | `"));
  EXPECT_THAT(rows[0], HasSubstr(" api --api_config='paddle.broke(Tensor([2], \"float32\"))' "));
  EXPECT_THAT(rows[1], HasSubstr("| grown | `paddle.grew` | result\\[·\\] | mismatch: value; also "
                                 "under infinity values"));
  EXPECT_THAT(rows[2], HasSubstr("| lost | `paddle.lost` "));
  EXPECT_THAT(rows[3], HasSubstr("| fixed | `paddle.mended` | the test lane | crash: SIGSEGV |"));
  EXPECT_THAT(rows[3], HasSubstr("https://example.com/1"));
  EXPECT_THAT(text, HasSubstr("\n5 cases: 1 `no_kernel`, 2 `mismatch`, 2 `pass`"));
}

TEST(Markdown, ARunWithoutAPastListsItsFindings) {
  StoredRun run;
  run.add("paddle.broke(1)", mismatch_of({wrong_in("")}));
  run.add("paddle.good(1)", {});
  const std::string text = summary_of(run);
  EXPECT_THAT(text, StartsWith("### :x: assay fails: 1 of 2 cases failed: 1 mismatch\n"));
  EXPECT_THAT(rows_of(text), Contains(StartsWith("| fails | `paddle.broke` |")));
}

TEST(Markdown, TheWorstComesFirst) {
  StoredRun run;
  run.add("paddle.a(1)", mismatch_of({wrong_in("")}));
  run.add("paddle.a(2)", mismatch_of({wrong_in("")}));
  run.add("paddle.z(1)", {Outcome::crash, 0, 0, "test", "SIGSEGV"});
  const PastRun before = baseline_of();
  for (const PastRun* past : {static_cast<const PastRun*>(nullptr), &before}) {
    const auto rows = rows_of(summary_of(run, past));
    ASSERT_THAT(rows, SizeIs(2));
    EXPECT_THAT(rows[0], HasSubstr("`paddle.z` | the test lane | crash: SIGSEGV |  |"));
    EXPECT_THAT(rows[1], HasSubstr("`paddle.a`"));
  }
}

TEST(Markdown, WhereNothingIsWorseThereIsNoTable) {
  StoredRun run;
  run.add("paddle.good(1)", {});
  const PastRun before = baseline_of();
  const std::string text = summary_of(run, &before);
  EXPECT_THAT(text, StartsWith("### :white_check_mark: assay passes: nothing is worse against "
                               "known.toml; 0 known, 0 fixed\n"));
  EXPECT_THAT(rows_of(text), SizeIs(0));
}

TEST(Markdown, NothingInACaseIsMarkup) {
  StoredRun run;
  Fault raised;
  raised.outcome = Outcome::test_error;
  raised.lane = "test";
  raised.raised = "Error: <b> | @me *x* \xff\n## head";
  run.add("paddle.f(\"a|b`c\", ``, \"</td>\x01\")",
          {Outcome::test_error, 0, 0, "test", "m", {raised}});
  const PastRun before = baseline_of("a|b.toml");
  const std::string text = summary_of(run, &before);
  const auto rows = rows_of(text);
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(cells_of(rows[0]), 9U) << rows[0];
  EXPECT_THAT(rows[0], HasSubstr("\\<b\\> \\| \\@me \\*x\\*"));
  EXPECT_THAT(rows[0], HasSubstr("| ```"));  // a fence that the text does not hold
  EXPECT_THAT(text, Not(HasSubstr("\n## head")));
  EXPECT_THAT(text, HasSubstr("against a\\|b.toml"));
}

TEST(Markdown, AHugeRunHasAtMostSixtyLines) {
  StoredRun run;
  constexpr int kFaults = 3'000;
  for (int i = 0; i < kFaults; ++i) {
    run.add(fmt::format("paddle.f{}(1)", i), mismatch_of({wrong_in("")}));
  }
  const std::string list(5'000, '1');
  run.add(fmt::format("paddle.a({})", list), mismatch_of({wrong_in("")}));
  const PastRun before = baseline_of();
  const std::string text = summary_of(run, &before);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 60);
  EXPECT_LT(text.size(), 100'000U);
  EXPECT_THAT(text, HasSubstr(fmt::format("and {} more\n", kFaults + 1 - 40)));
  // No command is longer than a screen.
  EXPECT_THAT(rows_of(text)[0], HasSubstr(" repro 'my run' "));
}

TEST(Markdown, LanesOfOneBuildBothNameIt) {
  StoredRun run;
  run.add("torch.f(1)", {});
  const std::vector<std::pair<std::string, std::string>> properties{
      {"test.lane", "torch-test"},     {"test.framework", "torch"},
      {"reference.lane", "torch-ref"}, {"reference.framework", "torch"},
      {"torch-test", "2.13"},          {"torch-test.build", "2.13, commit abc"}};
  for (const auto& [key, value] : properties) {
    StoredRun::must(run.store().set_property(key, value));
  }
  EXPECT_THAT(summary_of(run), HasSubstr("; torch-test 2.13; torch-ref 2.13\n"));
}

TEST(Markdown, NamesTheBuildsOfBothSides) {
  StoredRun run;
  run.add("paddle.f(1)", {});
  StoredRun::must(run.store().set_property("test.lane", "paddle"));
  StoredRun::must(run.store().set_property("paddle.build", "3.3.1, commit bbb"));
  PastRun past = baseline_of();
  past.properties = {{"paddle.build", "3.3.1, commit aaa"}};
  EXPECT_THAT(
      summary_of(run, &past),
      HasSubstr("- paddle before: 3.3.1, commit aaa\n- paddle now:    3.3.1, commit bbb\n"));
}

}  // namespace
}  // namespace assay
