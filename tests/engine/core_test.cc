// What the core decides, where a schedule is short enough to be written down.

#include "engine/core.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

namespace assay {
namespace {

constexpr std::uint64_t kPlenty = std::numeric_limits<std::uint64_t>::max();

QueuedCase queued(std::uint64_t id) {
  QueuedCase made;
  made.id = id;
  made.cost = {1, 1, 1000};
  return made;
}

// A core with one slot that holds these cases.
class OneSlot {
 public:
  OneSlot(CoreConfig config, std::uint64_t cases)
      : core_(std::move(config), Queue({kPlenty, 0, 0})) {
    core_.begin();
    std::vector<QueuedCase> claimed;
    for (std::uint64_t id = 1; id <= cases; ++id) claimed.push_back(queued(id));
    core_.claimed(claimed, Supply::none);
    (void)actions();
  }

  Core* operator->() { return &core_; }

  void answer(std::uint64_t id, std::uint32_t attempt, Outcome outcome) {
    Answer answer;
    answer.id = id;
    answer.attempt = attempt;
    answer.verdict.outcome = outcome;
    answer.fresh = attempt > 1;
    core_.slot_answered(0, std::span(&answer, 1));
  }

  std::vector<Action> actions() {
    std::vector<Action> taken;
    while (auto action = core_.next_action()) taken.push_back(std::move(*action));
    return taken;
  }

  template <typename Kind>
  std::size_t count() {
    const std::vector<Action> taken = actions();
    return static_cast<std::size_t>(
        std::count_if(taken.begin(), taken.end(),
                      [](const Action& action) { return std::holds_alternative<Kind>(action); }));
  }

 private:
  Core core_;
};

// Else the second Ctrl-C would be taken for a first one, and a third be needed.
TEST(Core, AFailureAfterCtrlCDoesNotReplaceTheReason) {
  CoreConfig config;
  config.exit_on_error = true;
  OneSlot run(config, 2);
  run.answer(1, 1, Outcome::mismatch);
  run->signal();
  EXPECT_EQ(run->stop_reason(), StopReason::interrupted);
  run.answer(1, 2, Outcome::mismatch);
  EXPECT_EQ(run->stop_reason(), StopReason::interrupted);
  EXPECT_EQ(run.count<RecordVerdict>(), 1U);
  run->signal();
  EXPECT_EQ(run->stop_reason(), StopReason::stop_now);
  EXPECT_EQ(run.count<FinishRun>(), 1U);
}

// What a thousand claimers share is slow for each of them: they come less often, for more.
TEST(Core, ASlowStoreIsVisitedLessOften) {
  CoreConfig config;
  config.lease_ms = 30'000;
  config.claim = 3;
  const auto claimed_at_pace = [&](std::int64_t pace_ms) {
    Core core(config, Queue({kPlenty, 0, 0}));
    core.set_pace(pace_ms);
    core.begin();
    std::size_t bundles = 0;
    while (const auto action = core.next_action()) {
      if (const auto* claim = std::get_if<ClaimCases>(&*action)) bundles = claim->bundles;
    }
    return bundles;
  };
  EXPECT_EQ(claimed_at_pace(1'000), 3U);
  EXPECT_EQ(claimed_at_pace(10'000), 15U);
  OneSlot run(config, 40);
  run->set_pace(10'000);
  std::size_t commits = 0;
  for (std::int64_t ms = 0; ms <= 40'000; ms += 500) {
    run->slot_spoke(0);
    run->tick(ms);
    commits += run.count<CommitStore>();
  }
  EXPECT_EQ(commits, 4U);
}

// It is slow in all of them, and would be again.
TEST(Core, ACaseThatRanOutOfTimeInEveryLaneIsNotTriedAgain) {
  OneSlot run({}, 1);
  run.answer(1, 1, Outcome::timeout);
  EXPECT_EQ(run.count<RecordVerdict>(), 1U);
}

// The other lane took 2 ms: 10 s show as well as 90 that this one hangs. One that took a second
// gets a hundred.
TEST(Core, WhatHangsIsTriedAgainUnderALimitThatTellsAsMuch) {
  Answer answer;
  answer.verdict.outcome = Outcome::timeout;
  answer.beside_overdue_us = 2'000;
  EXPECT_EQ(Retries::limit_ms(answer, 90'000), 10'000U);
  EXPECT_EQ(Retries::limit_ms(answer, 1'000), 1'000U);
  answer.beside_overdue_us = 1'000'000;
  EXPECT_EQ(Retries::limit_ms(answer, 900'000), 100'000U);
  Retries retries;
  Verdict verdict = answer.verdict;
  EXPECT_TRUE(retries.again(answer, verdict));
  answer.verdict.outcome = Outcome::mismatch;
  EXPECT_EQ(Retries::limit_ms(answer, 90'000), 90'000U);
}

TEST(Core, AFailureStopsTheRunWhereThatIsWanted) {
  CoreConfig config;
  config.exit_on_error = true;
  OneSlot run(config, 2);
  run.answer(1, 1, Outcome::mismatch);
  EXPECT_EQ(run->stop_reason(), StopReason::none);  // a first failure is not believed
  run.answer(1, 2, Outcome::mismatch);
  EXPECT_EQ(run->stop_reason(), StopReason::stopped_on_error);
  EXPECT_EQ(run.count<SendStop>(), 1U);
}

TEST(Core, AnAnswerThatComesTwiceIsOne) {
  OneSlot run(CoreConfig(), 2);
  run.answer(1, 1, Outcome::pass);
  run.answer(1, 1, Outcome::mismatch);
  EXPECT_EQ(run.count<RecordVerdict>(), 1U);
}

// A machine that slept for an hour comes back to slots that are as well as before.
TEST(Core, TimeThatWeSleptThroughIsNotCounted) {
  OneSlot run(CoreConfig(), 2);
  run->tick(0);
  run->tick(3'600'000);
  EXPECT_EQ(run.count<KillSlot>(), 0U);
  for (int second = 1; second <= 61; ++second) run->tick(3'600'000 + second * 1000);
  EXPECT_EQ(run.count<KillSlot>(), 1U);
}

// What ails it is no case's fault, and would ail the next slot as well.
TEST(Core, ASlotThatGivesUpEndsTheRunAndBlamesNoCase) {
  OneSlot run(CoreConfig(), 2);
  run->slot_gives_up(0, "gpu:0 cannot be opened");
  EXPECT_EQ(run->stop_reason(), StopReason::trouble);
  ASSERT_TRUE(run->error());
  EXPECT_EQ(run->error()->message, "slot 0: gpu:0 cannot be opened");
  EXPECT_EQ(run.count<RecordVerdict>(), 0U);
}

// It lives, and answers nothing: longer than its case may take, and a slot may need for it.
TEST(Core, ASlotThatOnlyLivesIsReplaced) {
  CoreConfig config;
  config.slack_ms = 5000;
  OneSlot run(config, 1);
  for (int second = 0; second <= 6; ++second) {
    run->slot_spoke(0);
    run->tick(second * 1000);
  }
  EXPECT_EQ(run.count<KillSlot>(), 0U);
  run->tick(7000);
  EXPECT_EQ(run.count<KillSlot>(), 1U);
}

// What one supervisor holds, no other one's slots can take.
TEST(Core, TakesNoMoreThanItsSlotsCanDoInAFewSeconds) {
  CoreConfig config;
  config.lease_ms = 30'000;
  Core core(config, Queue({kPlenty, 0, 0}));
  core.begin();
  std::uint64_t claimed = 0;
  const auto expensive = [&] {
    QueuedCase made = queued(++claimed);
    made.cost.work_us = 5'000'000;
    return made;
  };
  std::size_t sent = 0;
  for (std::int64_t now_ms = 0; now_ms < 3'000; now_ms += 100) {
    while (auto action = core.next_action()) {
      if (std::holds_alternative<SendLease>(*action)) ++sent;
      if (!std::holds_alternative<ClaimCases>(*action)) continue;
      const QueuedCase one = expensive();
      core.claimed(std::span(&one, 1), Supply::more);
    }
    core.tick(now_ms);
  }
  EXPECT_EQ(sent, 1U);
  EXPECT_EQ(claimed, 2U);  // the slot's, and the one that it does next
}

}  // namespace
}  // namespace assay
