// What becomes of a case whose results differ.

#include "slot/record.h"

#include <gmock/gmock.h>

#include <csignal>

#include "leaves.h"
#include "verdict/judge.h"

namespace assay {
namespace {

// The verdict about results that are 700 ulps apart, if the lane that should compute the truth ends
// like this.
Verdict without_truth(wire::Status blame, int signal = 0) {
  testing::Lane test;
  testing::Lane reference;
  std::vector<LaneResult> endings;
  endings.push_back(test.tensor<float>("", DType::float32, {2}, {1, 2}).ending());
  endings.push_back(reference.tensor<float>("", DType::float32, {2}, {1.00008F, 2}).ending());
  SlotConfig config;
  config.lanes.resize(2);
  config.lanes[1].role = wire::Role::reference;
  wire::JobT job;
  CaseRecord record(config, job, true);
  EXPECT_EQ(*record.add(job, endings), CaseRecord::Next::truth);
  endings[1] = {};
  endings[1].blame = blame;
  endings[1].exit.signal = signal;
  job.trial.perturbations = 12;
  EXPECT_TRUE(record.add(job, endings));
  const wire::Bytes bytes = record.finish();
  return judge(*flatbuffers::GetRoot<wire::Record>(bytes.data()), Policy{}, Rules{config.settings});
}

// A pure function once failed and then passed on a busy machine: the truth that had shown its fault
// did not come in time, so that the tolerance judged.
TEST(Record, WhatABusyMachineLeavesUndecidedDoesNotPass) {
  EXPECT_EQ(without_truth(wire::Status::timed_out).outcome, Outcome::timeout);
  EXPECT_EQ(without_truth(wire::Status::crashed, SIGKILL).outcome, Outcome::crash);
}

TEST(Record, TheToleranceJudgesWhereThereIsNoTruth) {
  EXPECT_EQ(without_truth(wire::Status::crashed, SIGSEGV).outcome, Outcome::pass);
}

}  // namespace
}  // namespace assay
