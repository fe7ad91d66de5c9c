// The same argv as each suite's own bash: what it ran is in the shared material, recorded by a
// stand-in for the interpreter (never by us).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "base/text.h"
#include "chain/params/params.h"
#include "chain/plan/make_plan.h"
#include "chain/plan/plan.h"
#include "suite_material.h"

namespace assay::chain {
namespace {

namespace fs = std::filesystem;
using Argvs = std::vector<std::vector<std::string>>;

// Where assay does something else on purpose; docs/reference/chain.md has the reasons.
bool is_on_purpose(const SuiteRun& run) {
  const bool loses_commands =
      (run.suite == "PaddleVideo" || run.suite == "models") && run.kind.starts_with("serving");
  // A template without content, which the bash runs through.
  const bool is_empty = run.file.find("your_model_name") != std::string::npos;
  return loses_commands || is_empty;
}

// The interpreter's commands, paddle2onnx, compiled programs and adb: what compare.py compares.
Argvs commands_of(const SuiteMaterial& material, const SuiteRun& run, const fs::path& root) {
  static const std::regex kCompared("^(python[0-9.]*|paddle2onnx|adb)$|build/");
  Argvs list;
  for (const std::string& line : split_at(material.commands(run), '\n')) {
    if (line.empty()) continue;
    std::vector<std::string> argv = nlohmann::json::parse(line)["argv"];
    if (!std::regex_search(argv.front(), kCompared)) continue;
    for (std::string& word : argv) {
      for (std::size_t at = 0; (at = word.find("{ROOT}", at)) != std::string::npos;) {
        word.replace(at, 6, root.string());
      }
      // The oracle's folder had `STAR` where a glob has its star: a glob is expanded when it runs.
      for (std::size_t at = 0;
           run.suite == "PaddleGAN" && (at = word.find("STAR", at)) != std::string::npos;) {
        word.replace(at, 4, "*");
      }
    }
    list.push_back(std::move(argv));
  }
  return list;
}

// Goes to a folder for as long as it lives: plans speak of the folder that they are made in.
class Visit {
 public:
  explicit Visit(const fs::path& folder) : back_(fs::current_path()) {
    fs::create_directories(folder);
    fs::current_path(folder);
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit() { fs::current_path(back_); }

 private:
  fs::path back_;
};

Argvs planned(const std::string& text, const SuiteRun& run) {
  const params::ParsedParams parsed = params::parse_params(text, {run.path(), ""});
  EXPECT_TRUE(parsed.good()) << run.suite << "/" << run.file << "\n"
                             << params::describe(run.path(), parsed.problems);
  if (!parsed.good()) return {};
  EXPECT_EQ(parsed.params.layout().suite->name, run.suite) << run.file;
  plan::PlanOptions options;
  options.params_path = run.path();
  options.third = run.tag.starts_with("benchmark_train") ? run.third() : "";
  options.fallback_checkpoint = run.tag == "no_named_ckpt";
  const auto plan = plan::make_plan(parsed.params, run.mode(), options);
  EXPECT_TRUE(plan) << run.suite << "/" << run.file << ": " << (plan ? "" : plan.error().message);
  Argvs list;
  if (!plan) return list;
  for (const plan::Stage& stage : plan->stages) list.push_back(stage.argv);
  return list;
}

class Suites : public testing::TestWithParam<const char*> {};

TEST_P(Suites, PlanWhatTheirBashRan) {
  ASSAY_NEED_SUITES(material);
  int same = 0;
  int on_purpose = 0;
  for (const SuiteRun& run : material.runs()) {
    if (run.tag != GetParam()) continue;
    if (is_on_purpose(run)) {
      ++on_purpose;
      continue;
    }
    const Visit visit(material.root() / "root" / run.suite / run.folder);
    const fs::path root = fs::current_path();
    const Argvs got = planned(material.text(run), run);
    EXPECT_EQ(got, commands_of(material, run, root))
        << run.suite << "/" << run.file << " " << run.tag;
    ++same;
  }
  EXPECT_GT(same, 0);
  EXPECT_LE(on_purpose, 15);
  RecordProperty("compared", same);
}

INSTANTIATE_TEST_SUITE_P(Tags, Suites,
                         testing::Values("", "whole_infer", "benchmark_train",
                                         "benchmark_train.N1C1", "benchmark_train.d2sT_N1C8",
                                         "no_named_ckpt"),
                         [](const auto& tag) {
                           std::string name = *tag.param == '\0' ? "own_mode" : tag.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(SuiteQuirks, FixDoesWhatTheFileSays) {
  const std::string text = slurp(fs::path(ASSAY_SOURCE_DIR) / "tests/chain/plan/clas_epochs.txt");
  const auto parsed = params::parse_params(text, {"", "PaddleClas"});
  ASSERT_TRUE(parsed.good()) << params::describe("f", parsed.problems);
  const auto epochs = [&](bool fix) {
    plan::PlanOptions options;
    options.fix = fix;
    const auto plan = plan::make_plan(parsed.params, "whole_train_whole_infer", options);
    EXPECT_TRUE(plan);
    for (const std::string& word : plan->stages.front().argv) {
      if (word.starts_with("Global.epochs=")) return word;
    }
    return std::string("none");
  };
  EXPECT_EQ(epochs(false), "Global.epochs=2");  // as func_parser_params without a mode gives
  EXPECT_EQ(epochs(true), "Global.epochs=120");
}

// As the suite's own *_xpu.sh and *_npu.sh edit this file before they run it.
plan::Stage trained_on(const std::string& device, const std::string& text,
                       plan::PlanOptions options = {}) {
  const auto parsed = params::parse_params(text, {"", "PaddleClas"});
  EXPECT_TRUE(parsed.good()) << params::describe("f", parsed.problems);
  options.device = device;
  const auto plan = plan::make_plan(parsed.params, "lite_train_lite_infer", options);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message);
  return plan ? plan->stages.front() : plan::Stage();
}

std::string clas_file(const std::string& was = "", const std::string& is = "") {
  std::string text = slurp(fs::path(ASSAY_SOURCE_DIR) / "tests/chain/plan/clas_epochs.txt");
  const std::size_t at = text.find(was);
  EXPECT_NE(at, std::string::npos) << was;
  return text.replace(at, was.size(), is);
}

TEST(SuiteDevices, AreWhatTheSuitesOwnScriptsMakeOfTheFile) {
  const std::string text = clas_file();
  EXPECT_THAT(trained_on("npu", text).argv, testing::Contains("Global.device=npu"));
  EXPECT_THAT(trained_on("npu", text).argv, testing::Contains("Global.epochs=1"));
  EXPECT_EQ(trained_on("npu", text).needs_device, "npu");
  EXPECT_THAT(trained_on("cpu", text).argv, testing::Contains("Global.device=cpu"));
  EXPECT_EQ(trained_on("cpu", text).needs_device, "");
  EXPECT_THAT(trained_on("cpu", text).environment, testing::ElementsAre("CUDA_VISIBLE_DEVICES="));
}

TEST(SuiteDevices, TheGpuIsWhatTheFileIsWrittenFor) {
  EXPECT_EQ(trained_on("gpu", clas_file()).argv, trained_on("", clas_file()).argv);
  EXPECT_EQ(trained_on("gpu", clas_file()).needs_device, "gpu");
}

// The scripts take python3.9 for both devices, unless the user says what to take.
TEST(SuiteDevices, TheInterpreterIsTheScripts) {
  const std::string text = clas_file("python:python3\n", "python:python3.7\n");
  EXPECT_EQ(trained_on("xpu", text).argv.front(), "python3.9");
  EXPECT_EQ(trained_on("cpu", text).argv.front(), "python3.7");
  plan::PlanOptions mine;
  mine.python = "./mine";
  EXPECT_EQ(trained_on("xpu", text, mine).argv.front(), "./mine");
}

// Every suite's *_npu.sh takes python3.9 in all stages of every training file.
TEST(SuiteDevices, NoStageKeepsTheOldInterpreter) {
  ASSAY_NEED_SUITES(material);
  int planned = 0;
  for (const SuiteRun& run : material.runs()) {
    if (!run.tag.empty() || run.folder != ".") continue;
    const auto parsed = params::parse_params(material.text(run), {run.path(), run.suite});
    if (!parsed.good() || parsed.params.layout().devices.find("npu") == std::string::npos) continue;
    plan::PlanOptions options;
    options.device = "npu";
    options.params_path = run.path();
    const auto plan = plan::make_plan(parsed.params, "lite_train_lite_infer", options);
    ASSERT_TRUE(plan) << run.file << ": " << (plan ? "" : plan.error().message);
    for (const plan::Stage& stage : plan->stages) {
      EXPECT_NE(stage.argv.front(), "python3.7") << run.suite << "/" << run.file;
    }
    ++planned;
  }
  EXPECT_GT(planned, 300);
}

// For three kinds of models they train on two cards alone.
TEST(SuiteDevices, SomeModelsTrainOnTwoCardsAlone) {
  const std::string text = clas_file("gpu_list:0\n", "gpu_list:0|0,1\n");
  plan::PlanOptions options;
  options.params_path = "test_tipc/configs/Twins/f.txt";
  EXPECT_THAT(trained_on("npu", text, options).argv, testing::Contains("--devices=0,1"));
  options.params_path = "test_tipc/configs/Tiny/f.txt";
  EXPECT_THAT(trained_on("npu", text, options).argv,
              testing::Not(testing::Contains("--devices=0,1")));
}

constexpr const char* kOnnxFile =
    R"(===========================paddle2onnx_params===========================
model_name:Tiny
python:python3
2onnx:paddle2onnx
--model_dir:./tiny_infer/
--model_filename:inference.pdmodel
--params_filename:inference.pdiparams
--save_file:./tiny_infer/inference.onnx
--opset_version:10
--enable_onnx_checker:True
inference_model_url:null
inference:null
Global.use_onnx:True
Global.inference_model_dir:./tiny_infer/
Global.use_gpu:False
-c:configs/tiny.yaml
)";

TEST(SuiteDevices, WhereNoScriptIsThePlanIsRefused) {
  const auto told = [](const std::string& text, const std::string& mode) {
    const auto parsed = params::parse_params(text, {"", "PaddleClas"});
    EXPECT_TRUE(parsed.good()) << params::describe("f", parsed.problems);
    plan::PlanOptions options;
    options.device = mode == "paddle2onnx_infer" ? "xpu" : "tpu";
    const auto plan = plan::make_plan(parsed.params, mode, options);
    EXPECT_FALSE(plan);
    return plan ? std::string() : plan.error().message;
  };
  EXPECT_EQ(told(clas_file(), "lite_train_lite_infer"),
            "--device tpu: a train_infer file of PaddleClas runs on gpu, cpu, xpu, npu");
  EXPECT_EQ(told(kOnnxFile, "paddle2onnx_infer"),
            "--device xpu: PaddleClas has no script that puts a paddle2onnx file on another "
            "device; it runs on what the file names");
}

// What stands behind the mode, and whether there is a plan of it.
bool is_planned(const std::string& mode, const std::string& third) {
  const std::string benchmark =
      "===========================train_benchmark_params===========================\n"
      "batch_size:8\nfp_items:fp32\nepoch:1\nmodel_type:norm_train\nnum_workers:4\n"
      "--profiler_options:batch_range=[10,20]\nflags:null\n";
  const auto parsed = params::parse_params(clas_file() + benchmark, {"", "PaddleClas"});
  EXPECT_TRUE(parsed.good()) << params::describe("f", parsed.problems);
  plan::PlanOptions options;
  options.third = third;
  const auto plan = plan::make_plan(parsed.params, mode, options);
  if (!plan) {
    EXPECT_THAT(plan.error().message,
                testing::HasSubstr("the argument after " + mode + ": expected"));
  }
  return plan.has_value();
}

TEST(ThirdArgument, SaysWhatABenchmarkTrains) {
  for (const char* third : {"", "dynamicTostatic", "dynamic_bs8_fp32_DP_N1C1",
                            "dynamicTostatic_bs4_null_DP_N2C16", "dynamic_bs8_fp16_MP2-PP2_N1C8"}) {
    EXPECT_TRUE(is_planned("benchmark_train", third)) << third;
  }
  for (const char* third :
       {"foo", "0", "dynamic_bs8", "dynamc_bs8_fp32_DP_N1C1", "dynamic_bs0_fp32_DP_N1C1",
        "dynamic_bsx_fp32_DP_N1C1", "dynamic_bs8_fp99_DP_N1C1", "dynamic_bs8_fp32_DP_N0C0",
        "dynamic_bs8_fp32_DP_N2C3", "dynamic_bs8_fp32_DP_N1C99999", "dynamic_bs8_fp32_DP_N1C1x"}) {
    EXPECT_FALSE(is_planned("benchmark_train", third)) << third;
  }
}

TEST(ThirdArgument, NamesTheGpusOfAllElse) {
  EXPECT_TRUE(is_planned("whole_infer", "0"));
  EXPECT_TRUE(is_planned("whole_infer", "0,1"));
  EXPECT_FALSE(is_planned("whole_infer", "foo"));
  EXPECT_FALSE(is_planned("lite_train_lite_infer", "dynamic_bs8_fp32_DP_N1C1"));
}

}  // namespace
}  // namespace assay::chain
