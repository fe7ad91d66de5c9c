// Lines as public projects' trainings print them, with numbers of our own, each with its readings
// by hand.

#include <fmt/format.h>
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
              "(ms): 500.1 | throughput per GPU (TFLOP/s/GPU): 449.5 | lm loss: 2.5E+00 | loss "
              "scale: "
              "1.0 |",
              {{"loss", 2.5}, {"ips", 449.5}}},
        Style{"DeepSpeed",
              "steps: 10 loss: 0.6931 iter time (s): 0.5 samples/sec: 16.0",
              {{"loss", 0.6931}, {"ips", 16}}},
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
              {{"loss", 0.2912}, {"accuracy", 0.915}}},
        Style{"detectron2",
              "eta: 0:10:00  iter: 19  total_loss: 1.5  loss_cls: 0.5  loss_box_reg: 1  lr: 0.001",
              {{"loss", 1.5}, {"loss_cls", 0.5}, {"loss_box_reg", 1}}},
        Style{"MMEngine",
              "Epoch(train) [1][ 50/100]  lr: 1e-3  time: 0.3  loss: 2.5  loss_bbox: 0.5",
              {{"loss", 2.5}, {"loss_bbox", 0.5}}},
        Style{"fairseq",
              "epoch 001: 10 / 100 loss=12.5, nll_loss=12.25, ppl=4871.6, wps=1000, lr=1e-05",
              {{"loss", 12.5}, {"nll_loss", 12.25}, {"ips", 1000}}},
        Style{"Keras 3",
              "375/375 ━━━━━━━━━━━━━━━━━━━━ 4s 12ms/step - accuracy: 0.75 - loss: 0.5 - "
              "val_accuracy: 0.5 - val_loss: 1.5",
              {{"loss", 0.5}, {"accuracy", 0.75}, {"eval_loss", 1.5}}},
        Style{
            "timm",
            "Train: 3 [  50/1251 (  4%)]  Loss: 6.5 (6.75)  Time: 0.4s,  320.5/s  (0.5s,  250.25/s)"
            "  LR: 5.000e-07  Data: 0.006 (0.033)",
            {{"loss", 6.5}}},
        Style{"timm, evaluation",
              "Test: [  10/48]  Time: 0.25 (0.5)  Loss:  1.25 (1.5)  Acc@1: 62.5 (60.0)",
              {{"eval_loss", 1.25}, {"accuracy", 62.5}}},
        Style{"MMDetection 2",
              "2024-01-01 10:00:00,075 - mmdet - INFO - Epoch [1][50/962]\tlr: 1.978e-03, eta: "
              "2:03:32, time: 0.645, memory: 3483, loss_rpn_cls: 0.25, loss_bbox: 0.125, acc: "
              "88.5, loss: 1.75",
              {{"loss", 1.75}, {"loss_rpn_cls", 0.25}, {"loss_bbox", 0.125}, {"accuracy", 88.5}}},
        Style{"XGBoost",
              "[50]\tvalidation_0-logloss:0.25\tvalidation_1-mlogloss:0.5",
              {{"logloss", 0.25}, {"mlogloss", 0.5}}},
        Style{"LightGBM",
              "[20]\tvalid_0's auc: 0.75\tvalid_0's binary_logloss: 0.625",
              {{"binary_logloss", 0.625}}},
        Style{"Lightning, an epoch",
              "Epoch 4: 100%|#| 1/1 [00:00<00:00, 42.5it/s, v_num=87, train_loss_step=0.5, "
              "train_loss_epoch=0.75]",
              {{"loss", 0.5}, {"train_loss_epoch", 0.75}}},
        Style{"small GPTs",
              "step   100/5000 | lr 1.5e-04 | loss 7.25 | tok/s 4007.2",
              {{"loss", 7.25}, {"ips", 4007.2}}},
        Style{"nanochat",
              "step 00010/21400 (0.05%) | loss: 7.5 | dt: 512.33ms | tok/sec: 1,023,456 | mfu: 48",
              {{"loss", 7.5}, {"ips", 1023456}}},
        Style{"torchtune, a file",
              "Step 5 | loss:1.5 lr:0.0002 tokens_per_second_per_gpu:1923.9 ",
              {{"loss", 1.5}, {"ips", 1923.9}}},
        Style{
            "transformers, the end",
            "{'train_samples_per_second': 25.5, 'train_steps_per_second': 3.1, 'train_loss': 0.5}",
            {{"loss", 0.5}, {"ips", 25.5}}},
        Style{"DeepSpeed's timer",
              "epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=35.5, "
              "CurrSamplesPerSec=36.2, MemAllocated=4.34GB",
              {{"ips", 35.5}}},
        Style{"BERT from scratch",
              "Epoch 51, Loss: 1.75, MLM Loss: 1.5, NSP Loss: 0.25",
              {{"loss", 1.75}, {"MLM_loss", 1.5}, {"NSP_loss", 0.25}}},
        Style{"PyTorch-GAN",
              "[Epoch 0/200] [Batch 5/938] [D loss: 0.625] [G loss: 0.75]",
              {{"loss", 0.625}, {"G_loss", 0.75}}},
        Style{"Stable-Baselines3", "|    loss                 | 0.0125      |", {{"loss", 0.0125}}},
        Style{"PaddlePaddle hapi",
              "step 938/938 [====================] - loss: 0.0125 - acc: 0.975 - 12ms/step",
              {{"loss", 0.0125}, {"accuracy", 0.975}}},
        Style{"PaddleDetection",
              "[10/01 12:00:00] ppdet.engine INFO: Epoch: [0] [20/24] learning_rate: 0.000333 "
              "loss_xy: 0.5 loss: 40.5 eta: 0:01:00 batch_cost: 2.5 data_cost: 0.25 ips: 3.5 "
              "images/s",
              {{"loss", 40.5}, {"loss_xy", 0.5}, {"batch_cost", 2.5}, {"ips", 3.5}}},
        Style{
            "PaddleNLP",
            "[2024-01-01 10:00:00,000] [    INFO] - loss: 7.5, learning_rate: 1e-05, global_step: "
            "10, interval_runtime: 5.2, interval_samples_per_second: 12.5, epoch: 0.01",
            {{"loss", 7.5}, {"ips", 12.5}}},
        Style{"PaddleClas",
              "[2024/01/01 10:00:00] ppcls INFO: [Train][Epoch 1/2][Iter: 0/4]lr(LinearWarmup): "
              "0.01, top1: 0.25, CELoss: 7.5, loss: 7.5, batch_cost: 1.5s, reader_cost: 0.5, ips: "
              "5.25 images/s",
              {{"loss", 7.5},
               {"CELoss", 7.5},
               {"accuracy", 0.25},
               {"batch_cost", 1.5},
               {"reader_cost", 0.5},
               {"ips", 5.25}}},
        Style{"ESPnet",
              "[trainer:761] INFO: 1epoch:train:1-50batch: iter_time=0.1, loss_ctc=95.5, "
              "loss_att=45.25, acc=0.25, loss=60.5, optim0_lr0=2e-06",
              {{"loss", 60.5}, {"loss_ctc", 95.5}, {"loss_att", 45.25}, {"accuracy", 0.25}}},
        Style{"icefall",
              "Epoch 1, batch 50, loss[loss=0.5, simple_loss=0.625, pruned_loss=0.75, over 1000.00 "
              "frames. ], batch size: 60",
              {{"loss", 0.5}, {"simple_loss", 0.625}, {"pruned_loss", 0.75}}},
        Style{"torchtitan",
              "[rank0]:[titan] 2024-10-01 10:00:00,000 - root - INFO - \033[31mstep: 10  "
              "\033[32mloss:  7.25  \033[33mmemory: 30.0GiB(38%)  \033[34mtps: 2,000\033[39m",
              {{"loss", 7.25}, {"ips", 2000}}},
        Style{
            "LLaMA-Factory",
            R"({"current_steps": 5, "total_steps": 100, "loss": 0.875, "lr": 5e-05, "epoch": 0.1})",
            {{"loss", 0.875}}},
        Style{"TRL, DPO",
              "{'loss': 0.625, 'grad_norm': 3.5, 'rewards/chosen': 0.5, 'logps/chosen': -536.0}",
              {{"loss", 0.625}}},
        Style{"OpenNMT-py",
              "[2024-01-01 10:00:00,000 INFO] Step 50/100000; acc: 2.5; ppl: 9000.1; xent: 9.25; "
              "lr: 0.001; 900/800 tok/s;",
              {{"loss", 9.25}, {"accuracy", 2.5}}},
        Style{"TensorFlow estimators",
              "INFO:tensorflow:loss = 2.25, step = 100 (5.310 sec)",
              {{"loss", 2.25}}},
        Style{"Caffe",
              "I0101 10:00:00.000000 1234 solver.cpp:228] Iteration 100, loss = 1.25",
              {{"loss", 1.25}}},
        Style{"PyTorch Geometric",
              "Epoch: 001, Loss: 1.9375, Val: 0.5, Test: 0.625",
              {{"loss", 1.9375}}},
        Style{"Flax",
              "train epoch: 1, loss: 0.25, accuracy: 91.5",
              {{"loss", 0.25}, {"accuracy", 91.5}}},
        Style{"scikit-learn", "Iteration 1, loss = 2.3125", {{"loss", 2.3125}}},
        Style{"diffusers",
              "Steps:  10%|#         | 50/500 [01:00<09:00, 1.2s/it, lr=1e-5, step_loss=0.125]",
              {{"step_loss", 0.125}}},
        Style{
            "NeMo",
            "Epoch 0: :   5%|5 | 50/1000 [01:00<19:00, reduced_train_loss=9.75, global_step=49.0]",
            {{"reduced_train_loss", 9.75}}},
        Style{
            "llama.cpp finetune",
            "train_opt_callback: iter=     5 sample=6/10 sched=0.050000 loss=2.125000 dt=00:00:01",
            {{"loss", 2.125}}},
        Style{"a tensor", "step 1 loss: tensor(0.5, grad_fn=<NllLossBackward0>)", {{"loss", 0.5}}},
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
  EXPECT_TRUE(log.take("epoch;train_loss;val_loss;lr").empty());  // Lightning's metrics.csv
  EXPECT_EQ(numbers_of(log.take("0;0.5;;0.001")), (Numbers{{"loss", 0.5}}));
  EXPECT_EQ(numbers_of(log.take("0;;0.75;0.001")), (Numbers{{"eval_loss", 0.75}}));
  EXPECT_TRUE(log.take("epoch     train_loss  valid_loss  accuracy  time").empty());  // fastai
  EXPECT_EQ(numbers_of(log.take("0         0.5         0.75        0.625     00:10")),
            (Numbers{{"loss", 0.5}, {"eval_loss", 0.75}, {"accuracy", 0.625}}));
  EXPECT_TRUE(log.take("E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  SCORE").empty());  // spaCy
  EXPECT_TRUE(log.take("---  ------  ------------  --------  ------  ------").empty());
  EXPECT_EQ(numbers_of(log.take("  0       0          0.50     67.25    0.00    0.00")),
            (Numbers{{"LOSS_TOK2VEC", 0.5}, {"LOSS_NER", 67.25}}));
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
  EXPECT_THAT(evidence_of({R"({"current_steps": 5, "total_steps": 100, "loss": 0.875})",
                           R"({"current_steps": 10, "total_steps": 100, "loss": 0.875})"})
                  .unfinished(none),
              HasSubstr("step 10 of 100"));
  EXPECT_THAT(evidence_of({"Iter(train) [   50/160000]  loss: 1.5",
                           "Iter(train) [  100/160000]  loss: 1.5", "Iter(val) [ 5/13]  time: 1"})
                  .unfinished(none),
              HasSubstr("step 100 of 160000"));
  const std::vector<std::string> asked{"python", "train.py", "--epochs", "20"};
  EXPECT_THAT(evidence_of({"epoch,loss", "0,0.5", "1,0.25"}).unfinished(asked),
              HasSubstr("epoch 1 of 20"));
  EXPECT_EQ(evidence_of({"epoch 0", "epoch 5", "epoch 10", "epoch 15"}).unfinished(asked), "")
      << "a line for every fifth epoch";
  EXPECT_THAT(evidence_of({"epoch 0", "epoch 5", "epoch 10"}).unfinished(asked),
              HasSubstr("10 of 20"));
  for (const char* message :
       {"Early stopping at epoch 2", "Epoch 00002: early stopping", "Training stopped early as no",
        "Monitored metric val_loss did not improve. Signaling Trainer to stop."}) {
    EXPECT_EQ(evidence_of({"epoch 1", "epoch 2", message, "best epoch: 1", "313/313 [==] loss: 1"})
                  .unfinished(asked),
              "")
        << message;
  }
  EXPECT_NE(evidence_of(
                {"early stopping: True", "epoch 1", "epoch 2", "EarlyStopping counter: 1 out of 5"})
                .unfinished(asked),
            "");
  EXPECT_THAT(
      evidence_of(
          {R"(:::MLLOG {"key": "run_stop", "value": null, "metadata": {"status": "aborted"}})"})
          .unfinished(none),
      HasSubstr("aborted"));
  EXPECT_THAT(evidence_of({R"(:::MLLOG {"key": "run_start", "value": null})"}).unfinished(none),
              HasSubstr("never run_stop"));
}

// The log of a training with a line for each of some counts.
std::string ended(const char* line, const std::vector<double>& counts,
                  const std::vector<std::string>& argv) {
  std::vector<std::string> lines;
  for (const double count : counts) lines.push_back(fmt::format(fmt::runtime(line), count));
  return evidence_of(lines).unfinished(argv);
}

TEST(LogStyles, AnEarlyEndIsSeenInBarsAndFractions) {
  const std::vector<std::string> none{"python", "train.py"};
  for (const char* line :
       {"{0}%|##   | {0}/100 [00:01<00:02, loss=0.5]", "[{}/100] loss=0.5",
        "Step {} of 100 loss 0.5", "loss 0.5 [  {}/100 (5%)]", "iter {} out of 100: loss 0.5"}) {
    EXPECT_THAT(ended(line, {10, 20, 30}, none), HasSubstr("step 30 of 100")) << line;
    EXPECT_EQ(ended(line, {30, 60, 90}, none), "") << line;
    EXPECT_EQ(ended(line, {50, 100, 50, 100}, none), "") << line;
    EXPECT_NE(ended(line, {1, 50, 100, 0, 1, 10}, none), "") << line;  // Lightning's second epoch
  }
  EXPECT_EQ(ended("[{}/8] loss 0.5", {0, 3, 1, 5, 2}, none), "") << "ranks are no bar";
  EXPECT_EQ(ended("[01/{} 12:00:00] loss: 0.5", {10, 11}, none), "") << "dates are no bar";
  EXPECT_EQ(ended("val: {}/100 [00:01, acc=0.5]", {10, 20}, none), "") << "an evaluation";
  const std::vector<std::string> asked{"python", "train.py", "--num_train_epochs", "3"};
  const char* trainer = "{{'loss': 0.5, 'epoch': {}}}";
  EXPECT_THAT(ended(trainer, {0.5, 1.0, 1.5}, asked), HasSubstr("epoch 1.5 of 3"));
  EXPECT_EQ(ended(trainer, {0.71, 1.43, 2.14, 2.86}, asked), "");
  EXPECT_EQ(ended("epoch {}", {1, 0, 2, 1, 3, 2}, asked), "") << "fastai: a bar and a row of each";
  EXPECT_EQ(ended("epoch 3 loss: 0.5, epoch: {} s", {0.5}, asked), "") << "a time";
  EXPECT_EQ(ended(trainer, {0.1, 0.2}, {"t.py", "--max_steps=20", "--num_train_epochs", "3"}), "");
}

TEST(LogStyles, TracebacksOfLaunchersAreTracebacks) {
  const std::string traceback = "Traceback (most recent call last):";
  for (const char* before : {"", "    ", "[rank0]: ", "[default1]:", "3: ", "[1,0]<stderr>:",
                             "(RayTrainWorker pid=7) ", "  + Exception Group "}) {
    EXPECT_TRUE(evidence_of({before + traceback}).traceback()) << before;
  }
  EXPECT_FALSE(evidence_of({"WARNING retry after " + traceback}).traceback());
}

const std::vector<std::string> kErrors{
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total",
    "[rank0]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:268",
    "    RuntimeError: CUDA error: device-side assert triggered",
    "[1,0]<stderr>:KeyError: 'weights'",
    "node1: AssertionError",
    "ResourceExhaustedError: ",
    "run.sh: line 3:  4711 Killed                  python train.py",
    "Killed",
    "Segmentation fault (core dumped)",
    "free(): invalid pointer",
    "*** stack smashing detected ***: terminated",
    "terminate called after throwing an instance of 'c10::Error'",
    "run.sh: line 3: pythn: command not found",
    "python3: can't open file '/model/train.py': [Errno 2] No such file or directory",
    "host:1689:1689 [0] include/alloc.h:112 NCCL WARN Cuda failure 999 'unknown error'",
    "2025-03-21 17:08:31 - ERROR - Error during training: NCCL error, unhandled cuda error",
    "[2024-01-01 10:00:00] [ERROR] [launch.py:321:sigkill_handler] exits with return code = 1",
    "slurmstepd: error: Detected 1 oom-kill event(s) in step 5.0",
    "mpirun noticed that process rank 0 with PID 0 on node x exited on signal 9 (Killed).",
};

TEST(LogStyles, ALogMayNotEndInAnError) {
  for (const std::string& error : kErrors) {
    const std::vector<std::string> start{"step 1 loss: 2", "step 2 loss: 1", error, "saved to out"};
    std::vector<std::string> goes_on = start;
    goes_on.insert(goes_on.end(), {"step 3 loss: 1", "step 4 loss: 1"});
    EXPECT_TRUE(evidence_of(start).ends_in_error(true)) << error;
    EXPECT_FALSE(evidence_of(goes_on).ends_in_error(true)) << error;
    EXPECT_TRUE(evidence_of({"image 1: cat", error, "done"}).ends_in_error(false)) << error;
    std::vector<std::string> results(8, "image: cat");
    results.front() = error;
    EXPECT_FALSE(evidence_of(results).ends_in_error(false)) << error;
  }
  EXPECT_TRUE(evidence_of({"loss: 1", "CRITICAL - training failed"}).ends_in_error(true));
}

TEST(LogStyles, WordsOfErrorsAreNoErrors) {
  for (const char* line :
       {"MeanAbsoluteError: 0.25", "mean error: 0.5", "Error: 0.05", "Killed 3 stale workers",
        "WARNING: ImportError: no module named apex", "Exceptions: none", "loss: 0.5 ERROR: 0.25",
        "NCCL_ASYNC_ERROR_HANDLING is set", "no CUDA errors were found, return code = 0",
        "WARNING: out of memory error, batch skipped", "Test Error:", "Aborted runs: 0"}) {
    EXPECT_FALSE(evidence_of({"loss: 1", line}).ends_in_error(true)) << line;
  }
  EXPECT_FALSE(evidence_of({"loss: 1", "Exception ignored in: <function X.__del__>",
                            "Traceback (most recent call last):", "  File \"x.py\"",
                            "AttributeError: 'NoneType' has no attribute 'close'"})
                   .ends_in_error(true));
}

}  // namespace
}  // namespace assay::chain::stage
