// Settings list their own fields: what the run keeps of them and what a lane's Python sees.

#include "wire/settings.h"

#include <gmock/gmock.h>

#include <map>

namespace assay::wire {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
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
