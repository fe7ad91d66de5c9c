#include "base/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>

#include "base/log_cap.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Files : public testing::Test {
 protected:
  Files() {
    std::string name = (fs::temp_directory_path() / "assay-base-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Files() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  fs::path folder_;
};

// What another user may have put at a name of ours.
TEST_F(Files, ReplaceLinksAndPipesThatNobodyReads) {
  ASSERT_TRUE(write_file(folder_ / "mine", "mine"));
  fs::create_symlink(folder_ / "mine", folder_ / "link");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0666), 0);
  for (const char* name : {"link", "pipe"}) {
    ASSERT_TRUE(write_file(folder_ / name, "new"));
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder_ / name))) << name;
    EXPECT_EQ(*read_file(folder_ / name), "new");
  }
  EXPECT_EQ(*read_file(folder_ / "mine"), "mine");
}

// Whatever fs.protected_symlinks and fs.protected_hardlinks say: both are off in many containers.
TEST_F(Files, ThatAnotherUserHasLinkedLeadNowhere) {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a link away";
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Fd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  fs::create_symlink(pipe, folder_ / "link");
  fs::create_directory(folder_ / "mine");
  fs::create_directory_symlink("mine", folder_ / "folder");
  for (const char* name : {"link", "folder"}) {
    ASSERT_EQ(::lchown((folder_ / name).c_str(), kNobody, kNobody), 0);
  }
  ASSERT_TRUE(write_file(folder_ / "link", "new"));
  std::array<char, 8> got{};
  EXPECT_EQ(::read(reader.get(), got.data(), got.size()), 0);
  EXPECT_EQ(*read_file(folder_ / "link"), "new");
  EXPECT_THAT(write_file(folder_ / "folder/file", "new").error().message,
              HasSubstr("a link that another user has made"));
  EXPECT_FALSE(make_folder(folder_ / "folder/"));
  EXPECT_FALSE(make_folder(folder_ / "folder/a/b"));
  EXPECT_TRUE(fs::is_empty(folder_ / "mine"));
}

TEST_F(Files, OfASecondNameAreKeptInAFolderOfOthers) {
  ASSERT_TRUE(write_file(folder_ / "mine", "mine"));
  fs::create_directory(folder_ / "shared");
  fs::create_hard_link(folder_ / "mine", folder_ / "shared/log");
  EXPECT_TRUE(open_for_append(folder_ / "shared/log"));
  ASSERT_EQ(::chmod((folder_ / "shared").c_str(), 01777), 0);
  for (const int flags : {O_WRONLY | O_APPEND, O_WRONLY | O_TRUNC}) {
    EXPECT_THAT(open_output(folder_ / "shared/log", flags).error().message,
                HasSubstr("a file of another name"));
  }
  EXPECT_EQ(*read_file(folder_ / "mine"), "mine");
  EXPECT_TRUE(open_output(folder_ / "mine", O_WRONLY | O_TRUNC));
  EXPECT_EQ(*read_file(folder_ / "mine"), "");
}

TEST_F(Files, GoToAPipeWithAReader) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
  const Fd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(write_file(pipe, "new"));
  std::array<char, 8> got{};
  EXPECT_EQ(::read(reader.get(), got.data(), got.size()), 3);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(Files, LogsAreNoLinksAndNoPipes) {
  ASSERT_TRUE(write_file(folder_ / "mine", "mine"));
  fs::create_symlink(folder_ / "mine", folder_ / "link");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0666), 0);
  const Fd reader(::open((folder_ / "pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_THAT(open_for_append(folder_ / "link").error().message, HasSubstr("it is a link"));
  EXPECT_THAT(open_for_append(folder_ / "pipe").error().message, HasSubstr("no regular file"));
  EXPECT_TRUE(open_for_append("/dev/null"));
  EXPECT_TRUE(open_for_append(folder_ / "log"));
}

TEST_F(Files, ALogKeepsItsHeadAndItsTail) {
  std::string text;
  for (int line = 0; line < 1000; ++line) text += "line " + std::to_string(line) + "\n";
  ASSERT_TRUE(write_file(folder_ / "a.log", text));
  const Fd writer = *open_for_append(folder_ / "a.log");
  ASSERT_TRUE(cap_logs(folder_, text.size()));
  EXPECT_EQ(*read_file(folder_ / "a.log"), text);
  ASSERT_TRUE(cap_logs(folder_, 400));
  ASSERT_TRUE(write_all(writer.get(), std::as_bytes(std::span(std::string_view("after\n")))));
  const std::string cut = *read_file(folder_ / "a.log");
  EXPECT_TRUE(cut.starts_with("line 0\nline 1\n"));
  EXPECT_TRUE(cut.ends_with("line 999\nafter\n"));
  EXPECT_THAT(cut, HasSubstr("[assay: " + std::to_string(text.size() - 200) + " bytes were cut"));
  EXPECT_LT(cut.size(), 300U);
}

TEST_F(Files, AreReplacedWholeAndLeaveNothingBeside) {
  const fs::path path = folder_ / "out";
  ASSERT_TRUE(write_file(path, "first"));
  auto file = AtomicFile::create(path);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write("sec"));
  EXPECT_EQ(*read_file(path), "first");
  ASSERT_TRUE(file->write("ond"));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(*read_file(path), "second");
  EXPECT_THAT(names(), ElementsAre("out"));
}

TEST_F(Files, GivenUpLeaveNothingAndKeepTheOldOne) {
  const fs::path path = folder_ / "out";
  ASSERT_TRUE(write_file(path, "old"));
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file && file->write("half"));
    AtomicFile moved = std::move(*file);
    EXPECT_EQ(*read_file(path), "old");
  }
  EXPECT_THAT(names(), ElementsAre("out"));
  EXPECT_EQ(*read_file(path), "old");
}

TEST_F(Files, OfAKilledProcessLeaveNothingBehind) {
  if (!Fd(::open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644))) {
    GTEST_SKIP() << "the file system has no files without names";
  }
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = AtomicFile::create(folder_ / "out");
    if (!file || !file->write("half")) ::_exit(1);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_THAT(names(), ElementsAre());
}

// A file system with room for four bytes.
TEST_F(Files, OnAFullDiskLeaveNothingBehind) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{4, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const Status written = write_file(folder_ / "out", "more than four bytes");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("cannot write " + (folder_ / "out").string()));
  EXPECT_THAT(names(), ElementsAre());
}

TEST_F(Files, ThatCannotTakeTheirNameLeaveNothingBehind) {
  const fs::path path = folder_ / "out";
  auto file = AtomicFile::create(path);
  ASSERT_TRUE(file && file->write("text"));
  fs::create_directory(path);
  EXPECT_FALSE(file->commit());
  file = AtomicFile::create(folder_ / "other");  // drops the first one
  ASSERT_TRUE(file && file->commit());
  std::vector<std::string> left = names();
  std::sort(left.begin(), left.end());
  EXPECT_THAT(left, ElementsAre("other", "out"));
}

// A killed process with our pid left this file. It is neither reused nor removed.
TEST_F(Files, OfAnEarlierProcessOfOurNumberAreNoHindrance) {
  const std::string left = "out.part." + std::to_string(::getpid()) + ".0";
  { const Fd other(::open((folder_ / left).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)); }
  ASSERT_TRUE(write_file(folder_ / "out", "text"));
  EXPECT_EQ(*read_file(folder_ / "out"), "text");
  EXPECT_EQ(*read_file(folder_ / left), "");
}

TEST_F(Files, ThatArePipesAreWrittenTo) {
  const fs::path path = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Fd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(write_file(path, "text"));
  std::array<char, 8> read{};
  EXPECT_EQ(::read(reader.get(), read.data(), read.size()), 4);
  EXPECT_TRUE(fs::is_fifo(path));
}

TEST_F(Files, HonourTheUmask) {
  const mode_t before = ::umask(077);
  const Status written = write_file(folder_ / "out", "text");
  ::umask(before);
  ASSERT_TRUE(written);
  EXPECT_EQ(fs::status(folder_ / "out").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

// Sending to a closed peer is an error. A SIGPIPE would end this test.
TEST(Sockets, OfADeadPeerAreAnError) {
  auto pair = make_socket_pair();
  ASSERT_TRUE(pair);
  pair->second.reset();
  const std::string text = "text";
  EXPECT_FALSE(send_all(pair->first.get(), std::as_bytes(std::span(text))));
}

}  // namespace
}  // namespace assay
