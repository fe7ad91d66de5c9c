// Lines of public projects' training logs, each with its numbers by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "chain/stage/evidence.h"
#include "chain/stage/log_line.h"
#include "chain/stage/train_log.h"

namespace assay::chain::stage {
namespace {

using ::testing::HasSubstr;
using Numbers = std::map<std::string, double>;

struct Style {
  const char* project;
  const char* line;
  Numbers numbers;
};

Numbers numbers_of(const std::vector<Reading>& readings) {
  Numbers numbers;
  for (const Reading& reading : readings) numbers[reading.name] = reading.value;
  return numbers;
}

class LogStyle : public ::testing::TestWithParam<Style> {};

TEST_P(LogStyle, IsRead) {
  EXPECT_EQ(numbers_of(read_train_line(GetParam().line)), GetParam().numbers)
      << GetParam().project << ": " << GetParam().line;
}

INSTANTIATE_TEST_SUITE_P(
    Projects, LogStyle,
    ::testing::Values(
        Style{"transformers",
              "{'loss': 2.3456, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': 0.12}",
              {{"loss", 2.3456}}},
        Style{"transformers 5",
              "{'loss': '2.3456', 'grad_norm': '1.5', 'epoch': '0.12'}",
              {{"loss", 2.3456}}},
        Style{"transformers, evaluation",
              "{'eval_loss': 1.5, 'eval_runtime': 3.2, 'epoch': 1.0}",
              {{"eval_loss", 1.5}}},
        Style{"JSON lines",
              R"({"loss": 1.25, "grad_norm": 0.2, "global_step/max_steps": "20/24"})",
              {{"loss", 1.25}}},
        Style{"pytorch/examples imagenet",
              "Epoch: [0][ 10/8]\tTime  0.1 ( 0.1)\tData  0.0 ( 0.0)\tLoss 6.9e+00 (7.1e+00)\t"
              "Acc@1   3.12 (  3.12)",
              {{"loss", 6.9}, {"accuracy", 3.12}}},
        Style{"pytorch/examples mnist",
              "Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.297471",
              {{"loss", 2.297471}}},
        Style{"nanoGPT", "iter 100: loss 3.1415, time 52.33ms, mfu 1.20%", {{"loss", 3.1415}}},
        Style{"nanoGPT, evaluation",
              "step 250: train loss 1.9500, val loss 2.1000",
              {{"loss", 1.95}, {"eval_loss", 2.1}}},
        Style{"Megatron-LM",
              " iteration       30/     100 | consumed samples: 240 | elapsed time per iteration "
              "(ms): 500.1 | lm loss: 2.5E+00 | loss scale: 1.0 |",
              {{"loss", 2.5}}},
        Style{"DeepSpeed",
              "steps: 10 loss: 0.6931 iter time (s): 0.5 samples/sec: 16.0",
              {{"loss", 0.6931}}},
        Style{
            "MLPerf",
            R"(:::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": "train_loss", "value": 4.5, "metadata": {"step_num": 10}})",
            {{"loss", 4.5}}},
        Style{"PaddleOCR 1.1",
              "2021-05-14 11:36:51,758-INFO: epoch: 0, iter: 20, lr: 0.000001, 'loss': 0.1, 'acc': "
              "0.5, time: 2.346",
              {{"loss", 0.1}, {"accuracy", 0.5}}},
        Style{"torchrun", "[rank0]: step 3 loss=0.75", {{"loss", 0.75}}},
        Style{"torchrun --tee", "[default0]:epoch 1 | loss: 0.75", {{"loss", 0.75}}},
        Style{"Lightning",
              "Epoch 0: 50%|#####     | 5/10 [00:01<00:01, 4.9it/s, v_num=0, train_loss_step=0.25]",
              {{"loss", 0.25}}},
        Style{"TensorBoard names",
              "train/loss: 0.5 eval/loss: 0.75",
              {{"loss", 0.5}, {"eval_loss", 0.75}}},
        Style{"Keras",
              "1875/1875 - 3s - loss: 0.2912 - accuracy: 0.9150 - 3s/epoch - 2ms/step",
              {{"loss", 0.2912}}},
        Style{"detectron2",
              "eta: 0:10:00  iter: 19  total_loss: 1.5  loss_cls: 0.5  loss_box_reg: 1  lr: 0.001",
              {{"loss", 1.5}, {"loss_cls", 0.5}, {"loss_box_reg", 1}}},
        Style{"MMEngine",
              "Epoch(train) [1][ 50/100]  lr: 1e-3  time: 0.3  loss: 2.5  loss_bbox: 0.5",
              {{"loss", 2.5}, {"loss_bbox", 0.5}}},
        Style{"fairseq",
              "epoch 001: 10 / 100 loss=12.5, nll_loss=12.25, ppl=4871.6, wps=1000, lr=1e-05",
              {{"loss", 12.5}, {"nll_loss", 12.25}}},
        Style{"words", "the loss of step 3 in 5 minutes", {}},
        Style{"settings", "loss_weight: 0.5 loss_scale=1024", {}}),
    [](const auto& test) { return "n" + std::to_string(test.index); });

TEST(LogStyles, NanIsReadHoweverItIsWritten) {
  for (const char* line : {"{'loss': nan, 'epoch': 1.0}", R"({"loss": NaN})", "Loss nan (nan)",
                           "'loss': nan, 'acc': 0.0", "loss: -nan", "loss = NAN"}) {
    const auto readings = read_train_line(line);
    ASSERT_EQ(readings.size(), std::string(line).find("acc") == std::string::npos ? 1U : 2U)
        << line;
    EXPECT_TRUE(std::isnan(readings.front().value)) << line;
  }
  EXPECT_EQ(read_train_line("loss: Infinity").front().value, HUGE_VAL);
  EXPECT_EQ(read_train_line("loss: -inf").front().value, -HUGE_VAL);
}

TEST(LogStyles, ColumnsBelongToTheirHeadings) {
  TrainLog log;
  EXPECT_TRUE(
      log.take("      Epoch    GPU_mem   box_loss   cls_loss  Instances       Size").empty());
  EXPECT_EQ(
      numbers_of(log.take("        1/3      2.31G      1.25      3.5       12        640: 100%")),
      (Numbers{{"box_loss", 1.25}, {"cls_loss", 3.5}}));
  EXPECT_TRUE(log.take("Optimizer stripped from last.pt").empty());
  EXPECT_TRUE(log.take("step,loss,lr").empty());
  EXPECT_EQ(numbers_of(log.take("10,0.5,1e-4")), (Numbers{{"loss", 0.5}}));
}

TEST(LogStyles, ResultsThatAreNoNumbersAreFound) {
  EXPECT_EQ(bad_number_in("Predicts of ./doc/img_0.jpg:('', nan)"), "nan");
  EXPECT_EQ(bad_number_in("prob: -inf"), "-inf");
  EXPECT_EQ(bad_number_in("[0.5 NaN 0.25]"), "NaN");
  EXPECT_EQ(bad_number_in("FLAGS_check_nan_inf=0 info: no nan found, inference: infer"), "");
}

Evidence evidence_of(const std::vector<std::string>& lines) {
  Evidence evidence;
  for (const std::string& line : lines) evidence.take(line);
  return evidence;
}

TEST(LogStyles, CountsAreReadHoweverTheyAreWritten) {
  const std::vector<std::string> none{"python", "train.py"};
  EXPECT_THAT(
      evidence_of({" iteration 10/100 | lm loss: 2.5", " iteration 20/100 |"}).unfinished(none),
      HasSubstr("step 20 of 100"));
  EXPECT_THAT(evidence_of({R"({"loss": 1, "global_step/max_steps": "10/40"})",
                           R"({"loss": 1, "global_step/max_steps": "20/40"})"})
                  .unfinished(none),
              HasSubstr("step 20 of 40"));
  const std::vector<std::string> asked{"python", "train.py", "--epochs", "20"};
  EXPECT_EQ(evidence_of({"epoch 0", "epoch 5", "epoch 10", "epoch 15"}).unfinished(asked), "")
      << "a line for every fifth epoch";
  EXPECT_THAT(evidence_of({"epoch 0", "epoch 5", "epoch 10"}).unfinished(asked),
              HasSubstr("10 of 20"));
  EXPECT_EQ(evidence_of({"epoch 1", "epoch 2", "Early stopping at epoch 2"}).unfinished(asked), "");
  EXPECT_THAT(
      evidence_of(
          {R"(:::MLLOG {"key": "run_stop", "value": null, "metadata": {"status": "aborted"}})"})
          .unfinished(none),
      HasSubstr("aborted"));
}

TEST(LogStyles, TracebacksOfLaunchersAreTracebacks) {
  const std::string traceback = "Traceback (most recent call last):";
  for (const char* before : {"", "    ", "[rank0]: ", "[default1]:"}) {
    EXPECT_TRUE(evidence_of({before + traceback}).traceback()) << before;
  }
  EXPECT_FALSE(evidence_of({"WARNING retry after " + traceback}).traceback());
}

}  // namespace
}  // namespace assay::chain::stage
