// Bad input and a bad environment: one clear line, the right exit code, nothing recorded is lost.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "base/atomic_file.h"
#include "cli.h"
#include "sqlite/database.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct BadCase {
  const char* name;
  std::vector<std::string> arguments;
  int code;
  const char* says;
};

class BadFlags : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadFlags, AreRefusedWithOneLine) {
  Cli cli;
  const CliResult result = cli.call_api(GetParam().arguments);
  EXPECT_EQ(result.status.code, GetParam().code) << result.output;
  EXPECT_THAT(result.output, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadFlags,
    ::testing::Values(
        BadCase{"nothing_to_run", {}, 2, "nothing to run"},
        BadCase{"unknown_flag", {"--acuracy=True"}, 2, "--acuracy"},
        BadCase{"two_modes",
                {"--api_config=" + kEcho, "--accuracy=True", "--paddle_only=True"},
                2,
                "choose one"},
        BadCase{"no_boolean", {"--api_config=" + kEcho, "--accuracy=perhaps"}, 2, "True or False"},
        BadCase{"other_device",
                {"--api_config=" + kEcho, "--paddle_custom_device=True"},
                2,
                "no device beside the CPU"},
        BadCase{"dump_of_files",
                {"--api_config_file=nowhere.txt", "--use_dump=True"},
                2,
                "give it with --api_config"},
        BadCase{"dump_dir_alone", {"--api_config=" + kEcho, "--dump_dir=x"}, 2, "--use_dump"},
        BadCase{
            "no_such_lane", {"--api_config=" + kEcho, "--reference-lane=nonsense"}, 2, "nonsense"},
        BadCase{"negative_atol", {"--api_config=" + kEcho, "--atol=-1"}, 2, "--atol"},
        BadCase{"nan_rtol", {"--api_config=" + kEcho, "--rtol=nan"}, 2, "--rtol"},
        BadCase{
            "no_workers", {"--api_config=" + kEcho, "--num_workers_per_gpu=0"}, 2, "at least 1"},
        BadCase{"missing_file", {"--api_config_file=nowhere.txt"}, 2, "nowhere.txt"},
        BadCase{"no_such_outcome", {"--retest=nonsense"}, 2, "no outcome is called nonsense"},
        BadCase{"missing_interpreter",
                {"--api_config=" + kEcho, "--paddle_python=/nowhere/python"},
                2,
                "/nowhere/python"},
        BadCase{"import_fails", {"--api_config=" + kEcho, "--settings=/dev/null"}, 2, "version"}),
    [](const auto& of) { return of.param.name; });

TEST(BadFiles, EmptyAndBinaryOnesAreUsageErrors) {
  Cli cli;
  const std::string empty = cli.write_cases({});
  std::ofstream(cli.folder() / "binary.txt") << std::string("\0\1\2paddle.abs", 13);
  EXPECT_EQ(
      cli.call_api({"--api_config_file=" + (cli.folder() / "binary.txt").string()}).status.code, 2);
  const CliResult result = cli.call_api({"--api_config_file=" + empty});
  EXPECT_EQ(result.status.code, 2) << result.output;
}

TEST(BadFiles, NothingInACaseIsEverEvaluated) {
  Cli cli;
  const std::string cases = cli.write_cases(
      {R"(paddle.add(__import__("os").system("touch pwned")))", std::string(10 << 20, 'x'),
       "paddle.abs(" + std::string(100'000, '['), R"(paddle.abs(Tensor([-1], "float32")))",
       R"(paddle.abs(Tensor([99999999999999999999], "float32")))",
       R"(paddle.abs(Tensor([1.5], "float32")))", R"(paddle.abs(Tensor([1], "float33")))", kEcho});
  const CliResult result = cli.call_api({"--api_config_file=" + cases});
  EXPECT_EQ(result.status.code, 1) << result.output;
  EXPECT_FALSE(std::filesystem::exists(cli.folder() / "pwned"));
  EXPECT_EQ(cli.report()["outcomes"]["invalid"], 7);
  EXPECT_EQ(cli.outcomes().size(), 1U);
}

TEST(BadFolders, AForeignDatabaseIsLeftAlone) {
  Cli cli;
  std::filesystem::create_directories(cli.run());
  {
    auto database = Database::open(cli.run() / "run.db", OpenMode::create);
    ASSERT_TRUE(database->execute("CREATE TABLE mine (x); INSERT INTO mine VALUES (1)"));
  }
  const CliResult result = cli.call_api({"--api_config=" + kEcho});
  EXPECT_EQ(result.status.code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("is not a run of assay"));
  EXPECT_FALSE(std::filesystem::exists(cli.run() / "lanes"));
}

TEST(BadFolders, LogsOfAnotherToolAreLeftAlone) {
  for (const std::string name : {"api_config_pass.txt", "checkpoint.txt"}) {
    Cli cli;
    std::filesystem::create_directories(cli.run());
    ASSERT_TRUE(write_file(cli.run() / name, "paddle.abs(1)\n"));
    const CliResult result = cli.call_api({"--api_config=" + kEcho});
    EXPECT_EQ(result.status.code, 2) << result.output;
    EXPECT_THAT(result.output, HasSubstr("holds a file of another tool (" + name + ")"));
    EXPECT_EQ(read_file(cli.run() / name), "paddle.abs(1)\n");
  }
}

TEST(BadFolders, ANewerStoreIsRefused) {
  Cli cli;
  cli.call_api({"--api_config=" + kEcho});
  {
    auto database = Database::open(cli.run() / "run.db", OpenMode::existing);
    ASSERT_TRUE(database->set_schema_version(99));
  }
  const CliResult result = cli.call_api({"--api_config=" + kEcho});
  EXPECT_EQ(result.status.code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("newer assay"));
}

// `assay doctor` says how a framework is got, and does not send anybody to itself.
TEST(BadEnvironment, DoctorSaysWhatIsMissing) {
  Cli cli;
  const CliResult result = cli.call({"doctor", "--paddle_python=/nowhere/python"});
  EXPECT_EQ(result.status.code, 1) << result.output;
  // No pip runs in an interpreter that does not exist: one line, which says what to do.
  EXPECT_THAT(result.output,
              HasSubstr("cannot start /nowhere/python: No such file or directory; name its "
                        "interpreter with --paddle_python, or in assay.toml\nok "));
  EXPECT_THAT(result.output, Not(HasSubstr("-m pip")));
  ASSERT_TRUE(write_file(cli.folder() / "none.toml", R"(version = 1
[frameworks.paddle]
python = "/usr/bin/python3"
environment = ["ASSAY_FRAMEWORK_MODULE=no_such_framework"]
)"));
  const std::string settings = "--settings=" + (cli.folder() / "none.toml").string();
  const CliResult doctor = cli.call({"doctor", settings});
  EXPECT_THAT(doctor.output, HasSubstr("no_such_framework"));
  EXPECT_THAT(doctor.output, ::testing::Not(HasSubstr("`assay doctor`")));
  const CliResult run = cli.call_api({"--api_config=" + kEcho, settings});
  EXPECT_THAT(run.output, HasSubstr("`assay doctor` says how to get it; --test-lane=torch tests "
                                    "PyTorch instead\n"));
}

TEST(BadEnvironment, DoctorChecksEveryLaneOfTheSettings) {
  Cli cli;
  const std::string settings = *read_file(cli.folder() / "assay.toml");
  const auto doctor = [&](const std::string& lanes) {
    EXPECT_TRUE(write_file(cli.folder() / "assay.toml", settings + lanes));
    return cli.call({"doctor"});
  };
  const CliResult good =
      doctor("[lanes.static]\nframework = \"paddle\"\nexecution = \"to_static\"\n");
  EXPECT_EQ(good.status.code, 0) << good.output;
  EXPECT_THAT(good.output, HasSubstr("settings of " + (cli.folder() / "assay.toml").string()));
  EXPECT_THAT(good.output,
              HasSubstr("ok       lane static: paddle 1.0, device of the run, to_static"));
  EXPECT_EQ(times(good.output, "APIs known"), 2U);  // the lane's framework is imported once
  const CliResult bad = doctor(
      "[lanes.fast]\nframework = \"paddle\"\nexecution = \"jit\"\n"
      "[lanes.gone]\nframework = \"torch\"\npython = \"/nowhere/python\"\n"
      "[lanes.npu]\nframework = \"torch\"\ndevice = \"npu:0\"\n");
  EXPECT_EQ(bad.status.code, 1) << bad.output;
  EXPECT_THAT(bad.output, HasSubstr("missing  lane fast: no execution is called jit"));
  EXPECT_THAT(bad.output, HasSubstr("missing  lane npu: torch 1.0 has no device npu"));
  EXPECT_THAT(bad.output, HasSubstr("/nowhere/python"));
  EXPECT_THAT(bad.output, HasSubstr("missing  lane gone"));
  const CliResult warned =
      doctor("[lanes.odd]\nframework = \"paddle\"\nenvironment = [\"FLAGS_check_nan_inf=1\"]\n");
  EXPECT_THAT(warned.output, HasSubstr("note     FLAGS_check_nan_inf=1 is set for lane odd"));
  std::filesystem::remove(cli.folder() / "assay.toml");
  EXPECT_THAT(cli.call({"doctor", "--paddle_python=/nowhere/python"}).output,
              HasSubstr("no assay.toml in this folder"));
}

TEST(BadEnvironment, AFrameworkThatDoesNotExistIsRefused) {
  Cli cli;
  const auto refusal = [&](const std::string& table) {
    EXPECT_TRUE(write_file(cli.folder() / "assay.toml", "version = 1\n" + table));
    const CliResult result = cli.call_api({"--api_config=" + kEcho});
    EXPECT_EQ(result.status.code, 2) << result.output;
    EXPECT_FALSE(std::filesystem::exists(cli.run()));
    return result.output;
  };
  EXPECT_THAT(refusal("[frameworks.padle]\npython = \"python3\"\n"),
              HasSubstr("assay.toml: [frameworks.padle]: no framework is called padle"));
  EXPECT_THAT(refusal("[lanes.a]\nframework = \"padle\"\n"), HasSubstr("did you mean 'paddle'?"));
  EXPECT_THAT(refusal("[lane.a]\nframework = \"paddle\"\n"), HasSubstr("did you mean 'lanes'?"));
}

TEST(BadEnvironment, CheckNanInfIsWarnedOf) {
  Cli cli;
  cli.set_paddle_environment({"FLAGS_check_nan_inf=1"});
  const std::string echo = "--api_config=" + kEcho;
  EXPECT_THAT(cli.call_api({echo}).output, HasSubstr("note: FLAGS_check_nan_inf=1 is set"));
  EXPECT_THAT(cli.call({"api", echo, "--values=usual", "--log_dir=usual"}).output,
              Not(HasSubstr("FLAGS_check_nan_inf")));
}

TEST(BadFolders, AFileInTheWayIsNamed) {
  Cli cli;
  std::ofstream(cli.run()) << "not a folder";
  const CliResult result = cli.call_api({"--api_config=" + kEcho});
  EXPECT_EQ(result.status.code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("--log_dir"));
}

TEST(BadFolders, OtherSettingsThanTheRunWasBegunWithAreRefused) {
  Cli cli;
  cli.call_api({"--api_config=" + kEcho});
  const CliResult result = cli.call_api({"--api_config=" + kEcho, "--random_seed=7"});
  EXPECT_EQ(result.status.code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("was begun with seed"));
}

TEST(BadFolders, AllOtherSettingsAreNamedAtOnce) {
  Cli cli;
  cli.call_api({"--api_config=" + kEcho, "--random_seed=3"});
  const CliResult result =
      cli.call_api({"--api_config=" + kEcho, "--random_seed=7", "--values=usual", "--rtol=0.5"});
  EXPECT_EQ(result.status.code, 2) << result.output;
  EXPECT_THAT(
      result.output,
      HasSubstr("was begun with error_bar = true, rtol = 0.01, seed = 3, values = all, this run "
                "has error_bar = false, rtol = 0.5, seed = 7, values = usual; resume it with"));
}

// Not what follows from the mode, which nobody has named.
TEST(BadFolders, AnotherModeThanTheRunWasBegunWithIsNamed) {
  Cli cli;
  cli.call_api({"--api_config=" + kEcho});
  const CliResult mode = cli.call_api({"--api_config=" + kEcho, "--paddle_only=True"});
  EXPECT_EQ(mode.status.code, 2) << mode.output;
  EXPECT_THAT(mode.output,
              HasSubstr("was begun with --accuracy, this run has --paddle_only; resume it"));
  const CliResult values = cli.call_api({"--api_config=" + kEcho, "--values=usual"});
  EXPECT_THAT(values.output,
              HasSubstr("was begun with values = all, this run has values = usual; resume it"));
}

// Ids, inputs and verdicts that another build made are not mixed with ours; an assay that did not
// keep its versions is another build, too.
TEST(BadFolders, OtherVersionsThanTheRunWasBegunWithAreRefused) {
  for (const char* change : {"UPDATE property SET value = '1' WHERE key = 'version.fill'",
                             "UPDATE property SET value = '0.0.9' WHERE key = 'version.assay'",
                             "UPDATE property SET value = '99' WHERE key = 'version.canonical'",
                             "UPDATE property SET value = '99' WHERE key = 'version.measurement'",
                             "UPDATE property SET value = '99' WHERE key = 'version.policies'",
                             "DELETE FROM property WHERE key = 'version.record'"}) {
    Cli cli;
    cli.call_api({"--api_config=" + kEcho});
    {
      auto database = Database::open(cli.run() / "run.db", OpenMode::existing);
      ASSERT_TRUE(database->execute(change));
    }
    const CliResult result = cli.call_api({"--api_config=" + kEcho});
    EXPECT_EQ(result.status.code, 2) << change << result.output;
    EXPECT_THAT(result.output, HasSubstr("was begun with version.")) << change;
  }
}

// The database fails when the builds of the frameworks are compared: that is trouble, and no other
// build, for which `assay run` would start another folder.
TEST(BadFolders, ADatabaseErrorIsNoOtherBuild) {
  Cli cli;
  cli.call_api({"--api_config=" + kEcho});
  {
    auto database = Database::open(cli.run() / "run.db", OpenMode::existing);
    // Reading fails (the result is no integer) once a second case is planned.
    ASSERT_TRUE(database->execute("ALTER TABLE property RENAME TO kept"));
    ASSERT_TRUE(database->execute(
        "CREATE VIEW property AS SELECT key, CASE WHEN (SELECT count(*) FROM planned) > 1 "
        "THEN abs(-9223372036854775807 - 1) ELSE value END AS value FROM kept"));
  }
  const CliResult result =
      cli.call_api({"--api_config_file=" +
                    cli.write_cases({kEcho, R"(paddle.fake.echo(Tensor([4], "float32")))"})});
  EXPECT_EQ(result.status.code, 3) << result.output;
  EXPECT_THAT(result.output, HasSubstr("integer overflow; nothing has run: repair that"));
}

// What a retest would run again is forgotten only once it is known that the run can start.
TEST(BadFolders, ARetestThatCannotStartLosesNoVerdict) {
  Cli cli;
  cli.call_api({"--api_config=" + kEcho});
  const auto before = cli.outcomes();
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(cli.call_api({"--retest=pass", "--random_seed=7"}).status.code, 2);
  EXPECT_EQ(cli.outcomes(), before);
  EXPECT_EQ(cli.call_api({"--retest=pass", "--paddle_python=/nowhere/python"}).status.code, 2);
  EXPECT_EQ(cli.outcomes(), before);
}

// Its line is just short enough; its canonical text, which has blanks, is longer than a megabyte.
TEST(BadFiles, AHugeCaseIsInvalidAndHarmsNoOther) {
  Cli cli;
  std::string huge = R"(paddle.fake.echo(Tensor([2, 3], "float32"), [1)";
  for (int i = 1; i < 480'000; ++i) huge += ",1";
  std::vector<std::string> lines{huge + "])"};
  for (int size = 1; size <= 3000; ++size) {
    lines.push_back("paddle.fake.echo(Tensor([" + std::to_string(size) + "], \"float32\"))");
  }
  const CliResult result = cli.call_api({"--api_config_file=" + cli.write_cases(lines)});
  EXPECT_EQ(result.status.code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("cases.txt:1: the case is longer than 1 MiB"));
  EXPECT_EQ(cli.outcomes().size(), lines.size() - 1);
}

// What another user plants in a shared folder is replaced or refused, and never followed.
TEST(BadFolders, PlantedFilesAreNotFollowed) {
  Cli cli;
  std::filesystem::create_directories(cli.run() / "lanes");
  ASSERT_EQ(::mkfifo((cli.run() / "report.html").c_str(), 0666), 0);
  ASSERT_TRUE(write_file(cli.folder() / "mine.txt", "mine"));
  CliResult result = cli.call_api({"--api_config=" + kEcho});
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_TRUE(
      std::filesystem::is_regular_file(std::filesystem::symlink_status(cli.run() / "report.html")));
  std::filesystem::remove_all(cli.run());
  std::filesystem::create_directories(cli.run());
  std::filesystem::create_symlink(cli.folder() / "mine.txt", cli.run() / "checkpoint.txt");
  result = cli.call_api({"--api_config=" + kEcho});
  EXPECT_EQ(result.status.code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("holds a file of another tool"));
  EXPECT_EQ(read_file(cli.folder() / "mine.txt"), "mine");
  for (const char* log : {"slot0.log", "server-paddle.log"}) {
    std::filesystem::remove_all(cli.run());
    std::filesystem::create_directories(cli.run() / "lanes");
    std::filesystem::create_symlink(cli.folder() / "mine.txt", cli.run() / "lanes" / log);
    result = cli.call_api({"--api_config=" + kEcho});
    EXPECT_EQ(result.status.code, 3) << result.output;
    EXPECT_THAT(result.output, HasSubstr(std::string(log) + ": it is a link"));
    EXPECT_EQ(read_file(cli.folder() / "mine.txt"), "mine");
  }
}

TEST(BadEnvironment, AFullOutputIsTrouble) {
  Cli cli;
  cli.call_api({"--api_config=" + kEcho});
  for (const std::string command : {"report run", "report run --json", "--help"}) {
    const CliResult result =
        cli.call_program({"sh", "-c", std::string(ASSAY_PROGRAM) + " " + command + " >/dev/full"});
    EXPECT_EQ(result.status.code, 3) << command << result.output;
    EXPECT_THAT(result.output, HasSubstr("cannot write to the standard output")) << command;
  }
}

TEST(BadEnvironment, AFileLimitIsAnErrorLine) {
  Cli cli;
  std::vector<std::string> lines;
  for (int size = 1; size <= 3000; ++size) {
    lines.push_back("paddle.fake.echo(Tensor([" + std::to_string(size) + "], \"float32\"))");
  }
  std::vector<std::string> argv{"sh", "-c", "ulimit -f 200; exec \"$@\"", "sh", ASSAY_PROGRAM};
  for (const std::string& word : cli.api({"--api_config_file=" + cli.write_cases(lines)})) {
    argv.push_back(word);
  }
  const CliResult result = cli.call_program(argv);
  EXPECT_EQ(result.status.code, 3) << result.status.describe() << result.output;
  EXPECT_THAT(result.output, HasSubstr("ulimit -f"));
}

TEST(BadEnvironment, TooFewAddressesAreSaidAtOnce) {
  Cli cli;
  std::vector<std::string> argv{"sh", "-c", "ulimit -v 8000000; exec \"$@\"", "sh", ASSAY_PROGRAM};
  for (const std::string& word : cli.api({"--api_config=" + kEcho})) argv.push_back(word);
  const CliResult result = cli.call_program(argv);
  EXPECT_EQ(result.status.code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("ulimit -v unlimited"));
}

TEST(BadEnvironment, TooFewOpenFilesAreSaidAtOnce) {
  Cli cli;
  std::vector<std::string> argv{"sh", "-c", "ulimit -n 24; exec \"$@\"", "sh", ASSAY_PROGRAM};
  for (const std::string& word : cli.api({"--api_config=" + kEcho})) argv.push_back(word);
  const CliResult result = cli.call_program(argv);
  EXPECT_EQ(result.status.code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("open files, and `ulimit -n` allows 24"));
}

TEST(BadFolders, ALinkThatEndsInItselfIsNoBug) {
  Cli cli;
  std::filesystem::create_symlink("run", cli.run());
  for (const CliResult& result :
       {cli.call_api({"--api_config=" + kEcho}), cli.call({"report", "run"})}) {
    EXPECT_NE(result.status.code, 0);
    EXPECT_THAT(result.output, HasSubstr("Too many levels of symbolic links"));
    EXPECT_THAT(result.output, ::testing::Not(HasSubstr("a bug in assay")));
  }
}

TEST(BadFolders, AStoreThatIsRemovedMeanwhileIsTrouble) {
  Cli cli;
  std::vector<std::string> lines;
  for (int size = 1; size <= 50; ++size) {
    lines.push_back(fmt::format("paddle.fake.slow(Tensor([{}], \"float32\"), 0.1)", size));
  }
  const auto all =
      cli.api({"--api_config_file=" + cli.write_cases(lines), "--num_workers_per_gpu=1"});
  Process process = cli.start(all);
  for (int tries = 0; tries < 1200 && !std::filesystem::exists(cli.run() / "running.json");
       ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  for (const char* name : {"run.db", "run.db-wal", "run.db-shm"}) {
    std::filesystem::remove(cli.run() / name);
  }
  EXPECT_EQ(process.wait()->code, 3);
  EXPECT_THAT(*read_file(cli.folder() / "output.txt"), HasSubstr("was removed or replaced"));
}

TEST(BadFolders, ANameThatBeginsLikeAFlagIsAName) {
  Cli cli;
  const CliResult result =
      cli.call({"api", "--test_cpu=True", "--api_config=" + kEcho, "--log_dir=-dash"});
  EXPECT_EQ(result.status.code, 0) << result.output;
}

// The extents alone overflow; the tensor is empty.
TEST(BadFiles, AnEmptyTensorWithHugeExtentsIsNoCrash) {
  Cli cli;
  const CliResult result = cli.call_api(
      {R"(--api_config=paddle.fake.echo(Tensor([3037000500, 3037000500, 0], "float32")))"});
  EXPECT_EQ(result.status.code, 0) << result.output;
}

// A disk that cannot be written to; root may write wherever it is allowed at all.
TEST(BadFolders, AReportNeedsNoRightToWrite) {
  Cli cli;
  std::filesystem::create_directories(cli.run());
  if (::mount("assay", cli.run().c_str(), "tmpfs", 0, "size=64m") != 0) {
    GTEST_SKIP() << "needs the right to mount a small tmpfs (root)";
  }
  cli.call_api({"--api_config=" + kEcho});
  ASSERT_EQ(::mount("assay", cli.run().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64m"), 0);
  const CliResult result = cli.call({"report", "run"});
  EXPECT_EQ(result.status.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("1  pass"));
  const CliResult again = cli.call_api({"--api_config=" + kEcho});
  EXPECT_THAT(again.output, HasSubstr("you may not write to it"));
  ::umount2(cli.run().c_str(), MNT_DETACH);
}

// A small file system that fills up in the middle of a run.
TEST(BadFolders, AFullDiskEndsTheRunAndKeepsWhatIsThere) {
  Cli cli;
  std::filesystem::create_directories(cli.run());
  if (::mount("assay", cli.run().c_str(), "tmpfs", 0, "size=600k") != 0) {
    GTEST_SKIP() << "needs the right to mount a small tmpfs (root)";
  }
  std::vector<std::string> lines;
  for (int size = 1; size <= 3000; ++size) {
    lines.push_back("paddle.fake.echo(Tensor([" + std::to_string(size) + "], \"float32\"))");
  }
  const CliResult result = cli.call_api({"--api_config_file=" + cli.write_cases(lines)});
  EXPECT_EQ(result.status.code, 3) << result.output;
  EXPECT_THAT(result.output, HasSubstr("disk is full"));
  ASSERT_EQ(::mount("assay", cli.run().c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0);
  EXPECT_EQ(
      cli.call_api({"--api_config_file=" + (cli.folder() / "cases.txt").string()}).status.code, 0);
  EXPECT_EQ(cli.outcomes().size(), lines.size());
  ::umount2(cli.run().c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace assay::testing
