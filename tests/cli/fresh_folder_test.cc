#include "cli/fresh_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace assay {
namespace {

class FreshFolders : public ::testing::Test {
 protected:
  FreshFolders() {
    std::string name = (std::filesystem::temp_directory_path() / "assay-fresh-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~FreshFolders() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  bool exists(const char* name) const { return std::filesystem::exists(root_ / name); }

  std::filesystem::path root_;
};

TEST_F(FreshFolders, AreRemovedWithTheirNewParents) {
  const FreshFolder folder(root_ / "runs" / "one" / "");
  std::filesystem::create_directories(root_ / "runs" / "one" / "lanes");
  folder.discard({"cannot start"});
  EXPECT_FALSE(exists("runs"));
  EXPECT_TRUE(std::filesystem::exists(root_));
}

TEST_F(FreshFolders, KeepAParentThatHoldsMore) {
  const FreshFolder folder(root_ / "runs" / "one");
  std::filesystem::create_directories(root_ / "runs" / "one");
  std::filesystem::create_directories(root_ / "runs" / "two");
  folder.discard({"cannot start"});
  EXPECT_FALSE(exists("runs/one"));
  EXPECT_TRUE(exists("runs/two"));
}

TEST_F(FreshFolders, StayIfTheyExistedOrHoldTheLogThatExplainsTheError) {
  std::filesystem::create_directories(root_ / "old");
  FreshFolder(root_ / "old").discard({"cannot start"});
  EXPECT_TRUE(exists("old"));
  const FreshFolder folder(root_ / "new");
  std::filesystem::create_directories(root_ / "new");
  folder.discard({"the server ended; see " + (root_ / "new" / "server.log").string()});
  EXPECT_TRUE(exists("new"));
}

TEST_F(FreshFolders, AnOlderOneLosesWhatTheRunHasMadeInIt) {
  std::filesystem::create_directories(root_ / "old");
  const FreshFolder folder(root_ / "old");
  std::filesystem::create_directories(root_ / "old" / "lanes");
  std::filesystem::create_directories(root_ / "old" / "mine");
  folder.discard({(root_ / "old" / "run.db").string() + " is not a run of assay"});
  EXPECT_FALSE(exists("old/lanes"));
  EXPECT_TRUE(exists("old/mine"));
  const FreshFolder again(root_ / "old");
  std::filesystem::create_directories(root_ / "old" / "lanes");
  again.discard({"see " + (root_ / "old" / "lanes" / "server.log").string()});
  EXPECT_TRUE(exists("old/lanes"));
}

}  // namespace
}  // namespace assay
