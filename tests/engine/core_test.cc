// Decisions of the core, in schedules short enough to be written down.

#include "engine/core.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "queued.h"

namespace assay {
namespace {

constexpr std::uint64_t kPlenty = std::numeric_limits<std::uint64_t>::max();

// A core with one slot that holds these cases.
class OneSlot {
 public:
  OneSlot(CoreConfig config, std::uint64_t cases)
      : core_(std::move(config), Queue({kPlenty, 0, 0})) {
    core_.begin();
    for (std::uint64_t id = 1; id <= cases; ++id) core_.add(queued(id));
    core_.claimed(Supply::none);
    (void)actions();
  }

  Core* operator->() { return &core_; }

  void answer(std::uint64_t id, std::uint32_t attempt, Outcome outcome) {
    Judged answer{queued(id)};
    answer.job.attempt.number = attempt;
    answer.verdict.outcome = outcome;
    core_.slot_answered(0, {answer});
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

// Otherwise a third Ctrl-C would be needed.
TEST(Core, AFailureAfterCtrlCDoesNotReplaceTheReason) {
  CoreConfig config;
  config.exit_on_error = true;
  OneSlot run(config, 2);
  run.answer(1, 1, Outcome::mismatch);
  run->signal();
  EXPECT_EQ(run->stop_reason(), StopReason::interrupted);
  run.answer(1, 2, Outcome::mismatch);
  EXPECT_EQ(run->stop_reason(), StopReason::interrupted);
  EXPECT_EQ(run.count<Judged>(), 1U);
  run->signal();
  EXPECT_EQ(run->stop_reason(), StopReason::stop_now);
  EXPECT_EQ(run.count<FinishRun>(), 1U);
}

// Should the run end before the retry, the next one knows of it.
TEST(Core, AFirstFailureIsNotedBeforeTheRetry) {
  OneSlot run(CoreConfig{}, 2);
  run.answer(1, 1, Outcome::mismatch);
  run.answer(2, 1, Outcome::pass);
  std::vector<std::string> noted;
  for (const Action& action : run.actions()) {
    if (const auto* failed = std::get_if<NoteFailure>(&action)) noted.push_back(failed->how);
  }
  EXPECT_THAT(noted, ::testing::ElementsAre("mismatch ()"));
  run.answer(1, 2, Outcome::mismatch);
  EXPECT_EQ(run.count<NoteFailure>(), 0U);
}

// A store shared by a thousand claimers is slow: they come less often, for more.
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

TEST(Core, ACaseThatRanOutOfAllMemoryDoesNotRunAgain) {
  CoreConfig config;
  config.slots = 2;
  for (const std::uint64_t beside : {0, 1}) {
    Core core(config, Queue({100, 0, 0}));
    core.begin();
    wire::JobT large = queued(1);
    large.test_case.bytes = 101;
    core.add(large);
    for (std::uint64_t id = 2; id < 2 + beside; ++id) core.add(queued(id));
    core.claimed(Supply::none);
    std::size_t slot_of_first = 0;
    std::size_t verdicts = 0;
    const auto take_actions = [&] {
      while (const auto action = core.next_action()) {
        verdicts += std::holds_alternative<Judged>(*action) ? 1 : 0;
        const auto* lease = std::get_if<SendLease>(&*action);
        if (lease == nullptr) continue;
        for (const wire::JobT& held : lease->cases) {
          if (held.test_case.id == 1) slot_of_first = lease->slot;
        }
      }
    };
    take_actions();
    Judged answer{queued(1)};
    answer.verdict.outcome = Outcome::oom;
    core.slot_answered(slot_of_first, {answer});
    take_actions();
    EXPECT_EQ(verdicts, beside == 0 ? 1U : 0U);
  }
}

// On a card of 80 GiB: 41,943 GiB of inputs get their verdict before any slot starts.
TEST(Core, WhatNoCardCanHoldIsOutOfMemoryByArithmetic) {
  CoreConfig config;
  config.most_bytes = std::uint64_t{80} << 30;
  Core core(config, Queue({kPlenty, 0, 0}));
  core.begin();
  while (core.next_action()) continue;
  wire::JobT huge = queued(1);
  huge.test_case.text = R"(paddle.abs(Tensor([41943, 1073741824], "int8")))";
  wire::JobT large = queued(2);  // the estimate has results and gradients, too
  large.test_case.text = R"(paddle.abs(Tensor([20, 1073741824], "float16")))";
  huge.test_case.bytes = large.test_case.bytes = std::uint64_t{240} << 30;
  core.add(huge);
  core.add(large);
  core.claimed(Supply::none);
  std::vector<std::uint64_t> recorded;
  std::vector<std::uint64_t> leased;
  while (const auto action = core.next_action()) {
    if (const auto* verdict = std::get_if<Judged>(&*action)) {
      recorded.push_back(verdict->job.test_case.id);
      EXPECT_EQ(verdict->verdict.outcome, Outcome::oom);
      EXPECT_THAT(verdict->verdict.message, testing::HasSubstr("41943.0 GiB"));
    }
    const auto* lease = std::get_if<SendLease>(&*action);
    for (const wire::JobT& held : lease == nullptr ? std::vector<wire::JobT>() : lease->cases) {
      leased.push_back(held.test_case.id);
    }
  }
  EXPECT_THAT(recorded, testing::ElementsAre(1));
  EXPECT_THAT(leased, testing::ElementsAre(2));
}

// It says what it lacked: with all of the GPU it would run out of memory, too, or it would not.
TEST(Core, WhatLacksMoreThanTheGpuHasIsNotRunAgain) {
  for (const std::uint64_t lacked : {900U, 1100U}) {
    CoreConfig config;
    config.most_bytes = 1000;
    Core core(config, Queue({kPlenty, 1000, 1}));
    core.begin();
    core.add(queued(1));
    core.claimed(Supply::none);
    std::size_t verdicts = 0;
    const auto take_actions = [&] {
      while (const auto action = core.next_action()) {
        verdicts += std::holds_alternative<Judged>(*action) ? 1 : 0;
      }
    };
    take_actions();
    Judged answer{queued(1)};
    answer.verdict.outcome = Outcome::oom;
    answer.device_bytes = lacked;
    core.slot_answered(0, {answer});
    take_actions();
    EXPECT_EQ(verdicts, lacked > config.most_bytes ? 1U : 0U);
  }
}

// On a GPU of 1000 MiB: what an answer says of its memory decides what runs beside the next case.
TEST(Core, MemoryIsLearntFromAnswers) {
  for (const bool took_less : {false, true}) {
    CoreConfig config;
    config.slots = 2;
    Core core(config, Queue({kPlenty, std::uint64_t{1000} << 20, 1}));
    core.begin();
    for (std::uint64_t id = 1; id <= 3; ++id) {
      wire::JobT large = queued(id);
      large.test_case.text = R"(paddle.abs(Tensor([7], "float16")))";
      large.test_case.bytes = std::uint64_t{900} << 20;
      core.add(std::move(large));
    }
    core.claimed(Supply::none);
    std::map<std::uint64_t, std::size_t> leased;  // case → slot
    const auto take_actions = [&] {
      while (const auto action = core.next_action()) {
        const auto* lease = std::get_if<SendLease>(&*action);
        if (lease != nullptr) leased[lease->cases.front().test_case.id] = lease->slot;
      }
    };
    take_actions();
    ASSERT_EQ(leased.size(), 1U);
    Judged answer{queued(leased.begin()->first)};
    answer.device_bytes = took_less ? std::uint64_t{300} << 20 : 0;
    core.slot_answered(leased.begin()->second, {answer});
    take_actions();
    EXPECT_EQ(leased.size(), took_less ? 3U : 2U);
  }
}

// Two slots, three cases that hang. No retry waits while a slot is idle, and none goes to a slot
// that has one.
TEST(Core, WhatHangsIsTriedAgainBesideEachOther) {
  CoreConfig config;
  config.slots = 2;
  Core core(config, Queue({kPlenty, 0, 0}));
  core.begin();
  for (std::uint64_t id = 1; id <= 3; ++id) core.add(queued(id, 20'000));
  core.claimed(Supply::none);
  using Leased = std::pair<std::size_t, std::uint64_t>;  // slot, case
  const auto leases = [&] {
    std::vector<Leased> given;
    while (const auto action = core.next_action()) {
      const auto* lease = std::get_if<SendLease>(&*action);
      if (lease == nullptr) continue;
      for (const wire::JobT& leased : lease->cases)
        given.emplace_back(lease->slot, leased.test_case.id);
    }
    return given;
  };
  const auto hangs = [&](std::size_t slot, std::uint64_t id, std::uint32_t attempt) {
    Judged answer{queued(id)};
    answer.job.attempt.number = attempt;
    answer.verdict.outcome = Outcome::timeout;
    answer.beside_overdue_us = 1'000;
    core.slot_answered(slot, {answer});
    return leases();
  };
  EXPECT_THAT(leases(), ::testing::ElementsAre(Leased(0, 1), Leased(0, 2), Leased(1, 3)));
  EXPECT_THAT(hangs(0, 1, 1), ::testing::ElementsAre(Leased(0, 1)));  // behind case 2
  EXPECT_THAT(hangs(1, 3, 1), ::testing::ElementsAre(Leased(1, 3)));
  EXPECT_THAT(hangs(0, 2, 1), ::testing::IsEmpty());
  EXPECT_THAT(hangs(1, 3, 2), ::testing::ElementsAre(Leased(1, 2)));
}

TEST(Core, AFailureStopsTheRunWhereThatIsWanted) {
  CoreConfig config;
  config.exit_on_error = true;
  OneSlot run(config, 2);
  run.answer(1, 1, Outcome::mismatch);
  EXPECT_EQ(run->stop_reason(), StopReason::none);  // a first failure is not final
  run.answer(1, 2, Outcome::mismatch);
  EXPECT_EQ(run->stop_reason(), StopReason::stopped_on_error);
  EXPECT_EQ(run.count<SendStop>(), 1U);
}

TEST(Core, SoManyFailuresStopTheRun) {
  CoreConfig config;
  config.most_failures = 2;
  OneSlot run(config, 3);
  run.answer(1, 1, Outcome::mismatch);
  run.answer(1, 2, Outcome::mismatch);
  EXPECT_EQ(run->stop_reason(), StopReason::none);
  run.answer(2, 1, Outcome::mismatch);
  run.answer(2, 2, Outcome::mismatch);
  EXPECT_EQ(run->stop_reason(), StopReason::stopped_on_error);
}

TEST(Core, AnAnswerThatComesTwiceIsOne) {
  OneSlot run(CoreConfig(), 2);
  run.answer(1, 1, Outcome::pass);
  run.answer(1, 1, Outcome::mismatch);
  EXPECT_EQ(run.count<Judged>(), 1U);
}

// After a machine slept for an hour, its slots are as well as before.
TEST(Core, TimeThatWeSleptThroughIsNotCounted) {
  OneSlot run(CoreConfig(), 2);
  run->tick(0);
  run->tick(3'600'000);
  EXPECT_EQ(run.count<KillSlot>(), 0U);
  for (int second = 1; second <= 61; ++second) run->tick(3'600'000 + second * 1000);
  EXPECT_EQ(run.count<KillSlot>(), 1U);
}

// No case is to blame, and the next slot would fail too.
TEST(Core, ASlotThatGivesUpEndsTheRunAndBlamesNoCase) {
  OneSlot run(CoreConfig(), 2);
  run->slot_gives_up(0, "gpu:0 cannot be opened");
  EXPECT_EQ(run->stop_reason(), StopReason::trouble);
  ASSERT_TRUE(run->error());
  EXPECT_EQ(run->error()->message, "slot 0: gpu:0 cannot be opened");
  EXPECT_EQ(run.count<Judged>(), 0U);
}

// It sends signs of life but no answers, for longer than its case and the slot's own work may take.
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

// The CUDA driver creates contexts serially: if all slots started at once, all would be late.
TEST(Core, SlotsBeginAFewAtATime) {
  CoreConfig config;
  config.slots = 5;
  config.begin_at_once = 2;
  Core core(config, Queue({kPlenty, 0, 0}));
  std::vector<std::size_t> started;
  std::map<std::size_t, std::uint64_t> first;  // case of each slot
  const auto act = [&] {
    while (auto action = core.next_action()) {
      if (const auto* start = std::get_if<StartSlot>(&*action)) started.push_back(start->slot);
      if (const auto* lease = std::get_if<SendLease>(&*action)) {
        first.try_emplace(lease->slot, lease->cases.front().test_case.id);
      }
    }
  };
  const auto answer = [&](std::size_t slot) {
    Judged first_answer{queued(first.at(slot))};
    first_answer.verdict.outcome = Outcome::pass;
    core.slot_answered(slot, {first_answer});
    act();
  };
  core.begin();
  for (std::uint64_t id = 1; id <= 1000; ++id) core.add(queued(id));
  core.claimed(Supply::none);
  act();
  EXPECT_THAT(started, ::testing::ElementsAre(0, 1));
  answer(1);
  EXPECT_THAT(started, ::testing::ElementsAre(0, 1, 2));
  answer(1);  // it had started already
  EXPECT_THAT(started, ::testing::ElementsAre(0, 1, 2));
  // This slot is late because of its case, not because of its start.
  for (std::int64_t ms = 0; ms <= 1'900; ms += 100) core.tick(ms);
  act();
  EXPECT_THAT(started, ::testing::ElementsAre(0, 1, 2));
  core.tick(2'000);
  act();
  EXPECT_THAT(started, ::testing::ElementsAre(0, 1, 2, 3, 4));
}

}  // namespace
}  // namespace assay
