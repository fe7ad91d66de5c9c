// What assay.toml may be, and whose code it may name.

#include "cli/trust.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/atomic_file.h"
#include "cli/settings.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;
constexpr const char* kApis = "version = 1\napis = [\"references\"]\n";

// In a sticky folder that every user may write, as /tmp is. What checks links is assay, whatever
// fs.protected_symlinks says: it fails before it opens one.
class Trust : public ::testing::Test {
 protected:
  Trust() : before_(fs::current_path()) {
    std::string pattern = fs::temp_directory_path() / "assay-test-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    for (const char* name : {"project", "shared"}) fs::create_directory(folder_ / name);
    ::chmod((folder_ / "shared").c_str(), 01777);
    fs::current_path(folder_ / "shared");
  }
  ~Trust() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }
  static void give_away(const fs::path& path) {
    ASSERT_EQ(::lchown(path.c_str(), kNobody, kNobody), 0);
  }

  fs::path before_;
  fs::path folder_;
};

TEST_F(Trust, ALinkOfOursIsReadBesideTheRealFile) {
  ASSERT_TRUE(write_file(folder_ / "project/assay.toml", kApis));
  fs::create_symlink("../project/assay.toml", "assay.toml");
  const auto settings = load_settings("");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_THAT(settings->apis, ElementsAre((folder_ / "project/references").string()));
}

TEST_F(Trust, ALinkOfAnotherUserToOurFileIsNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a link away";
  ASSERT_TRUE(write_file(folder_ / "project/assay.toml", kApis));
  fs::create_symlink("../project/assay.toml", "assay.toml");
  give_away("assay.toml");
  const auto settings = load_settings("");
  ASSERT_FALSE(settings);
  EXPECT_THAT(settings.error().message, HasSubstr("the link belongs to user"));
}

TEST_F(Trust, ALinkIntoAFolderOfOthersIsRefused) {
  ::chmod((folder_ / "project").c_str(), 0777);
  ASSERT_TRUE(write_file(folder_ / "project/assay.toml", kApis));
  fs::create_symlink("../project/assay.toml", "assay.toml");
  EXPECT_THAT(load_settings("").error().message, HasSubstr("its folder can be written"));
}

TEST_F(Trust, CodeBesideOurFileInASharedFolderIsOursOnly) {
  const std::string environment =
      "version = 1\n[frameworks.torch]\nenvironment = [\"PYTHONPATH={}\"]\n";
  ASSERT_TRUE(write_file("assay.toml", kApis));
  EXPECT_TRUE(load_settings("")) << "there is no such folder yet";
  fs::create_directory("references");
  EXPECT_TRUE(load_settings(""));
  ::chmod("references", 01777);
  EXPECT_THAT(load_settings("").error().message, HasSubstr("can be written by every user"));
  ::setenv("ASSAY_SAFE_FOLDER", fs::canonical("references").c_str(), 1);
  EXPECT_TRUE(load_settings(""));
  ::unsetenv("ASSAY_SAFE_FOLDER");
  ASSERT_TRUE(write_file("assay.toml", fmt::format(fmt::runtime(environment), ".")));
  EXPECT_THAT(load_settings("").error().message, HasSubstr("PYTHONPATH: "));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  ::chmod("references", 0755);
  ASSERT_TRUE(write_file("assay.toml", kApis));
  give_away("references");
  EXPECT_THAT(load_settings("").error().message, HasSubstr("belongs to user"));
  fs::remove("references");
  fs::create_directory_symlink(folder_ / "project", "references");
  give_away("references");
  EXPECT_THAT(load_settings("").error().message, HasSubstr("belongs to user"));
}

TEST_F(Trust, PathsOfTheFileAreRelativeToIt) {
  fs::current_path(folder_ / "project");
  ASSERT_TRUE(write_file("assay.toml",
                         "version = 1\n[frameworks.torch]\n"
                         "environment = [\"PYTHONPATH=.::kernels:/opt/x\", \"A=b\"]\n"));
  for (const char* named : {"", "../project/assay.toml"}) {
    const auto settings = load_settings(named);
    ASSERT_TRUE(settings) << settings.error().message;
    const auto found = settings->framework("torch", "").environment;
    const fs::path home = folder_ / "project";
    EXPECT_THAT(found, ElementsAre(fmt::format("PYTHONPATH={0}/:{0}/kernels:/opt/x", home.string()),
                                   "A=b"));
  }
}

}  // namespace
}  // namespace assay
