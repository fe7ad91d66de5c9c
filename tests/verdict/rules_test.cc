#include <gmock/gmock.h>

#include "verdict/judge.h"
#include "verdict/outcome.h"

namespace assay {
namespace {

TEST(Rules, AModeThatIsNotKnownIsRefused) {
  wire::CaseSettingsT settings;
  settings.mode = "accuracy_stable";
  EXPECT_EQ(Rules::of(settings)->agreement, Agreement::stable);
  settings.mode = "accuracy_on_the_moon";
  EXPECT_THAT(Rules::of(settings).error().message, ::testing::HasSubstr("accuracy_on_the_moon"));
}

TEST(Outcomes, TheTableIsInTheOrderOfTheEnum) {
  for (std::size_t i = 0; i < kOutcomes.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(kOutcomes[i].outcome), i);
    EXPECT_EQ(find_outcome(kOutcomes[i].name), kOutcomes[i].outcome);
  }
  EXPECT_EQ(find_outcome("passed"), std::nullopt);
}

}  // namespace
}  // namespace assay
