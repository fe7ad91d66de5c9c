#include "chain/results/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "chain/results/npy.h"
#include "chain/stage/autolog.h"
#include "chain/stage/line_splitter.h"
#include "chain/stage/train_log.h"
#include "cli_run.h"

namespace assay::chain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::map<std::string, double> readings_of(std::string_view line) {
  std::map<std::string, double> map;
  for (const stage::Reading& reading : stage::read_train_line(line))
    map[reading.name] = reading.value;
  return map;
}

// Lines of the material's notes and of PaddleOCR's trainer.
TEST(TrainLog, LinesOfTwoRepositoriesAreRead) {
  EXPECT_THAT(
      readings_of("[Epoch 0, iter: 0] top1: 0.00000, top5: 0.00000, lr: 0.10000, loss: 6.87252, "
                  "avg_reader_cost: 0.47353 sec, avg_batch_cost: 0.97362 sec, avg_samples: 4.0, "
                  "avg_ips: 4.10839 images/sec."),
      ElementsAre(Pair("accuracy", 0), Pair("batch_cost", 0.97362), Pair("ips", 4.10839),
                  Pair("loss", 6.87252), Pair("reader_cost", 0.47353)));
  EXPECT_THAT(
      readings_of("ppocr INFO: epoch: [1/2], global_step: 10, loss: 5.5, avg_batch_cost: 0.5 s, "
                  "ips: 16.0 samples/s, max_mem_reserved: 1224 MB, max_mem_allocated: 1200 MB"),
      ElementsAre(Pair("batch_cost", 0.5), Pair("gpu_allocated_mb", 1200),
                  Pair("gpu_memory_mb", 1224), Pair("ips", 16), Pair("loss", 5.5)));
  EXPECT_THAT(readings_of(" * Acc@1 0.062 Acc@5 0.250"), ElementsAre(Pair("accuracy", 0.062)));
  // The output of an evaluation is not part of the training's curves.
  EXPECT_THAT(readings_of("Test:  [0/1]  eta: 0:00:00  loss: 6.9361 (6.9361)  acc1: 0.25 (0.25)"),
              ElementsAre(Pair("accuracy", 0.25), Pair("eval_loss", 6.9361)));
  EXPECT_THAT(readings_of("[Eval][Epoch 1][Iter: 0/9] loss: 3.5, ips: 12.5 images/sec"),
              ElementsAre(Pair("eval_ips", 12.5), Pair("eval_loss", 3.5)));
  EXPECT_TRUE(readings_of("Creating model").empty());
  EXPECT_TRUE(std::isnan(readings_of("loss: nan")["loss"]));
}

TEST(TrainLog, NumbersAreReadHoweverTheyAreWritten) {
  EXPECT_THAT(readings_of("ips: 1,234.5 samples/s, loss: 0,7"),
              ElementsAre(Pair("ips", 1234.5), Pair("loss", 0)));
  EXPECT_THAT(readings_of("ips: 12,345,678"), ElementsAre(Pair("ips", 12'345'678)));
  EXPECT_THAT(readings_of("ips: 12,3456"), ElementsAre(Pair("ips", 12)));
  EXPECT_THAT(readings_of("loss: [0.69]"), ElementsAre(Pair("loss", 0.69)));
  EXPECT_THAT(readings_of("loss=tensor(0.5, device='gpu:0')"), ElementsAre(Pair("loss", 0.5)));
  EXPECT_TRUE(std::isnan(readings_of("loss=tensor(nan)")["loss"]));
  EXPECT_THAT(readings_of("Loss: 0.25"), ElementsAre(Pair("loss", 0.25)));
  EXPECT_THAT(readings_of("train_loss: 0.25"), ElementsAre(Pair("loss", 0.25)));
  EXPECT_THAT(readings_of("interval_samples_per_second: 8.5"), ElementsAre(Pair("ips", 8.5)));
  EXPECT_THAT(readings_of("\033[35mloss: \033[1;31m0.5\033[0m"), ElementsAre(Pair("loss", 0.5)));
}

TEST(TrainLog, SeveralLossesOfALineAreSeriesWithNames) {
  EXPECT_THAT(readings_of("loss: 0.69, loss_ce: 0.3, loss_dice: 0.2"),
              ElementsAre(Pair("loss", 0.69), Pair("loss_ce", 0.3), Pair("loss_dice", 0.2)));
  // PaddleClas and PaddleDetection name the parts before or after the total.
  EXPECT_THAT(readings_of("[Train] CELoss: 6.5, DistillDKDLoss: 0.5, loss: 7"),
              ElementsAre(Pair("CELoss", 6.5), Pair("DistillDKDLoss", 0.5), Pair("loss", 7)));
  EXPECT_THAT(readings_of("loss_cls: 1.5 loss_iou: 0.5"),
              ElementsAre(Pair("loss_cls", 1.5), Pair("loss_iou", 0.5)));
  // One total, whatever it is called.
  EXPECT_THAT(readings_of("avg_loss: 0.5, loss: 0.75"),
              ElementsAre(Pair("avg_loss", 0.5), Pair("loss", 0.75)));
  EXPECT_THAT(readings_of("train_loss=0.5 avg_loss=0.75"),
              ElementsAre(Pair("avg_loss", 0.75), Pair("loss", 0.5)));
  // The loss of an evaluation is not the training's.
  EXPECT_THAT(readings_of("loss: 0.5 - val_loss: 0.75"),
              ElementsAre(Pair("eval_loss", 0.75), Pair("loss", 0.5)));
  EXPECT_THAT(readings_of("[Eval] loss: 0.5, loss_ce: 0.25"),
              ElementsAre(Pair("eval_loss", 0.5), Pair("eval_loss_ce", 0.25)));
  // Settings and records are no losses.
  EXPECT_THAT(readings_of("loss: 0.5, loss_scale: 1024, loss_scaling=2, best_loss: inf"),
              ElementsAre(Pair("loss", 0.5)));
}

TEST(LineSplitter, AProgressBarHasALineForEachCarriageReturn) {
  stage::LineSplitter splitter;
  std::vector<std::string> lines;
  const stage::LineHandler keep = [&](std::string_view line) { lines.emplace_back(line); };
  splitter.take("\rloss: 1\rlo", keep);
  splitter.take("ss: 2\r", keep);
  splitter.take("\nend\r\n", keep);
  splitter.end(keep);
  EXPECT_THAT(lines, ElementsAre("loss: 1", "loss: 2", "end"));
}

TEST(AutoLogLines, DoubledLinesGiveEachFieldOnce) {
  stage::AutoLog fields;
  stage::read_autolog_line(
      "[2026/11/20 23:54:10] root INFO:  preprocess_time(ms): 23.7143, inference_time(ms): "
      "513.5567, postprocess_time(ms): 0.0947",
      fields);
  stage::read_autolog_line(
      "[2026-11-20 23:54:10,775] [    INFO] autolog.py:263 -  preprocess_time(ms): 23.7143, "
      "inference_time(ms): 513.5567, postprocess_time(ms): 0.0947",
      fields);
  EXPECT_THAT(fields, ElementsAre(Pair("inference_time(ms)", "513.5567"),
                                  Pair("postprocess_time(ms)", "0.0947"),
                                  Pair("preprocess_time(ms)", "23.7143")));
}

TEST(AutoLogLines, ARealReportIsReadAndWrittenAgain) {
  ASSAY_NEED_TIPC(tipc);
  stage::InferenceFacts facts;
  for (const std::string& line :
       split_at(slurp(tipc / "logs/python_infer_cpu_batchsize_1.log"), '\n')) {
    stage::read_autolog_line(line, facts.printed);
  }
  EXPECT_EQ(facts.printed["runtime_device"], "cpu");
  EXPECT_EQ(facts.printed["cpu_rss(MB)"], "364.2344");
  EXPECT_EQ(facts.printed["OS_version"], "Debian GNU/Linux 12");
  facts.model = "m";
  facts.batch_size = "1";
  facts.peak.rss_mb = 300;
  const std::string report = stage::write_autolog(facts);
  for (const char* section :
       {"Env info", "Paddle info", "Conf info", "Model info", "Data info", "Perf info"}) {
    EXPECT_THAT(report, HasSubstr(section));
  }
  EXPECT_THAT(report, HasSubstr("cpu_rss(MB): 300.0000, gpu_rss(MB): None, gpu_util: None%"));
  EXPECT_THAT(report, HasSubstr("inference_time(ms): 1114.0184"));
  facts.asked_device = "gpu";
  EXPECT_THAT(stage::device_complaint(facts, 1), HasSubstr("asked for the gpu and ran on the cpu"));
  facts.asked_device = "cpu";
  EXPECT_EQ(stage::device_complaint(facts, 1), "");
}

TEST(Device, AGpuInferenceWithoutAGpuIsToldWithoutAutoLog) {
  stage::InferenceFacts facts;
  facts.asked_device = "gpu";
  EXPECT_THAT(stage::device_complaint(facts, 0), HasSubstr("this machine has none"));
  facts.peak.gpu_seen = true;
  EXPECT_EQ(stage::device_complaint(facts, 1), "");
}

TEST(Numbers, AreTakenFromJsonAndFromText) {
  EXPECT_THAT(results::numbers_of("[[1, 2.5], {\"a\": -3}]"), ElementsAre(1, 2.5, -3));
  EXPECT_THAT(results::numbers_of(" 12 34 56 78"), ElementsAre(12, 34, 56, 78));
  const std::string deep = std::string(100'000, '[') + "7" + std::string(100'000, ']');
  EXPECT_THAT(results::numbers_of(deep), ElementsAre(7));
  EXPECT_THAT(results::numbers_of(", class_id: 8, prob: 9.1e-1 of fp32"), ElementsAre(8, 0.91));
}

std::vector<results::Finding::Grade> grades(const std::vector<results::Finding>& findings) {
  std::vector<results::Finding::Grade> list;
  for (const results::Finding& finding : findings) list.push_back(finding.grade);
  return list;
}

TEST(Outputs, AreComparedByBothTolerances) {
  const results::Predictions expected{{"a.jpg", {1, 100}}, {"b.jpg", {2, 3}}};
  using enum results::Finding::Grade;
  // 0.1 at 100 is within rtol 1e-3 (+ atol); 0.2 is not.
  EXPECT_THAT(
      grades(results::compare_outputs(expected, {{"a.jpg", {1, 100.1}}, {"b.jpg", {2, 3}}}, {})),
      ElementsAre(good, good));
  EXPECT_THAT(
      grades(results::compare_outputs(expected, {{"a.jpg", {1, 100.2}}, {"b.jpg", {2}}}, {})),
      ElementsAre(bad, bad));
  EXPECT_THAT(grades(results::compare_outputs(expected, {{"a.jpg", {std::nan(""), 100}}}, {})),
              ElementsAre(bad, bad));
}

TEST(Outputs, ConstantsAreVacuous) {
  EXPECT_THAT(results::vacuous_because({{"a", {1, 1}}, {"b", {1, 1}}}),
              HasSubstr("every value is 1"));
  EXPECT_THAT(results::vacuous_because({{"a", {8, 0.9}}, {"b", {8, 0.9}}}),
              HasSubstr("the same values"));
  EXPECT_EQ(results::vacuous_because({{"a", {8, 0.9}}, {"b", {7, 0.9}}}), "");
}

TEST(CompareVerb, PairsStoredResultsAndLogsByPrecision) {
  const Scratch scratch;
  put(scratch.path() / "gt/results_fp32.txt", "img_1.jpg\t[[0.5, 0.25]]\nimg_2.jpg\t1 2 3 4\n");
  put(scratch.path() / "logs/python_infer_cpu_precision_fp32_batchsize_1.log",
      "loading\n[x] ppocr INFO: img_1.jpg\t[[0.5001, 0.25]]\n[x] img_2.jpg 1 2 3 4\n");
  put(scratch.path() / "logs/python_infer_cpu_precision_int8_batchsize_1.log",
      "img_1.jpg\t[[9, 9]]\n");
  const std::vector<std::string> words{"compare", "--gt_file", "gt/*.txt", "--log_file",
                                       "logs/*.log"};
  const CliResult good = run_cli(scratch.path(), words);
  EXPECT_EQ(good.code, 0) << good.out;
  put(scratch.path() / "gt/results_fp32.txt", "img_1.jpg\t[[0.5, 0.26]]\n");
  const CliResult bad = run_cli(scratch.path(), words);
  EXPECT_EQ(bad.code, 1) << bad.out;
  EXPECT_THAT(bad.out, HasSubstr("BAD"));
}

// ---- dynamic against static inference ----

// numpy.save(numpy.array([0.25, -3], '<f4')) as the format's description lays it out.
std::string npy_of(const std::vector<float>& values, const std::string& type = "<f4") {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" +
                       std::to_string(values.size()) + ",), }";
  header.resize(117, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return bytes;
}

TEST(Npy, NumbersAreReadAndPicklesAreNot) {
  EXPECT_THAT(*results::read_npy(npy_of({0.25F, -3.F})), ElementsAre(0.25, -3));
  EXPECT_FALSE(results::read_npy(npy_of({0.25F}, "|O")));
  EXPECT_FALSE(results::read_npy("nothing"));
  EXPECT_FALSE(results::read_npy(npy_of({1.F}).substr(0, 20)));
}

CliResult dynamic_static(const std::string& one, const std::string& other,
                         const std::string& end = ".log") {
  const Scratch scratch;
  put(scratch.path() / ("d" + end), one);
  put(scratch.path() / ("s" + end), other);
  return run_cli(scratch.path(), {"compare", "--dynamic", "d" + end, "--static", "s" + end});
}

TEST(DynamicStatic, LogsArePairedByImageOrByWords) {
  const std::string exported =
      "loading 3 layers\nimage_name: ./a.jpg, class_id: 8, prob: 0.91234\n";
  const CliResult by_image = dynamic_static("./a.jpg: class 8 with 0.91235\n", exported);
  EXPECT_EQ(by_image.code, 0) << by_image.out;
  const CliResult by_words = dynamic_static("W1 x\nclass_id: 8, prob: 0.91235\n", exported);
  EXPECT_EQ(by_words.code, 0) << by_words.out;
  EXPECT_THAT(by_words.out, HasSubstr("good"));
  EXPECT_EQ(dynamic_static("class_id: 8, prob: 0.92\n", exported).code, 1);
  EXPECT_EQ(dynamic_static("class_id: 7, prob: 0.91234\n", exported).code, 1);
  EXPECT_EQ(dynamic_static("done\n", exported).code, 2);
}

// One of 1000 classes has a probability below the usual tolerance.
TEST(DynamicStatic, SmallValuesAreComparedToTheirDigits) {
  const auto code = [](const std::string& one, const std::string& other) {
    return dynamic_static("a.jpg: class 8 with " + one + "\n",
                          "a.jpg, id: 8, prob: " + other + "\n")
        .code;
  };
  EXPECT_EQ(code("0.0012855370296165347", "0.0012855372"), 0);
  EXPECT_EQ(code("0.0012855370296165347", "0.0012983924"), 1);  // 1% more
  EXPECT_EQ(code("0.00129", "0.00128"), 0);                     // rounded
  EXPECT_EQ(code("0.0012855", "0.0013"), 0);
  EXPECT_EQ(code("0.0012855", "0.0015"), 1);
}

TEST(DynamicStatic, ACertainClassIsVacuous) {
  const CliResult result = dynamic_static("class_id: 8, prob: 1.0\n", "class_id: 8, prob: 1\n");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("VACUOUS"));
}

TEST(DynamicStatic, ArraysAreComparedWhole) {
  EXPECT_EQ(dynamic_static(npy_of({0.25F, 0.75F}), npy_of({0.25F, 0.7501F}), ".npy").code, 0);
  EXPECT_EQ(dynamic_static(npy_of({0.25F, 0.75F}), npy_of({0.25F, 0.76F}), ".npy").code, 1);
  const CliResult uniform = dynamic_static(npy_of({0.5F, 0.5F}), npy_of({0.5F, 0.5F}), ".npy");
  EXPECT_EQ(uniform.code, 1);
  EXPECT_THAT(uniform.out, HasSubstr("VACUOUS"));
}

// A run against an earlier one: the same losses and speed, then a changed loss and half the speed.
TEST(CompareVerb, FindsLossAndSpeedRegressionsBetweenStores) {
  const auto line = [](const std::string& loss, const std::string& ips) {
    return "make=last.w \"say=loss: 9.0, ips: 1.0\" \"say=loss: " + loss + ", ips: " + ips + "\"";
  };
  Project project({.train = line("5.5", "100")});
  ASSERT_EQ(project.run({"--store", "base.db"}).code, 0);
  ASSERT_EQ(project.run({"--store", "same.db"}).code, 0);
  const std::vector<std::string> words{"compare", "--base", "base.db", "--current"};
  const auto against = [&](const std::string& store) {
    std::vector<std::string> all = words;
    all.push_back(store);
    return run_cli(project.path(), all);
  };
  const CliResult same = against("same.db");
  EXPECT_EQ(same.code, 0) << same.out;
  EXPECT_THAT(same.out, HasSubstr("loss: 2 values reproduced"));
  project.write({.train = line("5.6", "50")});
  ASSERT_EQ(project.run({"--store", "other.db"}).code, 0);
  const CliResult other = against("other.db");
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.out,
              HasSubstr("loss 1 is 5.6, 5.5 before; which operator? assay capture --judge -- "));
  EXPECT_THAT(other.out, HasSubstr("50 ips, 100 before"));
}

std::string times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// Without ips the batch cost is compared, and for an inference AutoLog's time.
TEST(CompareVerb, FindsSlowerBatchesAndInferences) {
  const auto commands = [](const std::string& cost, const std::string& time) {
    return Commands{
        .train = "make=last.w \"say=loss: 1, batch_cost: 9 sec\"" +
                 times(3, " \"say=batch_cost: " + cost + " sec\""),
        .infer = "\"say=[2026/11/20 23:54:10] root INFO:  inference_time(ms): " + time + "\""};
  };
  Project project(commands("0.5", "7"));
  ASSERT_EQ(project.run({"--store", "base.db"}).code, 0);
  project.write(commands("0.52", "7.1"));
  ASSERT_EQ(project.run({"--store", "near.db"}).code, 0);
  project.write(commands("0.6", "9"));
  ASSERT_EQ(project.run({"--store", "slow.db"}).code, 0);
  const auto against = [&](const std::string& store) {
    return run_cli(project.path(), {"compare", "--base", "base.db", "--current", store});
  };
  const CliResult near = against("near.db");
  EXPECT_EQ(near.code, 0) << near.out;
  const CliResult slow = against("slow.db");
  EXPECT_EQ(slow.code, 1);
  EXPECT_THAT(slow.out, HasSubstr("0.6 s a batch, 0.5 before"));
  EXPECT_THAT(slow.out, HasSubstr("9 ms an inference, 7 before"));
}

struct Measure {
  std::vector<double> samples = {};  // of memory, MB
  std::vector<double> ips = {};
};

// A store with one run of one training, measured so.
results::ChainStore store_of(const std::filesystem::path& path, const Measure& measure) {
  auto store = results::ChainStore::open(path, OpenMode::create);
  plan::Plan plan;
  plan.model = "tiny";
  plan.stages.resize(1);
  plan.stages.front().name = "train";
  const auto run = store->begin_run(plan, "params.txt");
  const auto stage = store->begin_stage(*run, plan.stages.front(), "");
  stage::Outcome outcome;
  std::vector<results::StoredReading> readings;
  for (std::size_t i = 0; i < measure.samples.size(); ++i) {
    outcome.peak.rss_mb = std::max(outcome.peak.rss_mb, measure.samples[i]);
    readings.push_back({std::int64_t(i), "rss_mb", measure.samples[i]});
  }
  for (std::size_t i = 0; i < measure.ips.size(); ++i) {
    readings.push_back({std::int64_t(i), "ips", measure.ips[i]});
  }
  EXPECT_TRUE(store->add_readings(*stage, readings));
  EXPECT_TRUE(store->finish_stage(*stage, outcome, {}));
  EXPECT_TRUE(store->finish_run(*run, 0));
  return std::move(*store);
}

// Whether a run with these measures is good beside another.
bool is_good(const Measure& before, const Measure& now) {
  const Scratch scratch;
  results::ChainStore base = store_of(scratch.path() / "base.db", before);
  results::ChainStore current = store_of(scratch.path() / "current.db", now);
  const auto findings = results::compare_runs(base, current, {});
  return findings && std::ranges::all_of(*findings, [](const results::Finding& one) {
           return one.grade == results::Finding::Grade::good;
         });
}

TEST(CompareRuns, MemoryOfARunTooShortToSampleIsNoise) {
  // The process was sampled while it started.
  EXPECT_TRUE(is_good({.samples = {40, 130}}, {.samples = {60, 290}}));
  EXPECT_TRUE(is_good({.samples = {40, 130, 400}}, {.samples = {60, 290, 590}}));
  // 50 MB more of 200 are below the floor, 500 of 4000 are not noise.
  EXPECT_TRUE(is_good({.samples = {100, 199, 200, 200}}, {.samples = {100, 249, 250, 250}}));
  const Measure long_run{.samples = {1000, 3900, 3990, 4000, 4000}};
  EXPECT_FALSE(is_good(long_run, {.samples = {1000, 3900, 4490, 4500, 4500}}));
  EXPECT_TRUE(is_good(long_run, {.samples = {1000, 3900, 4290, 4300, 4300}}));
}

TEST(CompareRuns, ASpeedIsAsExactAsItsReadings) {
  const Measure steady{.ips = {10, 100, 101, 99, 100}};
  EXPECT_FALSE(is_good(steady, {.ips = {10, 85, 86, 84, 85}}));
  EXPECT_TRUE(is_good(steady, {.ips = {10, 95, 96, 94, 95}}));
  EXPECT_TRUE(is_good({.ips = {10, 140, 60, 120, 80}}, {.ips = {10, 125, 45, 105, 65}}));
  EXPECT_TRUE(is_good({.ips = {100}}, {.ips = {85}}));
  EXPECT_FALSE(is_good({.ips = {100}}, {.ips = {45}}));
}

TEST(CompareVerb, PredictionsAreCompared) {
  const auto line = [](const std::string& value) {
    return Commands{.train = "make=last.w 'say=loss: 9.0'",
                    .infer = "\"say=./a.jpg: class 8 with " + value + "\""};
  };
  Project project(line("0.91234"));
  ASSERT_EQ(project.run({"--store", "base.db"}).code, 0);
  project.write(line("0.91235"));
  ASSERT_EQ(project.run({"--store", "same.db"}).code, 0);
  project.write(line("0.7"));
  ASSERT_EQ(project.run({"--store", "other.db"}).code, 0);
  const auto against = [&](const std::string& store) {
    return run_cli(project.path(), {"compare", "--base", "base.db", "--current", store});
  };
  EXPECT_EQ(against("same.db").code, 0) << against("same.db").out;
  EXPECT_THAT(against("same.db").out, HasSubstr("2 predictions reproduced"));
  EXPECT_EQ(against("other.db").code, 1);
  EXPECT_THAT(against("other.db").out, HasSubstr("prediction 1 is 0.7, 0.91234 before"));
}

TEST(CompareVerb, PartsOfALossAreCompared) {
  const auto line = [](const std::string& part) {
    return Commands{.train = "make=last.w \"say=loss: 9.0, loss_ce: " + part + "\""};
  };
  Project project(line("3"));
  ASSERT_EQ(project.run({"--store", "base.db"}).code, 0);
  project.write(line("4"));
  ASSERT_EQ(project.run({"--store", "other.db"}).code, 0);
  const CliResult other =
      run_cli(project.path(), {"compare", "--base", "base.db", "--current", "other.db"});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.out, HasSubstr("loss_ce 0 is 4, 3 before"));
  EXPECT_THAT(other.out, HasSubstr("loss: 1 values reproduced"));
}

// A stage that is no longer tested is a loss; a new stage has no counterpart.
TEST(CompareVerb, SaysWhichStagesTheNewRunLacks) {
  Project project({.batches = "1"});
  ASSERT_EQ(project.run({"--store", "one.db"}).code, 0);
  project.write({.batches = "1|2"});
  ASSERT_EQ(project.run({"--store", "two.db"}).code, 0);
  const auto against = [&](const std::string& base, const std::string& current) {
    return run_cli(project.path(), {"compare", "--base", base, "--current", current});
  };
  const CliResult less = against("two.db", "one.db");
  EXPECT_EQ(less.code, 1);
  EXPECT_THAT(less.out, HasSubstr(": not in this run, passed before"));
  const CliResult more = against("one.db", "two.db");
  EXPECT_EQ(more.code, 0) << more.out;
  EXPECT_THAT(more.out, HasSubstr("loss: 1 values reproduced"));
}

// 1.jpg must not match in 11.jpg.
TEST(CompareVerb, AnImagesNameIsAWholeName) {
  const results::Predictions found =
      results::find_in_log("./d/11.jpg 5 6\n./d/1.jpg 1 2\n", {{"1.jpg", {}}});
  EXPECT_THAT(found.at("1.jpg"), ElementsAre(1, 2));
}

// The data of a page.
nlohmann::json page_data(const std::string& page) {
  const std::string mark = "id=\"data\">";
  const std::size_t at = page.find(mark) + mark.size();
  return nlohmann::json::parse(page.substr(at, page.find("</script>", at) - at));
}

TEST(ReportVerb, WritesAPageWithCurves) {
  std::string page;
  for (const char* length : {"1.3", "6", "30"}) {  // long enough for more than one sample
    const Project project(
        {.train = "make=last.w \"say=loss: 9, ips: 1\" \"say=loss: 5, ips: 2\" sleep=" +
                  std::string(length),
         .eval = "exit=1"});
    project.run({"--store", "r.db"});
    const CliResult result =
        run_cli(project.path(), {"report", "r.db", "-o", "page.html", "--budget", "1"});
    EXPECT_EQ(result.code, 0) << result.out;
    page = slurp(project.path() / "page.html");
    if (page.find("\"rss_mb\":[") != std::string::npos) break;
  }
  const nlohmann::json data = page_data(page);
  EXPECT_EQ(data.at("exit_code"), 1);
  EXPECT_EQ(data.at("budget"), 1.0);
  const nlohmann::json& train = data.at("stages").at(0);
  EXPECT_EQ(train.at("readings").at("loss"), nlohmann::json({9.0, 5.0}));
  EXPECT_GT(train.at("readings").at("rss_mb").size(), 1U);
  EXPECT_THAT(train.at("tail"), HasSubstr("loss: 5"));
  EXPECT_THAT(train.at("files").dump(), HasSubstr("last.w"));
  EXPECT_EQ(data.at("stages").at(1).at("state"), "failed");
}

// What passed last stands beside a run, so that a change shows.
TEST(ReportVerb, ComparesWithTheLastRunThatPassed) {
  const Project project({.train = "make=last.w \"say=loss: 9, ips: 1\""});
  const auto report = [&] {
    project.run({"--store", "r.db"});
    run_cli(project.path(), {"report", "r.db", "-o", "page.html"});
    return page_data(slurp(project.path() / "page.html"));
  };
  EXPECT_FALSE(report().contains("before"));
  EXPECT_EQ(report().at("stages").at(0).at("before").at("loss"), nlohmann::json({9.0}));
}

}  // namespace
}  // namespace assay::chain
