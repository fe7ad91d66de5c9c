// Every dialect that is part of the program can be read, names its source; and how a file's dialect
// is found.

#include "chain/params/dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "chain/params/params.h"
#include "cli_run.h"

namespace assay::chain {
namespace {

using ::testing::HasSubstr;

TEST(Dialects, AllCanBeReadAndNameTheirSource) {
  for (const std::string_view text : params::dialect_texts()) {
    const auto dialect = params::read_dialect(text);
    ASSERT_TRUE(dialect) << dialect.error().message;
    EXPECT_TRUE(dialect->suite.repository.starts_with("https://")) << dialect->suite.name;
    EXPECT_GE(dialect->suite.commit.size(), 7U) << dialect->suite.name;
    for (const params::Layout& layout : dialect->layouts) {
      EXPECT_FALSE(layout.scripts.empty()) << dialect->suite.name << " " << layout.name;
      EXPECT_FALSE(layout.modes.empty()) << dialect->suite.name << " " << layout.name;
    }
  }
}

TEST(Dialects, AWrongLineIsNamed) {
  const auto wrong = params::read_dialect("dialect X\nkind a\nsection s\n  role nonsense = key\n");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("line 4"));
  EXPECT_THAT(wrong.error().message, HasSubstr("nonsense"));
}

TEST(Dialects, NoKindHasOneRoleTwice) {
  for (const params::Layout& layout : params::Dialects::known().layouts()) {
    std::set<std::string_view> roles;
    for (const params::SectionLayout& section : layout.sections) {
      for (const params::Place& place : section.places) {
        if (place.role.empty()) continue;
        EXPECT_TRUE(roles.insert(place.role).second)
            << layout.suite->name << " " << layout.name << " " << place.role;
      }
    }
  }
}

// The file of a phone is the same in two suites: its folder tells them apart, or --dialect does.
const char* const kPhone =
    "runtime_device:arm_cpu\nlite_arm_work_path:/data/\nlite_arm_so_path:lib.so\n"
    "clas_model_file:m\ninference_cmd:clas_system config.txt cat.jpg\n--num_threads_list:1\n"
    "--batch_size_list:1\n--precision_list:FP32\n";

TEST(Dialects, AFileThatFitsTwoIsRefusedWithBothNames) {
  const params::ParsedParams parsed = params::parse_params(kPhone);
  ASSERT_FALSE(parsed.good());
  EXPECT_THAT(parsed.problems.front().message, HasSubstr("PaddleClas"));
  EXPECT_THAT(parsed.problems.front().message, HasSubstr("models"));
  EXPECT_THAT(parsed.problems.front().message, HasSubstr("--dialect"));
}

TEST(Dialects, TheFolderDecides) {
  const auto parsed =
      params::parse_params(kPhone, {"/x/PaddleClas/test_tipc/configs/a/lite.txt", ""});
  ASSERT_TRUE(parsed.good());
  EXPECT_EQ(parsed.params.layout().suite->name, "PaddleClas");
}

TEST(Dialects, SoDoesThePackageBesideTestTipc) {
  Scratch scratch;
  std::filesystem::create_directories(scratch.path() / "ppcls");
  const auto path = scratch.path() / "test_tipc/configs/a/lite.txt";
  const auto parsed = params::parse_params(kPhone, {path.string(), ""});
  ASSERT_TRUE(parsed.good());
  EXPECT_EQ(parsed.params.layout().suite->name, "PaddleClas");
}

TEST(Dialects, TheOptionDecidesBeforeTheFolder) {
  const auto parsed =
      params::parse_params(kPhone, {"/x/PaddleClas/test_tipc/configs/a/lite.txt", "models"});
  ASSERT_TRUE(parsed.good());
  EXPECT_EQ(parsed.params.layout().suite->name, "models");
  const auto unknown = params::parse_params(kPhone, {"", "PaddleKlas"});
  ASSERT_FALSE(unknown.good());
  EXPECT_THAT(unknown.problems.front().message, HasSubstr("PaddleKlas"));
}

// ---- a suite of one's own: one file of data, and nothing else ----

const std::filesystem::path kOwnSuite =
    std::filesystem::path(ASSAY_SOURCE_DIR) / "tests/chain/params/own_suite";

CliResult with_toy(const std::string& verb, const std::string& text,
                   const std::vector<std::string>& more) {
  Scratch scratch;
  put(scratch.path() / "drill.txt", text);
  std::vector<std::string> words{verb, "drill.txt"};
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"--dialect-file", (kOwnSuite / "toy.dialect").string()});
  return run_cli(scratch.path(), words);
}

// What nobody told assay of this suite is refused as in every other.
TEST(OwnSuite, ItsFilesAreCheckedAsAnyOthers) {
  const std::string good = slurp(kOwnSuite / "drill.txt");
  EXPECT_THAT(with_toy("check", good, {}).out, HasSubstr("good (drill of Toy; modes warm_up|"));
  const std::vector<std::pair<std::string, std::string>> faults{
      {"seats:2|3", "seats:2|3|4"},          // not as many as rounds
      {"plain_fit:fit", "hard_fit:fit"},     // no coach of the list
      {"warm_up=5", "warm_up=no"},           // no number
      {"full_drill=", "lite_train_infer="},  // a mode of another suite
      {"rounds:a|b\n", ""}};                 // a line is missing
  const std::vector<std::string> told{"drill.txt:7:1: ", "drill.txt:5:1: ", "drill.txt:8:17: ",
                                      "drill.txt:8:19: ", "drill.txt:6:1: a line is missing"};
  for (std::size_t i = 0; i < faults.size(); ++i) {
    std::string text = good;
    text.replace(text.find(faults[i].first), faults[i].first.size(), faults[i].second);
    const CliResult result = with_toy("check", text, {});
    EXPECT_EQ(result.code, 2) << result.out;
    EXPECT_THAT(result.out, HasSubstr(told[i]));
  }
}

TEST(OwnSuite, ADialectThatIsNoneIsOneClearLine) {
  Scratch scratch;
  put(scratch.path() / "f.txt", slurp(kOwnSuite / "drill.txt"));
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"", "no `dialect NAME`"},
      {"dialect X\n", "no `kind NAME`"},
      {"dialect X\nkind a\n", "the kind a has no section"},
      {"dialect X\nkind a\nsection s\n  role text\n", "line 4: expected ROLE RULE"},
      {"dialect X\nkind a\namong role\n", "line 3: expected `among ROLE ROLE`"}};
  for (const auto& [text, message] : wrong) {
    put(scratch.path() / "x.dialect", text);
    const CliResult result =
        run_cli(scratch.path(), {"check", "f.txt", "--dialect-file", "x.dialect"});
    EXPECT_EQ(result.code, 2) << result.out;
    EXPECT_THAT(result.out, HasSubstr(message));
  }
  EXPECT_EQ(run_cli(scratch.path(), {"check", "f.txt", "--dialect-file", "no.dialect"}).code, 2);
}

}  // namespace
}  // namespace assay::chain
