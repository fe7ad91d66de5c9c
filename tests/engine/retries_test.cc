// What runs again after a failure, and how.

#include "engine/retries.h"

#include <gmock/gmock.h>

#include "queued.h"

namespace assay {
namespace {

constexpr std::optional<wire::Isolation> kNoRetry;
constexpr std::optional<wire::Isolation> kAlone = wire::Isolation::own_process;
constexpr std::optional<wire::Isolation> kShared = wire::Isolation::shared_retry;

// Retries have neighbours, too.
TEST(Retries, ARetryThatRunsOutOfMemoryRunsAgainAlone) {
  Retries retries;
  Answer answer;
  Verdict verdict;
  answer.verdict.outcome = Outcome::mismatch;
  EXPECT_NE(retries.retry(answer, queued(1, 20'000), verdict), kNoRetry);
  answer.verdict.outcome = verdict.outcome = Outcome::oom;
  EXPECT_NE(retries.retry(answer, queued(1, 20'000), verdict), kNoRetry);
  EXPECT_EQ(retries.retry(answer, queued(1, 20'000), verdict, true), kNoRetry);
  EXPECT_EQ(verdict.outcome, Outcome::oom);
  EXPECT_THAT(verdict.message, ::testing::HasSubstr("first mismatch"));
}

Answer differs(const char* message) {
  Answer answer;
  answer.verdict.outcome = Outcome::mismatch;
  answer.verdict.message = message;
  return answer;
}

// A process costs more than most retries, and a neighbour would not do the same to a case twice.
TEST(Retries, TheSameFailureInASharedProcessIsFinal) {
  const Answer answer = differs("result: 3 of 4 elements");
  Verdict verdict = answer.verdict;
  wire::JobT ran = queued(1);
  Retries retries;
  EXPECT_EQ(retries.retry(answer, ran, verdict), kShared);
  ran.attempt.isolation = wire::Isolation::shared_retry;
  EXPECT_EQ(retries.retry(answer, ran, verdict), kNoRetry);
  EXPECT_EQ(verdict.message, "result: 3 of 4 elements");
}

TEST(Retries, AnotherEndingInASharedProcessIsDecidedAlone) {
  for (const bool passes : {false, true}) {
    wire::JobT ran = queued(1);
    Retries retries;
    Verdict verdict;
    EXPECT_EQ(retries.retry(differs("result: 3 of 4 elements"), ran, verdict), kShared);
    const Answer second = passes ? Answer() : differs("result: 2 of 4 elements");
    verdict = second.verdict;
    ran.attempt.isolation = wire::Isolation::shared_retry;
    EXPECT_EQ(retries.retry(second, ran, verdict), kAlone);
    ran.attempt.isolation = wire::Isolation::own_process;
    EXPECT_EQ(retries.retry(second, ran, verdict), kNoRetry);
    EXPECT_EQ(verdict.outcome, passes ? Outcome::pass : Outcome::mismatch);
    EXPECT_EQ(verdict.flags, passes ? kContaminated : 0) << "the first attempt counts";
  }
}

TEST(Retries, ACaseThatEndsLanesNeedsMemoryOrLostASlotSharesNoProcess) {
  const auto second = [](Outcome outcome, const wire::JobT& ran, bool share = true) {
    Answer answer;
    answer.verdict.outcome = outcome;
    answer.beside_overdue_us = 1;
    Verdict verdict;
    return Retries(share).retry(answer, ran, verdict);
  };
  EXPECT_EQ(second(Outcome::test_error, queued(1)), kShared);
  for (const Outcome outcome : {Outcome::crash, Outcome::timeout, Outcome::oom, Outcome::sanitizer,
                                Outcome::slow, Outcome::fast}) {
    EXPECT_EQ(second(outcome, queued(1)), kAlone) << name(outcome);
  }
  wire::JobT large = queued(1);
  large.test_case.bytes = std::uint64_t{1} << 30;
  EXPECT_EQ(second(Outcome::mismatch, large), kAlone);
  wire::JobT suspect = queued(1);
  suspect.attempt.slots_lost = 1;
  EXPECT_EQ(second(Outcome::mismatch, suspect), kAlone);
  EXPECT_EQ(second(Outcome::mismatch, queued(1), false), kAlone);
}

// It is slow in all lanes, and would be again.
TEST(Retries, ACaseThatRanOutOfTimeInEveryLaneIsNotTriedAgain) {
  OneSlot run({}, 1);
  run.answer(1, 1, Outcome::timeout);
  EXPECT_EQ(run.count<RecordVerdict>(), 1U);
}

// The other lane needed most of the limit for it: no hang, and as slow the next time.
TEST(Retries, ACaseThatWasSlowInTheOtherLaneAsWellIsNotTriedAgain) {
  Answer answer;
  answer.verdict.outcome = Outcome::timeout;
  Verdict verdict = answer.verdict;
  answer.beside_overdue_us = 13'900'000;
  EXPECT_EQ(Retries().retry(answer, queued(1, 20'000), verdict), kNoRetry);
  EXPECT_NE(Retries().retry(answer, queued(1, 200'000), verdict), kNoRetry);
  answer.beside_overdue_us = 1'900'000;
  EXPECT_NE(Retries().retry(answer, queued(1, 20'000), verdict), kNoRetry);
}

TEST(Retries, MeasurementsThatContradictEachOtherSayNothing) {
  const auto twice = [](Outcome first, Outcome second) {
    Retries retries;
    Answer answer;
    Verdict verdict;
    answer.verdict.outcome = verdict.outcome = first;
    EXPECT_NE(retries.retry(answer, queued(1, 20'000), verdict), kNoRetry);
    answer.verdict.outcome = verdict.outcome = second;
    EXPECT_EQ(retries.retry(answer, queued(1, 20'000), verdict), kNoRetry);
    return verdict;
  };
  EXPECT_EQ(twice(Outcome::slow, Outcome::slow).outcome, Outcome::slow);
  EXPECT_EQ(twice(Outcome::slow, Outcome::same).outcome, Outcome::same);
  const Verdict both = twice(Outcome::slow, Outcome::fast);
  EXPECT_EQ(both.outcome, Outcome::unsure);
  EXPECT_TRUE(both.flags & kFlaky);
  EXPECT_THAT(both.message, ::testing::HasSubstr("first slow"));
}

// The other lane took 2 ms: 10 s show the hang as well as 90 s. After another lane took a second,
// the limit is a hundred seconds.
TEST(Retries, WhatHangsIsTriedAgainUnderALimitThatTellsAsMuch) {
  Answer answer;
  answer.verdict.outcome = Outcome::timeout;
  answer.beside_overdue_us = 2'000;
  EXPECT_EQ(Retries::limit_ms(answer, 90'000), 10'000U);
  EXPECT_EQ(Retries::limit_ms(answer, 1'000), 1'000U);
  answer.beside_overdue_us = 1'000'000;
  EXPECT_EQ(Retries::limit_ms(answer, 900'000), 100'000U);
  Retries retries;
  Verdict verdict = answer.verdict;
  EXPECT_NE(retries.retry(answer, queued(1, 90'000), verdict), kNoRetry);
  answer.verdict.outcome = Outcome::mismatch;
  EXPECT_EQ(Retries::limit_ms(answer, 90'000), 90'000U);
}

}  // namespace
}  // namespace assay
