#include "base/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

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
