// What the standard script starts. The expectations are the rules of TIPC's development documents,
// worked out by hand.

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli_run.h"

namespace assay::chain {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

struct Planned {
  std::vector<std::vector<std::string>> argv;
  std::vector<std::vector<std::string>> environment;
  std::vector<std::string> logs;  // file names without extension
};

// The stages of a dry run of a text, which has no script.
Planned planned(const std::string& text, const std::string& mode,
                const std::vector<std::string>& more = {}) {
  const Scratch scratch;
  put(scratch.path() / "f.txt", text);
  std::vector<std::string> words{"run", "f.txt", mode};
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"--dry-run", "--json"});
  const CliResult done = run_cli(scratch.path(), words);
  EXPECT_EQ(done.code, 0) << done.out;
  EXPECT_THAT(done.out, HasSubstr("no script found: the standard script is used"));
  Planned planned;
  for (const std::string& line : split_at(done.out, '\n')) {
    if (!line.starts_with('{')) continue;
    const auto stage = nlohmann::json::parse(line);
    planned.argv.push_back(stage["argv"]);
    planned.environment.push_back(stage["env"]);
    planned.logs.push_back(fs::path(std::string(stage["log"])).stem().string());
  }
  return planned;
}

// The 51-line file with each first `from` replaced by its `to`.
std::string long_with(const fs::path& tipc,
                      const std::vector<std::pair<std::string, std::string>>& changes) {
  std::string text = slurp(tipc / "params_ocr/det_train_infer_python.txt");
  for (const auto& [from, to] : changes) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) text.replace(at, from.size(), to);
  }
  return text;
}

std::ptrdiff_t count(const Planned& plan, const std::string& word) {
  return std::ranges::count_if(
      plan.logs, [&](const std::string& log) { return log.find(word) != std::string::npos; });
}

TEST(StandardScript, TrainsExportsAndInfersTheLongLayout) {
  ASSAY_NEED_TIPC(tipc);
  const Planned plan = planned(long_with(tipc, {}), "lite_train_lite_infer");
  // Two gpu_list entries; eval is null; each trains, exports, and infers on GPU (TensorRT False,
  // fp32) and CPU (MKL-DNN False, 1 thread, fp32).
  ASSERT_EQ(plan.argv.size(), 8U);
  const std::string cell =
      "./test_tipc/output/ch_ppocr_mobile_v2_0_det/lite_train_lite_infer/"
      "norm_train_gpus_0,1_autocast_null_nodes_1";
  const std::string config = "configs/det/ch_ppocr_v2.0/ch_det_mv3_db_v2.0.yml";
  EXPECT_EQ(plan.argv[4],
            (std::vector<std::string>{
                "python3.7", "-m", "paddle.distributed.launch", "--gpus=0,1", "tools/train.py",
                "-c", config, "-o",
                "Global.pretrained_model=./pretrain_models/MobileNetV3_large_x0_5_pretrained",
                "Global.print_batch_step=1", "Train.loader.shuffle=false", "Global.use_gpu=True",
                "Global.save_model_dir=" + cell, "Global.epoch_num=100",
                "Train.loader.batch_size_per_card=2"}));
  EXPECT_EQ(plan.argv[5],
            (std::vector<std::string>{"python3.7", "tools/export_model.py", "-c", config, "-o",
                                      "Global.checkpoints=" + cell + "/latest",
                                      "Global.save_inference_dir=" + cell}));
  const std::string images =
      "--image_dir=./train_data/icdar2015/text_localization/ch4_test_images/";
  EXPECT_EQ(plan.argv[6], (std::vector<std::string>{
                              "python3.7", "tools/infer/predict_det.py", "--use_gpu=True",
                              "--use_tensorrt=False", "--precision=fp32", "--det_model_dir=" + cell,
                              "--rec_batch_num=1", images, "--benchmark=True"}));
  EXPECT_EQ(plan.argv[7],
            (std::vector<std::string>{"python3.7", "tools/infer/predict_det.py", "--use_gpu=False",
                                      "--enable_mkldnn=False", "--cpu_threads=1",
                                      "--precision=fp32", "--det_model_dir=" + cell,
                                      "--rec_batch_num=1", images, "--benchmark=True"}));
  EXPECT_THAT(plan.environment[4], ElementsAre("CUDA_VISIBLE_DEVICES=0,1"));
  EXPECT_THAT(plan.environment[5], ElementsAre("CUDA_VISIBLE_DEVICES=0"));
}

// Counted by hand: CPU 2 mkldnn × 2 threads × 2 batches × 3 precisions less (mkldnn False, fp16), 4
// cells; GPU 2 TensorRT × 3 precisions × 2 batches less int8 (4 cells) and, with TensorRT False,
// fp16 (2 cells).
TEST(StandardScript, LeavesOutTheInferencesThatMakeNoSense) {
  ASSAY_NEED_TIPC(tipc);
  std::string text = long_with(tipc, {{"--enable_mkldnn:False", "--enable_mkldnn:True|False"},
                                      {"--cpu_threads:1", "--cpu_threads:1|6"},
                                      {"--rec_batch_num:1", "--rec_batch_num:1|6"},
                                      {"--use_tensorrt:False", "--use_tensorrt:False|True"},
                                      {"--precision:fp32", "--precision:fp32|fp16|int8"}});
  const Planned plain = planned(text, "whole_infer", {"3"});
  EXPECT_EQ(count(plain, "infer_cpu"), 24 - 4);
  EXPECT_EQ(count(plain, "infer_gpu"), 12 - 4 - 2);
  EXPECT_THAT(plain.environment.back(), ElementsAre("CUDA_VISIBLE_DEVICES="));
  EXPECT_THAT(plain.environment[1], ElementsAre("CUDA_VISIBLE_DEVICES=3"));
  text.replace(text.find("infer_quant:False"), 17, "infer_quant:True");
  const Planned quantised = planned(text, "whole_infer");
  EXPECT_EQ(count(quantised, "infer_cpu"), 8);           // int8 only
  EXPECT_EQ(count(quantised, "infer_gpu"), 12 - 2 - 2);  // without TensorRT no fp16, no int8
}

TEST(StandardScript, EachTrainerRunsItsOwnCommandsAndPactIsQuantised) {
  ASSAY_NEED_TIPC(tipc);
  const Planned plan = planned(
      long_with(tipc, {{"trainer:norm_train", "trainer:norm_train|pact_train|distill_train"},
                       {"pact_train:null", "pact_train:pact.py"},
                       {"quant_export:null", "quant_export:quant_export.py"},
                       {"--precision:fp32", "--precision:fp32|int8"}}),
      "lite_train_lite_infer", {"--device", "cpu"});
  // distill_train's command is null: nothing of it.
  const std::string tail = "_gpus_-1_autocast_null_nodes_1_";
  const std::string infer = "python_infer_cpu_usemkldnn_False_threads_1_precision_";
  EXPECT_THAT(plan.logs, ElementsAre("norm_train" + tail + "train", "norm_train" + tail + "export",
                                     "norm_train" + tail + infer + "fp32_batchsize_1",
                                     "norm_train" + tail + infer + "int8_batchsize_1",
                                     "pact_train" + tail + "train", "pact_train" + tail + "export",
                                     "pact_train" + tail + infer + "int8_batchsize_1"));
  EXPECT_EQ(plan.argv[5][1], "quant_export.py");
  EXPECT_THAT(plan.argv[0], Contains("Global.use_gpu=False"));
}

// Batch × precision, on one GPU with the profiler first; fp16 is amp.
TEST(StandardScript, BenchmarkTrainIsBatchesTimesPrecisionsAndProfilesOneGpu) {
  ASSAY_NEED_TIPC(tipc);
  const Planned plan = planned(long_with(tipc, {}), "benchmark_train");
  EXPECT_THAT(plan.logs, ElementsAre("norm_train_gpus_0_autocast_fp32_bs_8_profiling_nodes_1_train",
                                     "norm_train_gpus_0_autocast_fp32_bs_8_nodes_1_train",
                                     "norm_train_gpus_0_autocast_amp_bs_8_profiling_nodes_1_train",
                                     "norm_train_gpus_0_autocast_amp_bs_8_nodes_1_train",
                                     "norm_train_gpus_0,1_autocast_fp32_bs_8_nodes_1_train",
                                     "norm_train_gpus_0,1_autocast_amp_bs_8_nodes_1_train"));
  EXPECT_THAT(plan.environment[0], Contains("FLAGS_conv_workspace_size_limit=4096"));
  EXPECT_THAT(plan.argv[0], Contains("Global.epoch_num=2"));
  EXPECT_THAT(plan.argv[0], Contains("Train.loader.batch_size_per_card=8"));
  EXPECT_THAT(plan.argv[0], Contains("--profiler_options=batch_range=[10,20];state=GPU;"
                                     "tracer_option=Default;profile_path=model.profile"));
  EXPECT_THAT(plan.argv[1], Not(Contains(HasSubstr("profiler_options"))));
  EXPECT_THAT(plan.argv[3], Contains("Global.use_amp=True"));
}

TEST(StandardScript, ManyMachinesLaunchOnAllOfThem) {
  const auto train = [](const std::string& gpu_list) {
    const Planned plan =
        planned(params_text({.train = "t.py", .gpu_list = gpu_list}), "lite_train_lite_infer");
    EXPECT_EQ(plan.argv.size(), 4U);
    return std::vector<std::string>(plan.argv[0].begin() + 1, plan.argv[0].begin() + 6);
  };
  EXPECT_THAT(train("10.0.0.1,10.0.0.2;0"),
              ElementsAre("-m", "paddle.distributed.launch", "--ips=10.0.0.1,10.0.0.2", "--gpus=0",
                          "t.py"));
  EXPECT_THAT(train("h1,h2;-1"), ElementsAre("-m", "paddle.distributed.launch", "--ips=h1,h2",
                                             "--nproc_per_node=1", "t.py"));
}

// What bash would execute or expand stays text.
TEST(StandardScript, InjectionsStayPlainWords) {
  const Planned plan =
      planned(params_text({.train = "t.py; touch X \"a b\" *.txt $(touch Y) \\$Z"}),
              "lite_train_lite_infer");
  EXPECT_EQ(
      std::vector<std::string>(plan.argv[0].begin() + 1, plan.argv[0].begin() + 9),
      (std::vector<std::string>{"t.py;", "touch", "X", "a b", "*.txt", "$(touch", "Y)", "$Z"}));
}

TEST(StandardScript, AModeThatALineDoesNotNameIsToldOf) {
  ASSAY_NEED_TIPC(tipc);
  const Scratch scratch;
  put(scratch.path() / "f.txt", slurp(tipc / "cases/c05_mode_absent_epochs.txt"));
  EXPECT_THAT(run_cli(scratch.path(), {"run", "f.txt", "lite_train_lite_infer", "--dry-run"}).out,
              HasSubstr("line 6: `--epochs` has no value for lite_train_lite_infer"));
}

TEST(StandardScript, OtherKindsOfFilesNeedAScript) {
  const Scratch scratch;
  put(scratch.path() / "serving_infer_python.txt", "===serving_params===\nmodel_name:m\n");
  const CliResult result = run_cli(scratch.path(), {"check", "serving_infer_python.txt"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, HasSubstr("the project has no test_serving_infer_python.sh for mode "
                                    "serving_infer; --script names one"));
}

}  // namespace
}  // namespace assay::chain
