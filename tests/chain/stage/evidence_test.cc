// What the log of a training says about its end. The lines are of real suites' logs.

#include "chain/stage/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::chain::stage {
namespace {

using ::testing::HasSubstr;

Evidence of(const std::vector<std::string>& lines) {
  Evidence evidence;
  for (const std::string& line : lines) evidence.take(line);
  return evidence;
}

std::string unfinished(const std::vector<std::string>& lines,
                       const std::vector<std::string>& argv = {"python", "train.py"}) {
  return of(lines).unfinished(argv);
}

TEST(Evidence, EpochsThatTheLogCountsMustAllBeThere) {
  const std::string first =
      "[2026/11/27 02:10:00] ppcls INFO: [Train][Epoch 1/2][Iter: 0/2]lr(Piecewise): 0.1, "
      "top1: 0.0, CELoss: 6.9, loss: 6.9, batch_cost: 0.5s, ips: 15 samples/s, eta: 0:00:01";
  const std::string second = "ppcls INFO: [Train][Epoch 2/2][Iter: 0/2]loss: 6.8";
  EXPECT_THAT(unfinished({first}), HasSubstr("epoch 1 of 2"));
  EXPECT_EQ(unfinished({first, second}), "") << "one step of each epoch is logged";
  EXPECT_EQ(unfinished({first, second, "[Eval][Epoch 1][Iter: 0/4]loss: 6"}), "");
}

TEST(Evidence, EpochsThatTheArgumentsAskForStartAtZeroOrOne) {
  const std::vector<std::string> argv{"python", "train.py", "--epochs=3"};
  EXPECT_EQ(unfinished({"[Epoch 0, iter: 0] loss: 1", "[Epoch 2, iter: 0] loss: 1"}, argv), "");
  EXPECT_EQ(unfinished({"epoch: 1 loss: 1", "epoch: 3 loss: 1"}, argv), "");
  EXPECT_THAT(unfinished({"epoch: 1 loss: 1", "epoch: 2 loss: 1"}, argv), HasSubstr("2 of 3"));
  EXPECT_EQ(unfinished({"loss: 1"}, argv), "") << "the log counts none";
}

TEST(Evidence, StepsMayBeLoggedNowAndThen) {
  EXPECT_EQ(unfinished({"[TRAIN] epoch: 1, iter: 10/25, loss: 1", "epoch: 1, iter: 20/25"}), "");
  EXPECT_THAT(unfinished({"[TRAIN] epoch: 1, iter: 10/1000", "[TRAIN] epoch: 1, iter: 20/1000"}),
              HasSubstr("step 20 of 1000"));
  EXPECT_EQ(unfinished({"[TRAIN] epoch: 1, iter: 10/1000"}), "") << "no stride is known";
}

TEST(Evidence, EpochsAreAskedForInManySpellings) {
  const auto asked = [](const std::vector<std::string>& words) {
    std::vector<std::string> argv{"python", "train.py"};
    argv.insert(argv.end(), words.begin(), words.end());
    return epochs_asked(argv).value_or(-1);
  };
  EXPECT_EQ(asked({"--epochs=5"}), 5);
  EXPECT_EQ(asked({"-o", "Global.epoch_num=100"}), 100);
  EXPECT_EQ(asked({"--num-train-epochs", "3"}), 3);
  EXPECT_EQ(asked({"--save_epoch_step=4"}), -1);
  EXPECT_EQ(asked({"--iters", "20"}), -1);
}

TEST(Evidence, AnIgnoredExceptionAtTheEndIsNone) {
  const std::string traceback = "Traceback (most recent call last):";
  EXPECT_TRUE(of({traceback, "ValueError: x"}).traceback());
  EXPECT_EQ(of({traceback, "ValueError: x", "done"}).last_error(), "ValueError: x");
  EXPECT_FALSE(of({"Exception ignored in: <function _DataLoaderIter.__del__>", traceback,
                   "AttributeError: x"})
                   .traceback());
  EXPECT_FALSE(of({"mean error: 0.5 is fine"}).last_error().empty());
  EXPECT_TRUE(of({"loss: 0.5"}).last_error().empty());
}

}  // namespace
}  // namespace assay::chain::stage
