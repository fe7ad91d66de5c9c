#include "verdict/policy.h"

#include <gmock/gmock.h>

#include "base/fd.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

const Policy kDefault{0.02, 0.03, true, ""};

Result<Policies> parsed(std::string_view text) {
  return Policies::parse(text, "policies.toml", kDefault);
}

TEST(Policies, AnEntryChangesWhatItNames) {
  const auto policies = parsed(
      "version = 1\n[\"paddle.exp\"]\natol = 0.5\nreason = \"large results\"\n"
      "[\"paddle.sum\"]\nexact_integers = false\noutliers = 0.5\nreason = \"overflow is not "
      "promised\"\n");
  ASSERT_TRUE(policies.has_value()) << policies.error().message;
  EXPECT_EQ(policies->find("paddle.exp").atol, 0.5);
  EXPECT_EQ(policies->find("paddle.exp").rtol, 0.03);  // the run's
  EXPECT_TRUE(policies->find("paddle.exp").exact_integers);
  EXPECT_EQ(policies->find("paddle.exp").reason, "large results");
  EXPECT_FALSE(policies->find("paddle.sum").exact_integers);
  EXPECT_EQ(policies->find("paddle.sum").outliers, 0.5);
  EXPECT_EQ(policies->find("paddle.exp").outliers, 0);
  EXPECT_EQ(policies->find("paddle.abs").atol, 0.02);
}

TEST(Policies, ThresholdsReplaceTheBarOfTheirApis) {
  auto policies = parsed("version = 1\n[\"paddle.exp\"]\noutliers = 0.5\nreason = \"large\"\n");
  ASSERT_TRUE(policies.has_value()) << policies.error().message;
  const std::string before = policies->version();
  ASSERT_TRUE(policies->add("paddle.exp 0.25 1e-3;fused_op 2 0;").has_value());
  EXPECT_NE(policies->version(), before);
  EXPECT_EQ(policies->find("paddle.exp").atol, 0.25);
  EXPECT_EQ(policies->find("paddle.exp").rtol, 1e-3);
  EXPECT_EQ(policies->find("paddle.exp").outliers, 0);
  EXPECT_FALSE(policies->find("paddle.exp").reason.empty());  // so it decides instead of the bar
  EXPECT_EQ(policies->of_case("paddle.abs(Tensor([2], \"float32\"))").atol, kDefault.atol);
  EXPECT_EQ(policies->of_case("paddle.exp(Tensor([2], \"float32\"))").atol, 0.25);
  EXPECT_EQ(policies->of_case("paddle._C_ops._run_custom_op(\"fused_op\", 1)").atol, 2);
  EXPECT_EQ(policies->of_case("paddle._C_ops._run_custom_op(\"other\", 1)").atol, kDefault.atol);
  EXPECT_EQ(policies->of_case("paddle._C_ops._run_custom_op").atol, kDefault.atol);
}

TEST(Policies, DamagedThresholdsAreAnError) {
  for (const char* text : {"paddle.exp 0.25", "paddle.exp x 1", "paddle.exp 1 -1", "a 1 2 3"}) {
    auto policies = parsed("version = 1\n");
    ASSERT_TRUE(policies.has_value());
    EXPECT_FALSE(policies->add(text).has_value()) << text;
  }
}

TEST(Policies, BadTomlIsAUsageErrorWithItsLine) {
  const auto policies = parsed("version = 1\n[\"paddle.exp\"\natol = 1\n");
  ASSERT_FALSE(policies.has_value());
  EXPECT_EQ(policies.error().kind, ErrorKind::usage);
  EXPECT_THAT(policies.error().message, HasSubstr("policies.toml:2"));
}

TEST(Policies, AnEntryWithoutReasonIsRefused) {
  const auto policies = parsed("version = 1\n[\"paddle.exp\"]\natol = 0.5\n");
  ASSERT_FALSE(policies.has_value());
  EXPECT_THAT(policies.error().message, HasSubstr("paddle.exp has no reason"));
}

// A misspelt setting would silently leave the tolerance unchanged.
TEST(Policies, UnknownSettingsAreRefused) {
  const auto inside = parsed("version = 1\n[\"paddle.exp\"]\natoll = 1\nreason = \"r\"\n");
  ASSERT_FALSE(inside.has_value());
  EXPECT_THAT(inside.error().message,
              HasSubstr("policies.toml:3: unknown setting paddle.exp.atoll"));
  const auto outside = parsed("version = 1\natol = 1\n");
  ASSERT_FALSE(outside.has_value());
  EXPECT_THAT(outside.error().message, HasSubstr("policies.toml:2: unknown setting atol"));
  EXPECT_FALSE(parsed("version = 1\n[\"paddle.exp\"]\natol = \"1\"\nreason = \"r\"\n"));
}

TEST(Policies, AnotherVersionIsRefused) {
  for (const char* text : {"", "version = 2\n", "version = \"1\"\n"}) {
    const auto policies = parsed(text);
    ASSERT_FALSE(policies.has_value()) << text;
    EXPECT_THAT(policies.error().message, HasSubstr("version = 1 is wanted"));
  }
}

TEST(Policies, OurOwnFileIsGood) {
  const auto text = read_file(ASSAY_SOURCE_DIR "/python/assay/policies.toml");
  ASSERT_TRUE(text.has_value());
  EXPECT_TRUE(parsed(*text).has_value()) << parsed(*text).error().message;
}

}  // namespace
}  // namespace assay
