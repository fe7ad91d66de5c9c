#include "cli/description.h"

#include <gmock/gmock.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Description : public ::testing::Test {
 protected:
  Description() : app_("Tests things.", "assay") {
    app_.set_version_flag("--version", "assay 1");
    CLI::App* verb = app_.add_subcommand("look", "Looks at C:\\dir\n.and goes");
    verb->add_option("FILE", text_, "What to look at")->required();
    verb->add_option("--dir_with-both", text_, "Where")->capture_default_str();
    verb->add_flag("-q,--quiet", flag_, "Says nothing");
    verb->add_option("--secret", text_, "not for people")->group("");
    verb->add_option("--again", text_, "Once more")->expected(0, 1);
    verb->add_subcommand("closely", "Looks for long");
    app_.add_subcommand("slot", "(internal)")->group("");
  }

  CLI::App app_;
  std::string text_ = "here";
  bool flag_ = false;
};

TEST_F(Description, ThePageHasEachVerbAndOption) {
  const std::string page = man_page(app_, "1.2");
  EXPECT_THAT(page, HasSubstr(".TH ASSAY 1 \"\" \"assay 1.2\"\n"));
  EXPECT_THAT(page, HasSubstr("\n.SS assay look closely\nLooks for long\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fBFILE\\fR \\fITEXT\\fR\nWhat to look at\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB\\-\\-dir_with\\-both\\fR \\fITEXT=here\\fR\nWhere\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB\\-\\-again\\fR \\fITEXT\\fR\nOnce more\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB\\-q,\\-\\-quiet\\fR\nSays nothing\n"));
}

TEST_F(Description, RoffReadsNoTextAsItsOwn) {
  EXPECT_THAT(man_page(app_, "1"), HasSubstr("Looks at C:\\edir\n\\&.and goes\n"));
}

TEST_F(Description, TheFlagPageHasTheSectionOfEachVerb) {
  const std::string page = flag_page(app_);
  EXPECT_THAT(page, HasSubstr("\n## assay look\n\nLooks at C:\\dir\n.and goes.\n\n"
                              "```text\nassay look [OPTIONS] FILE [SUBCOMMAND]\n```\n\n"));
  EXPECT_THAT(page, HasSubstr("\n### assay look closely\n\nLooks for long.\n"));
  EXPECT_THAT(page, HasSubstr("| `FILE` | required | What to look at. |\n"));
  EXPECT_THAT(page, HasSubstr("| `--dir_with-both` | `here` | Where. |\n"));
  EXPECT_THAT(page, HasSubstr("| `-q, --quiet` |  | Says nothing. |\n"));
}

TEST_F(Description, TheFlagPageSaysWhatAFlagNeeds) {
  CLI::App* verb = app_.get_subcommand("look");
  verb->get_option("--again")->needs(verb->get_option("--quiet"));
  EXPECT_THAT(flag_page(app_), HasSubstr("| `--again` |  | Once more. Needs `-q,--quiet`. |\n"));
}

TEST_F(Description, TheFlagPageListsAFlagOfTwoVerbsOnce) {
  for (const std::string name : {"walk", "run"}) {
    CLI::App* verb = app_.add_subcommand(name, "Moves");
    verb->add_option("--far", text_, "How far")->group("Places");
    verb->add_flag("--fast", flag_, "How fast to " + name);
    verb->add_option("TO", text_, "Where to")->required();
  }
  const std::string page = flag_page(app_);
  EXPECT_THAT(page, HasSubstr("**Places**\n\n| name | default | meaning |\n|---|---|---|\n"
                              "| `--far` |  | How far. |\n\n"
                              "**Options**\n\n| name | default | meaning |\n|---|---|---|\n"
                              "| `--fast` |  | How fast to walk. |\n"));
  EXPECT_EQ(page.find("How far."), page.rfind("How far."));
  EXPECT_THAT(page, HasSubstr("How fast to run. |\n"));
  EXPECT_THAT(page, HasSubstr("\nAs in [assay walk](#assay-walk): `--far`.\n"));
  EXPECT_NE(page.find("| `TO` | required |"), page.rfind("| `TO` | required |"));
}

TEST_F(Description, TheFlagPageEscapesMarkdown) {
  app_.add_subcommand("try", "Tries")->add_option("--what", text_, "a|b, 'x/*.txt' or <none>");
  EXPECT_THAT(flag_page(app_), HasSubstr("| a\\|b, 'x/\\*.txt' or &lt;none>. |\n"));
}

TEST_F(Description, WhatHelpHidesIsHidden) {
  for (const std::string& text : {man_page(app_, "1"), bash_completion(app_), flag_page(app_)}) {
    EXPECT_THAT(text, Not(HasSubstr("secret")));
    EXPECT_THAT(text, Not(HasSubstr("slot")));
  }
}

TEST_F(Description, CompletionKnowsWhatFollowsEachVerb) {
  const std::string script = bash_completion(app_);
  EXPECT_THAT(script, HasSubstr("'assay') next='look --help --version' ;;"));
  EXPECT_THAT(script,
              HasSubstr("'assay look') next='closely --help --dir_with-both= --quiet --again' ;;"));
  EXPECT_THAT(script, HasSubstr("'assay look' | 'assay look closely') words="));
}

}  // namespace
}  // namespace assay
