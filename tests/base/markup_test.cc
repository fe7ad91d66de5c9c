#include "base/markup.h"

#include <gtest/gtest.h>

#include <string>

namespace assay {
namespace {

TEST(Markup, CannotBeLeft) {
  EXPECT_EQ(escape_markup(R"(a<b> & "c")"), "a&lt;b&gt; &amp; &quot;c&quot;");
  EXPECT_EQ(escape_markup("]]>"), "]]&gt;");
}

TEST(Markup, HoldsOnlyWhatXmlCanWrite) {
  EXPECT_EQ(escape_markup("one\ntwo\tthree\r"), "one&#10;two\tthree?");
  EXPECT_EQ(escape_markup(std::string_view("a\0b\x1b", 4)), "a?b?");
  EXPECT_EQ(escape_markup("caf\xc3\xa9 \xff \xc3"), "caf\xc3\xa9 ? ?");
  EXPECT_EQ(escape_markup("\xEF\xBF\xBE|\xEF\xBF\xBF|\xEF\xBF\xBD|\xED\xA0\x80"),
            "?|?|\xEF\xBF\xBD|???");  // U+FFFE, U+FFFF, U+FFFD, a surrogate
  EXPECT_EQ(escape_markup(""), "");
}

TEST(Markdown, NothingInItIsMarkup) {
  EXPECT_EQ(escape_markdown("a|b *c* @d\n- e"), "a\\|b \\*c\\* \\@d\\\\n- e");
}

}  // namespace
}  // namespace assay
