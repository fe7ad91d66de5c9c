// Modules of the user that lanes import after their framework.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "cli.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Modules : public ::testing::Test {
 protected:
  // Runs a case with these lines for Paddle's lane in assay.toml.
  CliResult run(const std::string& lines) {
    const std::string torch = fmt::format(
        "[frameworks.torch]\npython = \"python3\"\nenvironment = [{}]\n", fake_environment());
    EXPECT_TRUE(write_file(
        cli_.folder() / "assay.toml",
        fmt::format("version = 1\n{}[frameworks.paddle]\npython = \"python3\"\nenvironment = [{}, "
                    "\"PYTHONPATH=own\", \"ASSAY_TEST={}\"]\n{}\n",
                    torch, fake_environment(), cli_.folder().string(), lines)));
    return cli_.call_api({R"(--api_config=paddle.fake.echo(Tensor([3], "float32")))"});
  }
  // A module in the folder `own` beside assay.toml.
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directory(cli_.folder() / "own");
    ASSERT_TRUE(write_file(cli_.folder() / "own" / (name + ".py"), text));
  }

  Cli cli_;
};

TEST_F(Modules, LieInFoldersBesideAssayToml) {
  write("mine", "print('mine is imported', flush=True)\n");
  const CliResult result = run("modules = [\"mine\"]");
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_THAT(*read_file(cli_.run() / "lanes/server-paddle.log"), HasSubstr("mine is imported"));
}

TEST_F(Modules, ThatAreMissingAreNamed) {
  write("broken", "import numpy_of_another_name\n");
  for (const char* key : {"modules", "modules_in_lane"}) {
    const CliResult result = run(fmt::format("{} = [\"no_such_module\"]", key));
    EXPECT_EQ(result.status.code, 2);
    EXPECT_THAT(result.output,
                AllOf(HasSubstr("the module no_such_module of assay.toml cannot be imported: "
                                "ModuleNotFoundError: No module named 'no_such_module'"),
                      HasSubstr("PYTHONPATH"), Not(HasSubstr("pip install"))));
  }
  EXPECT_THAT(run("modules = [\"broken\"]").output,
              HasSubstr("the module broken of assay.toml cannot be imported: ModuleNotFoundError: "
                        "No module named 'numpy_of_another_name'"));
}

// As a module that initialises CUDA: a lane forked after that cannot use its device.
TEST_F(Modules, ThatOpenADeviceAreImportedInTheLane) {
  write("first", "print('first is imported', flush=True)\n");
  write("opens",
        "import fake_framework\nfake_framework.OPENED.append('fake:0')\n"
        "print('opens is imported', flush=True)\n");
  const CliResult noticed = run("modules = [\"first\", \"opens\"]");
  EXPECT_EQ(noticed.status.code, 0) << noticed.output;
  EXPECT_THAT(noticed.output, HasSubstr("the module opens opens a device when it is imported"));
  const auto lane = [&] { return *read_file(cli_.run() / "lanes/slot0-paddle-test.log"); };
  EXPECT_THAT(lane(), AllOf(HasSubstr("opens is imported"), Not(HasSubstr("first is imported"))));
  std::filesystem::remove_all(cli_.run());
  const CliResult said = run("modules = [\"first\"]\nmodules_in_lane = [\"opens\"]");
  EXPECT_EQ(said.status.code, 0) << said.output;
  EXPECT_THAT(said.output, Not(HasSubstr("opens a device")));
  EXPECT_THAT(lane(), HasSubstr("opens is imported"));
}

}  // namespace
}  // namespace assay::testing
