// The speed record. The expected numbers are computed by hand from the rule of analysis.py: sort,
// cut five at each end, take the mean, times the cards.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/process.h"
#include "chain/results/speed_record.h"
#include "cli_run.h"

namespace assay::chain::results {
namespace {

using ::testing::HasSubstr;

// 100, 101, … with two slow steps in front, and the words that suites write around them.
std::string log_of(int steps) {
  std::string log = "some words ips: are no number\n";
  for (int i = 0; i < steps; ++i) {
    log += fmt::format("[{}] loss: {:.4f}, avg_reader_cost: 0.1 sec, ips: {} images/sec\n", i,
                       2.0 - 0.01 * i, i < 2 ? 1 : 98 + i);
  }
  return log;
}

SpeedQuestion question() {
  SpeedQuestion question;
  question.filename = "log";
  question.model_name = "toy_bs8_fp32_DP";
  question.base_batch_size = 8;
  question.fp_item = "fp32";
  question.keyword = "ips:";
  question.skip_steps = 2;
  question.convergence_key = "loss:";
  question.speed_unit = "images/s";
  return question;
}

TEST(SpeedRecord, IsTheObjectThatTheSuitesWrite) {
  SpeedSurroundings around;
  around.model_branch = "develop";
  around.model_run_time = "12";
  const auto record = speed_record(log_of(23), question(), around);
  ASSERT_TRUE(record);
  // 21 speeds from 100 to 120; the middle eleven are 105 to 115: 110.
  EXPECT_EQ(record->json,
            "{\"model_branch\": \"develop\", \"model_commit\": null, \"model_name\": "
            "\"toy_bs8_fp32_DP\", \"batch_size\": 8, \"fp_item\": \"fp32\", \"run_mode\": \"DP\", "
            "\"convergence_value\": \"1.7800\", \"convergence_key\": \"loss:\", \"ips\": 110.0, "
            "\"speed_unit\": \"images/s\", \"device_num\": \"N1C1\", \"model_run_time\": \"12\", "
            "\"frame_commit\": null, \"frame_version\": null}");
}

TEST(SpeedRecord, IsOfAllCards) {
  SpeedQuestion asked = question();
  asked.device_num = "N1C8";
  EXPECT_EQ(speed_record(log_of(23), asked, {})->ips, 880);
  asked.device_num = "N1";
  EXPECT_FALSE(speed_record(log_of(23), asked, {}));
}

TEST(SpeedRecord, IsNothingOfAShortLog) {
  const auto record = speed_record(log_of(12), question(), {});
  ASSERT_TRUE(record);
  EXPECT_EQ(record->kept, 0);
  const auto json = nlohmann::json::parse(record->json);
  EXPECT_EQ(json["ips"], 0);
  EXPECT_EQ(json["speed_unit"], "");
  EXPECT_EQ(json["convergence_value"], "1.8900");
}

TEST(SpeedRecord, LeavesOutATwentiethOfALongLog) {
  // 200 speeds from 100 to 299. Cutting ten at each end does not change the mean of equal steps, so
  // one end has outliers: only cutting them gives 199.5.
  std::string log = log_of(202);
  for (int i = 290; i <= 299; ++i) {
    const std::string was = fmt::format("ips: {} ", i);
    log.replace(log.find(was), was.size(), "ips: 100000 ");
  }
  EXPECT_EQ(speed_record(log, question(), {})->ips, 199.5);
}

TEST(SpeedRecord, OfLargeModelsIsTheMeanAsItStands) {
  SpeedQuestion asked = question();
  asked.device_num = "N4C32";
  asked.model_mode = 5;
  EXPECT_EQ(speed_record(log_of(5), asked, {})->ips, 101);  // 100, 101, 102
  asked.model_mode = -1;
  asked.is_large_model = true;
  asked.skip_steps = 0;
  EXPECT_EQ(speed_record("Effective: 9\nips: 7.25\n", asked, {})->ips, 7.25);
}

TEST(SpeedRecord, CallsHybridModesCollective) {
  for (const char* mode : {"DP1-MP1-PP1", "DP2-MP8-PP2-more", "DP_MoE_C8", "Sharding_MoE_C8"}) {
    SpeedQuestion asked = question();
    asked.run_mode = mode;
    EXPECT_THAT(speed_record(log_of(23), asked, {})->json, HasSubstr("\"Collective\"")) << mode;
  }
}

// Compares the bytes with the suites' own script, if the variable names one.
TEST(SpeedRecord, IsTheSuitesOwnByteForByte) {
  const char* script = std::getenv("ASSAY_ANALYSIS_PY");
  if (script == nullptr) GTEST_SKIP() << "needs a suite's analysis.py (ASSAY_ANALYSIS_PY)";
  const char* python = std::getenv("ASSAY_ANALYSIS_PYTHON");
  for (const auto& [steps, mode, device] :
       {std::tuple(23, "DP", "N1C1"), std::tuple(230, "DP1-MP1-PP1", "N1C8"),
        std::tuple(11, "DP", "N1C1")}) {
    Scratch scratch;
    std::string log = log_of(steps);
    for (std::size_t at = log.find("ips: 11"); at != std::string::npos;
         at = log.find("ips: 11", at + 1)) {
      log.insert(at + 7, "7.0625");
    }
    put(scratch.path() / "log", log);
    const std::vector<std::string> words{
        "--filename",        "log",      "--speed_log_file",  "speed", "--model_name", "toy",
        "--base_batch_size", "8",        "--run_mode",        mode,    "--fp_item",    "fp32",
        "--keyword",         "ips:",     "--skip_steps",      "2",     "--device_num", device,
        "--speed_unit",      "images/s", "--convergence_key", "loss:"};
    const std::vector<std::string> around{"model_branch=b", "frame_version=3.3.1"};
    std::vector<std::string> theirs{python == nullptr ? "python3" : python, script};
    theirs.insert(theirs.end(), words.begin(), words.end());
    EXPECT_EQ(run_command(scratch.path(), theirs, around).code, 0);
    const std::string expected = slurp(scratch.path() / "speed");
    std::vector<std::string> ours{"speed"};
    ours.insert(ours.end(), words.begin(), words.end());
    run_cli(scratch.path(), ours, around);
    EXPECT_EQ(slurp(scratch.path() / "speed"), expected);
  }
}

}  // namespace
}  // namespace assay::chain::results
