#include "base/private_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/atomic_file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

// In a folder for temporary files of its own.
class PrivateFolderTest : public ::testing::Test {
 protected:
  PrivateFolderTest() {
    std::string pattern = fs::temp_directory_path() / "assay-test-XXXXXX";
    temporary_ = ::mkdtemp(pattern.data());
    before_ = std::getenv("TMPDIR") == nullptr ? "" : std::getenv("TMPDIR");
    ::setenv("TMPDIR", temporary_.c_str(), 1);
  }
  ~PrivateFolderTest() override {
    before_.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before_.c_str(), 1);
    fs::remove_all(temporary_);
  }
  // A folder as a killed process leaves it, with a file.
  fs::path left(const char* name, mode_t mode = S_IRWXU) const {
    const fs::path folder = temporary_ / name;
    fs::create_directory(folder);
    EXPECT_TRUE(write_file(folder / "file", "text"));
    ::chmod(folder.c_str(), mode);
    return folder;
  }

  fs::path temporary_;
  std::string before_;
};

TEST_F(PrivateFolderTest, IsOurUsersAloneAndGoesWithTheObject) {
  fs::path path;
  {
    const auto folder = PrivateFolder::make("lanes");
    ASSERT_TRUE(folder);
    path = folder->path();
    struct stat facts {};
    ASSERT_EQ(::lstat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode, S_IFDIR | S_IRWXU);
    EXPECT_EQ(facts.st_uid, ::geteuid());
    fs::create_directories(path / "a/b");
    ASSERT_TRUE(write_file(path / "a/b/file", "text"));
    PrivateFolder moved;
    moved = PrivateFolder(*PrivateFolder::make("lanes"));
    EXPECT_NE(moved.path(), path);
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_TRUE(fs::is_empty(temporary_));
}

TEST_F(PrivateFolderTest, OfAKilledProcessGoesWithTheNextOne) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto folder = PrivateFolder::make("lanes");
    (void)write_file(folder->path() / "file", "text");
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(fs::is_empty(temporary_));
  { EXPECT_TRUE(PrivateFolder::make("lanes")); }
  EXPECT_TRUE(fs::is_empty(temporary_));
}

TEST_F(PrivateFolderTest, LeavesThoseThatLiveOrAreNotOurs) {
  const auto living = PrivateFolder::make("lanes");
  const fs::path open = left("assay-lanes-open", 0777);
  const fs::path other = left("assay-mps-other");
  const fs::path target = left("target");
  fs::create_directory_symlink(target, temporary_ / "assay-lanes-link");
  const fs::path with_link = left("assay-lanes-with-link");
  fs::create_directory_symlink(target, with_link / "link");
  ASSERT_TRUE(PrivateFolder::make("lanes"));
  for (const fs::path& kept : {living->path(), open / "file", other / "file", target / "file"}) {
    EXPECT_TRUE(fs::exists(kept)) << kept;
  }
  EXPECT_FALSE(fs::exists(with_link));
}

TEST_F(PrivateFolderTest, LeavesThoseOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const fs::path theirs = left("assay-lanes-theirs");
  ASSERT_EQ(::chown(theirs.c_str(), kNobody, kNobody), 0);
  ASSERT_TRUE(PrivateFolder::make("lanes"));
  EXPECT_TRUE(fs::exists(theirs / "file"));
}

}  // namespace
}  // namespace assay
