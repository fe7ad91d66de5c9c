// What runs again after a failure, and how.

#include "engine/retries.h"

#include <gmock/gmock.h>

#include "queued.h"

namespace assay {
namespace {

constexpr std::optional<wire::Isolation> kNoRetry;
constexpr std::optional<wire::Isolation> kAlone = wire::Isolation::own_process;
constexpr std::optional<wire::Isolation> kShared = wire::Isolation::shared_retry;

Judged judged(Outcome outcome, const char* message = "", std::uint64_t limit_ms = 20'000) {
  Judged made{queued(1, limit_ms)};
  made.verdict.outcome = outcome;
  made.verdict.message = message;
  return made;
}

// Retries have neighbours, too.
TEST(Retries, ARetryThatRunsOutOfMemoryRunsAgainAlone) {
  Retries retries;
  Judged first = judged(Outcome::mismatch);
  EXPECT_NE(retries.retry(first), kNoRetry);
  Judged second = judged(Outcome::oom);
  EXPECT_NE(retries.retry(second), kNoRetry);
  EXPECT_EQ(retries.retry(second, true), kNoRetry);
  EXPECT_EQ(second.verdict.outcome, Outcome::oom);
  EXPECT_THAT(second.verdict.message, ::testing::HasSubstr("first mismatch"));
}

// What the retry has and the first attempt had not is memory. Nothing shows the cause of another
// failure: a kernel that fails at random looks like a victim of its lane.
TEST(Retries, OnlyALackOfMemoryIsAKnownCause) {
  for (const Outcome outcome : {Outcome::oom, Outcome::mismatch, Outcome::crash}) {
    Retries retries;
    Judged made = judged(outcome);
    EXPECT_NE(retries.retry(made), kNoRetry);
    made.verdict = {};
    EXPECT_EQ(retries.retry(made, true), kNoRetry);
    EXPECT_EQ(made.verdict.flags, outcome == Outcome::oom ? kContaminated : kFlaky);
  }
}

Judged differs(const char* message) { return judged(Outcome::mismatch, message); }

// A process costs more than most retries, and a neighbour would not do the same to a case twice.
TEST(Retries, TheSameFailureInASharedProcessIsFinal) {
  Judged ran = differs("result: 3 of 4 elements");
  Retries retries;
  EXPECT_EQ(retries.retry(ran), kShared);
  ran.job.attempt.isolation = wire::Isolation::shared_retry;
  EXPECT_EQ(retries.retry(ran), kNoRetry);
  EXPECT_EQ(ran.verdict.message, "result: 3 of 4 elements");
}

TEST(Retries, AnotherEndingInASharedProcessIsDecidedAlone) {
  for (const bool passes : {false, true}) {
    Retries retries;
    Judged first = differs("result: 3 of 4 elements");
    EXPECT_EQ(retries.retry(first), kShared);
    Judged second = passes ? judged(Outcome::pass) : differs("result: 2 of 4 elements");
    second.job.attempt.isolation = wire::Isolation::shared_retry;
    EXPECT_EQ(retries.retry(second), kAlone);
    second.job.attempt.isolation = wire::Isolation::own_process;
    EXPECT_EQ(retries.retry(second), kNoRetry);
    EXPECT_EQ(second.verdict.outcome, passes ? Outcome::pass : Outcome::mismatch);
    EXPECT_EQ(second.verdict.flags, passes ? kFlaky : 0) << "the first attempt counts";
  }
}

TEST(Retries, ACaseThatEndsLanesNeedsMemoryOrLostASlotSharesNoProcess) {
  const auto second = [](Outcome outcome, const wire::JobT& ran, bool share = true) {
    Judged made = judged(outcome);
    made.job = ran;
    made.beside_overdue_us = 1;
    return Retries(share).retry(made);
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
  Judged slow = judged(Outcome::timeout);
  EXPECT_EQ(Retries().retry(slow), kNoRetry);
}

// The other lane needed most of the limit for it: no hang, and as slow the next time.
TEST(Retries, ACaseThatWasSlowInTheOtherLaneAsWellIsNotTriedAgain) {
  const auto retry = [](std::uint64_t beside_us, std::uint64_t limit_ms) {
    Judged late = judged(Outcome::timeout, "", limit_ms);
    late.beside_overdue_us = beside_us;
    return Retries().retry(late);
  };
  EXPECT_EQ(retry(13'900'000, 20'000), kNoRetry);
  EXPECT_NE(retry(13'900'000, 200'000), kNoRetry);
  EXPECT_NE(retry(1'900'000, 20'000), kNoRetry);
}

TEST(Retries, MeasurementsThatContradictEachOtherSayNothing) {
  const auto twice = [](Outcome first, Outcome second) {
    Retries retries;
    Judged made = judged(first);
    EXPECT_NE(retries.retry(made), kNoRetry);
    made.verdict.outcome = second;
    EXPECT_EQ(retries.retry(made), kNoRetry);
    return made.verdict;
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
  const auto limit = [](std::uint64_t beside_us, std::uint64_t limit_ms) {
    Judged late = judged(Outcome::timeout, "", limit_ms);
    late.beside_overdue_us = beside_us;
    return Retries::limit_ms(late);
  };
  EXPECT_EQ(limit(2'000, 90'000), 10'000U);
  EXPECT_EQ(limit(2'000, 1'000), 1'000U);
  EXPECT_EQ(limit(1'000'000, 900'000), 100'000U);
  EXPECT_EQ(Retries::limit_ms(judged(Outcome::mismatch, "", 90'000)), 90'000U);
}

}  // namespace
}  // namespace assay
