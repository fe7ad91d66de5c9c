#include <gtest/gtest.h>

#include "verdict/outcome.h"

namespace assay {
namespace {

TEST(Outcomes, TheTableIsInTheOrderOfTheEnum) {
  for (std::size_t i = 0; i < kOutcomes.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(kOutcomes[i].outcome), i);
    EXPECT_EQ(find_outcome(kOutcomes[i].name), kOutcomes[i].outcome);
  }
  EXPECT_EQ(find_outcome("passed"), std::nullopt);
}

}  // namespace
}  // namespace assay
