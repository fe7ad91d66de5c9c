// Lists of known faults, which hold no counts.

#include "base/atomic_file.h"
#include "compared_runs.h"
#include "report/baseline.h"

namespace assay {
namespace {

using testing::after;
using testing::before;
using testing::came_to;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::mismatch;
using ::testing::Not;
using testing::not_finite;
using testing::past_of;
using testing::run_of;
using testing::said;
using testing::Standing;
using testing::StoredRun;
using testing::wrong;

constexpr const char* kList =
    "# Kept by people.\nversion = 2\n\n[settings]\n\"paddle\" = \"3.3.1\"\n\n"
    "# issue 71234\n[[fault]]\napi = \"paddle.f\"\noutcome = \"mismatch\"\nwhere = \"result\"\n"
    "how = \"value\"\nreason = \"off by one\"\nupstream = \"\"\n\n"
    "[[fault]]\napi = \"paddle.relu\"\noutcome = \"mismatch\"\nwhere = \"result\"\n"
    "how = \"NaN or infinity wrong\"\nvalues = [\"nan\"]\nreason = \"relu(NaN) is 0\"\nupstream = "
    "\"\"\n";

RunComparison against_list(RunReader& now, const std::string& list = kList) {
  const testing::Folder folder;
  StoredRun::must(write_file(folder / "list.toml", list));
  return StoredRun::must(
      compare_runs(now, StoredRun::must(load_past((folder / "list.toml").string())), false));
}

TEST(FaultList, AFaultIsKnownInAnyNumberAndExtentOfCases) {
  Fault doubles = wrong("wide", 1e9);
  doubles.dtype = "float64";
  const auto now = run_of({{"paddle.f(1)", mismatch({wrong(), doubles})},
                           {"paddle.f(2)", mismatch({wrong("nan")})},
                           {"paddle.relu(1)", mismatch({not_finite()})}});
  const RunComparison comparison = against_list(now->store());
  EXPECT_THAT(said(comparison), IsEmpty());
  EXPECT_EQ(comparison.count(FaultState::known), 2U);
}

TEST(FaultList, OtherFaultsOfItsApisAreNew) {
  const auto now = run_of({{"paddle.f(1)", mismatch({not_finite()})},
                           {"paddle.f(2)", came_to(Outcome::crash)},
                           {"paddle.relu(1)", mismatch({not_finite("usual")})}});
  EXPECT_THAT(
      said(against_list(now->store())),
      ElementsAre("new crash paddle.f: m", "new mismatch paddle.f: NaN or infinity wrong",
                  "grown mismatch paddle.relu: NaN or infinity wrong; also under usual values"));
}

TEST(FaultList, NothingIsFixedOrLostAndOtherSettingsAreNotCompared) {
  const auto now = run_of({{"paddle.f(1)", came_to(Outcome::pass)},
                           {"paddle.f(2)", came_to(Outcome::no_kernel)},
                           {"paddle.relu(1)", came_to(Outcome::rejected)}},
                          {{"paddle", "3.3.1"}, {"seed", "7"}});
  const RunComparison comparison = against_list(now->store());
  EXPECT_THAT(said(comparison), IsEmpty());
  EXPECT_THAT(comparison.settings, IsEmpty());
  EXPECT_THAT(comparison_table(comparison), Not(HasSubstr("not kept")));
  // One fault with a number makes it the baseline of a run: what it does not list was judged.
  const std::string counted =
      std::string(kList).replace(std::string(kList).find("reason"), 0, "cases = 1\nof = 2\n");
  EXPECT_THAT(said(against_list(now->store(), counted)),
              ElementsAre("lost paddle.f", "rejected paddle.relu", "fixed mismatch paddle.f"));
}

TEST(FaultList, SettingsThatItStatesAreCompared) {
  const auto now = run_of({{"paddle.f(1)", came_to(Outcome::pass)}}, {{"paddle", "3.4.0"}});
  const RunComparison comparison = against_list(now->store());
  ASSERT_EQ(comparison.settings.size(), 1U);
  EXPECT_EQ(comparison.settings[0].now, "3.4.0");
}

TEST(FaultList, WritingAddsFaultsAndRegimesAndKeepsAllElse) {
  const testing::Folder folder;
  const auto file = folder / "list.toml";
  StoredRun::must(write_file(file, kList));
  const auto passing = run_of({{"paddle.f(1)", came_to(Outcome::pass)}}, {{"seed", "7"}});
  EXPECT_EQ(written(passing->store(), file), kList);
  const auto failing = run_of({{"paddle.f(1)", mismatch({wrong("wide")})},
                               {"paddle.g(1)", mismatch({wrong()})},
                               {"paddle.relu(1)", mismatch({not_finite("infinity")})},
                               {"paddle.relu(2)", came_to(Outcome::pass, kFlaky)}});
  StoredRun::must(failing->store().add_invalid({"a.txt:1", "paddle.(", "expected a name"}));
  const std::string text = written(failing->store(), file);
  std::string expected = kList;
  expected.replace(expected.find("[\"nan\"]"), 7, "[\"infinity\", \"nan\"]");
  expected.insert(expected.find("[[fault]]\napi = \"paddle.relu\""),
                  "[[fault]]\napi = \"paddle.g\"\noutcome = \"mismatch\"\nwhere = \"result\"\n"
                  "how = \"value\"\nvalues = [\"usual\"]\nreason = \"\"\nupstream = \"\"\n\n");
  EXPECT_EQ(text, expected);
  // A line that is no case is no fault of a framework.
  EXPECT_THAT(said(against_list(failing->store(), text)), ElementsAre(HasSubstr("new invalid")));
}

TEST(FaultList, KnownStandsForTheListsOfTheFrameworksOfTheRun) {
  const testing::Folder folder;
  StoredRun::must(write_file(folder / "paddle-3.3.1.toml", kList));
  const std::string other =
      std::string(kList).replace(std::string(kList).find("paddle.f"), 8, "paddle.g");
  StoredRun::must(write_file(folder / "torch-2.13.0.toml", other));
  const auto faults = [&](const std::string& paddle, const std::string& torch) {
    return StoredRun::must(load_shipped_faults(folder.path(), {{"test.lane", "paddle"},
                                                               {"reference.lane", "torch"},
                                                               {"paddle", paddle},
                                                               {"torch", torch}}));
  };
  const PastRun both = faults("3.3.1", "2.13.0+cpu");
  EXPECT_EQ(both.faults.size(), 3U);
  EXPECT_EQ(both.name, "known (paddle-3.3.1, torch-2.13.0)");
  EXPECT_EQ(both.notice, "");
  const PastRun newer = faults("3.4.0", "2.13.0+cpu");
  EXPECT_EQ(newer.faults.size(), 2U);
  EXPECT_EQ(newer.notice, "assay ships no known faults of paddle-3.4.0");
  // A run without its own reference lane has one framework.
  EXPECT_EQ(StoredRun::must(
                load_shipped_faults(folder.path(), {{"test.lane", "paddle"}, {"paddle", "3.3.1"}}))
                .name,
            "known (paddle-3.3.1)");
}

}  // namespace
}  // namespace assay
