#include "base/text.h"

#include <gmock/gmock.h>

#include "base/terminal.h"

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

TEST(Text, PrintableHasNoPowerOverATerminal) {
  EXPECT_EQ(printable("a\x1b]0;title\x07 b\rc\x7f"), R"(a\u001b]0;title\u0007 b\u000dc\u007f)");
  EXPECT_EQ(printable(std::string_view("\0", 1)), R"(\u0000)");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            R"(\u009b31m)");  // CSI of C1
  EXPECT_EQ(printable("\xE2\x80\xAE|\xE2\x81\xA6|\xE2\x80\xA8|\xD8\x9C"),
            R"(\u202e|\u2066|\u2028|\u061c)");
  EXPECT_EQ(printable("\x9B"
                      "31m \xE2\x80"),
            R"(\x9b31m \xe2\x80)");
}

TEST(Text, PrintableKeepsWhatIsText) {
  EXPECT_EQ(printable("two\nlines\tand caf\xC3\xA9 \xF0\x9F\x98\x80 \xE2\x80\xA6"),
            "two\nlines\tand caf\xC3\xA9 \xF0\x9F\x98\x80 \xE2\x80\xA6");
  EXPECT_EQ(printable("\x1b[1;31mred\x1b[0m"), "red");
  EXPECT_EQ(printable("\x1b[\x1b[0m31mred"), R"(\u001b[31mred)");
  EXPECT_EQ(printable(""), "");
}

TEST(Text, BracketsInTextDoNotNest) {
  EXPECT_FALSE(nests_deeper(R"([[{}], "[[[\"[[[", {}])", 3));
  EXPECT_TRUE(nests_deeper(R"([[{}], {}])", 2));
  EXPECT_FALSE(nests_deeper("]]][", 1));
}

TEST(Text, OneLineStaysOne) {
  EXPECT_EQ(one_line("a\n::error::b\r\n"), R"(a\n::error::b\u000d\n)");
  EXPECT_EQ(one_line("a\tb"), "a\tb");
}

TEST(Terminal, AFailedWriteIsSeen) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  show_line(full, "no room");
  EXPECT_NE(std::ferror(full), 0);
  std::fclose(full);
}

}  // namespace
}  // namespace assay
