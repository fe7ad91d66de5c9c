// The work that a claimer may hold: a slow claimer ends at the same time as all others.

#include "store/fair_share.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr double kSecond = 1e6;

// The share of a claimer with this speed when 100 s of work are left and all claimers together do
// 10 s of work per second.
FairShare seen(double speed, int seconds) {
  FairShare share;
  for (int second = 0; second <= seconds; ++second) {
    share.worked(second * kSecond, second == 0 ? 0 : static_cast<std::int64_t>(speed * kSecond));
    share.saw(second * kSecond, 100'000'000 + (seconds - second) * std::int64_t{10'000'000});
  }
  return share;
}

TEST(FairShare, IsHalfOfTheRemainingWorkTimesTheOwnPartOfTheSpeed) {
  EXPECT_EQ(seen(1, 1).most_us(), FairShare::kAny);  // too early to say
  EXPECT_NEAR(static_cast<double>(seen(1, 30).most_us()), 5e6, 1e3);
  EXPECT_NEAR(static_cast<double>(seen(0.1, 30).most_us()), 5e5, 1e3);
  EXPECT_EQ(seen(0, 30).most_us(), 0);
}

TEST(FairShare, ForgetsHowFastItWas) {
  FairShare share = seen(1, 30);
  for (int second = 31; second <= 200; ++second) {
    share.worked(second * kSecond, 100'000);
    share.saw(second * kSecond, 100'000'000);
  }
  share.saw(201 * kSecond, 90'000'000);
  share.saw(202 * kSecond, 200'000'000);  // more was planned: that tells nothing of the speed
  EXPECT_LT(share.most_us(), 200'000'000);
  FairShare unknown;
  unknown.worked(0, 5);
  EXPECT_EQ(unknown.most_us(), FairShare::kAny);
}

}  // namespace
}  // namespace assay
