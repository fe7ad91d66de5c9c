// Chains of any commands, listed in TOML.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli_run.h"

namespace assay::chain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kGood = R"(version = 1
model = "toy"
[stages.infer]
command = "python3 infer.py --model=out/model"
[stages.train]
command = "python3 train.py --epochs=2"
makes = "out/weights"
[stages.export]
command = "python3 export.py 'a word'"
makes = "out/model"
[stages.small]
kind = "infer"
command = "python3 infer.py --small"
needs = ["train"]
)";

struct Toy {
  Scratch scratch;
  Toy() {
    put(path() / "toy.toml", kGood);
    put(path() / "train.py",
        "import os\nos.makedirs('out', exist_ok=True)\nopen('out/weights', 'w')\n"
        "print('epoch 1 loss: 2')\nprint('epoch 2 loss: 1')\n");
    put(path() / "export.py", "open('out/model', 'w')\n");
    put(path() / "infer.py", "print('inferred')\n");
  }
  std::filesystem::path path() const { return scratch.path(); }
  CliResult run(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"run", "toy.toml"};
    words.insert(words.end(), more.begin(), more.end());
    return run_cli(path(), words);
  }
};

TEST(StageFile, IsPlannedByKindAndRun) {
  const Toy toy;
  const CliResult plan = toy.run({"--dry-run"});
  EXPECT_EQ(plan.code, 0) << plan.out;
  EXPECT_THAT(plan.out, HasSubstr("# 1. train  >"));
  EXPECT_THAT(plan.out, HasSubstr("# 2. export  (needs 1)"));
  EXPECT_THAT(plan.out, HasSubstr("python3 export.py 'a word'\n"));
  EXPECT_THAT(plan.out, HasSubstr("# 3. infer  (needs 2)"));
  EXPECT_THAT(plan.out, HasSubstr("# 4. small  (needs 1)"));
  EXPECT_EQ(toy.run().code, 0);
  EXPECT_EQ(slurp(toy.path() / "assay-chain/toy/infer.log"), "inferred\n");
  EXPECT_THAT(toy.run({"--resume"}).out, HasSubstr("kept from an earlier run: train"));
}

// Any package beside the interpreter may be what the stage imports.
TEST(StageFile, AnotherVersionOfAPackageIsNotKept) {
  const Toy toy;
  const auto packages = toy.path() / "env/lib/python3.11/site-packages";
  std::filesystem::create_directories(packages / "torch-2.0.dist-info");
  std::filesystem::create_directories(toy.path() / "env/bin");
  std::filesystem::create_symlink(CHAIN_CHILD, toy.path() / "env/bin/python3");
  put(toy.path() / "toy.toml",
      "version = 1\n[stages.train]\ncommand = \"env/bin/python3 'say=loss: 0.5'\"\n");
  EXPECT_EQ(toy.run().code, 0);
  EXPECT_THAT(toy.run({"--resume"}).out, HasSubstr("kept from an earlier run: train"));
  std::filesystem::rename(packages / "torch-2.0.dist-info", packages / "torch-2.1.dist-info");
  EXPECT_THAT(toy.run({"--resume"}).out, Not(HasSubstr("kept from an earlier run")));
}

// A run that writes settings or results into the project changes no source.
TEST(StageFile, WhatAStageWritesIsNoSource) {
  const Toy toy;
  put(toy.path() / "train.py", "print('loss: 0.5')\nopen('results.json', 'w').write('1')\n");
  put(toy.path() / "config.yml", "rate: 1\n");
  put(toy.path() / "toy.toml", "version = 1\n[stages.train]\ncommand = \"python3 train.py\"\n");
  EXPECT_EQ(toy.run().code, 0);
  EXPECT_THAT(toy.run({"--resume"}).out, HasSubstr("kept from an earlier run: train"));
  put(toy.path() / "results.json", "2");
  EXPECT_THAT(toy.run({"--resume"}).out, HasSubstr("kept from an earlier run: train"));
  put(toy.path() / "config.yml", "rate: 2\n");
  EXPECT_THAT(toy.run({"--resume"}).out, Not(HasSubstr("kept from an earlier run")));
}

// The last line names the command that is missing.
TEST(StageFile, AMissingCommandIsNamed) {
  const Toy toy;
  put(toy.path() / "run.sh", "nosuchtool --x\n");
  put(toy.path() / "toy.toml", "version = 1\n[stages.train]\ncommand = \"bash run.sh\"\n");
  EXPECT_THAT(toy.run().out, HasSubstr("exit code 127: run.sh: line 1: nosuchtool: command not"));
}

TEST(StageFile, HasTheGuardsOfEveryChain) {
  const Toy toy;
  put(toy.path() / "train.py", "print('epoch 1 loss: 2')\n");
  const CliResult result = toy.run();
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("not_made"));
  EXPECT_THAT(result.out, HasSubstr("blocked      infer"));
}

// A log that assay does not understand passes only when the list says where its loss is.
TEST(StageFile, ALossThatNobodyReadsNeedsItsPattern) {
  const Toy toy;
  const auto list = [](const std::string& more) {
    return "version = 1\n[stages.train]\ncommand = \"" + std::string(CHAIN_CHILD) +
           " 'say=cost is 0.5' --epochs=3 'say=epoch 1'\"\n" + more;
  };
  put(toy.path() / "toy.toml", list(""));
  const CliResult silent = toy.run();
  EXPECT_EQ(silent.code, 1);
  EXPECT_THAT(silent.out, HasSubstr("epoch 1 of 3"));
  put(toy.path() / "toy.toml", list("may_stop_early = true\n"));
  EXPECT_THAT(toy.run().out, HasSubstr("no loss found in this log"));
  put(toy.path() / "toy.toml",
      list("may_stop_early = true\nlog = { loss = \"cost is (\\\\S+)\" }\n"));
  const CliResult named = toy.run();
  EXPECT_EQ(named.code, 0) << named.out;
  put(toy.path() / "toy.toml", list("log = { loss = \"cost is\" }\n"));
  EXPECT_THAT(toy.run().out, HasSubstr("log.loss needs a group around the number"));
}

// Two trainings that meet or must not meet, each on its own devices.
std::string two_trainings(const std::string& words, const std::string& first,
                          const std::string& second) {
  const auto stage = [&](const std::string& name, const std::string& device) {
    return "[stages." + name + "]\nkind = \"train\"\ncommand = \"" + CHAIN_CHILD + " " + words +
           " 'say=loss: 1'\"\ndevice = \"" + device + "\"\n";
  };
  return "version = 1\n" + stage("a", first) + stage("b", second);
}

TEST(StageFile, StagesOnDifferentDevicesRunAtOneTime) {
  const Toy toy;
  // Each of two trainings waits for the other: one after the other they would never end.
  put(toy.path() / "toy.toml", two_trainings("meet=2", "gpu 0", "gpu 1"));
  const CliResult together = toy.run({"-j", "2"});
  EXPECT_EQ(together.code, 0) << together.out;
}

TEST(StageFile, StagesThatShareAGpuRunOneAfterTheOther) {
  const Toy toy;
  // A training fails where another runs beside it.
  put(toy.path() / "toy.toml", two_trainings("alone=0.2", "gpu 0,1", "gpu 0,2"));
  const CliResult result = toy.run({"-j", "2"});
  EXPECT_EQ(result.code, 0) << result.out;
}

TEST(StageFile, AMistakeIsNamed) {
  const Toy toy;
  const CliResult program = run_cli(toy.path(), {"run", "train.py"});
  EXPECT_EQ(program.code, 2);
  EXPECT_THAT(program.out, HasSubstr("train.py is a program: list it as a stage"));
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {"version = 1\n[stages.fit]\ncommand = \"x\"\n", "unknown kind `fit`"},
      {"version = 1\n[stages.train]\n", "stage train has no command"},
      {"version = 1\n[stages.train]\ncommand = \"x\"\nneeds = [\"none\"]\n",
       "needs `none`, which is no stage before it"},
      {"version = 1\n[stages.train]\ncommand = \"x\"\nspeed = 1\n", "speed"},
      {"version = 1\n[stages.train]\ncommand = \"OMP_NUM_THREADS=1 python3 train.py\"\n",
       "OMP_NUM_THREADS=1 stands before its command: put it into `environment`"},
      {"version = 1\n[stages.train]\ncomand = \"x\"\n", "comand"},
      {"version = 1\n[stages.train]\ncommand = \"cd sub && x\"\n", "name a folder in `directory`"},
      {"version = 1\n[stages.train]\ncommand = \"x\"\ndevice = \"gpu0\"\n",
       "toy.toml: stage train: unknown device `gpu0`"},
      {"version = 1\n", "has no [stages.NAME]"},
      {"[stages.train]\ncommand = \"x\"\n", "version"}};
  for (const auto& [text, told] : mistakes) {
    put(toy.path() / "toy.toml", text);
    const CliResult result = toy.run();
    EXPECT_EQ(result.code, 2) << result.out;
    EXPECT_THAT(result.out, HasSubstr(told));
  }
}

}  // namespace
}  // namespace assay::chain
