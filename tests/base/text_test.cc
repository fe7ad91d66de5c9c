#include "base/text.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using ::testing::ElementsAre;

TEST(Text, TrimmedLosesBlanksAtBothEndsOnly) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \n "), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Text, SplitAtKeepsEmptyParts) {
  EXPECT_THAT(split_at("a,b", ','), ElementsAre("a", "b"));
  EXPECT_THAT(split_at(",a,,", ','), ElementsAre("", "a", "", ""));
  EXPECT_THAT(split_at("a", ','), ElementsAre("a"));
  EXPECT_THAT(split_at("", ','), ElementsAre());
}

TEST(Text, OneThingHasNoS) {
  EXPECT_EQ(count_of(0, "case"), "0 cases");
  EXPECT_EQ(count_of(1, "case"), "1 case");
  EXPECT_EQ(count_of(11, "case"), "11 cases");
}

TEST(Text, LoweredChangesAsciiCapitalsOnly) {
  EXPECT_EQ(lowered("True_09 \xC3\x84Z"), "true_09 \xC3\x84z");
}

}  // namespace
}  // namespace assay
