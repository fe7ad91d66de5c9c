#include "chain/script/script_plan.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "chain/script/recognise.h"
#include "cli_run.h"

namespace assay::chain::script {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kParams = R"(===train_params===
model_name:tiny
python:python3.7
train_model_name:latest
norm_train:tools/train.py -c a.yml
pact_train:tools/train.py -c a.yml -o Slim=pact
eval:tools/eval.py -c a.yml
norm_export:tools/export.py
inference:predict.py
)";

Command command(const std::vector<std::string>& argv) { return {argv, {}, "", "", {}}; }

TEST(Recognised, ACommandBelongsToTheLongestLineThatItBeginsWith) {
  std::vector<Command> commands{
      command({"python3.7", "tools/train.py", "-c", "a.yml", "--save_dir=out/m"}),
      command({"python3.7", "-m", "paddle.distributed.launch", "--ips=10.0.0.1,10.0.0.2", "--gpus",
               "0,1", "tools/train.py", "-c", "a.yml", "-o", "Slim=pact"}),
      command({"python3.7", "-u", "tools/eval.py", "-c", "a.yml"}),
      command({"python3.7", "tools/export.py", "--out=out/i"}),
      command({"python3.7", "predict.py"}),
      command({"python3.7", "predict.py"}),
      command({"python3.7", "tools/other_eval.py"}),
      command({"paddle2onnx", "--model_dir=out/i"}),
  };
  commands[0].outputs = {"out/m"};
  commands[4].environment = {"CUDA_VISIBLE_DEVICES=3"};
  Recogniser recogniser(kParams);
  std::vector<plan::Stage> stages;
  for (const Command& one : commands) stages.push_back(recogniser.take(one));
  std::vector<std::string> names;
  std::vector<std::string_view> kinds;
  for (const plan::Stage& stage : stages) {
    names.push_back(stage.name);
    kinds.push_back(plan::name(stage.kind));
  }
  EXPECT_THAT(names, ElementsAre("norm_train", "pact_train", "eval", "norm_export", "inference",
                                 "inference_2", "other_eval", "paddle2onnx"));
  EXPECT_THAT(kinds,
              ElementsAre("train", "train", "eval", "export", "infer", "infer", "eval", "convert"));
  EXPECT_EQ(stages[0].output, "out/m");
  EXPECT_EQ(stages[0].device, "cpu");
  EXPECT_EQ(stages[1].device, "gpu 0,1");
  EXPECT_THAT(stages[1].hosts, ElementsAre("10.0.0.1", "10.0.0.2"));
  EXPECT_EQ(stages[4].device, "gpu 3");
  EXPECT_THAT(stages[3].needs, ElementsAre(1));
  EXPECT_THAT(stages[4].needs, ElementsAre(3));
}

TEST(FindScript, LiesBesideTheFileAboveItOrInTestTipc) {
  const Scratch scratch;
  const auto found = [&](const std::string& file, const std::string& mode,
                         const std::string& device = "") {
    ScriptRequest request;
    request.project = scratch.path();
    request.params_file = file;
    request.mode = mode;
    request.device = device;
    return find_script(request);
  };
  const std::string file = "a/test_tipc/configs/m/train_infer_python.txt";
  EXPECT_EQ(found(file, "lite_train_lite_infer"), "");
  const std::string train = "test_train_inference_python";
  put(scratch.path() / "test_tipc" / (train + ".sh"), "");
  EXPECT_EQ(found(file, "lite_train_lite_infer"), "test_tipc/" + train + ".sh");
  put(scratch.path() / "a/test_tipc" / (train + ".sh"), "");
  EXPECT_EQ(found(file, "lite_train_lite_infer"), "a/test_tipc/" + train + ".sh");
  EXPECT_EQ(found(file, "lite_train_lite_infer", "npu"), "");
  put(scratch.path() / "test_tipc" / (train + "_npu.sh"), "");
  EXPECT_EQ(found(file, "lite_train_lite_infer", "npu"), "test_tipc/" + train + "_npu.sh");
  EXPECT_EQ(found(file, "benchmark_train"), "");
  put(scratch.path() / "test_tipc/test_serving_infer_cpp.sh", "");
  EXPECT_EQ(found("m/serving_infer_cpp.txt", "serving_infer"),
            "test_tipc/test_serving_infer_cpp.sh");
  EXPECT_EQ(found("m/serving_infer_python.txt", "serving_infer"), "");
  EXPECT_EQ(found("N4C32/gpt.sh", "benchmark_train"), "N4C32/gpt.sh");
}

// Scripts of other names, by what they do.
TEST(FindScript, KnowsAScriptByItsKindOfWork) {
  const Scratch scratch;
  const auto found = [&](const std::string& file, const std::string& mode) {
    ScriptRequest request;
    request.project = scratch.path();
    request.params_file = file;
    request.mode = mode;
    return find_script(request);
  };
  const auto other = [&](const std::string& name) { put(scratch.path() / "test_tipc" / name, ""); };
  other("test_serving.sh");
  EXPECT_EQ(found("test_tipc/m/serving_infer_python.txt", "serving_infer"),
            "test_tipc/test_serving.sh");
  other("test_lite_arm_cpp.sh");
  EXPECT_EQ(found("test_tipc/m/lite_infer.txt", "lite_infer"), "test_tipc/test_lite_arm_cpp.sh");
  other("test_inference_python.sh");
  EXPECT_EQ(found("test_tipc/m/infer_python.txt", "whole_infer"),
            "test_tipc/test_inference_python.sh");
  EXPECT_EQ(found("test_tipc/m/infer_cpp.txt", "cpp_infer"), "");
  other("test_serving_infer.sh");  // which of both?
  EXPECT_EQ(found("test_tipc/m/serving_infer_python.txt", "serving_infer"), "");
}

// A suite that assay knows nothing of: keys of its own, read by its own script.
TEST(DryRunByScript, PlansASuiteThatAssayDoesNotKnow) {
  const Scratch scratch;
  put(scratch.path() / "test_tipc/configs/m/train_infer_python.txt",
      "model:strange\npy:python3.8\nlearn:learn.py --fast\nmode_epochs:lite=2\n");
  put(scratch.path() / "test_tipc/test_train_inference_python.sh", R"(
source test_tipc/own.sh
$(value 2) $(value 3) --epochs=$(value 4 | cut -d= -f2) --mode=$2 $3 > out.log
wget http://example.com/w
./cpp/build/own_infer $(pwd)/build/x
)");
  put(scratch.path() / "test_tipc/own.sh",
      "file=$1\nvalue() { sed -n $1p $file | cut -d: -f2; }\n");
  const std::vector<std::string> words{"run", "test_tipc/configs/m/train_infer_python.txt", "lite",
                                       "7", "--dry-run"};
  std::vector<std::string> json = words;
  json.emplace_back("--json");
  const CliResult done = run_cli(scratch.path(), json);
  EXPECT_EQ(done.code, 0) << done.out;
  EXPECT_THAT(done.out, HasSubstr("also starts 1 wget"));
  const auto stage =
      nlohmann::json::parse(split_at(done.out.substr(done.out.find('{')), '\n').front());
  EXPECT_EQ(stage["argv"], (std::vector<std::string>{"python3.8", "learn.py", "--fast",
                                                     "--epochs=2", "--mode=lite", "7"}));
  EXPECT_THAT(done.out, HasSubstr("\"argv\":[\"./cpp/build/own_infer\","));
  EXPECT_EQ(stage["stage"], "learn");
  EXPECT_EQ(stage["log"], "out.log");
  EXPECT_THAT(run_cli(scratch.path(), words).out, HasSubstr("python3.8 learn.py --fast"));
}

TEST(DryRunByScript, AQuestionWithoutAnAnswerIsNoStage) {
  const Scratch scratch;
  put(scratch.path() / "f.txt", "model_name:m\n");
  put(scratch.path() / "s.sh", "v=$(python3 -c 'import no_such_package')\npython3 train.py $v\n");
  const CliResult done =
      run_cli(scratch.path(), {"run", "f.txt", "lite", "--script", "s.sh", "--dry-run"});
  EXPECT_EQ(done.code, 0) << done.out;
  EXPECT_THAT(done.out, HasSubstr("python3 -c 'import no_such_package', and a rehearsal gives no"));
  EXPECT_THAT(done.out, HasSubstr("# 1. train"));
  EXPECT_THAT(done.out, Not(HasSubstr("# 2.")));
}

TEST(DryRunByScript, AScriptThatStartsNothingIsAnError) {
  const Scratch scratch;
  put(scratch.path() / "f.txt", "model_name:m\n");
  put(scratch.path() / "s.sh", "echo 'no such mode'; exit 4\n");
  const CliResult done =
      run_cli(scratch.path(), {"run", "f.txt", "x", "--dry-run", "--script", "s.sh"});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.out, HasSubstr("s.sh starts no command in mode x (exit code 4)"));
  EXPECT_THAT(done.out, HasSubstr("no such mode"));
}

// One mistake each: a line too few, so that a heading becomes a value; a mode that no line names.
TEST(CheckByRehearsal, FindsWhatTheScriptReadsWrong) {
  const Scratch scratch;
  put(scratch.path() / "test_tipc/test_train_inference_python.sh", R"sh(
value() { sed -n $1p $file | cut -d: -f2; }
file=$1
[ $2 = lite ] && python train.py --epochs=$(value 1 | cut -d'|' -f1 | cut -d= -f2) $(value 2)
[ $2 = whole ] && python train.py --epochs $(value 1)
true
)sh");
  put(scratch.path() / "good.txt", "epochs:lite=1|whole=9\nmore:--x=a|b\n====infer====\n");
  put(scratch.path() / "short.txt", "epochs:lite=1|whole=9\n====infer====\n");
  const CliResult both =
      run_cli(scratch.path(), {"check", "--rehearse", "lite", "good.txt", "short.txt"});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.out,
              HasSubstr("good.txt: good (test_tipc/test_train_inference_python.sh, mode lite)"));
  EXPECT_THAT(both.out, HasSubstr("short.txt: train: the script passes a heading of the file on as "
                                  "a value: `====infer====`"));
  const CliResult list = run_cli(scratch.path(), {"check", "--rehearse", "whole", "good.txt"});
  EXPECT_EQ(list.code, 2);
  EXPECT_THAT(list.out, HasSubstr("passes a list of modes on as a value: `lite=1|whole=9`"));
  const CliResult none = run_cli(scratch.path(), {"check", "--rehearse", "other", "good.txt"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.out, HasSubstr("starts no command in mode other"));
  EXPECT_EQ(run_cli(scratch.path(), {"check", "--rehearse", "lite", "good.txt"}).code, 0);
}

TEST(DryRunByScript, AnInterpreterWithAFolderIsStoodInForToo) {
  const Scratch scratch;
  put(scratch.path() / "f.txt", "model_name:m\npython:/opt/own/python3\n");
  put(scratch.path() / "s.sh", "$(grep ^python: $1 | cut -d: -f2) train.py\n");
  const CliResult done =
      run_cli(scratch.path(), {"run", "f.txt", "x", "--dry-run", "--script", "s.sh"});
  EXPECT_EQ(done.code, 0) << done.out;
  EXPECT_THAT(done.out, HasSubstr("/opt/own/python3 train.py\n"));
  const CliResult missing =
      run_cli(scratch.path(), {"run", "f.txt", "x", "--dry-run", "--script", "none.sh"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.out, HasSubstr("none.sh"));
}

// What suites' scripts are known to lose: the mode's epochs, and what stands behind a colon.
TEST(CheckByRehearsal, WarnsOfWhatTheScriptLoses) {
  const Scratch scratch;
  put(scratch.path() / "f.txt",
      "-o Global.epochs:lite=9|whole=20\n--url:http://host/x\n--iters:lite=3\n");
  put(scratch.path() / "s.sh",
      "python train.py -o Global.epochs=2 --url=$(grep url $1 | cut -d: -f2) --iters 3\n");
  const CliResult done =
      run_cli(scratch.path(), {"run", "f.txt", "lite", "--dry-run", "--script", "s.sh"});
  EXPECT_EQ(done.code, 0) << done.out;
  EXPECT_THAT(done.out, HasSubstr("line 1: `Global.epochs` is 9 for lite, and the script trains "
                                  "with 2"));
  EXPECT_THAT(done.out, HasSubstr("line 2: the script cuts `http://host/x` at its first colon"));
  EXPECT_THAT(done.out, testing::Not(HasSubstr("line 3")));
}

TEST(DryRunByScript, AScriptThatMakesItsOwnProgramIsFollowed) {
  const Scratch scratch;
  put(scratch.path() / "f.txt", "model_name:m\n");
  put(scratch.path() / "s.sh",
      "printf '#!/bin/bash\\npython3 train.py\\n' > go.sh\nchmod +x go.sh; ./go.sh\n"
      "[ -z x ] && /usr/bin/python3 other.py\n");
  const CliResult done =
      run_cli(scratch.path(), {"run", "f.txt", "x", "--dry-run", "--script", "s.sh"});
  EXPECT_EQ(done.code, 0) << done.out;
  EXPECT_THAT(done.out, HasSubstr("python3 train.py\n"));
  EXPECT_THAT(done.out, HasSubstr("starts /usr/bin/python3 by its path: assay does not see"));
}

// What an earlier run left must not be in the way of a rehearsal.
TEST(DryRunByScript, LogsOfAnEarlierRunAreNotInTheWay) {
  const Scratch scratch;
  put(scratch.path() / "f.txt", "model_name:m\n");
  put(scratch.path() / "s.sh",
      "mkdir -p test_tipc/output/m; python train.py > test_tipc/output/m/t.txt\n"
      "python eval.py > eval.log\npython train.py >> train_log\n");
  for (const char* old : {"test_tipc/output/m/t.txt", "eval.log", "train_log"}) {
    put(scratch.path() / old, std::string(100'000, 'x'));
  }
  const CliResult done =
      run_cli(scratch.path(), {"run", "f.txt", "x", "--dry-run", "--script", "s.sh"});
  EXPECT_THAT(done.out, HasSubstr("m x: 3 stages"));
}

// A launching script starts its training by the benchmark repository, which is not here.
TEST(DryRunByScript, ALaunchingScriptIsRehearsedItself) {
  const Scratch scratch;
  put(scratch.path() / "N1C2/toy_bs8.sh", "bash run_benchmark.sh toy 8\n");
  put(scratch.path() / "run_benchmark.sh", R"sh(
_set_params() { model_name=$1_bs$2; base_batch_size=$2; keyword=ips:; skip_steps=1; device_num=N1C2
  log_file=x_log; speed_log_file=x_speed; }
_train() { timeout 10m python -m paddle.distributed.launch --gpus=0,1 train.py --bs=$base_batch_size > $log_file 2>&1; }
source ${BENCHMARK_ROOT}/scripts/run_model.sh
_set_params $@
_run
)sh");
  const CliResult done =
      run_cli(scratch.path(), {"run", "N1C2/toy_bs8.sh", "benchmark_train", "--dry-run"},
              {"BENCHMARK_ROOT="});
  EXPECT_EQ(done.code, 0) << done.out;
  EXPECT_THAT(done.out,
              HasSubstr("python -m paddle.distributed.launch --gpus=0,1 train.py --bs=8"));
  EXPECT_THAT(done.out,
              HasSubstr("--filename x_log --speed_log_file x_speed --model_name toy_bs8"));
  EXPECT_EQ(run_cli(scratch.path(), {"check", "N1C2/toy_bs8.sh"}, {"BENCHMARK_ROOT="}).code, 0);
}

// A file that its own script reads is refused for a fault at a line, and the real one is good.
TEST(Check, NamesTheFaultOfAFileThatItsOwnScriptReads) {
  ASSAY_NEED_TIPC(tipc);
  const Scratch scratch;
  const std::filesystem::path project = scratch.path() / "mobilenet_v3_small";
  std::filesystem::copy(tipc / "mobilenet_v3_small", project,
                        std::filesystem::copy_options::recursive);
  const std::string file = "test_tipc/configs/mobilenet_v3_small/train_infer_python.txt";
  const CliResult good = run_cli(project, {"check", file});
  EXPECT_EQ(good.code, 0);
  EXPECT_THAT(good.out, HasSubstr("good (test_tipc/test_train_inference_python.sh, mode lite_"));
  std::string text = slurp(project / file);
  const std::size_t line = text.find("--epochs");
  text.erase(line, text.find('\n', line) + 1 - line);
  put(project / "broken.txt", text);
  const CliResult bad = run_cli(project, {"check", "broken.txt"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.out, HasSubstr("broken.txt:6:1: train_params: a line is missing: expected the "
                                 "epochs line here"));
  // A script that reads a line number of neither layout has its own.
  const std::filesystem::path script = project / "test_tipc/test_train_inference_python.sh";
  put(script, slurp(script) + ": ${lines[32]}\n");
  EXPECT_EQ(run_cli(project, {"check", "broken.txt"}).code, 0);
}

}  // namespace
}  // namespace assay::chain::script
