// What a training's readings show, and when.

#include "chain/stage/monitor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::chain::stage {
namespace {

// The words that a course of one reading is given, each with the number of the reading.
std::vector<std::pair<std::string, std::size_t>> words_of(const std::string& name,
                                                          const std::vector<double>& values) {
  Monitor monitor;
  std::vector<std::pair<std::string, std::size_t>> words;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (const auto found = monitor.take({name, values[i]})) words.emplace_back(found->word, i + 1);
  }
  return words;
}

using Words = std::vector<std::pair<std::string, std::size_t>>;

// A course that falls slowly, as losses do.
std::vector<double> falling(std::size_t number) {
  std::vector<double> values;
  for (std::size_t i = 0; i < number; ++i) values.push_back(3.0 / (1.0 + 0.1 * double(i)));
  return values;
}

TEST(Monitor, AnOrdinaryCourseIsLeftAlone) {
  EXPECT_EQ(words_of("loss", falling(500)), Words{});
  EXPECT_EQ(words_of("ips", std::vector<double>(500, 120.0)), Words{});
  EXPECT_EQ(words_of("accuracy", {NAN}), Words{});
}

TEST(Monitor, WhatIsNoNumberIsToldOnceAndAtOnce) {
  EXPECT_EQ(words_of("loss", {2.0, NAN, NAN}), (Words{{"nan", 2}}));
  EXPECT_EQ(words_of("loss", {-HUGE_VAL}), (Words{{"nan", 1}}));
}

TEST(Monitor, AJumpIsTenTimesTheUsualLoss) {
  std::vector<double> values(20, 1.0);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += 0.001 * double(i);
  values.push_back(9.0);
  EXPECT_EQ(words_of("loss", values), Words{});
  values.back() = 11.0;
  EXPECT_EQ(words_of("loss", values), (Words{{"jump", 21}}));
  EXPECT_EQ(words_of("loss", {0.1, 0.1, 0.1, 0.1, 50.0}), Words{});  // nothing is usual yet
  values.assign(20, 1.0);
  values[10] = 50.0;
  EXPECT_EQ(words_of("loss", values), (Words{{"jump", 11}})) << "of a short training";
}

TEST(Monitor, FiftyEqualLossesAreStill) {
  EXPECT_EQ(words_of("loss", std::vector<double>(49, 0.7)), Words{});
  EXPECT_EQ(words_of("loss", std::vector<double>(60, 0.7)), (Words{{"still", 50}}));
}

// 5 steps to warm up, 20 to know the speed, 20 that are slower.
TEST(Monitor, HalfTheSpeedIsSlow) {
  std::vector<double> values(5, 1.0);
  values.insert(values.end(), 20, 100.0);
  values.insert(values.end(), 20, 51.0);
  EXPECT_EQ(words_of("ips", values), Words{});
  values.insert(values.end(), 20, 10.0);
  const Words words = words_of("ips", values);
  ASSERT_EQ(words.size(), 1U);
  EXPECT_EQ(words.front().first, "slow");
  EXPECT_EQ(words.front().second, 46U);
}

TEST(Monitor, EveryAlarmSaysWhatItMeans) {
  for (const Alarm& alarm : alarms()) EXPECT_FALSE(meaning(alarm).empty()) << alarm.word;
  EXPECT_EQ(alarms().size(), 4U);
  Monitor monitor;
  for (int i = 0; i < 12; ++i) (void)monitor.take({"loss", 1.0});
  std::vector<std::string_view> blind;
  for (const Alarm& alarm : alarms()) {
    if (monitor.readings_of(alarm) < alarm.needs) blind.push_back(alarm.word);
  }
  EXPECT_EQ(blind, (std::vector<std::string_view>{"still", "slow"}));
}

}  // namespace
}  // namespace assay::chain::stage
