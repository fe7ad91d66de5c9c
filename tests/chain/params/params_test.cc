#include "chain/params/params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "chain/params/gpu_entry.h"
#include "chain/params/shell_words.h"
#include "chain/params/value_rules.h"
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

std::string only_problem(const std::string& text) {
  const params::ParsedParams parsed = params::parse_params(text);
  EXPECT_FALSE(parsed.good());
  EXPECT_EQ(parsed.problems.size(), 1U) << params::describe("f", parsed.problems);
  return params::describe("f", parsed.problems);
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

TEST(Params, GoodFileIsReadByRole) {
  const params::ParsedParams parsed = params::parse_params(file_text(good_lines()));
  ASSERT_TRUE(parsed.good()) << params::describe("f", parsed.problems);
  EXPECT_EQ(parsed.params.layout().name, "train_infer");
  EXPECT_EQ(parsed.params.value("model_name"), "tiny");
  EXPECT_EQ(parsed.params.key("save_dir"), "--out");
  EXPECT_EQ(parsed.params.value("infer_model"), "./pretrained/tiny.npz");
  EXPECT_THAT(parsed.params.list("infer_batch"), ElementsAre("1", "2"));
  EXPECT_EQ(parsed.params.line("benchmark"), 32);
}

TEST(Params, CarriageReturnsBlanksAndRepeatedGroupsDoNoHarm) {
  std::vector<std::string> lines = good_lines();
  for (std::string& line : lines) line = "  " + line + " \t";
  lines.insert(lines.begin() + 12, "##");
  lines.insert(lines.begin() + 5, "");
  lines[1] = "model_name :  tiny ";
  const params::ParsedParams parsed =
      params::parse_params("\xEF\xBB\xBF" + file_text(lines, "\r\n"));
  ASSERT_TRUE(parsed.good()) << params::describe("f", parsed.problems);
  EXPECT_EQ(parsed.params.value("model_name"), "tiny");
  EXPECT_EQ(parsed.params.value("norm_train"), "train.py --seed 3");
}

// Found by the fuzzer: a section without a name and without lines.
TEST(Params, RulersAloneAreRefused) {
  EXPECT_FALSE(params::parse_params("===\n===\n").problems.empty());
  EXPECT_FALSE(params::parse_params("\2_\n====\n\n\n\n\377\377\2").problems.empty());
}

TEST(Params, ColonsInAValueAreKept) {
  const params::ParsedParams parsed = params::parse_params(with_line(31, "--image:http://a.b/c:d"));
  ASSERT_TRUE(parsed.good());
  EXPECT_EQ(parsed.params.value("infer_images"), "http://a.b/c:d");
}

// Whatever single line is taken away, the file is refused, at that line or where the reading stops.
TEST(Params, EveryMissingLineIsRefused) {
  for (std::size_t gone = 0; gone < good_lines().size(); ++gone) {
    std::vector<std::string> lines = good_lines();
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(gone));
    EXPECT_FALSE(params::parse_params(file_text(lines)).good()) << "without line " << gone + 1;
  }
}

TEST(Params, EveryDoubledLineIsRefusedExceptGroups) {
  for (std::size_t twice = 0; twice < good_lines().size(); ++twice) {
    std::vector<std::string> lines = good_lines();
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(twice), lines[twice]);
    EXPECT_EQ(params::parse_params(file_text(lines)).good(), lines[twice] == "##")
        << "line " << twice + 1 << " doubled";
  }
}

TEST(Params, EveryTruncationIsRefused) {
  for (std::size_t kept = 0; kept < good_lines().size(); ++kept) {
    std::vector<std::string> lines(good_lines().begin(),
                                   good_lines().begin() + static_cast<std::ptrdiff_t>(kept));
    EXPECT_FALSE(params::parse_params(file_text(lines)).good()) << kept << " lines";
  }
}

TEST(Params, AMissingLineIsNamedWhereItBelongs) {
  std::vector<std::string> lines = good_lines();
  lines.erase(lines.begin() + 5);  // --epochs
  EXPECT_THAT(only_problem(file_text(lines)),
              HasSubstr("f:6:1: a line is missing: expected the epochs line"));
}

TEST(Params, ADoubledFixedKeyNamesItsFirstLine) {
  std::vector<std::string> lines = good_lines();
  lines.insert(lines.begin() + 4, "gpu_list:0");
  EXPECT_THAT(only_problem(file_text(lines)),
              HasSubstr("f:5:1: `gpu_list` is doubled: it is already on line 4"));
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
        Broken{2, "modle_name:tiny", "f:2:1: expected `model_name` here, found `modle_name`"},
        Broken{10, "train_modl_name:x", "the nearest known key is `train_model_name`"},
        Broken{4, "gpu_list:*", "f:4:10: `gpu_list`: expected -1 (CPU)"},
        Broken{4, "gpu_list:-1|0,0", "f:4:13: `gpu_list`: a GPU is listed twice"},
        Broken{4, "gpu_list:10.0.0.1,10.0.0.300;0", "`10.0.0.300` is not a machine's address"},
        Broken{5, "--use_gpu: xpu", "f:5:12: `--use_gpu`: expected True, False, cpu, gpu, null"},
        Broken{6, "--epochs:lite_train_lite_infr=2", "f:6:10: `--epochs`: unknown mode"},
        Broken{6, "--epochs:lite_train_lite_infr=2", "is `lite_train_lite_infer`"},
        Broken{6, "--epochs:lite_train_lite_infer=2|lite_train_lite_infer=3", "is doubled"},
        Broken{6, "--epochs:5", "expected mode=value or null, found `5`"},
        Broken{6, "--epochs:lite_train_lite_infer=abc",
               "f:6:32: `--epochs`: expected a whole number"},
        Broken{6, "--epochs:lite_train_lite_infer=5|whole_train_whole_infer=0", "f:6:58: "},
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
        Broken{14, "pact_train:train.py", "expected the command of a trainer of line 13"},
        Broken{16, "===evl_params===", "the nearest known one is `eval_params`"},
        Broken{28, "--use_gpu:", "found nothing: no cell would run"},
        Broken{29, "--batch_size:1|0", "f:29:16: `--batch_size`: expected a whole number"},
        Broken{29, "no colon here", "f:29:1: expected `key:value`, found `no colon here`"}),
    [](const auto& test) { return "n" + std::to_string(test.index); });

TEST(Params, AnEmptyFileIsRefused) {
  for (const char* text : {"", "\n\r\n  \n"}) {
    EXPECT_THAT(only_problem(text), HasSubstr("f:1:1: the file is empty"));
  }
}

// Two kinds have no heading; what shows none of their keys is not one of them cut short.
TEST(Params, AFileOfSomethingElseLacksAHeading) {
  for (const char* text : {"name: x\npython: y\n", "##\n##\n", "a b\nc d\n"}) {
    EXPECT_THAT(only_problem(text), HasSubstr("f:1:1: expected a heading first, one of ")) << text;
  }
}

TEST(Params, AnUnknownKindNamesTheNearest) {
  EXPECT_THAT(only_problem("===tran_params===\nmodel_name:x\n"),
              HasSubstr("the nearest known one is `train_params`"));
}

TEST(Params, TwoSpellingsOfAFlagAreAWarningOnly) {
  const params::ParsedParams parsed = params::parse_params(with_line(29, "--batchsize:1"));
  EXPECT_TRUE(parsed.good());
  EXPECT_THAT(params::describe("f", parsed.problems),
              HasSubstr("warning: `--batch_size` here and"));
}

// Which material is good and which is broken: by the names and notes of its makers.
TEST(ParamsMaterial, TheGoodFilesAreGood) {
  ASSAY_NEED_TIPC(tipc);
  const std::map<std::string, std::string> expected{
      {"params_ocr/det_train_infer_python.txt", "train_infer_long"},
      {"params_ocr/det_train_fleet_infer_python.txt", "train_infer_long"},
      {"params_ocr/rec_infer_cpp.txt", "cpp_infer"},
      {"params_ocr/rec_paddle2onnx.txt", "paddle2onnx_pair"},
      {"params_ocr/rec_ptq_infer_python.txt", "kl_quant"},
      {"params_ocr/rec_serving_python.txt", "serving_pair"},
      {"cases/c00_good.txt", "train_infer"},
      {"cases/c03_extra_blank_line_before_gpu_list.txt", "train_infer"},
      {"cases/c06_crlf.txt", "train_infer"},
      {"cases/fleet_cpu_two_nodes.txt", "train_infer"}};
  for (const auto& [file, kind] : expected) {
    const params::ParsedParams parsed =
        params::parse_params(slurp(tipc / file), {(tipc / file).string(), ""});
    EXPECT_TRUE(parsed.good()) << params::describe(file, parsed.problems);
    EXPECT_EQ(parsed.params.layout().name, kind) << file;
  }
  const auto configs = tipc / "mobilenet_v3_small/test_tipc/configs/mobilenet_v3_small";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(configs)) {
    const params::ParsedParams parsed =
        params::parse_params(slurp(entry.path()), {entry.path().string(), ""});
    EXPECT_TRUE(parsed.good()) << params::describe(entry.path().string(), parsed.problems);
    ++files;
  }
  EXPECT_GE(files, 11);
}

TEST(ParamsMaterial, TheBrokenFilesAreRefused) {
  ASSAY_NEED_TIPC(tipc);
  for (const char* file : {"c01_missing_epochs_line", "c22_truncated20", "c27_usegpu_empty"}) {
    EXPECT_FALSE(params::parse_params(slurp(tipc / "cases" / (std::string(file) + ".txt"))).good())
        << file;
  }
}

// The same for the long layout: no single line may go unnoticed.
TEST(ParamsMaterial, EveryMissingLineOfTheLongLayoutIsRefused) {
  ASSAY_NEED_TIPC(tipc);
  const std::vector<std::string> whole =
      split_at(slurp(tipc / "params_ocr/det_train_infer_python.txt"), '\n');
  for (std::size_t gone = 0; gone < whole.size(); ++gone) {
    if (trimmed(whole[gone]).empty()) continue;
    std::vector<std::string> lines = whole;
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(gone));
    EXPECT_FALSE(params::parse_params(file_text(lines)).good()) << "without line " << gone + 1;
  }
}

// ---- what other files of PaddleOCR have ----

std::string ocr_with(const std::filesystem::path& tipc, const std::string& from,
                     const std::string& to) {
  std::string text = slurp(tipc / "params_ocr/det_train_infer_python.txt");
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(ParamsOfOtherModels, NothingInsteadOfACommandIsNull) {
  ASSAY_NEED_TIPC(tipc);
  for (const char* key : {"quant_export", "fpgm_export", "pact_train", "eval"}) {
    const std::string text = ocr_with(tipc, std::string(key) + ":null", std::string(key) + ": ");
    const params::ParsedParams parsed = params::parse_params(text);
    EXPECT_TRUE(parsed.good()) << params::describe(key, parsed.problems);
  }
}

TEST(ParamsOfOtherModels, AGroupLineMayStandForTheInferenceDir) {
  ASSAY_NEED_TIPC(tipc);
  const params::ParsedParams parsed =
      params::parse_params(ocr_with(tipc, "inference_dir:null", "##"));
  ASSERT_TRUE(parsed.good()) << params::describe("f", parsed.problems);
  EXPECT_EQ(parsed.params.value("inference_dir"), "");
}

TEST(ParamsOfOtherModels, TrainersOfTheirOwnHaveAPlace) {
  ASSAY_NEED_TIPC(tipc);
  const std::string place = "distill_train:null\nnull:null";
  for (const char* trainer : {"amp_train:train.py", "to_static_train:Global.to_static=true"}) {
    const params::ParsedParams parsed =
        params::parse_params(ocr_with(tipc, place, std::string("distill_train:null\n") + trainer));
    EXPECT_TRUE(parsed.good()) << params::describe(trainer, parsed.problems);
    EXPECT_EQ(parsed.params.key("train_1"),
              std::string(trainer).substr(0, std::string(trainer).find(':')));
  }
  EXPECT_THAT(only_problem(ocr_with(tipc, place, "distill_train:null\nnorm_train:a.py")),
              HasSubstr("f:20:1: expected the train_1 line"));
  std::string twice = ocr_with(tipc, "norm_train:tools/train.py", "amp_train:tools/train.py");
  twice.replace(twice.find(place), place.size(), "distill_train:null\namp_train:a.py");
  EXPECT_THAT(only_problem(twice),
              HasSubstr("f:20:1: `amp_train` is doubled: it is already on line 16"));
}

TEST(ParamsOfOtherModels, TheirOtherKindsAreRead) {
  const std::vector<std::pair<std::string, std::string>> files{
      {"serving_cpp_pair",
       "===serving_params===\nmodel_name:m\npython:python3\ntrans_model:-m "
       "conv\n--det_dirname:./d\n"
       "--model_filename:a\n--params_filename:b\n--det_serving_server:./ds/\n"
       "--det_serving_client:./dc/\n--rec_dirname:./r\n--rec_serving_server:./rs/\n"
       "--rec_serving_client:./rc/\nserving_dir:./s\nweb_service:-m serve\n--op:A B\n--port:8181\n"
       "--gpu_id:\"0\"|null\ncpp_client:client.py\n--image_dir:./i\n"},
      {"lite_arm_pair",
       "===lite_params===\ninference:./db_crnn det\nruntime_device:ARM_CPU\ndet_infer_model:a|b\n"
       "null:null\nnull:null\n--cpu_threads:1|4\n--det_batch_size:1\nnull:null\n--image_dir:./i\n"
       "--config_dir:./c\n--rec_dict_dir:./k\n--benchmark:True\n"}};
  for (const auto& [kind, text] : files) {
    const params::ParsedParams parsed = params::parse_params(text);
    ASSERT_TRUE(parsed.good()) << params::describe("f", parsed.problems);
    EXPECT_EQ(parsed.params.layout().name, kind);
  }
}

TEST(ParamsMaterial, ALostHeadingIsNamedWhereItsLinesStand) {
  ASSAY_NEED_TIPC(tipc);
  std::string text = slurp(tipc / "params_ocr/det_train_infer_python.txt");
  const std::size_t at = text.find("===========================train_benchmark_params");
  text.erase(at, text.find('\n', at) + 1 - at);
  EXPECT_THAT(
      only_problem(text),
      HasSubstr("f:54:1: expected the section =====train_benchmark_params===== before here"));
}

TEST(ParamsMaterial, ALineBeforeTheFirstHeadingIsTheFault) {
  ASSAY_NEED_TIPC(tipc);
  const std::string text = slurp(tipc / "params_ocr/rec_paddle2onnx.txt");
  EXPECT_THAT(only_problem("--foo:bar\n" + text),
              HasSubstr("f:1:1: expected the heading =====paddle2onnx_params===== first"));
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
  EXPECT_FALSE(twelve->many_machines());
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
