// The file format, and series as metrics.

#include "chain/history/golden.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <random>
#include <string>

#include "base/fd.h"
#include "chain/history/record.h"
#include "material.h"

namespace assay::chain::history {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Run night(int number, const std::string& metric, Metric values) {
  return {"2026-11-" + std::to_string(number),
          "build " + std::to_string(number),
          Purpose::nightly,
          false,
          {{metric, std::move(values)}}};
}

TEST(GoldenFile, IsReadAsItWasWritten) {
  Golden golden{"bert \"x\"", "train", "NVIDIA H100", {}};
  golden.runs.push_back(night(1, "train: loss", {Kind::loss, {0.1, 1e-17, 10.51634}}));
  golden.runs.push_back(night(1, "train: ips", {Kind::speed, {1234.5}}));
  golden.runs.back().purpose = Purpose::baseline;
  golden.runs.push_back(night(2, "infer: MB", {Kind::memory, {512}}));
  golden.runs.back().accept = true;
  const auto read = read_golden(write_golden(golden), "file");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->model, golden.model);
  EXPECT_EQ(read->device, "NVIDIA H100");
  ASSERT_EQ(read->runs.size(), 3U);
  EXPECT_THAT(read->runs[0].metrics.at("train: loss").values, ElementsAre(0.1, 1e-17, 10.51634));
  EXPECT_EQ(read->runs[1].purpose, Purpose::baseline);
  EXPECT_EQ(read->runs[1].metrics.at("train: ips").kind, Kind::speed);
  EXPECT_FALSE(read->runs[1].accept);
  EXPECT_TRUE(read->runs[2].accept);
  EXPECT_EQ(write_golden(*read), write_golden(golden));
}

TEST(GoldenFolder, ThatAnotherProcessLocksForGoodIsAnError) {
  const Scratch scratch;
  const auto added = [&](int number) {
    Golden golden{"bert", "train", "CPU", {}};
    golden.runs.push_back(night(number, "train: loss", {Kind::loss, {0.1}}));
    return add_to(scratch.path(), std::move(golden));
  };
  ASSERT_TRUE(added(10));
  const Fd other(::open((scratch.path() / ".assay-lock").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_SH), 0);
  const auto refused = added(11);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("another process holds the lock"));
}

// A file as somebody may have written it by hand.
std::string file_with(const std::string& runs) {
  return R"({"format":"assay-chain-golden","version":1,"model":"m","mode":"t","device":"CPU",)"
         R"("runs":[)" +
         runs + "]}";
}

TEST(GoldenFile, WhatIsWrongWithItIsNamed) {
  const auto error_of = [](const std::string& text) {
    const auto read = read_golden(text, "g.json");
    return read ? std::string("good") : read.error().message;
  };
  EXPECT_EQ(error_of(file_with("")), "good");
  EXPECT_THAT(error_of("{}"), HasSubstr("g.json is not a golden file"));
  EXPECT_THAT(error_of("not json"), HasSubstr("is not a golden file"));
  EXPECT_THAT(error_of(R"({"format":"assay-chain-golden","version":2,"runs":[]})"),
              HasSubstr("has version 2, this assay reads 1"));
  EXPECT_THAT(error_of(R"({"format":"assay-chain-golden","runs":[]})"), HasSubstr("version none"));
  EXPECT_THAT(error_of(R"({"format":"assay-chain-golden","version":1})"), HasSubstr("no list"));
  EXPECT_THAT(error_of(file_with("1")), HasSubstr("run 1 is not an object"));
  EXPECT_THAT(error_of(file_with(R"({"purpose":"nightly"})")), HasSubstr("has no build"));
  EXPECT_THAT(error_of(file_with(R"({"build":"b","purpose":"x"})")), HasSubstr("needs a purpose"));
  EXPECT_THAT(error_of(file_with(R"({"build":"b","purpose":"rerun","metrics":{}})")),
              HasSubstr("run 1 is not nightly"));
  const auto with_metric = [&](const std::string& metric) {
    return error_of(
        file_with(R"({"build":"b","purpose":"nightly","metrics":{"a":)" + metric + "}}"));
  };
  EXPECT_EQ(with_metric(R"({"kind":"loss","values":[1]})"), "good");
  for (const char* bad : {"1", R"({"kind":"x","values":[1]})", R"({"kind":"loss","values":[]})",
                          R"({"kind":"loss","values":[null]})", R"({"kind":"loss"})",
                          R"({"kind":"loss","values":["1"]})"}) {
    EXPECT_THAT(with_metric(bad), HasSubstr("metric `a`")) << bad;
  }
  EXPECT_THAT(error_of(file_with(R"({"build":"b","purpose":"nightly","accept":1,"metrics":{}})")),
              HasSubstr("neither true nor false"));
}

TEST(GoldenFile, ItsNameIsOneOfAFile) {
  EXPECT_EQ(file_name_of({"../a b", "m", "NVIDIA H100 80GB", {}}),
            "_._a_b.m.NVIDIA_H100_80GB.json");
}

State state_of(const Golden& golden, const std::string& metric) {
  for (const MetricJudgement& one : judge_golden(golden)) {
    if (one.metric == metric) return one.judgement.state;
  }
  ADD_FAILURE() << "no metric " << metric;
  return State::good;
}

TEST(GoldenMetrics, TheEndOfALossIsJudgedApart) {
  Golden golden;
  std::vector<double> losses(20, 5.0);
  for (int i = 1; i <= 10; ++i) golden.runs.push_back(night(i, "loss", {Kind::loss, losses}));
  losses[18] = losses[19] = 5.1;
  golden.runs.push_back(night(11, "loss", {Kind::loss, losses}));
  EXPECT_EQ(state_of(golden, "loss"), State::good) << "0.2% of the mean";
  EXPECT_EQ(state_of(golden, "loss, last tenth"), State::suspect) << "2% of the end";
}

TEST(GoldenMetrics, LossesAreJudgedStepByStep) {
  std::vector<double> losses;
  for (int step = 2; step < 42; ++step) losses.push_back(2.0 / (step / 2));
  const auto changed = [&](auto factor) {
    std::vector<double> values = losses;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factor(i);
    return Metric{Kind::loss, values};
  };
  for (const int nights : {3, 10}) {
    Golden golden;
    for (int i = 1; i <= nights; ++i) golden.runs.push_back(night(i, "loss", {Kind::loss, losses}));
    golden.runs.push_back(
        night(nights + 1, "loss", changed([](std::size_t i) { return i % 2 == 0 ? 1.1 : 0.9; })));
    EXPECT_EQ(state_of(golden, "loss"), State::good) << "the mean is the same";
    EXPECT_EQ(state_of(golden, "loss, step by step"), State::suspect);
  }
  // Losses that differ as much in all nights.
  Golden noisy;
  std::mt19937 random(1);
  for (int i = 1; i <= 30; ++i) {
    noisy.runs.push_back(night(i, "loss", changed([&](std::size_t) {
                                 return 0.8 + 0.4 * static_cast<double>(random() % 1000) / 1000;
                               })));
    EXPECT_EQ(state_of(noisy, "loss, step by step"), State::good) << "night " << i;
  }
}

TEST(GoldenMetrics, PredictionsAreJudgedByTheirLargestDifference) {
  Golden golden;
  const auto add = [&](int number, std::vector<double> values) {
    golden.runs.push_back(night(number, "p", {Kind::prediction, std::move(values)}));
  };
  for (int i = 1; i <= 10; ++i) add(i, {0.5, 0.25, 1e-4});
  add(11, {0.5, 0.2501, 1e-4});
  EXPECT_EQ(state_of(golden, "p"), State::good);
  add(12, {0.5, 0.26, 1e-4});
  EXPECT_EQ(state_of(golden, "p"), State::suspect);
  golden.runs.pop_back();
  add(12, {0.5, 0.25});
  EXPECT_EQ(state_of(golden, "p"), State::suspect) << "a prediction is missing";
}

TEST(GoldenMetrics, AMetricThatIsNoLongerMeasuredIsMissing) {
  Golden golden;
  golden.runs.push_back(night(1, "ips", {Kind::speed, {10}}));
  golden.runs.push_back(night(2, "loss", {Kind::loss, {10}}));
  const auto all = judge_golden(golden);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_FALSE(all[0].missing);
  EXPECT_TRUE(all[1].missing);
  EXPECT_THAT(line_of(all[1], golden), HasSubstr("missing      ips"));
}

}  // namespace
}  // namespace assay::chain::history
