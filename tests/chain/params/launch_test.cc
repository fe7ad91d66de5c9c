// Launching scripts and the small reader of bash that reads them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process.h"
#include "chain/params/launch_script.h"
#include "chain/params/shell_branches.h"
#include "chain/params/shell_reader.h"
#include "launch_tools.h"

namespace assay::chain::params {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ShellVariables with(std::map<std::string, std::string, std::less<>> variables) {
  return [variables](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

std::vector<std::string> words_of(const std::string& word, const ShellVariables& variables) {
  const auto words = expand_word(word, variables);
  EXPECT_TRUE(words) << (words ? "" : words.error().message);
  return words.value_or(std::vector<std::string>());
}

// ---- the reader ----

TEST(ShellReader, FindsStatementsAndWhereTheirWordsStand) {
  const auto read = read_shell("a=1 # of\n\n  bash x.sh ${a} \\\n  'b c' 2>&1;\n");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 2);
  EXPECT_EQ((*read)[0][0].text, "a=1");
  const ShellStatement& second = (*read)[1];
  ASSERT_EQ(second.size(), 5);
  EXPECT_EQ(second[1].text, "x.sh");
  EXPECT_EQ(second[3].text, "'b c'");
  EXPECT_EQ(std::pair(second[3].line, second[3].column), std::pair(4, 3));
  EXPECT_EQ(second[4].text, "2>&1");
}

// The same words as bash makes of them, for what this reader takes at all.
TEST(ShellReader, MakesOfAWordWhatBashMakes) {
  const char* const kWords[] = {"plain",         "$A",
                                "${A}x",         "\"$A b\"",
                                "'$A'",          "${B}",
                                "\"${B}\"",      "${C:-d}",
                                "${C:-\"d e\"}", "\"${C:-\"d e\"}\"",
                                "${A:-no}",      "${E:-empty}",
                                "${E-empty}",    "a\\ b",
                                "\"a\\\"b\"",    "x=${A},${B}",
                                "${E}",          "\"${E}\"",
                                "'a b'c\"d e\"", "${C:-${A}}",
                                "a'b'$A\"c\"",   "\"\\$A \\n\"",
                                "${B}${B}end",   "./a-b_c.d/e:f=g,h%"};
  for (const char* word : kWords) {
    Scratch scratch;
    put(scratch.path() / "ask.sh", std::string("A=one\nB='two  words'\nE=\nfor w in ") + word +
                                       "; do printf '%s\\n' \"<$w>\"; done > said\n");
    SpawnOptions options;
    options.argv = {"bash", "ask.sh"};
    options.directory = scratch.path().string();
    auto bash = Process::spawn(options);
    ASSERT_TRUE(bash);
    ASSERT_TRUE(bash->wait());
    std::string ours;
    for (const std::string& one :
         words_of(word, with({{"A", "one"}, {"B", "two  words"}, {"E", ""}}))) {
      ours += "<" + one + ">\n";
    }
    EXPECT_EQ(ours, slurp(scratch.path() / "said")) << word;
  }
}

TEST(ShellReader, NeverEvaluates) {
  for (const char* word : {"$(touch x)", "`touch x`", "${A//a/b}", "${#A}", "${A%x}", "*.sh", "~/x",
                           "{a,b}", "\"$(touch x)\"", "${A:-$(touch x)}"}) {
    EXPECT_FALSE(expand_word(word, with({{"A", ""}}))) << word;
  }
}

TEST(ShellReader, SaysWhatDoesNotClose) {
  const auto read = read_shell("a=1\nb='c\n");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("line 2: `'` does not close"));
}

// What a function's statements leave in x, read by ours; "?" where it is not known.
std::string x_after(const std::string& function) {
  std::map<std::string, std::string, std::less<>> set{{"A", "one"}, {"N", "4"}};
  const ShellVariables variables = [&set](std::string_view name) -> std::optional<std::string> {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  };
  const auto statements = read_shell(function);
  EXPECT_TRUE(statements) << function;
  ShellBranches branches(variables);
  for (ShellStatement statement : statements.value_or(std::vector<ShellStatement>())) {
    const ShellBranches::Runs runs = branches.take(statement);
    if (statement.empty() || runs == ShellBranches::Runs::no) continue;
    const auto given = read_assignment(statement.front().text);
    if (!given) continue;
    const auto value = expand_value(given->value, variables);
    set[given->name] = runs == ShellBranches::Runs::unknown || !value ? "?" : *value;
  }
  return set["x"];
}

std::string x_in_bash(const std::string& function) {
  Scratch scratch;
  put(scratch.path() / "ask.sh", "A=one\nN=4\n" + function + "\nprintf '%s' \"$x\" > said\n");
  SpawnOptions options;
  options.argv = {"bash", "ask.sh"};
  options.directory = scratch.path().string();
  auto bash = Process::spawn(options);
  EXPECT_TRUE(bash && bash->wait());
  return slurp(scratch.path() / "said");
}

TEST(ShellBranches, RunWhatBashRuns) {
  const char* const kFunctions[] = {
      "x=1\nif [[ $A == \"one\" ]]; then\n  x=2\nfi",
      "x=1\nif [[ $A == \"two\" ]]; then\n  x=2\nfi",
      "if [ $A = \"two\" ]; then x=2; else x=3; fi",
      "if [ $A = two ]\nthen\n  x=2\nelif [ ${A} != two ]; then\n  x=3\nelse\n  x=4\nfi",
      "if [ $A = one ]; then x=2; elif [ $A = one ]; then x=3; else x=4; fi",
      "if [[ $B == \"1\" || $B == \"True\" ]]; then\n if [ $A == one ]; then x=2; else x=3; fi\n"
      "else\n x=4\nfi",
      "if [[ $A == one && $N == 5 || $N == 4 ]]; then x=2; fi",
      "if [[ $A == one && $N == 5 ]]; then x=2; else x=3; fi",
      "if [ -z \"$B\" ]; then x=2; fi",
      "if [ -n \"$B\" ]; then x=2; fi",
      "if [[ $N -ge 4 ]]; then x=2; fi\nif [ $N -lt 4 ]; then x=3; fi",
      "if [ $A = two ]; then if [ $A = one ]; then x=1; fi; x=2; fi\ny=3",
  };
  for (const char* function : kFunctions) {
    EXPECT_EQ(x_after(function), x_in_bash(function)) << function;
  }
}

TEST(ShellBranches, WhatOnlyAShellKnowsIsNotGuessed) {
  for (const char* function :
       {"x=1\nif [ -f file ]; then x=2; fi", "x=1\nif grep -q a file; then x=2; fi",
        "x=1\ncase $A in\n  one) y=2 ;;\n  *) echo\n    x=2 ;;\nesac",
        "x=1\nfor i in 1 2; do x=$i; done", "x=1\nif [[ $A == o* ]]; then x=2; fi",
        "if [ -f file ]; then y=1; elif [ $A = one ]; then x=3; fi",
        "if [ -f file ]; then y=1; else x=3; fi"}) {
    EXPECT_EQ(x_after(function), "?") << function;
  }
  EXPECT_EQ(x_after("if [ -f file ]; then y=1; fi\nx=5"), "5");
}

// ---- launching scripts ----

ReadLaunch read_in(const ToySuite& suite, const std::string& text,
                   const std::string& folder = "N1C1") {
  return read_launch((suite.path() / suite.launch(text, folder)).string());
}

std::string with_line(const std::string& old_line, const std::string& new_line) {
  std::string text = kToyLaunch;
  const std::size_t at = text.find(old_line);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, old_line.size(), new_line);
}

TEST(Launch, ReadsBothScripts) {
  const ToySuite suite;
  const ReadLaunch read = read_in(suite, kToyLaunch);
  ASSERT_THAT(describe(read.problems), IsEmpty());
  const LaunchScript& script = read.script;
  EXPECT_EQ(script.directory, "tests");
  ASSERT_EQ(script.prepares.size(), 1);
  EXPECT_THAT(script.prepares[0].argv,
              ElementsAre("bash", "./test_tipc/toy/benchmark_common/prepare.sh"));
  EXPECT_THAT(script.train.argv,
              ElementsAre("bash", "./test_tipc/toy/benchmark_common/run_benchmark.sh", "toy",
                          "fp16", "DP", "N1C1", "8"));
  EXPECT_EQ(script.model_name, "toy_bs8_fp16_DP");
  EXPECT_EQ(script.keyword, "ips:");
  EXPECT_EQ(script.speed_unit, "tokens/s");
  EXPECT_EQ(script.skip_steps, 1);
  EXPECT_EQ(script.model_mode, "5");
  EXPECT_EQ(script.log_name, "ToyRepo_toy_bs8_fp16_DP_N1C1_log");
  EXPECT_EQ(script.silence_seconds, 0);
}

TEST(Launch, ReadsVariablesThatAreHandedOnByTheEnvironment) {
  const ToySuite suite;
  const ReadLaunch read = read_in(suite,
                                  "param=\"fp_item=bf16 \"\n"
                                  "param+=\"PROFILING=false \"\n"
                                  "export FLAGS_a=1\n"
                                  "cd ./tests\n"
                                  "bash -c \"${param} bash "
                                  "./test_tipc/toy/benchmark_common/run_benchmark.sh toy\"\n");
  ASSERT_TRUE(read.good()) << describe(read.problems);
  EXPECT_THAT(read.script.environment, ElementsAre("FLAGS_a=1", "PROFILING=false", "fp_item=bf16"));
  EXPECT_EQ(read.script.model_item, "toy");
  EXPECT_EQ(read.script.train.argv.size(), 3);
}

TEST(Launch, ReadsTheSilenceThatEndsATraining) {
  ToyTraining training;
  training.monitor = R"(
monitor_log_file() {
    local no_update_duration=0
    if [ "$no_update_duration" -ge 180 ]; then kill -9 $2; fi
}
)";
  training.train = "\n    timeout 40m echo > ${log_file}";
  const ReadLaunch read = read_in(ToySuite(training), kToyLaunch);
  ASSERT_TRUE(read.good()) << describe(read.problems);
  EXPECT_EQ(read.script.silence_seconds, 180);
  EXPECT_EQ(read.script.limit_seconds, 2400);
}

// std::regex recurses with each blank: this was a SIGSEGV.
TEST(Launch, ReadsALineOfManyBlanks) {
  ToyTraining training;
  training.train = "\n" + std::string(400'000, ' ') + "timeout 90s echo > ${log_file}";
  const ReadLaunch read = read_in(ToySuite(training), kToyLaunch);
  ASSERT_TRUE(read.good()) << describe(read.problems);
  EXPECT_EQ(read.script.limit_seconds, 90);
}

TEST(Launch, ReadsTheConditionsOfTheRun) {
  ToyTraining training;
  training.skip_steps =
      "0\n    if [[ $device_num == \"N1C1\" ]]; then\n        skip_steps=10\n    fi";
  const ReadLaunch one = read_in(ToySuite(training), kToyLaunch);
  ASSERT_TRUE(one.good()) << describe(one.problems);
  EXPECT_EQ(one.script.skip_steps, 10);
  const ReadLaunch other =
      read_in(ToySuite(training), with_line("device_num=N1C1", "device_num=N1C8"), "N1C8");
  ASSERT_TRUE(other.good()) << describe(other.problems);
  EXPECT_EQ(other.script.skip_steps, 0);

  training.skip_steps = "0\n    if [ -d here ]; then\n        skip_steps=10\n    fi";
  EXPECT_THAT(describe(read_in(ToySuite(training), kToyLaunch).problems),
              HasSubstr("`skip_steps`: it is set under a condition that needs a shell"));
}

TEST(Launch, TakesThePrecisionsOfTheSuites) {
  for (const char* precision : {"fp32", "bf16", "fp16O2", "amp_fp16", "pure_fp16", "o2"}) {
    const ReadLaunch read =
        read_in(ToySuite(), with_line("fp_item=fp16", std::string("fp_item=") + precision));
    EXPECT_TRUE(read.good()) << precision << describe(read.problems);
    EXPECT_EQ(read.script.fp_item, precision);
  }
}

constexpr const char* kRunLine =
    "bash ./test_tipc/toy/benchmark_common/run_benchmark.sh ${model_item} ${fp_item} ${run_mode} "
    "${device_num} ${bs_item} 2>&1;\n";

TEST(Launch, ReadsASecondTraining) {
  const ReadLaunch read = read_in(
      ToySuite(), std::string(kToyLaunch) + "\nsleep 10\nexport PROFILING=true\n" + kRunLine);
  ASSERT_TRUE(read.good()) << describe(read.problems);
  EXPECT_THAT(read.script.environment, IsEmpty());
  ASSERT_EQ(read.script.repeats.size(), 1);
  EXPECT_EQ(read.script.repeats[0].command.argv, read.script.train.argv);
  EXPECT_THAT(read.script.repeats[0].environment, ElementsAre("PROFILING=true"));
  EXPECT_THAT(describe(read_in(ToySuite(), std::string(kToyLaunch) + "rm -rf x\n").problems),
              HasSubstr(":13:1: expected nothing after the training but another one, found `rm`"));
}

struct Fault {
  const char* was;
  const char* is;
  const char* told;  // with line and column
};

TEST(Launch, NamesEachFaultAtItsPlace) {
  const Fault kFaults[] = {
      {"device_num=N1C1", "device_num=C1", ":5:12: `device_num`: expected machines and cards"},
      {"device_num=N1C1", "device_num=N3C8",
       ":5:12: `device_num`: 8 cards cannot be shared equally"},
      {"fp_item=fp16", "fp_item=pf16", ":3:9: `fp_item`: expected fp32, fp16 or bf16"},
      {"bs_item=8", "bs_item=many", ":6:9: `bs_item`: expected a batch size, found `many`"},
      {"bs_item=8", "bs_item=$(nproc)", ":6:9: expected plain text or a variable, found `$(nproc)"},
      {"bs_item=8", "bs_item 8", ":6:1: expected NAME=VALUE, export, cd, sed -i or bash"},
      {"cd ./tests", "cd ./test", ":11:1: cannot read test/test_tipc/toy"},
      {"run_benchmark.sh ", "run_benchmark ", ":11:6: expected a script such as run_benchmark.sh"},
      {"2>&1;", "| tee log", ":12:12: expected a plain command, found `|`"},
      {"# run", "'", "line 10: `'` does not close"},
  };
  const ToySuite suite;
  for (const Fault& fault : kFaults) {
    const ReadLaunch read = read_in(suite, with_line(fault.was, fault.is));
    EXPECT_FALSE(read.good()) << fault.is;
    EXPECT_THAT(describe(read.problems), HasSubstr(fault.told)) << fault.is;
  }
}

TEST(Launch, WarnsOfWhatBashPassesOver) {
  const ToySuite suite;
  const Fault kWarnings[] = {
      {"fp_item=fp16", "fp_itm=fp16", "`fp_item` is not set above, so that bash puts nothing"},
      {"fp_item=fp16", "fp_item=fp32\nfp_item=fp16", "`fp_item` is set again"},
      {"${bs_item} 2>&1", "${bs_item} one two", "7 arguments for 5 that run_benchmark.sh reads"},
  };
  for (const Fault& warning : kWarnings) {
    const ReadLaunch read = read_in(suite, with_line(warning.was, warning.is));
    EXPECT_THAT(describe(read.problems), HasSubstr("warning: ")) << warning.is;
    EXPECT_THAT(describe(read.problems), HasSubstr(warning.told)) << warning.is;
  }
  EXPECT_THAT(describe(read_in(suite, kToyLaunch, "N4C32").problems),
              HasSubstr("warning: `device_num`: the file is in N4C32, but trains on N1C1"));
}

}  // namespace
}  // namespace assay::chain::params
