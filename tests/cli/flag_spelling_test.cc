#include "cli/flag_spelling.h"

#include <gmock/gmock.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <array>
#include <string>
#include <vector>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

class Words : public ::testing::Test {
 protected:
  Words() : app_("Tests things.", "assay") {
    app_.require_subcommand(1);
    CLI::App* look = app_.add_subcommand("look", "Looks at a file");
    look->add_option("FILE", text_, "What to look at");
    look->add_option("--log_dir", text_, "engineV2's spelling");
    look->add_option("--test-lane", text_, "assay's own spelling");
    CLI::App* timeline = app_.add_subcommand("timeline", "Traces");
    timeline->require_subcommand(1);
    timeline->add_subcommand("merge", "Makes one trace")->add_option("--out", text_, "A folder");
    app_.add_subcommand("slot", "(internal)")->group("");
  }

  std::vector<std::string> spelled(const std::vector<std::string>& words) {
    const auto result = spelled_words(app_, words, kElsewhere);
    EXPECT_TRUE(result) << result.error().message;
    return result.value_or(std::vector<std::string>{});
  }
  std::string refused(const std::vector<std::string>& words) {
    const auto result = spelled_words(app_, words, kElsewhere);
    EXPECT_FALSE(result);
    return result ? "" : result.error().message;
  }

  static constexpr std::array<std::string_view, 1> kElsewhere{"chain"};
  CLI::App app_;
  std::string text_;
};

TEST_F(Words, DashesAndUnderscoresAreInterchangeable) {
  EXPECT_THAT(spelled({"look", "--log-dir=a-b_c", "--test_lane", "my-lane"}),
              ElementsAre("look", "--log_dir=a-b_c", "--test-lane", "my-lane"));
  EXPECT_THAT(spelled({"look", "--log_dir", "--test-lane=x=y"}),
              ElementsAre("look", "--log_dir", "--test-lane=x=y"));
}

TEST_F(Words, WordsAfterTwoDashesStay) {
  const std::vector<std::string> words{"look", "file", "--", "--log-dir", "--anything", "merge"};
  EXPECT_THAT(spelled(words), ElementsAreArray(words));
}

TEST_F(Words, OperandsOfAVerbAreNotVerbs) {
  EXPECT_THAT(spelled({"look", "loook", "-x", "timeline"}),
              ElementsAre("look", "loook", "-x", "timeline"));
}

TEST_F(Words, ATruthFlagLeavesAFileAlone) {
  bool quiet = false;
  CLI::App* api = app_.add_subcommand("api", "Runs cases");
  api->add_option("FILE", text_, "Cases");
  api->add_option("-q,--quiet", quiet, "Less")->expected(0, 1)->type_name("BOOL");
  EXPECT_THAT(spelled({"api", "--quiet", "cases.txt"}),
              ElementsAre("api", "--quiet=True", "cases.txt"));
  EXPECT_THAT(spelled({"api", "-q", "cases.txt"}), ElementsAre("api", "--quiet=True", "cases.txt"));
  EXPECT_THAT(spelled({"api", "--quiet", "no", "-"}), ElementsAre("api", "--quiet", "no", "-"));
  EXPECT_THAT(spelled({"api", "--quiet", "-k"}), ElementsAre("api", "--quiet", "-k"));
  EXPECT_EQ(refused({"--quiet=True", "cases.txt"}),
            "--quiet is a flag of a verb: `assay api --quiet`");
}

TEST_F(Words, AnUnknownFlagHasItsNearestName) {
  EXPECT_EQ(refused({"look", "--log-dri=x"}),
            "unknown flag --log-dri of `assay look`; did you mean '--log_dir'?");
  EXPECT_EQ(refused({"look", "--something"}),
            "unknown flag --something of `assay look`; `assay look --help` lists all flags");
  EXPECT_EQ(
      refused({"timeline", "merge", "--log_dir=x"}),
      "unknown flag --log_dir of `assay timeline merge`; `assay timeline merge --help` lists all "
      "flags");
}

TEST_F(Words, AnUnknownVerbHasItsNearestName) {
  EXPECT_EQ(refused({"lok"}), "unknown verb 'lok'; did you mean 'look'?");
  EXPECT_EQ(refused({"slto"}), "unknown verb 'slto'; `assay help` lists all verbs");
  EXPECT_EQ(refused({"timeline", "mrege"}), "unknown verb 'mrege'; did you mean 'merge'?");
}

TEST_F(Words, AVerbOfTheFullProgramSaysHowToBuildIt) {
  EXPECT_EQ(refused({"chain", "check"}),
            "this build has the verbs for API cases only; `make build` adds `chain` "
            "(build/release/bin/assay)");
  EXPECT_EQ(refused({"chian"}), "unknown verb 'chian'; did you mean 'chain'?");
}

}  // namespace
}  // namespace assay
