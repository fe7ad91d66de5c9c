// What becomes of a failure without an error bar when its retry fails differently.

#include "engine/retries.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

Answer failed(double got, std::uint64_t index) {
  Answer answer;
  answer.id = 7;
  answer.verdict.outcome = Outcome::mismatch;
  answer.verdict.mismatch = kValue;
  answer.verdict.message = "result: " + std::to_string(got);
  Fault& fault = answer.verdict.faults.emplace_back();
  fault.kinds = kValue;
  fault.worst = WorstElement{index, got, 1.0, 0.001};
  return answer;
}

Verdict after(const Answer& first, const Answer& second) {
  Retries retries;
  wire::JobT job;
  Verdict verdict = first.verdict;
  EXPECT_TRUE(retries.retry(first, job, verdict));
  job.attempt.isolation = wire::Isolation::own_process;
  verdict = second.verdict;
  EXPECT_FALSE(retries.retry(second, job, verdict));
  return verdict;
}

TEST(Retries, DoNotBelieveAFailureThatVariesAsMuchAsItIsOff) {
  const Verdict verdict = after(failed(1.05, 3), failed(1.04, 90));
  EXPECT_EQ(verdict.outcome, Outcome::pass);
  EXPECT_EQ(verdict.mismatch, 0);
  EXPECT_TRUE(verdict.faults.empty());
  EXPECT_NE(verdict.flags & kFlaky, 0);
  EXPECT_NE(verdict.message.find("two runs differ"), std::string::npos);
}

TEST(Retries, BelieveAFailureThatComesAgain) {
  const Verdict verdict = after(failed(1.05, 3), failed(1.05, 3));
  EXPECT_EQ(verdict.outcome, Outcome::mismatch);
  EXPECT_EQ(verdict.faults.size(), 1U);
}

TEST(Retries, BelieveAFailureWithAnErrorBar) {
  Answer first = failed(1.05, 3);
  Answer second = failed(1.04, 90);
  first.verdict.faults.front().worst.reset();
  second.verdict.faults.front().worst.reset();
  EXPECT_EQ(after(first, second).outcome, Outcome::mismatch);
}

}  // namespace
}  // namespace assay
