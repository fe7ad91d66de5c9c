// Tables as text and Markdown.

#include "base/table.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Table, PadsColumnsToTheirWidestCell) {
  Table table({"name", ">count", ">share %:.1f", ">ms", "why"});
  table.row("a", 7, 12.34, 1.0, "");
  table.row("größer", 1234U, if_known(false, 3), 0.5, "late");
  EXPECT_EQ(table.text(),
            "name    count  share %     ms  why\n"
            "a           7     12.3  1.000\n"
            "größer   1234        ?  0.500  late\n");
}

TEST(Table, CountsTheRowsThatItLeavesOut) {
  Table table({"name", ">n"});
  EXPECT_EQ(table.text(), "");
  EXPECT_EQ(table.markdown(), "");
  for (int i = 0; i < 3; ++i) table.row("`x`", i);
  EXPECT_EQ(table.text(2), "name  n\n`x`   0\n`x`   1\nand 1 more\n");
  EXPECT_EQ(table.markdown(2), "| name | n |\n|---|--:|\n| `x` | 0 |\n| `x` | 1 |\n\nand 1 more\n");
  EXPECT_EQ(table.markdown(3), "| name | n |\n|---|--:|\n| `x` | 0 |\n| `x` | 1 |\n| `x` | 2 |\n");
}

}  // namespace
}  // namespace assay
