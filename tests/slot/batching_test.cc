// The trials of a batch.

#include "slot/batching.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

// Even if nothing is known of its kind, as for a small case.
TEST(Batching, TheSupervisorMayAskForOneLaneAfterTheOther) {
  const SlotConfig config;
  Batching batching(config, true);
  for (const wire::Start asked : {wire::Start::together, wire::Start::test_lane_first}) {
    wire::JobT job;
    job.test_case.text = R"(paddle.abs(Tensor([2], "float16")))";
    job.attempt.start = asked;
    for (const wire::JobT& trial : batching.trials_of({job})) {
      EXPECT_EQ(trial.attempt.start, asked) << trial.trial.values;
    }
  }
}

}  // namespace
}  // namespace assay
