// How often claimers visit a database: rarely if visits are slow, and without oscillation.

#include "store/visit_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

namespace assay {
namespace {

using std::chrono::milliseconds;
using Milliseconds = VisitPace::Milliseconds;

constexpr milliseconds kUsual{1'000};
constexpr milliseconds kRarest{10'000};

TEST(VisitPace, IsTheUsualOneWhileVisitsAreQuick) {
  VisitPace pace(kUsual, kRarest, 1);
  EXPECT_EQ(pace.between_visits(), kUsual);
  for (int i = 0; i < 100; ++i) pace.took(Milliseconds(9));
  EXPECT_EQ(pace.between_visits(), kUsual);
}

TEST(VisitPace, BecomesRareAtOnceAndUsualStepByStep) {
  VisitPace pace(kUsual, kRarest, 1);
  pace.took(Milliseconds(200));
  const milliseconds rare = pace.between_visits();
  EXPECT_GE(rare, milliseconds(4'000));
  EXPECT_LE(rare, kRarest);
  pace.took(Milliseconds(1));
  EXPECT_GE(pace.between_visits(), milliseconds(4'000));
  for (int i = 0; i < 200; ++i) pace.took(Milliseconds(1));
  EXPECT_EQ(pace.between_visits(), kUsual);
  pace.took(Milliseconds(1'000'000));
  std::set<milliseconds> seen;
  for (int i = 0; i < 20; ++i) {
    pace.took(Milliseconds(1'000'000));
    EXPECT_LE(pace.between_visits(), kRarest);
    EXPECT_GE(pace.between_visits(), kRarest / 2);
    seen.insert(pace.between_visits());
  }
  EXPECT_GT(seen.size(), 10U);  // not in step with others
}

// The percentage of time that a thousand claimers wait for a server, in each of the ten seconds
// from `from` on. The server needs 1.5 ms for a visit, so at the usual pace it would be overloaded
// by half.
std::vector<double> waiting(int from_s, int to_s) {
  constexpr int kClaimers = 1'000;
  constexpr double kService = 1.5;
  struct Visit {
    double at;
    int who;
    bool operator>(const Visit& other) const { return at > other.at; }
  };
  std::priority_queue<Visit, std::vector<Visit>, std::greater<>> next;
  std::vector<VisitPace> paces;
  for (int i = 0; i < kClaimers; ++i) {
    paces.emplace_back(kUsual, kRarest, static_cast<unsigned>(i + 1));
    next.push({static_cast<double>(i), i});
  }
  std::vector<double> waited(static_cast<std::size_t>(to_s - from_s) / 10);
  double free_at = 0;
  while (next.top().at < to_s * 1e3) {
    const Visit visit = next.top();
    next.pop();
    free_at = std::max(free_at, visit.at) + kService;
    VisitPace& pace = paces[static_cast<std::size_t>(visit.who)];
    pace.took(Milliseconds(free_at - visit.at));
    next.push({free_at + static_cast<double>(pace.between_visits().count()), visit.who});
    if (visit.at < from_s * 1e3) continue;
    waited[static_cast<std::size_t>((visit.at / 1e3 - from_s) / 10)] += free_at - visit.at;
  }
  for (double& each : waited) each *= 100 / (kClaimers * 10e3);
  return waited;
}

TEST(VisitPace, AThousandDoNotCrowdTheirServerInTurns) {
  for (const double percent : waiting(20, 320)) EXPECT_LT(percent, 0.8);
}

}  // namespace
}  // namespace assay
