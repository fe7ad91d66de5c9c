// Nothing that lies in the working folder is executed, and settings that others wrote are refused.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "base/atomic_file.h"
#include "cli.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;

// Modules that the interpreter, assay and frameworks import.
constexpr std::array kModules = {
    "random",    "json",   "torch",  "paddle",  "numpy",       "socket",       "selectors",
    "argparse",  "gc",     "struct", "typing",  "dataclasses", "importlib",    "inspect",
    "functools", "ctypes", "runpy",  "pathlib", "assay",       "assay_native", "sitecustomize",
};

// A folder in which each of these modules says that it was executed.
class WorkingFolder : public ::testing::Test {
 protected:
  WorkingFolder() {
    for (const char* module : kModules) {
      const std::string says =
          fmt::format("open({:?}, 'a').write({:?})\n", executed(), std::string(module) + " ");
      EXPECT_TRUE(write_file(cli_.folder() / fmt::format("{}.py", module), says));
    }
  }
  std::string executed() const { return (cli_.folder() / "executed").string(); }
  std::string said() const { return read_file(executed()).value_or(""); }

  Cli cli_;
};

TEST_F(WorkingFolder, IsNoSourceOfModulesForServersAndLanes) {
  const CliResult result = cli_.call_api({"--api_config=" + kEcho});
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_EQ(said(), "");
}

TEST_F(WorkingFolder, IsNoSourceOfModulesForKeptServers) {
  const CliResult result = cli_.call_api({"--api_config=" + kEcho, "--keep_frameworks=1"});
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_EQ(said(), "");
  EXPECT_TRUE(all_gone(cli_.folder().string()));
}

TEST_F(WorkingFolder, IsNoSourceOfModulesForDoctorAndTheMutationScore) {
  const CliResult doctor = cli_.call({"doctor"});
  EXPECT_THAT(doctor.output, HasSubstr("APIs known")) << doctor.output;
  cli_.write_cases({R"(paddle.fake.echo(Tensor([3], "float32")))"});
  const CliResult mutate =
      cli_.call({"mutate", "--api_config_file=cases.txt", "--log_dir=" + cli_.run().string()});
  EXPECT_THAT(mutate.output, HasSubstr("fault")) << mutate.output;
  EXPECT_EQ(said(), "");
}

// Python takes an empty entry for the working folder.
TEST_F(WorkingFolder, IsNoSourceOfModulesThroughAnEmptyEntry) {
  const std::string settings = *read_file(cli_.folder() / "assay.toml");
  std::string with_empty = settings;
  for (std::size_t at = 0;
       (at = with_empty.find("tests/engine/fake\"", at)) != std::string::npos;) {
    with_empty.insert(at + std::string("tests/engine/fake").size(), "::");
    at += 1;
  }
  ASSERT_NE(with_empty, settings);
  ASSERT_TRUE(write_file(cli_.folder() / "assay.toml", with_empty));
  EXPECT_EQ(cli_.call_api({"--api_config=" + kEcho}).status.code, 0);
  EXPECT_EQ(said(), "");
}

TEST_F(WorkingFolder, SettingsThatEveryUserCanWriteAreRefused) {
  ::chmod((cli_.folder() / "assay.toml").c_str(), 0666);
  const CliResult refused = cli_.call_api({"--api_config=" + kEcho});
  EXPECT_EQ(refused.status.code, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("can be written by every user"));
  EXPECT_THAT(refused.output, HasSubstr("--settings=assay.toml"));
  EXPECT_THAT(refused.output, HasSubstr("ASSAY_SAFE_FOLDER=" + cli_.folder().string()));
  EXPECT_EQ(cli_.call_api({"--api_config=" + kEcho, "--settings=assay.toml"}).status.code, 0);
}

TEST_F(WorkingFolder, SettingsInAFolderThatEveryUserCanWriteAreRefused) {
  ::chmod(cli_.folder().c_str(), 0777);
  const CliResult refused = cli_.call_api({"--api_config=" + kEcho});
  EXPECT_EQ(refused.status.code, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("its folder can be written by every user"));
  ::setenv("ASSAY_SAFE_FOLDER", cli_.folder().c_str(), 1);
  EXPECT_EQ(cli_.call_api({"--api_config=" + kEcho}).status.code, 0);
  ::unsetenv("ASSAY_SAFE_FOLDER");
}

TEST_F(WorkingFolder, SettingsOfAnotherUserAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::chown((cli_.folder() / "assay.toml").c_str(), kNobody, kNobody), 0);
  const CliResult refused = cli_.call_api({"--api_config=" + kEcho});
  EXPECT_EQ(refused.status.code, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("belongs to user"));
  EXPECT_THAT(cli_.call({"doctor"}).output, HasSubstr("belongs to user"));
}

}  // namespace
}  // namespace assay::testing
