// UTF-8 and nearest names.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/nearest.h"
#include "base/utf8.h"

namespace assay {
namespace {

TEST(Utf8, AcceptsEveryCodePointThatItWrites) {
  for (char32_t code_point = 1; code_point <= 0x10FFFF; ++code_point) {
    std::string text;
    const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
    ASSERT_EQ(append_utf8(text, code_point), !surrogate) << static_cast<unsigned>(code_point);
    if (surrogate) continue;
    ASSERT_EQ(find_bad_byte(text), text.size()) << static_cast<unsigned>(code_point);
    ASSERT_EQ(count_characters(text), 1U);
    ASSERT_EQ(character_size(text[0]), text.size());
  }
}

TEST(Utf8, FindsWhatIsNotWellFormed) {
  // From the decoder stress test's groups (M. Kuhn): stray and missing continuations, overlong
  // forms, surrogates, beyond U+10FFFF, bytes that never occur.
  for (const char* bad :
       {"\x80", "\xBF\x80", "\xC3", "\xC3(", "\xE2\x82", "\xE2(\xAC", "\xF0\x9F\x98", "\xC0\x80",
        "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xED\xA0\x80",
        "\xED\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF"}) {
    for (std::size_t before = 0; before < 20; ++before) {
      const std::string text = std::string(before, 'x') + bad + "tail of eight or more";
      EXPECT_EQ(find_bad_byte(text), before);
    }
  }
  EXPECT_EQ(find_bad_byte(std::string("0123456\0abcdefghi", 17)), 7U);
  EXPECT_EQ(find_bad_byte(std::string("012345678\0", 10)), 9U);
  EXPECT_EQ(find_bad_byte(""), 0U);
}

TEST(Utf8, ReplacesEachBadByte) {
  EXPECT_EQ(replace_bad_bytes(std::string("a\0\xC3\xA9\xE2\x82z", 7)), "a?\xC3\xA9??z");
  EXPECT_EQ(replace_bad_bytes("\xFF"), "?");
  EXPECT_EQ(replace_bad_bytes(""), "");
}

TEST(Nearest, MeasuresEdits) {
  EXPECT_EQ(edit_distance("kitten", "sitting", 10), 3U);  // the textbook example
  EXPECT_EQ(edit_distance("ab", "ba", 10), 1U);           // a swap is one edit
  EXPECT_EQ(edit_distance("ca", "abc", 10), 3U);          // and what it swapped is not edited again
  EXPECT_EQ(edit_distance("", "abc", 10), 3U);
  EXPECT_EQ(edit_distance("same", "same", 0), 0U);
  EXPECT_EQ(edit_distance("kitten", "sitting", 2), 3U);
  EXPECT_EQ(edit_distance("a", "abcdefgh", 2), 3U);
}

TEST(Nearest, NamesTheNearestOrNone) {
  const std::vector<std::string> known{"paddle.matmul", "paddle.mean", "paddle.max"};
  EXPECT_EQ(nearest("paddle.matmull", known), "paddle.matmul");
  EXPECT_EQ(nearest("paddle.maen", known), "paddle.mean");
  EXPECT_EQ(nearest("torch.utils.data", known), "");
  EXPECT_EQ(suggest("paddle.maxx", known), "; did you mean 'paddle.max'?");
  EXPECT_EQ(suggest("zzz", known), "");
}

}  // namespace
}  // namespace assay
