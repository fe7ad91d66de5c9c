#include "store/running_now.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "folder.h"

namespace assay {
namespace {

using testing::Folder;

TEST(RunningNow, TheLongestCaseComesFirst) {
  const Folder folder;
  ASSERT_TRUE(write_running(folder.path(), {{"paddle.abs()", 1.5}, {"paddle.max()", 20}}));
  const auto cases = read_running(folder.path());
  ASSERT_EQ(cases.size(), 2);
  EXPECT_EQ(cases[0].text, "paddle.max()");
  EXPECT_EQ(cases[0].seconds, 20);
  EXPECT_EQ(cases[1].text, "paddle.abs()");
  remove_running(folder.path());
  EXPECT_TRUE(read_running(folder.path()).empty());
}

TEST(RunningNow, TheFileOfAKilledRunIsNotRead) {
  const Folder folder;
  ASSERT_TRUE(write_running(folder.path(), {{"paddle.abs()", 1.5}}));
  std::filesystem::last_write_time(
      folder / "running.json",
      std::filesystem::file_time_type::clock::now() - std::chrono::seconds(20));
  EXPECT_TRUE(read_running(folder.path()).empty());
}

TEST(RunningNow, AForeignFileGivesNoCases) {
  const Folder folder;
  for (const char* text :
       {"", "{", "[]", "null", R"({"version":2,"running":[{"case":"a","seconds":1}]})",
        R"({"version":1,"running":7})", R"({"version":1,"running":{"case":"a"}})",
        R"({"version":1,"running":[7,{"case":7,"seconds":1},{"case":"a","seconds":"1"}]})"}) {
    std::ofstream(folder / "running.json") << text;
    EXPECT_TRUE(read_running(folder.path()).empty()) << text;
  }
}

}  // namespace
}  // namespace assay
