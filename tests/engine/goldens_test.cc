// Goldens from end to end, with fake frameworks: recorded, interrupted, damaged, served over HTTP.

#include <gmock/gmock.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "base/fd.h"
#include "cli.h"

namespace assay::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string fake_case(const std::string& name, int size, const std::string& more = "") {
  return "paddle.fake." + name + "(Tensor([" + std::to_string(size) + "], \"float32\")" + more +
         ")";
}

class GoldenRuns : public ::testing::Test {
 protected:
  std::filesystem::path gold() const { return cli_.folder() / "gold"; }
  std::vector<std::string> record_command(const std::string& cases) const {
    return {"record", "--num_gpus=0", "--log_dir=" + gold().string(), "--api_config_file=" + cases};
  }
  CliResult record(const std::string& cases, std::vector<std::string> more = {}) const {
    std::vector<std::string> all = record_command(cases);
    all.insert(all.end(), more.begin(), more.end());
    return cli_.call(all);
  }
  // The outcomes of a run against the goldens at `where`.
  std::map<std::string, std::string> compare(const std::string& cases, const std::string& where,
                                             std::vector<std::string> more = {}) const {
    std::filesystem::remove_all(cli_.run());
    more.push_back("--api_config_file=" + cases);
    if (!where.empty()) more.push_back("--reference-lane=gold:" + where);
    const CliResult result = cli_.call_api(more);
    // 4: nothing was judged.
    EXPECT_THAT(result.status.code, ::testing::AnyOf(0, 1, 4)) << result.output;
    return cli_.outcomes();
  }
  std::string refusal(const std::vector<std::string>& arguments) const {
    const CliResult result = cli_.call_api(arguments);
    EXPECT_EQ(result.status.code, 2) << result.output;
    return result.output;
  }
  std::string mixed() {
    return cli_.write_cases({fake_case("echo", 3), fake_case("echo", 500000), fake_case("wrong", 4),
                             fake_case("raises", 1), fake_case("no_kernel", 2),
                             fake_case("crash", 5), fake_case("wrong_at_both_ends", 300000)});
  }
  Cli cli_;
};

TEST_F(GoldenRuns, GiveTheVerdictsOfADirectComparison) {
  const std::string cases = mixed();
  const CliResult recorded = record(cases);
  EXPECT_EQ(recorded.status.code, 0) << recorded.output;
  EXPECT_THAT(recorded.output, HasSubstr("7 cases in "));
  const auto direct = compare(cases, "");
  EXPECT_EQ(compare(cases, gold()), direct);
  EXPECT_EQ(direct.at(fake_case("wrong", 4)), "mismatch");
}

// What engineV4 does with --custom_device_vs_gpu: one framework, here and there.
TEST_F(GoldenRuns, OfTheFrameworkUnderTestItself) {
  const std::string cases = cli_.write_cases({fake_case("echo", 3), fake_case("wrong", 4)});
  ASSERT_EQ(record(cases, {"--reference-lane=paddle"}).status.code, 0);
  cli_.set_paddle_environment({"ASSAY_FAKE_VERSION=2.0"});
  EXPECT_THAT(compare(cases, gold()), Each(Pair(::testing::_, "pass")));
  EXPECT_EQ(cli_.report()["properties"]["paddle-test"], "2.0");
  EXPECT_EQ(cli_.report()["properties"]["paddle-reference"], "1.0");
  EXPECT_THAT(refusal({"--api_config_file=" + cases, "--custom_device_vs_gpu=True"}),
              HasSubstr("assay record"));
}

TEST_F(GoldenRuns, DigestsAreSmallAndFindLargeFaults) {
  const std::string cases =
      cli_.write_cases({fake_case("echo", 500000), fake_case("wrong", 4), fake_case("wrong", 200)});
  ASSERT_EQ(record(cases, {"--digest"}).status.code, 0);
  std::uintmax_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(gold())) {
    if (file.path().extension() == ".shard") bytes += file.file_size();
  }
  EXPECT_LT(bytes, 20'000);
  EXPECT_EQ(compare(cases, gold()), compare(cases, ""));
}

TEST_F(GoldenRuns, WhatTheFolderLacksIsNoPass) {
  ASSERT_EQ(record(cli_.write_cases({fake_case("echo", 3)}), {"--values=usual"}).status.code, 0);
  const std::string two = cli_.write_cases({fake_case("echo", 3), fake_case("echo", 4)}, "two.txt");
  const auto found = compare(two, gold(), {"--values=usual"});
  EXPECT_EQ(found.at(fake_case("echo", 3)), "pass");
  EXPECT_EQ(found.at(fake_case("echo", 4)), "no_golden");
  EXPECT_THAT(compare(two, gold(), {"--values=usual", "--random_seed=1"}),
              Each(Pair(::testing::_, "no_golden")));
  EXPECT_THAT(compare(two, gold(), {"--values=usual,layout"}),
              Each(Pair(::testing::_, "no_golden")));
}

TEST_F(GoldenRuns, RefuseWhatTheyCannotJudge) {
  const std::string cases = cli_.write_cases({fake_case("echo", 3)});
  const std::string flag = "--api_config_file=" + cases;
  EXPECT_THAT(refusal({flag, "--reference-lane=gold:nowhere"}), HasSubstr("assay record"));
  ASSERT_EQ(record(cases, {"--tolerance=engineV2"}).status.code, 0);
  const std::string lane = "--reference-lane=gold:" + gold().string();
  EXPECT_THAT(refusal({flag, lane}), HasSubstr("--tolerance=engineV2"));
  EXPECT_THAT(refusal({flag, lane, "--accuracy_stable=True"}), HasSubstr("in mode --accuracy"));
  EXPECT_THAT(refusal({flag, lane, "--tolerance=engineV2", "--test_amp=True"}),
              HasSubstr("reference.execution = eager, this run has amp"));
}

TEST_F(GoldenRuns, ADamagedShardIsNoPass) {
  const std::string cases = cli_.write_cases({fake_case("echo", 3)});
  ASSERT_EQ(record(cases).status.code, 0);
  for (const auto& file : std::filesystem::directory_iterator(gold())) {
    if (file.path().extension() != ".shard") continue;
    std::fstream shard(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    shard.seekp(-1, std::ios::end);
    shard.put('!');
  }
  EXPECT_THAT(compare(cases, gold()), Each(Pair(::testing::_, "no_golden")));
  const CliResult shown = cli_.call({"show", cli_.run().string(), fake_case("echo", 3)});
  EXPECT_THAT(shown.output, HasSubstr("is damaged at byte 0"));
}

TEST_F(GoldenRuns, AKilledRecorderGoesOnWhereItWas) {
  std::vector<std::string> lines;
  for (int size = 1; size <= 300; ++size) lines.push_back(fake_case("slow", size, ", 0.01"));
  const std::string cases = cli_.write_cases(lines);
  std::vector<std::string> all = record_command(cases);
  Process process = cli_.start(all);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  process.signal(SIGKILL);
  ASSERT_TRUE(process.wait());
  ASSERT_TRUE(all_gone(cli_.folder().string()));
  EXPECT_FALSE(std::filesystem::exists(gold() / "goldens.json"));
  const CliResult rest = record(cases);
  ASSERT_EQ(rest.status.code, 0) << rest.output;
  EXPECT_THAT(rest.output, HasSubstr("300 cases in "));
  const auto found = compare(cases, gold());
  EXPECT_THAT(found, ::testing::SizeIs(300));
  EXPECT_THAT(found, Each(Pair(::testing::_, "pass")));
}

TEST_F(GoldenRuns, AreReadFromAStaticServer) {
  const std::string cases = mixed();
  ASSERT_EQ(record(cases).status.code, 0);
  Process server = cli_.start_program({"python3", "-u", "-m", "http.server", "0", "--bind",
                                       "127.0.0.1", "--directory", cli_.folder().string()});
  std::string port;
  for (int tries = 0; tries < 600 && port.empty(); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::string said = *read_file(cli_.folder() / "output.txt");
    const std::size_t at = said.find(" port ");
    if (at != std::string::npos) port = said.substr(at + 6, said.find(' ', at + 6) - at - 6);
  }
  ASSERT_FALSE(port.empty());
  const std::string address = "http://127.0.0.1:" + port + "/";
  const auto direct = compare(cases, "");
  EXPECT_EQ(compare(cases, address + "gold/"), direct);
  std::filesystem::remove_all(cli_.run());
  const CliResult nothing = cli_.call_api(
      {"--api_config_file=" + cases, "--reference-lane=gold:" + address + "elsewhere"});
  EXPECT_NE(nothing.status.code, 0);
  EXPECT_THAT(nothing.output, HasSubstr("cannot fetch " + address + "elsewhere/goldens.index"));
}

}  // namespace
}  // namespace assay::testing
