// Settings list their own fields, for the run's properties and a lane's Python.

#include "wire/settings.h"

#include <gmock/gmock.h>

#include <map>

namespace assay::wire {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

std::map<std::string, std::string> as_text(const std::vector<Setting>& settings) {
  std::map<std::string, std::string> texts;
  for (const Setting& setting : settings) texts.emplace(setting.name, text_of(setting.value));
  return texts;
}

TEST(Settings, DefaultsAreListedToo) {
  EXPECT_THAT(as_text(fields_of(CaseSettingsT())),
              AllOf(Contains(Pair("atol", "0.01")), Contains(Pair("backward", "true")),
                    Contains(Pair("mode", "")), Contains(Pair("rtol", "0.01")),
                    Contains(Pair("seed", "0"))));
}

TEST(Settings, ValuesKeepEveryDigit) {
  CaseSettingsT settings;
  settings.mode = "accuracy";
  settings.seed = 18'446'744'073'709'551'615U;
  settings.backward = false;
  settings.atol = 0.1;
  settings.rtol = 1e-300;
  EXPECT_THAT(as_text(fields_of(settings)),
              AllOf(Contains(Pair("atol", "0.1")), Contains(Pair("backward", "false")),
                    Contains(Pair("mode", "accuracy")), Contains(Pair("rtol", "1e-300")),
                    Contains(Pair("seed", "18446744073709551615"))));
}

TEST(Settings, TextsReadBackAsTheSameSettings) {
  CaseSettingsT settings;
  settings.mode = "accuracy";
  settings.seed = 18'446'744'073'709'551'615U;
  settings.backward = false;
  settings.atol = 0;  // not its default, though it is zero
  settings.rtol = 1e-300;
  settings.mutants_share = 10;
  auto properties = as_text(fields_of(settings));
  properties["version.assay"] = "1";  // of the run, not a setting
  const auto again = settings_of(properties);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(as_text(fields_of(*again)), as_text(fields_of(settings)));
}

TEST(Settings, WhatARunDoesNotSayHasItsDefault) {
  EXPECT_EQ(as_text(fields_of(*settings_of({}))), as_text(fields_of(CaseSettingsT())));
}

TEST(Settings, AValueThatItsFieldCannotHoldIsNamed) {
  for (const auto& [name, text] :
       std::map<std::string, std::string>{{"seed", "-1"},
                                          {"backward", "yes"},
                                          {"atol", "0.01x"},
                                          {"mutants_share", "4294967296"}}) {
    const auto settings = settings_of({{name, text}});
    ASSERT_FALSE(settings.has_value()) << name;
    EXPECT_THAT(settings.error().message, AllOf(HasSubstr(name), HasSubstr(text)));
  }
}

TEST(Settings, ALanesAddressIsNoSetting) {
  LaneSpecT lane;
  lane.role = Role::reference;
  lane.address = {1, 2, 3};
  const auto texts = as_text(fields_of(lane));
  EXPECT_EQ(texts.at("role"), "reference");
  EXPECT_FALSE(texts.contains("address"));
}

}  // namespace
}  // namespace assay::wire
