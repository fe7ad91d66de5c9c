// The gate of a CI, as docs/how-to/gate-a-pull-request.md shows it.

#include <gmock/gmock.h>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "cli.h"

namespace assay::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Gate, WordsThatAreNoneAndPastsThatAreNotThereAreUsageErrors) {
  Cli cli;
  const std::string cases = cli.write_cases({fake("echo")});
  const auto refusal = [&](const std::string& flag) {
    const CliResult result = cli.call_api({"--api_config_file=" + cases, flag});
    EXPECT_EQ(result.status.code, 2) << result.output;
    return result.output;
  };
  EXPECT_THAT(refusal("--fail-on=some"), HasSubstr("--fail-on takes one of new, any, none"));
  EXPECT_THAT(refusal("--fail-on=nwe"), HasSubstr("did you mean 'new'?"));
  EXPECT_THAT(refusal("--fail-on=new"), HasSubstr("name with --against"));
  EXPECT_THAT(refusal("--against=nowhere"), HasSubstr("nowhere"));
  EXPECT_THAT(refusal("--apis-from=nowhere"), HasSubstr("--apis-from"));
  // What a shell makes of a variable that is not set.
  EXPECT_THAT(refusal("--against="), HasSubstr("--against"));
  EXPECT_THAT(refusal("--apis-from="), HasSubstr("--apis-from"));
  EXPECT_FALSE(std::filesystem::exists(cli.run() / "run.db"));  // nothing has run
}

// The commands of docs/how-to/gate-a-pull-request.md, by a shell, in a repository whose change
// breaks something.
TEST(Gate, TheDocumentsCommandsDoWhatItSays) {
  const auto document =
      read_file(std::string(ASSAY_SOURCE_DIR) + "/docs/how-to/gate-a-pull-request.md");
  ASSERT_TRUE(document.has_value());
  const auto block = [&](const std::string& after) {
    const std::size_t begin = document->find("```sh\n", document->find(after)) + 6;
    return document->substr(begin, document->find("```", begin) - begin);
  };
  Cli cli;
  const auto shell = [&](const std::string& script) {
    const std::string path = std::filesystem::path(ASSAY_PROGRAM).parent_path().string();
    return cli.call_program({"/bin/sh", "-ec", "PATH=" + path + ":$PATH\n" + script});
  };
  cli.write_cases({fake("echo"), fake("wrong", 1), fake("raises"), fake("no_kernel")});
  ASSERT_EQ(shell("git init -q -b main . && git config user.email a@b && git config user.name a\n"
                  "mkdir src && echo 'PD_REGISTER_KERNEL(echo)' > src/echo_kernel.cc\n"
                  "git add src && git commit -qm first\n")
                .status.code,
            0);
  const CliResult known = shell(block("## What is known"));
  ASSERT_EQ(known.status.code, 0) << known.output;
  const auto baseline = read_file(cli.folder() / "baseline.toml");
  ASSERT_TRUE(baseline.has_value());
  EXPECT_THAT(*baseline, HasSubstr("api = \"paddle.fake.wrong\""));
  ASSERT_EQ(shell("git add -A && git commit -qm known && git branch origin/main").status.code, 0);

  // A change that breaks nothing: only the cases of what it names run.
  ASSERT_EQ(shell("echo '// echo' >> src/echo_kernel.cc && git commit -qam harmless").status.code,
            0);
  const CliResult good = shell(block("## The gate"));
  EXPECT_EQ(good.status.code, 0) << good.output;
  EXPECT_THAT(good.output, HasSubstr("1 case to run"));
  EXPECT_THAT(good.output, HasSubstr("3 of other APIs"));
  EXPECT_THAT(good.output, Not(HasSubstr("::error")));

  // A change that comes with a case of another dtype that fails: only float32 was known.
  cli.write_cases({fake("echo"), fake("wrong", 1), fake("raises"), fake("no_kernel"),
                   "paddle.fake.wrong(Tensor([2], \"float64\"))"});
  ASSERT_EQ(shell("echo 'wrong' > src/wrong.cc && git add -A src cases.txt && git commit -qm bad &&"
                  "rm -rf gate")
                .status.code,
            0);
  const CliResult bad = shell(block("## The gate"));
  EXPECT_EQ(bad.status.code, 1) << bad.output;
  EXPECT_THAT(bad.output, HasSubstr("::error file=cases.txt,line="));
  const auto sarif = read_file(cli.folder() / "assay.sarif");
  ASSERT_TRUE(sarif.has_value()) << bad.output;
  const auto log = nlohmann::json::parse(*sarif);
  EXPECT_EQ(log["runs"][0]["results"][0]["baselineState"], "new");
  const auto junit = read_file(cli.folder() / "junit.xml");
  ASSERT_TRUE(junit.has_value());
  EXPECT_THAT(*junit, HasSubstr("failures=\"1\""));
}

TEST(Gate, ARunIsComparedWithAnotherRun) {
  Cli cli;
  const std::string before = cli.write_cases({fake("echo"), fake("wrong", 1)}, "before.txt");
  const std::string now = cli.write_cases({fake("echo"), fake("wrong", 1), fake("raises")});
  const std::string old = "--log_dir=" + (cli.folder() / "old").string();
  ASSERT_EQ(cli.call({"api", "--test_cpu=True", "--api_config_file=" + before, old}).status.code,
            1);
  const std::string against = "--against=" + (cli.folder() / "old").string();
  const CliResult same = cli.call_api({"--api_config_file=" + before, against});
  EXPECT_EQ(same.status.code, 0) << same.output;
  EXPECT_THAT(same.output, HasSubstr("0 new, 0 grown, 1 known, 0 fixed"));
  EXPECT_THAT(same.output, Not(HasSubstr("one case again")));
  const CliResult worse = cli.call_api({"--api_config_file=" + now, against});
  EXPECT_EQ(worse.status.code, 1) << worse.output;
  EXPECT_THAT(worse.output, HasSubstr("1 new, 0 grown, 1 known, 0 fixed"));
  EXPECT_THAT(worse.output, HasSubstr("one case again"));
  EXPECT_EQ(cli.call_api({"--api_config_file=" + now, against, "--fail-on=none"}).status.code, 0);
  EXPECT_EQ(cli.call({"report", cli.run().string(), "--fail-on=any"}).status.code, 1);
  EXPECT_EQ(cli.call({"report", cli.run().string()}).status.code, 0);
}

TEST(Gate, KnownStandsForTheShippedListsOfTheRun) {
  Cli cli;
  const std::string cases = cli.write_cases({fake("echo"), fake("wrong", 1)});
  const CliResult result = cli.call_api({"--api_config_file=" + cases, "--against=known"});
  EXPECT_EQ(result.status.code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("1 new, 0 grown, 0 known, 0 fixed"));
  EXPECT_THAT(result.output, HasSubstr("note: assay ships no known faults of "));
}

// Five APIs whose cases all fail already. A build that breaks each in a second way has five new
// faults, in the same cases; the same build again has none.
TEST(Gate, ASecondFaultOfAKnownCaseIsNew) {
  Cli cli;
  std::vector<std::string> lines;
  for (const char* name :
       {"flawed_nan", "flawed_value", "flawed_raises", "flawed_shape", "flawed_dies"}) {
    lines.push_back(fake(name));
    lines.push_back(fake(name, 8));
  }
  const std::string cases = "--api_config_file=" + cli.write_cases(lines);
  const std::string baseline = (cli.folder() / "baseline.toml").string();
  const auto run = [&](const std::string& name) {
    return cli.call({"api", "--test_cpu=True", cases, "--against=" + baseline,
                     "--log_dir=" + (cli.folder() / name).string()});
  };
  ASSERT_EQ(cli.call({"api", "--test_cpu=True", cases, "--log_dir=known"}).status.code, 1);
  ASSERT_EQ(cli.call({"report", "known", "--write-baseline", baseline}).status.code, 0);
  EXPECT_EQ(cli.call({"report", "known", "--list", "pass"}).output, "");  // every case fails

  const CliResult same = run("same");
  EXPECT_EQ(same.status.code, 0) << same.output;
  EXPECT_THAT(same.output, HasSubstr("passes: nothing is worse against " + baseline));
  EXPECT_THAT(same.output, HasSubstr("0 new, 0 grown, 5 known, 0 fixed"));

  cli.set_paddle_environment({"FAKE_BROKEN=1"});
  const CliResult broken = run("broken");
  EXPECT_EQ(broken.status.code, 1) << broken.output;
  EXPECT_THAT(broken.output, HasSubstr("against " + baseline + ": 5 new, 0 grown"));
  EXPECT_THAT(broken.output, HasSubstr("fails: 5 new faults against " + baseline));
  // Each form of report says so.
  const auto report = [&](const std::string& format) {
    const CliResult result =
        cli.call({"report", "broken", "--against", baseline, "--format", format});
    EXPECT_EQ(result.status.code, 1) << result.output;
    return result.output;
  };
  EXPECT_EQ(times(report("markdown"), "\n| new | `paddle.fake.flawed_"), 5U);
  EXPECT_EQ(times(report("github"), "::error "), 6U);  // the verdict is one of them
  EXPECT_THAT(report("text"), HasSubstr("\nfails: 5 new faults against " + baseline));
}

TEST(Gate, AReportEndsWithTheVerdictAndHidesPassingApis) {
  Cli cli;
  const std::string cases = cli.write_cases({fake("echo"), fake("wrong", 1)});
  ASSERT_EQ(cli.call_api({"--api_config_file=" + cases}).status.code, 1);
  const auto report = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"report", cli.run().string()});
    return cli.call(flags).output;
  };
  EXPECT_THAT(report({}), EndsWith("\nfails: 1 of 2 cases failed: 1 mismatch\n"));
  EXPECT_THAT(report({}), Not(HasSubstr("paddle.fake.echo ")));
  EXPECT_THAT(report({"--passing"}), HasSubstr("paddle.fake.echo "));
  EXPECT_THAT(report({"-k", "echo"}), EndsWith("\npasses: none of 1 case failed\n"));
  EXPECT_EQ(cli.call({"report", cli.run().string(), "-k", "echo", "--fail-on=any"}).status.code, 0);
  EXPECT_EQ(cli.call({"report", cli.run().string(), "-k", "wrong", "--fail-on=any"}).status.code,
            1);
  EXPECT_THAT(report({"-k", "("}), HasSubstr("column"));
  EXPECT_THAT(report({"--format=jsno"}), HasSubstr("did you mean 'json'?"));
  EXPECT_THAT(report({"--list=mismtach"}), HasSubstr("did you mean 'mismatch'?"));
}

TEST(Gate, TheFlagsOfPytest) {
  Cli cli;
  const std::string cases = cli.write_cases({fake("echo"), fake("wrong", 1), fake("raises")});
  const CliResult run = cli.call_api({"--accuracy", cases, "-n", "1", "--seed=7", "--durations=2",
                                      "-v", "--junit=junit.xml", "--markdown=summary.md"});
  EXPECT_EQ(run.status.code, 1) << run.output;
  EXPECT_THAT(run.output, HasSubstr("pass  " + fake("echo")));
  EXPECT_EQ(times(run.output.substr(run.output.find("the slowest cases:")), " s  paddle.fake"), 2U);
  EXPECT_THAT(read_file(cli.folder() / "junit.xml").value_or(""), HasSubstr("<testsuite "));
  EXPECT_THAT(read_file(cli.folder() / "summary.md").value_or(""), HasSubstr("paddle.fake.wrong"));
  const CliResult again = cli.call_api({"--last-failed", "--max-failures=2", "-q"});
  EXPECT_EQ(again.status.code, 1) << again.output;
  EXPECT_THAT(again.output, Not(HasSubstr("%]")));
  const auto id = cli.report()["findings"][0]["id"].get<std::string>();
  const CliResult one =
      cli.call({"api", "--test_cpu=True", "--log_dir=one", cases + "::" + id.substr(0, 9)});
  EXPECT_THAT(one.output, HasSubstr("1 case to run"));
  const CliResult piped = cli.call_program(
      {"/bin/sh", "-c",
       "cat " + cases + " | " ASSAY_PROGRAM " api - --test_cpu=True --log_dir=piped"});
  EXPECT_THAT(piped.output, HasSubstr("3 cases to run"));
}

TEST(Gate, AFilterThatMatchesNoCaseIsAnError) {
  Cli cli;
  const std::string cases = "--api_config_file=" + cli.write_cases({fake("echo")});
  const CliResult none = cli.call_api({cases, "-k", "sofmax"});
  EXPECT_EQ(none.status.code, 2);
  EXPECT_THAT(none.output, HasSubstr("no case matches -k"));
}

// Without a case to run there is nothing to import: the interpreters do not even exist.
TEST(Gate, AFilterThatMatchesNothingIsAUsageError) {
  Cli cli;
  ASSERT_EQ(cli.call_api({"--api_config_file=" + cli.write_cases({fake("echo")})}).status.code, 0);
  const CliResult report = cli.call({"report", cli.run().string(), "-k", "ecoh", "--fail-on=any"});
  EXPECT_EQ(report.status.code, 2) << report.output;
  EXPECT_THAT(report.output, HasSubstr("-k: no case of the run matches ecoh"));
}

TEST(Gate, ARunWithoutACaseStartsNoFramework) {
  Cli cli;
  const std::string cases = "--api_config_file=" + cli.write_cases({fake("echo")});
  const auto diff = cli.folder() / "docs.diff";
  ASSERT_TRUE(write_file(diff, "--- a/x.md\n+++ b/x.md\n@@ -1 +1 @@\n-a\n+b\n"));
  const CliResult none =
      cli.call_api({cases, "--apis-from=" + diff.string(), "--paddle_python=/nowhere/python",
                    "--torch_python=/nowhere/python"});
  EXPECT_EQ(none.status.code, 0) << none.output;
  EXPECT_THAT(none.output, HasSubstr("0 cases to run"));
  EXPECT_EQ(cli.call({"report", cli.run().string()}).status.code, 0);
  // The folder goes on as the run of a case, whose builds it did not know before.
  const CliResult one = cli.call_api({cases});
  EXPECT_EQ(one.status.code, 0) << one.output;
  EXPECT_THAT(one.output, HasSubstr("1 case to run"));
}

}  // namespace
}  // namespace assay::testing
