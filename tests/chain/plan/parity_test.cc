// The same argv as the bash. Where the material has the bash script of a kind, the script itself is
// run with a stand-in interpreter that records what it is called with, and the two lists must be
// equal. (plan_test.cc has the layout whose script the material lacks.)

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "base/process.h"
#include "base/text.h"
#include "chain/params/shell_words.h"
#include "plan_tools.h"

namespace assay::chain {
namespace {

namespace fs = std::filesystem;
using Argvs = std::vector<std::vector<std::string>>;

constexpr const char* kShortModes[] = {"lite_train_lite_infer", "lite_train_whole_infer",
                                       "whole_train_whole_infer", "whole_infer"};

// A copy of the project's scripts, with the stand-in interpreter.
class BashProject {
 public:
  explicit BashProject(const fs::path& tipc) {
    fs::create_directories(root() / "test_tipc");
    for (const auto& entry : fs::directory_iterator(tipc / "mobilenet_v3_small/test_tipc")) {
      if (entry.path().extension() == ".sh") {
        fs::copy_file(entry.path(), root() / "test_tipc" / entry.path().filename());
      }
    }
    fs::copy_file(tipc / "cases/fakepy", root() / "fakepy");
  }

  // Runs a script on params text; gives the argv of every call of the interpreter.
  Argvs run(const std::string& script, const std::string& params, const std::string& mode) {
    put(root() / "params.txt", params);
    fs::remove(root() / "fake.argv");
    SpawnOptions options;
    options.argv = {"bash", "test_tipc/" + script, "params.txt", mode};
    options.directory = root().string();
    options.environment = {"FAKE_ARGV=" + (root() / "fake.argv").string()};
    put(root() / "bash.log", "");
    const auto log = open_for_append(root() / "bash.log");
    EXPECT_TRUE(log);
    options.fds = {{log->get(), 1}, {log->get(), 2}};
    auto process = Process::spawn(options);
    EXPECT_TRUE(process);
    EXPECT_TRUE(process->wait());
    Argvs calls;
    for (const std::string& line : split_at(slurp(root() / "fake.argv"), '\n')) {
      if (!line.empty()) calls.push_back(*params::split_words(line));
    }
    return calls;
  }

  fs::path root() const { return scratch_.path(); }

 private:
  Scratch scratch_;
};

std::string with_fake_python(std::string text) {
  for (const std::string real : {"python:python3.7", "python:python3", "python:python"}) {
    const std::size_t at = text.find(real + "\n");
    if (at != std::string::npos) return text.replace(at, real.size(), "python:./fakepy");
  }
  return text;
}

Argvs calls_of(const plan::Plan& plan) {
  Argvs calls;
  for (const plan::Stage& stage : plan.stages) {
    EXPECT_EQ(stage.argv.front(), "./fakepy");
    calls.emplace_back(stage.argv.begin() + 1, stage.argv.end());
  }
  return calls;
}

std::vector<fs::path> short_layout_files(const fs::path& tipc) {
  std::vector<fs::path> files;
  for (const fs::path& folder :
       {tipc / "cases", tipc / "mobilenet_v3_small/test_tipc/configs/mobilenet_v3_small"}) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() != ".txt") continue;
      const params::ParsedParams parsed =
          params::parse_params(slurp(entry.path()), {entry.path().string(), ""});
      if (parsed.good() && parsed.params.layout().name == "train_infer")
        files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Parity, TrainInferHasTheBashsArgv) {
  ASSAY_NEED_TIPC(tipc);
  BashProject bash(tipc);
  int compared = 0;
  for (const fs::path& file : short_layout_files(tipc)) {
    const std::string stem = file.stem().string();
    // Told apart below: the bash loses a line, runs what is in the file, or reads by length.
    if (std::set<std::string>{"c03", "c06", "c16", "c24", "c25"}.contains(stem.substr(0, 3)))
      continue;
    const std::string text = with_fake_python(slurp(file));
    for (const char* mode : kShortModes) {
      EXPECT_EQ(calls_of(plan_of(text, mode)),
                bash.run("test_train_inference_python.sh", text, mode))
          << file << " " << mode;
      ++compared;
    }
  }
  EXPECT_GE(compared, 4 * 13);
}

// Files of the 32-line layout put together from what may stand at each place, by a fixed seed.
class FileMaker {
 public:
  explicit FileMaker(unsigned seed) : random_(seed) {}

  std::string file() {
    std::vector<std::string> trainers =
        some({"norm_train", "amp_train", "pact_train", "fleet_train"});
    std::vector<std::string> gpus =
        some({"-1", "0", "3", "0,1", "0,1,2,3", "10", "192.168.0.1,192.168.0.2;0,1",
              "10.0.0.1,10.0.0.2,10.0.0.3;0,1,2"});
    return "===train_params===\nmodel_name:" + one({"mobilenet_v3_small", "ResNet-50", "a.b_c"}) +
           "\npython:./fakepy\ngpu_list:" + list(gpus) +
           "\nuse-gpu:" + list(std::vector<std::string>(gpus.size(), "True")) + "\n" +
           one({"--epochs", "epochs"}) + ":" + by_mode() + "\n--output-dir:./output/\n" +
           one({"--batch-size", "--bs"}) + ":" + by_mode() + "\n" +
           one({"--pretrained:null", "--pretrained:./w.pdparams", "--pretrained:", "null:null"}) +
           "\ntrain_model_name:" + one({"latest.pdparams", "best/model", "latest"}) + "\n" +
           one({"--data-path:./d", "null:null"}) + "\n##\ntrainer:" + list(trainers) + "\n" +
           trainers.front() + ":" +
           one({"train.py", "tools/train.py -c a.yml  -o X=1", "train.py --x=\"a b\" -l=O2",
                "null"}) +
           "\n##\n===eval_params===\neval:" +
           one({"null", "train.py --test-only", "eval.py -c \"q r\""}) +
           "\n##\n===infer_params===\n" + one({"--save:./output/i/", "null:null", "--save:"}) +
           "\n" + one({"--pretrained:", "-o W:", "null:null"}) +
           "\nnorm_export:" + one({"null", "tools/export.py --m=1"}) + "\n##\n" +
           one({"train_model", "infer_model"}) + ":" + one({"./pre.pdparams", "null"}) +
           "\ninfer_export:" + one({"null", "tools/export.py -m"}) +
           "\n##\ninference:" + one({"deploy/infer.py", "infer.py --shape=\"3,48,320\""}) +
           "\n--use-gpu:" + list(some({"True", "False"})) +
           "\n--batch-size:" + list(some({"1", "2", "16"})) + "\n" +
           one({"--model-dir:", "null:null", "--model_path:x"}) + "\n" +
           one({"--img-path:./i.jpg", "null:null", "--img-path:"}) + "\n" +
           one({"--benchmark:True", "--benchmark:null", "null:null"}) + "\n";
  }

  std::string one(const std::vector<std::string>& choices) { return choices[next(choices.size())]; }

 private:
  std::size_t next(std::size_t below) { return random_() % below; }
  std::vector<std::string> some(std::vector<std::string> choices) {
    for (std::size_t i = choices.size(); i > 1; --i) std::swap(choices[i - 1], choices[next(i)]);
    choices.resize(1 + next(std::min<std::size_t>(3, choices.size())));
    return choices;
  }
  static std::string list(const std::vector<std::string>& items) {
    std::string text;
    for (const std::string& item : items) text += (text.empty() ? "" : "|") + item;
    return text;
  }
  std::string by_mode() {
    if (next(4) == 0) return "null";
    std::string text;
    for (const std::string& mode : some({kShortModes[0], kShortModes[1], kShortModes[2]})) {
      text += (text.empty() ? "" : "|") + mode + "=" + std::to_string(1 + next(99));
    }
    return text;
  }

  std::mt19937 random_;  // its numbers, unlike the library's distributions, are the same everywhere
};

TEST(Parity, PutTogetherFilesHaveTheBashsArgv) {
  ASSAY_NEED_TIPC(tipc);
  BashProject bash(tipc);
  std::size_t commands = 0;
  for (unsigned seed = 0; seed < 24; ++seed) {
    FileMaker maker(seed);
    const std::string text = maker.file();
    const std::string mode =
        maker.one({kShortModes[0], kShortModes[1], kShortModes[2], kShortModes[3]});
    const Argvs wanted = bash.run("test_train_inference_python.sh", text, mode);
    const params::ParsedParams parsed = params::parse_params(text, {kModelsFile, ""});
    ASSERT_TRUE(parsed.good()) << text << params::describe("f", parsed.problems);
    const auto plan = plan::make_plan(parsed.params, mode, {});
    // Where every command is null there is no plan, and the bash must have run nothing.
    EXPECT_EQ(plan ? calls_of(*plan) : Argvs{}, wanted) << "seed " << seed << ", " << mode << "\n"
                                                        << text;
    commands += wanted.size();
  }
  EXPECT_GT(commands, 100U);
}

// A blank line and carriage returns must change nothing: the bash of the plain file is the measure.
TEST(Parity, BlankLinesAndCarriageReturnsGiveThePlainFilesArgv) {
  ASSAY_NEED_TIPC(tipc);
  BashProject bash(tipc);
  const std::string plain = slurp(tipc / "cases/c00_good.txt");
  for (const char* mode : kShortModes) {
    const Argvs wanted = bash.run("test_train_inference_python.sh", plain, mode);
    for (const char* file : {"c03_extra_blank_line_before_gpu_list.txt", "c06_crlf.txt"}) {
      EXPECT_EQ(calls_of(plan_of(slurp(tipc / "cases" / file), mode)), wanted) << file << mode;
    }
  }
}

// One GPU on each of two machines: the bash, which counts letters, forgets to launch on both.
TEST(Parity, OneGpuOnEachOfTwoMachinesIsLaunchedOnBoth) {
  ASSAY_NEED_TIPC(tipc);
  const plan::Plan plan =
      plan_of(slurp(tipc / "cases/c16_fleet_one_gpu_each.txt"), "lite_train_lite_infer");
  EXPECT_THAT(plan.stages.front().argv,
              ::testing::ElementsAre(
                  "./fakepy", "-m", "paddle.distributed.launch", "--ips=10.0.0.1,10.0.0.2",
                  "--gpus=0", "train.py",
                  "--output-dir=./test_tipc/output/mobilenet_v3_small/lite_train_lite_infer/"
                  "norm_train_gpus_0_autocast_False_nodes_2.log",
                  "--epochs=5", "--batch-size=4"));
  EXPECT_THAT(plan.stages.front().hosts, ::testing::ElementsAre("10.0.0.1", "10.0.0.2"));
}

// What the bash would execute stays text.
TEST(Parity, InjectionsStayPlainWords) {
  ASSAY_NEED_TIPC(tipc);
  const plan::Plan semicolon =
      plan_of(slurp(tipc / "cases/c24_inject_semicolon.txt"), "whole_infer");
  const std::vector<std::string>& argv = semicolon.stages.back().argv;
  ASSERT_GE(argv.size(), 3U);
  EXPECT_EQ(std::vector<std::string>(argv.end() - 3, argv.end()),
            (std::vector<std::string>{"--benchmark=True;", "touch", "INJ_BENCH"}));
  const plan::Plan substitution =
      plan_of(slurp(tipc / "cases/c25_inject_cmdsub.txt"), "lite_train_lite_infer");
  EXPECT_EQ(substitution.stages.front().argv[2],
            "--output-dir=./test_tipc/output/m$(touch${IFS}INJ_NAME)/lite_train_lite_infer/"
            "norm_train_gpus_-1_autocast_False_nodes_1.log");
}

}  // namespace
}  // namespace assay::chain
