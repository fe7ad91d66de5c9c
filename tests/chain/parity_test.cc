// The same argv as the bash. Where the material has the bash script of a kind, the script itself is
// run with a stand-in interpreter that records what it is called with, and the two lists must be
// equal. For the 51-line layout, whose script the material lacks, the expectations are LAYOUTS.md's
// rules worked out by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/process.h"
#include "chain/params.h"
#include "chain/plan.h"
#include "chain/words.h"
#include "material.h"

namespace assay {
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
    for (const std::string& line : split_list(slurp(root() / "fake.argv"), '\n')) {
      if (!line.empty()) calls.push_back(*split_words(line));
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

Plan plan_of(const std::string& text, const std::string& mode, const PlanOptions& options = {}) {
  const ParsedParams parsed = parse_params(text);
  EXPECT_TRUE(parsed.good()) << describe("f", parsed.problems);
  auto plan = make_plan(parsed.params, mode, options);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message);
  return plan ? *plan : Plan{};
}

Argvs calls_of(const Plan& plan) {
  Argvs calls;
  for (const Stage& stage : plan.stages) {
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
      const ParsedParams parsed = parse_params(slurp(entry.path()));
      if (parsed.good() && parsed.params.kind() == Kind::train_infer) files.push_back(entry.path());
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
    if (stem.starts_with("c03") || stem.starts_with("c06") || stem.starts_with("c16") ||
        stem.starts_with("c24") || stem.starts_with("c25")) {
      continue;
    }
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
    const ParsedParams parsed = parse_params(text);
    ASSERT_TRUE(parsed.good()) << text << describe("f", parsed.problems);
    const auto plan = make_plan(parsed.params, mode, {});
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
  const Plan plan =
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
  const Plan semicolon = plan_of(slurp(tipc / "cases/c24_inject_semicolon.txt"), "whole_infer");
  const std::vector<std::string>& argv = semicolon.stages.back().argv;
  ASSERT_GE(argv.size(), 3U);
  EXPECT_EQ(std::vector<std::string>(argv.end() - 3, argv.end()),
            (std::vector<std::string>{"--benchmark=True;", "touch", "INJ_BENCH"}));
  const Plan substitution =
      plan_of(slurp(tipc / "cases/c25_inject_cmdsub.txt"), "lite_train_lite_infer");
  EXPECT_EQ(substitution.stages.front().argv[2],
            "--output-dir=./test_tipc/output/m$(touch${IFS}INJ_NAME)/lite_train_lite_infer/"
            "norm_train_gpus_-1_autocast_False_nodes_1.log");
}

TEST(Parity, OnnxHasTheBashsArgv) {
  ASSAY_NEED_TIPC(tipc);
  BashProject bash(tipc);
  std::string text = with_fake_python(slurp(
      tipc /
      "mobilenet_v3_small/test_tipc/configs/mobilenet_v3_small/paddle2onnx_infer_python.txt"));
  text.replace(text.find("2onnx: paddle2onnx"), 18, "2onnx: ./fakepy p2o");
  EXPECT_EQ(calls_of(plan_of(text, "paddle2onnx_infer")),
            bash.run("test_paddle2onnx.sh", text, "paddle2onnx_infer"));
}

// The bash of this kind prints the quantisation command and does not run it; its inference is run.
TEST(Parity, QuantisationAfterTrainingInfersLikeTheBash) {
  ASSAY_NEED_TIPC(tipc);
  BashProject bash(tipc);
  const std::string text = with_fake_python(slurp(
      tipc / "mobilenet_v3_small/test_tipc/configs/mobilenet_v3_small/train_ptq_infer_python.txt"));
  const Argvs ours = calls_of(plan_of(text, "whole_infer"));
  ASSERT_EQ(ours.size(), 3U);
  EXPECT_EQ(Argvs(ours.begin() + 1, ours.end()),
            bash.run("test_ptq_inference_python.sh", text, "whole_infer"));
  EXPECT_EQ(ours.front(),
            (std::vector<std::string>{"deploy/ptq_python/post_quant.py", "--use_gpu=True",
                                      "--model_path=mobilenet_v3_small_infer/", "--batch_num=1",
                                      "--batch_size=1", "--data_dir=./test_images/lite_data/",
                                      "--output_dir=./mobilenet_v3_small_infer_ptq/"}));
}

// ---- the 51-line layout, by LAYOUTS.md ----

Plan long_plan(const fs::path& tipc, const std::string& file, const std::string& mode) {
  return plan_of(slurp(tipc / "params_ocr" / file), mode);
}

TEST(LongLayout, TrainsExportsAndInfersByTheRules) {
  ASSAY_NEED_TIPC(tipc);
  const Plan plan = long_plan(tipc, "det_train_infer_python.txt", "lite_train_lite_infer");
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
  const Plan plan = plan_of(text, "lite_train_lite_infer");
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
  std::string text = slurp(tipc / "params_ocr/det_train_infer_python.txt");
  const auto swap = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
  };
  swap("--enable_mkldnn:False", "--enable_mkldnn:True|False");
  swap("--cpu_threads:1", "--cpu_threads:1|6");
  swap("--rec_batch_num:1", "--rec_batch_num:1|6");
  swap("--use_tensorrt:False", "--use_tensorrt:False|True");
  swap("--precision:fp32", "--precision:fp32|fp16|int8");
  const auto count = [](const Plan& plan, const std::string& word) {
    return std::count_if(plan.stages.begin(), plan.stages.end(), [&](const Stage& stage) {
      return stage.name.find(word) != std::string::npos;
    });
  };
  const Plan plain = plan_of(text, "whole_infer");
  EXPECT_EQ(count(plain, "infer_cpu"), 24 - 4);
  EXPECT_EQ(count(plain, "infer_gpu"), 12 - 4 - 2);
  swap("infer_quant:False", "infer_quant:True");
  const Plan quantised = plan_of(text, "whole_infer");
  EXPECT_EQ(count(quantised, "infer_cpu"), 8);           // int8 only
  EXPECT_EQ(count(quantised, "infer_gpu"), 12 - 2 - 2);  // without TensorRT no fp16, no int8
}

TEST(LongLayout, EachTrainerRunsItsOwnCommandsAndPactIsQuantised) {
  ASSAY_NEED_TIPC(tipc);
  std::string text = slurp(tipc / "params_ocr/det_train_infer_python.txt");
  const auto swap = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  swap("gpu_list:0|0,1", "gpu_list:-1");
  swap("Global.use_gpu:True|True", "Global.use_gpu:False");
  swap("trainer:norm_train", "trainer:norm_train|pact_train|distill_train");
  swap("pact_train:null", "pact_train:pact.py");
  swap("quant_export:null", "quant_export:quant_export.py");
  swap("--precision:fp32", "--precision:fp32|int8");
  swap("--use_gpu:True|False", "--use_gpu:False");
  const Plan plan = plan_of(text, "lite_train_lite_infer");
  std::vector<std::string> names;
  for (const Stage& stage : plan.stages) names.push_back(stage.name);
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
  const Plan plan = long_plan(tipc, "det_train_infer_python.txt", "benchmark_train");
  std::vector<std::string> names;
  for (const Stage& stage : plan.stages) names.push_back(stage.name);
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

TEST(OtherKinds, ArePlannedWithTheToolThatTheyNeed) {
  ASSAY_NEED_TIPC(tipc);
  const Plan serving = long_plan(tipc, "rec_serving_python.txt", "serving_infer");
  EXPECT_EQ(serving.stages.front().needs_module, "paddle_serving_client");
  EXPECT_EQ(serving.stages.front().argv,
            (std::vector<std::string>{"python3.7", "-m", "paddle_serving_client.convert",
                                      "--dirname=./inference/ch_PP-OCRv3_rec_infer/",
                                      "--model_filename=inference.pdmodel",
                                      "--params_filename=inference.pdiparams",
                                      "--serving_server=./deploy/pdserving/ppocr_rec_v3_serving/",
                                      "--serving_client=./deploy/pdserving/ppocr_rec_v3_client/"}));
  const Plan cpp = long_plan(tipc, "rec_infer_cpp.txt", "cpp_infer");
  // GPU: trt False (fp32), trt True (fp32, fp16); CPU: mkldnn 2 × threads 2, fp32 always.
  EXPECT_EQ(cpp.stages.size(), 3U + 4U);
  EXPECT_EQ(cpp.stages.front().needs_program, "./deploy/cpp_infer/build/ppocr");
  const Plan quant = long_plan(tipc, "rec_ptq_infer_python.txt", "whole_infer");
  EXPECT_EQ(quant.stages.front().argv.back(),
            "Global.save_inference_dir=./inference/ch_PP-OCRv3_rec_infer/_klquant");
  // int8 with 2 batches on the CPU and, as this kind's bash does, on the GPU without TensorRT too.
  EXPECT_EQ(quant.stages.size(), 1U + 2U + 2U);
  const auto configs = tipc / "mobilenet_v3_small/test_tipc/configs/mobilenet_v3_small";
  const Plan phone = plan_of(slurp(configs / "lite_arm_cpu_cpp.txt"), "lite_infer");
  EXPECT_EQ(phone.stages.front().needs_program, "adb");
}

TEST(Plans, LogsAndNamesAreUnique) {
  ASSAY_NEED_TIPC(tipc);
  std::string text = slurp(tipc / "cases/c00_good.txt");
  text.replace(text.find("gpu_list:-1"), 11, "gpu_list:-1|0|0,1|0");
  text.replace(text.find("trainer:norm_train"), 18, "trainer:norm_train|amp_train");
  const Plan plan = plan_of(text, "lite_train_lite_infer");
  std::set<std::string> logs;
  std::set<std::string> names;
  for (const Stage& stage : plan.stages) {
    EXPECT_TRUE(logs.insert(stage.log).second) << stage.log;
    EXPECT_TRUE(names.insert(stage.name).second) << stage.name;
  }
  EXPECT_EQ(plan.stages.size(), 4U * 2U * 4U);
}

TEST(Plans, AFilterKeepsWhatItNeeds) {
  ASSAY_NEED_TIPC(tipc);
  PlanOptions options;
  options.filters = {"infer_cpu"};
  const Plan plan = plan_of(slurp(tipc / "cases/c00_good.txt"), "lite_train_lite_infer", options);
  ASSERT_EQ(plan.stages.size(), 3U);  // train, export, infer; eval is not needed
  EXPECT_EQ(plan.stages[2].needs, std::vector<std::size_t>{1});
}

TEST(Plans, AModeThatTheFileDoesNotNameIsToldOf) {
  ASSAY_NEED_TIPC(tipc);
  const Plan plan =
      plan_of(slurp(tipc / "cases/c05_mode_absent_epochs.txt"), "lite_train_lite_infer");
  ASSERT_EQ(plan.warnings.size(), 1U);
  EXPECT_THAT(plan.warnings.front(), ::testing::HasSubstr("`--epochs` has no value for"));
}

// logs/results_python.log of the material is what the real bash wrote.
TEST(Plans, TheStatusLineIsTheBashs) {
  ASSAY_NEED_TIPC(tipc);
  std::string text = slurp(tipc / "cases/c00_good.txt");
  text.replace(text.find("python:./fakepy"), 15, "python:python");
  const Plan plan = plan_of(text, "lite_train_lite_infer");
  const std::vector<std::string> real =
      split_list(slurp(tipc / "logs/fleet_nodeA_results.log"), '\n');
  std::string wanted = real.at(1);  // the eval of a fleet_train; ours is the same for norm_train
  for (std::size_t at = 0;
       (at = wanted.find("fleet_train_gpus_0,1_autocast_False_nodes_2")) != std::string::npos;) {
    wanted.replace(at, 43, "norm_train_gpus_-1_autocast_False_nodes_1");
  }
  EXPECT_EQ(status_line(plan, plan.stages[1], true), wanted);
}

}  // namespace
}  // namespace assay
