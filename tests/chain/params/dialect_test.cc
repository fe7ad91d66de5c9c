// Every dialect that is part of the program can be read, names its source, and its recipes hold
// together; and how a file's dialect is found.

#include "chain/params/dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "chain/params/params.h"
#include "chain/plan/recipe_tree.h"
#include "material.h"

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
      EXPECT_FALSE(layout.script.empty()) << dialect->suite.name << " " << layout.name;
      EXPECT_FALSE(layout.modes.empty()) << dialect->suite.name << " " << layout.name;
      const auto recipe = plan::read_statements(layout.recipe, layout.recipe_line);
      ASSERT_TRUE(recipe) << recipe.error().message;
      EXPECT_FALSE(recipe->empty()) << dialect->suite.name << " " << layout.name;
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
  for (const params::Layout& layout : params::layouts()) {
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

}  // namespace
}  // namespace assay::chain
