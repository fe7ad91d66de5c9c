#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "chain/params/gpu_entry.h"
#include "chain/params/shell_words.h"
#include "chain/params/standard.h"
#include "chain/params/value_check.h"
#include "material.h"

namespace assay::chain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A file of the 32-line layout, written here, one entry a line.
const std::vector<std::string>& good_lines() {
  static const std::vector<std::string> lines{
      "===========================train_params===========================",
      "model_name:tiny",
      "python:python3",
      "gpu_list:-1",
      "--use_gpu:False",
      "--epochs:lite_train_lite_infer=2|whole_train_whole_infer=9",
      "--out:./output/",
      "--batch_size:lite_train_lite_infer=4|whole_train_whole_infer=16",
      "--init_weights:null",
      "train_model_name:last.npz",
      "--data:./data",
      "##",
      "trainer:norm_train",
      "norm_train:train.py --seed 3",
      "##",
      "===========================eval_params===========================",
      "eval:eval.py",
      "##",
      "===========================infer_params===========================",
      "--save_dir:./output/infer",
      "--weights:",
      "norm_export:export.py",
      "##",
      "train_model:./pretrained/tiny.npz",
      "infer_export:export.py",
      "##",
      "inference:infer.py",
      "--use_gpu:False",
      "--batch_size:1|2",
      "--model_dir:./output/infer",
      "--image:./a.jpg",
      "--benchmark:True"};
  return lines;
}

// The good file with line `number` (from 1) replaced.
std::string with_line(std::size_t number, const std::string& line) {
  std::vector<std::string> lines = good_lines();
  lines.at(number - 1) = line;
  return file_text(lines);
}

std::string problems_of(const std::string& text) {
  return params::describe("f", params::standard_problems(text));
}

std::string only_problem(const std::string& text) {
  EXPECT_EQ(params::standard_problems(text).size(), 1U) << problems_of(text);
  return problems_of(text);
}

TEST(Params, AnAddressMakesNoKey) {
  std::size_t number = 0;
  for (const std::string& line : good_lines()) {
    ++number;
    if (line == "--image:./a.jpg") break;
  }
  EXPECT_THAT(only_problem(with_line(number, "--imagehttps://example.org/a.jpg")),
              HasSubstr(":1: expected a `:` between key and address, found `--imagehttps:`"));
}

TEST(Params, WhatIsFarTooLongIsNoParamsFile) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "a:b\n";
  EXPECT_THAT(only_problem(text), HasSubstr("f:1:1: 200000 lines: too many for a params file"));
}

TEST(Params, CarriageReturnsBlanksAndGroupsDoNoHarm) {
  EXPECT_EQ(problems_of(file_text(good_lines())), "");
  std::vector<std::string> lines = good_lines();
  for (std::string& line : lines) line = "  " + line + " \t";
  lines.insert(lines.begin() + 12, "##");
  lines.insert(lines.begin() + 5, "");
  lines[1] = "model_name :  tiny ";
  EXPECT_EQ(problems_of("\xEF\xBB\xBF" + file_text(lines, "\r\n")), "");
}

// Found by the fuzzer: a section without a name and without lines.
TEST(Params, RulersAloneAreRefused) {
  EXPECT_NE(problems_of("===\n===\n"), "");
  EXPECT_NE(problems_of("\2_\n====\n\n\n\n\377\377\2"), "");
}

// Whatever single line is taken away, the file is refused. Group lines mean nothing, and the
// standard script can do without use_gpu.
TEST(Params, EveryMissingLineIsRefused) {
  for (std::size_t gone = 0; gone < good_lines().size(); ++gone) {
    std::vector<std::string> lines = good_lines();
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(gone));
    const bool optional = good_lines()[gone] == "##" || good_lines()[gone] == "--use_gpu:False";
    EXPECT_EQ(problems_of(file_text(lines)).empty(), optional && gone != 27)
        << "without line " << gone + 1;
  }
}

TEST(Params, EveryDoubledLineIsRefused) {
  for (std::size_t twice = 0; twice < good_lines().size(); ++twice) {
    std::vector<std::string> lines = good_lines();
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(twice), lines[twice]);
    EXPECT_EQ(problems_of(file_text(lines)).empty(), lines[twice] == "##")
        << "line " << twice + 1 << " doubled";
  }
}

TEST(Params, EveryTruncationIsRefused) {
  for (std::size_t kept = 0; kept < good_lines().size(); ++kept) {
    const std::vector<std::string> lines(good_lines().begin(),
                                         good_lines().begin() + static_cast<std::ptrdiff_t>(kept));
    EXPECT_NE(problems_of(file_text(lines)), "") << kept << " lines";
  }
}

TEST(Params, AMissingLineIsNamedWhereItBelongs) {
  std::vector<std::string> lines = good_lines();
  lines.erase(lines.begin() + 5);  // --epochs
  EXPECT_THAT(only_problem(file_text(lines)),
              HasSubstr("f:6:1: train_params: a line is missing: expected the epochs line here"));
}

TEST(Params, ADoubledFixedKeyNamesItsFirstLine) {
  std::vector<std::string> lines = good_lines();
  lines.insert(lines.begin() + 4, "gpu_list:0");
  EXPECT_THAT(only_problem(file_text(lines)),
              HasSubstr("f:5:1: train_params: `gpu_list` is doubled: it is already on line 4"));
}

TEST(Params, AHeadingOutOfOrderIsNamed) {
  std::vector<std::string> lines = good_lines();
  std::rotate(lines.begin() + 15, lines.begin() + 18, lines.end());
  EXPECT_THAT(only_problem(file_text(lines)),
              HasSubstr("f:30:1: the heading `eval_params` is out "
                        "of order: expected before `infer_params`"));
}

TEST(Params, ALostHeadingIsNamedWhereItsLinesStand) {
  std::vector<std::string> lines = good_lines();
  lines.erase(lines.begin() + 15);
  EXPECT_THAT(only_problem(file_text(lines)),
              HasSubstr("f:16:1: expected the heading =====eval_params===== before here"));
}

struct Broken {
  std::size_t line;
  const char* text;
  const char* message;
};

class BrokenLine : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenLine, IsRefusedWithItsPlaceAndWhatWasExpected) {
  EXPECT_THAT(only_problem(with_line(GetParam().line, GetParam().text)),
              HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Values, BrokenLine,
    ::testing::Values(
        Broken{2, "modle_name:tiny",
               "f:2:1: train_params: expected `model_name` here, found `modle_name`"},
        Broken{4, "gpu_list:*", "f:4:10: `gpu_list`: expected -1 (CPU)"},
        Broken{4, "gpu_list:-1|0,0", "f:4:13: `gpu_list`: a GPU is listed twice"},
        Broken{4, "gpu_list:10.0.0.1,10.0.0.300;0", "`10.0.0.300` is not a machine's address"},
        Broken{5, "--use_gpu: tpu", "f:5:12: `--use_gpu`: expected True, False, cpu, gpu"},
        Broken{6, "--epochs:lite_train_lite_infr=2", "f:6:10: `--epochs`: unknown mode"},
        Broken{6, "--epochs:lite_train_lite_infr=2", "is `lite_train_lite_infer`"},
        Broken{6, "--epochs:lite_train_lite_infer=2|lite_train_lite_infer=3", "is doubled"},
        Broken{6, "--epochs:many", "f:6:10: `--epochs`: expected a whole number"},
        Broken{6, "--epochs:lite_train_lite_infer=abc",
               "f:6:10: `--epochs`: expected a whole number"},
        Broken{6, "--epochs:lite_train_lite_infer=5|whole_train_whole_infer=0", "f:6:34: "},
        Broken{6, "--epochs:lite_train_lite_infer=5|", "f:6:34: `--epochs`: expected mode=value"},
        Broken{2, "model_name:null", "f:2:12: `model_name`: expected a value, found `null`"},
        Broken{2, "model_name:", "f:2:12: `model_name`: expected a value, found nothing"},
        Broken{3, "python:null", "f:3:8: `python`: expected a command, found `null`"},
        Broken{4, "gpu_list:10.0.0.1,10.0.0.2", "f:4:10: `gpu_list`: expected -1 (CPU)"},
        Broken{4, "gpu_list:0|", "f:4:12: `gpu_list`"},
        Broken{14,
               "norm_train:", "f:14:12: `norm_train`: expected a command or null, found nothing"},
        Broken{13, "trainer:norm_trian", "did you mean 'norm_train'"},
        Broken{14, "norm_train:train.py \"a", "a quote (\") does not close"},
        Broken{16, "===evl_params===",
               "f:16:1: unknown heading `evl_params`; the nearest known one is `eval_params`"},
        Broken{28, "--use_gpu:", "`--use_gpu`: expected at least one value, found nothing"},
        Broken{29, "--batch_size:1|0", "f:29:16: `--batch_size`: expected a whole number"},
        Broken{29, "no colon here", "f:29:1: expected `key:value`, found `no colon here`"}),
    [](const auto& test) { return "n" + std::to_string(test.index); });

TEST(Params, WhatIsNoParamsFileIsRefused) {
  for (const char* text : {"", "\n\r\n  \n"}) {
    EXPECT_THAT(only_problem(text), HasSubstr("f:1:1: the file is empty"));
  }
  EXPECT_THAT(only_problem("name: x\npython: y\n"),
              HasSubstr("f:1:1: expected the heading =====train_params===== first"));
  EXPECT_THAT(only_problem("===tran_params===\nmodel_name:x\n"),
              HasSubstr("the nearest known one is `train_params`"));
}

// Which material is good and which is broken: by the names and notes of its makers.
TEST(ParamsMaterial, GoodFilesAreGoodAndBrokenOnesRefused) {
  ASSAY_NEED_TIPC(tipc);
  for (const char* file :
       {"params_ocr/det_train_infer_python.txt", "params_ocr/det_train_fleet_infer_python.txt",
        "cases/c00_good.txt", "cases/c03_extra_blank_line_before_gpu_list.txt",
        "cases/c06_crlf.txt", "cases/fleet_cpu_two_nodes.txt"}) {
    EXPECT_EQ(problems_of(slurp(tipc / file)), "") << file;
  }
  for (const char* file : {"c01_missing_epochs_line", "c22_truncated20", "c27_usegpu_empty"}) {
    EXPECT_NE(problems_of(slurp(tipc / "cases" / (std::string(file) + ".txt"))), "") << file;
  }
}

// As in PaddleOCR (`##` where others have inference_dir) and PaddleRec (a key without a colon, and
// an option of a benchmark).
TEST(ParamsMaterial, WhatASuitesScriptReadsAllTheSameIsNoFault) {
  ASSAY_NEED_TIPC(tipc);
  const std::string good = slurp(tipc / "params_ocr/det_train_infer_python.txt");
  const auto likely = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return params::describe("f", params::likely_problems(text));
  };
  EXPECT_EQ(likely("inference_dir:null", "##"), "");
  EXPECT_THAT(likely("inference_dir:null\n", ""),
              HasSubstr("f:36:1: infer_params: a line is missing"));
  EXPECT_THAT(likely("null:null\n##\ntrainer", "##\ntrainer"), HasSubstr("f:13:1: train_params"));
  EXPECT_EQ(likely("null:null", "null"), "") << "the key of other lines, too";
  constexpr const char* kBenchmark = "\n===train_benchmark_params===\n--profiler_options=";
  EXPECT_EQ(params::describe("f", params::likely_problems(good + kBenchmark + "\"a=1;b=2\"\n")),
            "");
  EXPECT_THAT(likely("Global.epoch_num:", "Global.epoch_num"),
              HasSubstr("f:7:1: expected `key:value`"));
}

TEST(Words, AModelsFolderIsWithinThatOfTheResults) {
  for (const char* const good : {"ResNet50", "", "suite/ResNet50", "a/../b", "..name"}) {
    EXPECT_TRUE(params::check_model(good)) << good;
  }
  for (const char* const bad : {"..", "../x", "a/../../x", "/tmp/x"}) {
    EXPECT_FALSE(params::check_model(bad)) << bad;
  }
}

TEST(Words, QuotesAreReadAndNothingElseIs) {
  EXPECT_THAT(*params::split_words(R"(a "b c" d'e f'g \"h --x="3,48,320" '')"),
              ElementsAre("a", "b c", "de fg", "\"h", "--x=3,48,320", ""));
  EXPECT_THAT(*params::split_words("a; $(touch x) `b` *.c ~ #d"),
              ElementsAre("a;", "$(touch", "x)", "`b`", "*.c", "~", "#d"));
  EXPECT_FALSE(params::split_words("a 'b"));
  EXPECT_THAT(*params::split_words("   "), IsEmpty());
}

TEST(Words, QuotedWordsComeBack) {
  const std::vector<std::string> words{"", "plain", "two words", "it's", "a\"b\\c", "$(x);|*"};
  EXPECT_EQ(*params::split_words(shell_line(words)), words);
}

TEST(GpuEntry, IsReadByGrammarAndNotByLength) {
  const auto twelve = params::parse_gpu_entry("0,1,2,3,4,5,6,7,8,9,10,11");
  ASSERT_TRUE(twelve);
  EXPECT_EQ(twelve->ids.size(), 12U);
  EXPECT_FALSE(twelve->hosts.size() > 1);
  const auto short_ips = params::parse_gpu_entry("1.1.1.1,1.1.1.2;0");
  ASSERT_TRUE(short_ips);
  EXPECT_THAT(short_ips->hosts, ElementsAre("1.1.1.1", "1.1.1.2"));
  EXPECT_TRUE(params::parse_gpu_entry("-1")->on_cpu());
  for (const char* bad : {"", "*", "xpu", "0,", ",0", ";0", "a b;0", "1.2.3;0", "0;", "--1"}) {
    EXPECT_FALSE(params::parse_gpu_entry(bad)) << bad;
  }
}

TEST(ByMode, PicksTheModesValue) {
  EXPECT_EQ(params::value_for_mode("lite_train_lite_infer=2|whole_infer=9", "whole_infer"), "9");
  EXPECT_EQ(params::value_for_mode("lite_train_lite_infer=2", "lite_train"), "");
}

TEST(GpuEntry, TakesTheMachinesOfAnAllocation) {
  const std::string text =
      "model_name:m\ngpu_list:0|1.1.1.1,1.1.1.2;0,1|1.1.1.1;-1\nother:1.1.1.1;0\n";
  EXPECT_EQ(params::on_machines(text, {"h1", "h2", "h3"}),
            "model_name:m\ngpu_list:0|h1,h2,h3;0,1|h1,h2,h3;-1\nother:1.1.1.1;0\n");
  EXPECT_EQ(params::on_machines("", {"h1"}), "");
}

}  // namespace
}  // namespace assay::chain
