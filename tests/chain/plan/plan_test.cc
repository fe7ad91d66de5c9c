// Plans whose bash the material lacks: the expectations are LAYOUTS.md's rules worked out by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "plan_tools.h"

namespace assay::chain {
namespace {

namespace fs = std::filesystem;

// ---- the 51-line layout, by LAYOUTS.md ----

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

plan::Plan long_plan(const fs::path& tipc, const std::string& file, const std::string& mode) {
  return plan_of(slurp(tipc / "params_ocr" / file), mode);
}

TEST(LongLayout, TrainsExportsAndInfersByTheRules) {
  ASSAY_NEED_TIPC(tipc);
  const plan::Plan plan = long_plan(tipc, "det_train_infer_python.txt", "lite_train_lite_infer");
  // Two gpu_list entries; eval is null; each trains, exports, and infers on GPU (trt False, fp32)
  // and CPU (mkldnn False, 1 thread, fp32).
  ASSERT_EQ(plan.stages.size(), 8U);
  const std::string out = "./test_tipc/output/ch_ppocr_mobile_v2_0_det/lite_train_lite_infer/";
  const std::string cell = out + "norm_train_gpus_0,1_autocast_null";
  const std::string config = "configs/det/ch_ppocr_v2.0/ch_det_mv3_db_v2.0.yml";
  EXPECT_EQ(plan.stages[4].argv,
            (std::vector<std::string>{
                "python3.7", "-m", "paddle.distributed.launch", "--gpus=0,1", "tools/train.py",
                "-c", config, "-o",
                "Global.pretrained_model=./pretrain_models/MobileNetV3_large_x0_5_pretrained",
                "Global.print_batch_step=1", "Train.loader.shuffle=false", "Global.use_gpu=True",
                "Global.save_model_dir=" + cell, "Global.epoch_num=100",
                "Train.loader.batch_size_per_card=2"}));
  EXPECT_EQ(plan.stages[5].argv,
            (std::vector<std::string>{"python3.7", "tools/export_model.py", "-c", config, "-o",
                                      "Global.checkpoints=" + cell + "/latest",
                                      "Global.save_inference_dir=" + cell}));
  EXPECT_EQ(plan.stages[6].argv,
            (std::vector<std::string>{
                "python3.7", "tools/infer/predict_det.py", "--use_gpu=True", "--use_tensorrt=False",
                "--precision=fp32", "--det_model_dir=" + cell, "--rec_batch_num=1",
                "--image_dir=./train_data/icdar2015/text_localization/ch4_test_images/",
                "--benchmark=True"}));
  EXPECT_EQ(
      plan.stages[7].argv,
      (std::vector<std::string>{
          "python3.7", "tools/infer/predict_det.py", "--use_gpu=False", "--enable_mkldnn=False",
          "--cpu_threads=1", "--det_model_dir=" + cell, "--rec_batch_num=1",
          "--image_dir=./train_data/icdar2015/text_localization/ch4_test_images/",
          "--benchmark=True", "--precision=fp32"}));
  EXPECT_EQ(plan.stages[4].environment, std::vector<std::string>{"CUDA_VISIBLE_DEVICES=0,1"});
  EXPECT_EQ(plan.stages[5].environment, std::vector<std::string>{"CUDA_VISIBLE_DEVICES=0"});
}

TEST(LongLayout, SeveralMachinesPutPretrainedBeforeEpochs) {
  ASSAY_NEED_TIPC(tipc);
  std::string text = slurp(tipc / "params_ocr/det_train_fleet_infer_python.txt");
  text.replace(text.find("Global.pretrained_model:null"), 28, "Global.pretrained_model:./p");
  text.replace(text.find("Global.auto_cast:null"), 21, "Global.auto_cast:amp");
  const plan::Plan plan = plan_of(text, "lite_train_lite_infer");
  const std::vector<std::string>& argv = plan.stages.front().argv;
  EXPECT_EQ(argv[3], "--ips=192.168.0.1,192.168.0.2");
  EXPECT_EQ(argv[4], "--gpus=0,1");
  EXPECT_EQ(std::vector<std::string>(argv.end() - 9, argv.end()),
            (std::vector<std::string>{
                "Global.use_gpu=True",
                "Global.save_model_dir=./test_tipc/output/ch_ppocr_mobile_v2_0_det/"
                "lite_train_lite_infer/norm_train_gpus_0,1_autocast_amp_nodes_2",
                "Global.pretrained_model=./p", "Global.epoch_num=100", "Global.auto_cast=amp",
                "Train.loader.batch_size_per_card=2", "Global.use_amp=True",
                "Global.scale_loss=1024.0", "Global.use_dynamic_loss_scaling=True"}));
}

// The skips of the matrix, counted by hand: CPU 2 mkldnn × 2 threads × 2 batches × 3 precisions
// less (mkldnn False, fp16), 4 cells; GPU 2 TensorRT × 3 precisions × 2 batches less int8 (4 cells)
// and, with TensorRT False, fp16 (2 cells).
TEST(LongLayout, LeavesOutTheCellsThatMakeNoSense) {
  ASSAY_NEED_TIPC(tipc);
  const std::string text = long_with(tipc, {{"--enable_mkldnn:False", "--enable_mkldnn:True|False"},
                                            {"--cpu_threads:1", "--cpu_threads:1|6"},
                                            {"--rec_batch_num:1", "--rec_batch_num:1|6"},
                                            {"--use_tensorrt:False", "--use_tensorrt:False|True"},
                                            {"--precision:fp32", "--precision:fp32|fp16|int8"}});
  const auto count = [](const plan::Plan& plan, const std::string& word) {
    return std::count_if(plan.stages.begin(), plan.stages.end(), [&](const plan::Stage& stage) {
      return stage.name.find(word) != std::string::npos;
    });
  };
  const plan::Plan plain = plan_of(text, "whole_infer");
  EXPECT_EQ(count(plain, "infer_cpu"), 24 - 4);
  EXPECT_EQ(count(plain, "infer_gpu"), 12 - 4 - 2);
  std::string quant = text;
  quant.replace(quant.find("infer_quant:False"), 17, "infer_quant:True");
  const plan::Plan quantised = plan_of(quant, "whole_infer");
  EXPECT_EQ(count(quantised, "infer_cpu"), 8);           // int8 only
  EXPECT_EQ(count(quantised, "infer_gpu"), 12 - 2 - 2);  // without TensorRT no fp16, no int8
}

TEST(LongLayout, EachTrainerRunsItsOwnCommandsAndPactIsQuantised) {
  ASSAY_NEED_TIPC(tipc);
  const plan::Plan plan = plan_of(
      long_with(tipc, {{"gpu_list:0|0,1", "gpu_list:-1"},
                       {"Global.use_gpu:True|True", "Global.use_gpu:False"},
                       {"trainer:norm_train", "trainer:norm_train|pact_train|distill_train"},
                       {"pact_train:null", "pact_train:pact.py"},
                       {"quant_export:null", "quant_export:quant_export.py"},
                       {"--precision:fp32", "--precision:fp32|int8"},
                       {"--use_gpu:True|False", "--use_gpu:False"}}),
      "lite_train_lite_infer");
  std::vector<std::string> names;
  for (const plan::Stage& stage : plan.stages) names.push_back(stage.name);
  // distill_train's command is null: no cell of it.
  const std::string tail = "_gpus_-1_autocast_null_nodes_1/";
  const std::string infer = "infer_cpu_usemkldnn_False_threads_1_precision_";
  EXPECT_THAT(names,
              ::testing::ElementsAre("norm_train" + tail + "train", "norm_train" + tail + "export",
                                     "norm_train" + tail + infer + "fp32_batchsize_1",
                                     "norm_train" + tail + infer + "int8_batchsize_1",
                                     "pact_train" + tail + "train", "pact_train" + tail + "export",
                                     "pact_train" + tail + infer + "int8_batchsize_1"));
  EXPECT_EQ(plan.stages[5].argv[1], "quant_export.py");
}

// As benchmark_train.sh does: batch × precision, on one GPU with the profiler first; fp16 is amp.
TEST(LongLayout, BenchmarkTrainIsBatchesTimesPrecisionsAndProfilesOneGpu) {
  ASSAY_NEED_TIPC(tipc);
  const plan::Plan plan = long_plan(tipc, "det_train_infer_python.txt", "benchmark_train");
  std::vector<std::string> names;
  for (const plan::Stage& stage : plan.stages) names.push_back(stage.name);
  EXPECT_THAT(names,
              ::testing::ElementsAre("norm_train_gpus_0_autocast_fp32_bs_8_profiling_nodes_1/train",
                                     "norm_train_gpus_0_autocast_fp32_bs_8_nodes_1/train",
                                     "norm_train_gpus_0_autocast_amp_bs_8_profiling_nodes_1/train",
                                     "norm_train_gpus_0_autocast_amp_bs_8_nodes_1/train",
                                     "norm_train_gpus_0,1_autocast_fp32_bs_8_nodes_1/train",
                                     "norm_train_gpus_0,1_autocast_amp_bs_8_nodes_1/train"));
  const std::vector<std::string>& environment = plan.stages.front().environment;
  EXPECT_THAT(environment, ::testing::Contains("FLAGS_conv_workspace_size_limit=4096"));
  const std::vector<std::string>& profiled = plan.stages[0].argv;
  EXPECT_THAT(profiled, ::testing::Contains("Train.loader.batch_size_per_card=8"));
  EXPECT_THAT(profiled, ::testing::Contains("Global.epoch_num=2"));
  EXPECT_THAT(profiled, ::testing::Contains("--profiler_options=batch_range=[10,20];state=GPU;"
                                            "tracer_option=Default;profile_path=model.profile"));
  EXPECT_THAT(plan.stages[1].argv,
              ::testing::Not(::testing::Contains(::testing::HasSubstr("profiler_options"))));
  EXPECT_THAT(plan.stages[3].argv, ::testing::Contains("Global.auto_cast=amp"));
  EXPECT_THAT(plan.stages[3].argv, ::testing::Contains("Global.use_amp=True"));
}

TEST(Plans, LogsAndNamesAreUnique) {
  ASSAY_NEED_TIPC(tipc);
  std::string text = slurp(tipc / "cases/c00_good.txt");
  text.replace(text.find("gpu_list:-1"), 11, "gpu_list:-1|0|0,1|0");
  text.replace(text.find("trainer:norm_train"), 18, "trainer:norm_train|amp_train");
  const plan::Plan plan = plan_of(text, "lite_train_lite_infer");
  std::set<std::string> logs;
  std::set<std::string> names;
  for (const plan::Stage& stage : plan.stages) {
    EXPECT_TRUE(logs.insert(stage.log).second) << stage.log;
    EXPECT_TRUE(names.insert(stage.name).second) << stage.name;
  }
  EXPECT_EQ(plan.stages.size(), 4U * 2U * 4U);
}

TEST(Plans, AFilterKeepsWhatItNeeds) {
  ASSAY_NEED_TIPC(tipc);
  plan::PlanOptions options;
  options.filters = {"infer_cpu"};
  const plan::Plan plan =
      plan_of(slurp(tipc / "cases/c00_good.txt"), "lite_train_lite_infer", options);
  ASSERT_EQ(plan.stages.size(), 3U);  // train, export, infer; eval is not needed
  EXPECT_EQ(plan.stages[2].needs, std::vector<std::size_t>{1});
}

TEST(Plans, AModeThatTheFileDoesNotNameIsToldOf) {
  ASSAY_NEED_TIPC(tipc);
  const plan::Plan plan =
      plan_of(slurp(tipc / "cases/c05_mode_absent_epochs.txt"), "lite_train_lite_infer");
  ASSERT_EQ(plan.warnings.size(), 1U);
  EXPECT_THAT(plan.warnings.front(), ::testing::HasSubstr("`--epochs` has no value for"));
}

// logs/results_python.log of the material is what the real bash wrote.
TEST(Plans, TheStatusLineIsTheBashs) {
  ASSAY_NEED_TIPC(tipc);
  std::string text = slurp(tipc / "cases/c00_good.txt");
  text.replace(text.find("python:./fakepy"), 15, "python:python");
  const plan::Plan plan = plan_of(text, "lite_train_lite_infer");
  const std::vector<std::string> real =
      split_at(slurp(tipc / "logs/fleet_nodeA_results.log"), '\n');
  std::string wanted = real.at(1);  // the eval of a fleet_train; ours is the same for norm_train
  for (std::size_t at = 0;
       (at = wanted.find("fleet_train_gpus_0,1_autocast_False_nodes_2")) != std::string::npos;) {
    wanted.replace(at, 43, "norm_train_gpus_-1_autocast_False_nodes_1");
  }
  EXPECT_EQ(plan::status_line(plan, plan.stages[1], true), wanted);
}

}  // namespace
}  // namespace assay::chain
