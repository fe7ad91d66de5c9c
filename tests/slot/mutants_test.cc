#include "slot/mutants.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using ::testing::ElementsAre;

wire::CaseSettingsT planting(std::string mutants, std::uint32_t share) {
  wire::CaseSettingsT settings;
  settings.mutants = std::move(mutants);
  settings.mutants_share = share;
  return settings;
}

TEST(SlotMutants, ARealRunHasNone) { EXPECT_THAT(mutants_of({}, 42), ElementsAre("")); }

TEST(SlotMutants, AllOfThemFollowTheCaseAsItIs) {
  EXPECT_THAT(mutants_of(planting("sign,axis", 1), 42), ElementsAre("", "sign", "axis"));
}

TEST(SlotMutants, AShareIsDrawnBySeedCaseAndFault) {
  const auto count = [](std::uint64_t seed, const std::string& fault) {
    wire::CaseSettingsT settings = planting(fault, 10);
    settings.seed = seed;
    std::vector<std::uint64_t> chosen;
    for (std::uint64_t id = 0; id < 10'000; ++id) {
      if (mutants_of(settings, id).size() > 1) chosen.push_back(id);
    }
    return chosen;
  };
  const auto chosen = count(1, "sign");
  EXPECT_EQ(count(1, "sign"), chosen);
  EXPECT_NE(count(2, "sign"), chosen);
  EXPECT_NE(count(1, "axis"), chosen);
  EXPECT_NEAR(static_cast<double>(chosen.size()), 1000, 150);  // five standard deviations
}

}  // namespace
}  // namespace assay
