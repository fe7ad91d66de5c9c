// How a run finds a kept server: by a file that only our user can read, and never by waiting for
// long.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "base/atomic_file.h"
#include "cli.h"

namespace assay::testing {
namespace {

namespace fs = std::filesystem;

class KeptRecord : public ::testing::Test {
 protected:
  KeptRecord() {
    fs::create_directory(runtime());
    ::setenv("XDG_RUNTIME_DIR", runtime().c_str(), 1);
  }
  ~KeptRecord() override {
    ::unsetenv("XDG_RUNTIME_DIR");
    for (const pid_t pid : processes_of(cli_.folder().string())) ::kill(pid, SIGKILL);
  }
  fs::path runtime() const { return cli_.folder() / "runtime"; }
  std::vector<fs::path> records() const {
    std::vector<fs::path> found;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(runtime() / "assay", none)) {
      found.push_back(entry.path());
    }
    return found;
  }
  CliResult run(int keep) const {
    std::error_code ignored;
    fs::remove_all(cli_.run(), ignored);
    return cli_.call_api({"--api_config=" + kEcho, fmt::format("--keep_frameworks={}", keep)});
  }
  std::vector<pid_t> servers() const {
    std::vector<pid_t> found;
    for (const pid_t pid : processes_of(cli_.folder().string())) {
      const auto line = read_file(fmt::format("/proc/{}/cmdline", pid));
      if (line && line->find("assay.server") != std::string::npos) found.push_back(pid);
    }
    return found;
  }

  Cli cli_;
};

TEST_F(KeptRecord, OfAKilledServerGoesWithTheNextRun) {
  ASSERT_EQ(run(60).status.code, 0);
  const auto first = records();
  ASSERT_EQ(first.size(), 2U);  // one for each framework
  for (const pid_t pid : servers()) ::kill(pid, SIGKILL);
  ASSERT_TRUE(all_gone(cli_.folder().string()));
  cli_.set_paddle_environment({"ANOTHER=1"});  // so that another record is asked for
  ASSERT_EQ(run(60).status.code, 0);
  const auto now = records();
  ASSERT_EQ(now.size(), 2U);
  EXPECT_NE(std::set(first.begin(), first.end()), std::set(now.begin(), now.end()));
}

TEST_F(KeptRecord, IsForOurUserAloneAndNamesNoAddressThatCanBeGuessed) {
  EXPECT_EQ(run(20).status.code, 0);
  EXPECT_EQ(records().size(), 2U);
  for (const fs::path& record : records()) {
    struct stat facts {};
    ASSERT_EQ(::stat(record.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600U);
    const std::string text = *read_file(record);
    const std::string secret = text.substr(0, text.find(' '));
    EXPECT_EQ(secret.size(), 32U);
    EXPECT_EQ(record.filename().string().find(secret), std::string::npos);
    EXPECT_THAT(text, ::testing::HasSubstr("ready"));
    for (const pid_t server : servers()) {
      const auto line = read_file(fmt::format("/proc/{}/cmdline", server));
      EXPECT_TRUE(!line || line->find(secret) == std::string::npos);
    }
  }
}

TEST_F(KeptRecord, GoesWithItsServer) {
  EXPECT_EQ(run(1).status.code, 0);
  EXPECT_TRUE(all_gone(cli_.folder().string()));
  EXPECT_TRUE(records().empty());
}

TEST_F(KeptRecord, GoesWithAServerThatIsAskedToEnd) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    EXPECT_EQ(run(300).status.code, 0);
    EXPECT_EQ(records().size(), 2U);
    for (const pid_t pid : servers()) ::kill(pid, number);
    EXPECT_TRUE(all_gone(cli_.folder().string()));
    EXPECT_TRUE(records().empty());
  }
}

// A kept server that is stopped cannot answer; the run imports by itself instead.
TEST_F(KeptRecord, AStoppedServerCostsSecondsOnly) {
  EXPECT_EQ(run(30).status.code, 0);
  for (const pid_t server : servers()) ::kill(server, SIGSTOP);
  const auto began = std::chrono::steady_clock::now();
  const CliResult result = run(30);
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(100));
}

// Anyone may enter the folder: nothing in it is believed, and the run imports by itself.
TEST_F(KeptRecord, AFolderOfOthersIsNotUsed) {
  fs::create_directory(runtime() / "assay");
  ::chmod((runtime() / "assay").c_str(), 0777);
  const CliResult result = run(20);
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_TRUE(records().empty());
  EXPECT_TRUE(all_gone(cli_.folder().string()));
}

}  // namespace
}  // namespace assay::testing
