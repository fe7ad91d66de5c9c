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

// Where assay does something else on purpose; docs/chain.md has the reasons.
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
TEST(SuiteDevices, AreWhatTheSuitesOwnScriptsMakeOfTheFile) {
  const std::string text = slurp(fs::path(ASSAY_SOURCE_DIR) / "tests/chain/plan/clas_epochs.txt");
  const auto parsed = params::parse_params(text, {"", "PaddleClas"});
  ASSERT_TRUE(parsed.good()) << params::describe("f", parsed.problems);
  const auto trained_on = [&](const std::string& device) {
    plan::PlanOptions options;
    options.device = device;
    const auto plan = plan::make_plan(parsed.params, "lite_train_lite_infer", options);
    EXPECT_TRUE(plan) << (plan ? "" : plan.error().message);
    return plan->stages.front();
  };
  EXPECT_THAT(trained_on("npu").argv, testing::Contains("Global.device=npu"));
  EXPECT_THAT(trained_on("npu").argv, testing::Contains("Global.epochs=1"));
  EXPECT_EQ(trained_on("npu").needs_device, "npu");
  EXPECT_THAT(trained_on("cpu").argv, testing::Contains("Global.device=cpu"));
  EXPECT_EQ(trained_on("cpu").needs_device, "");
  EXPECT_THAT(trained_on("cpu").environment, testing::ElementsAre("CUDA_VISIBLE_DEVICES="));

  plan::PlanOptions options;
  options.device = "tpu";
  const auto refused = plan::make_plan(parsed.params, "lite_train_lite_infer", options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("only for cpu, xpu, npu"));
}

}  // namespace
}  // namespace assay::chain
