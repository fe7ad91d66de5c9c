// A batch among lanes that come and go, with simulated fork servers and lanes.

#include "slot/batch.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "base/clock.h"
#include "device/plugin_abi.h"
#include "simulated_lanes.h"
#include "slot/timing.h"

namespace assay {
namespace {

void answers_all(int, int socket, const wire::ArenaHeader& header) {
  answer_batches(socket, header);
}

// The first lane answers and hangs up before it is asked.
void first_hangs_up(int number, int socket, const wire::ArenaHeader& header) {
  if (number > 0) return answer_batches(socket, header);
  (void)wire::send_frame(socket, answer());
  ::shutdown(socket, SHUT_RDWR);
  ::pause();
}

// The slot reads a lane's answer and its end at once. That lane then dies while its lent results
// are read. The case runs again in new lanes, which the old lane's end does not affect.
TEST(Batch, TheEndOfALaneIsNotThatOfItsSuccessor) {
  const ServerProcess steady(answers_all);
  const ServerProcess hasty(first_hangs_up);
  std::vector<LaneSeat> seats;
  seats.push_back(steady.seat("steady"));
  seats.push_back(hasty.seat("hasty"));
  wire::JobT job;
  job.attempt.limit_ms = 60'000;
  const std::vector<wire::JobT> jobs{job};
  const SlotConfig config;
  bool lent = false;
  std::vector<std::vector<bool>> answered;  // at each call, by seat
  BatchRun batch(config, seats, jobs, [&](std::size_t, std::vector<LaneResult>& endings) -> Status {
    std::vector<bool>& now = answered.emplace_back();
    for (const LaneResult& ending : endings) now.push_back(ending.reply != nullptr);
    if (answered.size() > 1) return {};
    const Lane* lender = endings[1].lender;
    if (lender == nullptr) return {};
    lent = true;
    lender->kill();
    while (lender->alive()) std::this_thread::yield();
    return fail("what it lent is gone");
  });
  const Status ran = batch.run();
  ASSERT_TRUE(ran) << ran.error().message;
  if (!lent) GTEST_SKIP() << "the kernel lets nobody read another process's memory";
  EXPECT_THAT(answered, ::testing::ElementsAre(std::vector{true, true}, std::vector{true, true}));
}

// The cores that a process may run on.
std::vector<int> cores_of(pid_t process) {
  cpu_set_t allowed;
  std::vector<int> cores;
  EXPECT_EQ(::sched_getaffinity(process, sizeof allowed, &allowed), 0);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

TEST(Batch, ALaneStaysOnTheCoreOfItsSeat) {
  const ServerProcess server(answers_all);
  std::vector<LaneSeat> seats;
  seats.push_back(server.seat("pinned"));
  seats.front().core = cores_of(0).back();
  wire::JobT job;
  job.attempt.limit_ms = 60'000;
  const std::vector<wire::JobT> jobs{job};
  const SlotConfig config;
  BatchRun batch(config, seats, jobs,
                 [](std::size_t, std::vector<LaneResult>&) -> Status { return {}; });
  const Status ran = batch.run();
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_THAT(cores_of(seats.front().lane->pid()), ::testing::ElementsAre(cores_of(0).back()));
}

TEST(Timing, SlotsShareTheCores) {
  const std::vector<int> cores{0, 1, 2, 5, 6};
  EXPECT_THAT(cores_of_slot(cores, 0, 1), ::testing::ElementsAreArray(cores));
  EXPECT_THAT(cores_of_slot(cores, 0, 2), ::testing::ElementsAre(0, 2, 6));
  EXPECT_THAT(cores_of_slot(cores, 1, 2), ::testing::ElementsAre(1, 5));
  EXPECT_THAT(cores_of_slot(cores, 6, 7), ::testing::IsEmpty());
}

// How each job of a batch ended, in words: the first lane's ending, then the second's.
std::vector<std::string> run_batch(const std::vector<wire::JobT>& jobs) {
  const ServerProcess under_test(answer_by_text);
  const ServerProcess reference(dies_of_what_none_can);
  std::vector<LaneSeat> seats;
  seats.push_back(under_test.seat("paddle"));
  seats.push_back(reference.seat("torch"));
  const SlotConfig config;
  std::vector<std::string> ended(jobs.size());
  BatchRun batch(
      config, seats, jobs, [&](std::size_t job, std::vector<LaneResult>& endings) -> Status {
        for (const LaneResult& ending : endings) {
          const wire::Status status =
              ending.reply != nullptr ? ending.reply->status() : *ending.blame;
          ended[job] += std::string(ended[job].empty() ? "" : ", ") + wire::EnumNameStatus(status);
          if (!ending.reason.empty()) ended[job] += " (" + ending.reason + ")";
        }
        return {};
      });
  const Status ran = batch.run();
  EXPECT_TRUE(ran) << ran.error().message;
  return ended;
}

wire::JobT job_of(std::uint64_t id, const std::string& text, bool first_alone) {
  wire::JobT job;
  job.test_case.id = id;
  job.test_case.text = text;
  job.attempt.limit_ms = 60'000;
  if (first_alone) job.attempt.start = wire::Start::test_lane_first;
  return job;
}

const char* const kNotAsked = "no_kernel, skipped (not asked: the paddle lane cannot run this)";

// For all trials of a case, and whether or not others of the batch are asked.
TEST(Batch, OthersAreNotAskedForWhatTheFirstLaneCannotRun) {
  EXPECT_THAT(run_batch({job_of(0, "fine", false), job_of(1, "no kernel", true),
                         job_of(1, "no kernel", true), job_of(2, "fine", true),
                         job_of(2, "fine", true), job_of(3, "fine", false)}),
              ::testing::ElementsAre("ok, ok", kNotAsked, kNotAsked, "ok, ok", "ok, ok", "ok, ok"));
  EXPECT_THAT(run_batch({job_of(0, "no kernel", true)}), ::testing::ElementsAre(kNotAsked));
  EXPECT_THAT(run_batch({job_of(0, "no kernel", false)}),
              ::testing::ElementsAre("no_kernel, crashed"));
}

// The case has its verdict, or runs again with more memory.
TEST(Batch, OthersAreNotAskedForWhatTheFirstLaneHasTooLittleMemoryFor) {
  EXPECT_THAT(run_batch({job_of(0, "no memory", true)}),
              ::testing::ElementsAre(
                  "out_of_memory, skipped (not asked: the paddle lane has too little memory)"));
}

// Its successor gets the jobs without an answer, and so do the waiting lanes.
TEST(Batch, TheOthersAreAskedWhereTheFirstLaneDies) {
  EXPECT_THAT(
      run_batch({job_of(0, "fine", true), job_of(1, "dies", true), job_of(1, "dies", true),
                 job_of(2, "no kernel", true), job_of(3, "fine", true)}),
      ::testing::ElementsAre("ok, ok", "crashed, ok",
                             "skipped, skipped (not asked: the paddle lane cannot run this)",
                             kNotAsked, "ok, ok"));
}

// It has run all jobs, as its header says, and has not answered one.
TEST(Batch, AJobWithoutAnAnswerIsBlamedForTheEndOfAnIdleLane) {
  EXPECT_THAT(run_batch({job_of(0, "fine", false), job_of(1, "silent", false)}),
              ::testing::ElementsAre("ok, ok", "crashed, ok"));
}

// Its reply to the trial before is lost, so that trial runs again: it is not skipped without a
// reason.
TEST(Batch, ATrialWhoseReplyWasLostRunsAgain) {
  EXPECT_THAT(run_batch({job_of(1, "reply lost", false), job_of(1, "dies", false),
                         job_of(1, "fine", false)}),
              ::testing::ElementsAre("ok, ok", "crashed, ok", "skipped, ok"));
}

// Tells slow from stuck.
TEST(Batch, TheOthersAreAskedWhereTheFirstLaneHangs) {
  wire::JobT hangs = job_of(0, "hangs", true);
  hangs.attempt.limit_ms = 500;
  EXPECT_THAT(run_batch({hangs}), ::testing::ElementsAre("timed_out, ok"));
}

// The other lane answers at once, so a limit of ten minutes is not awaited.
TEST(Batch, ALaneThatTakesAThousandTimesAsLongAsTheOthersHangs) {
  for (const bool first_alone : {false, true}) {
    wire::JobT hangs = job_of(1, "hangs", first_alone);
    hangs.attempt.limit_ms = 600'000;
    hangs.attempt.hang_from_ms = 300;
    EXPECT_THAT(run_batch({job_of(0, "fine", false), hangs, job_of(2, "fine", false)}),
                ::testing::ElementsAre("ok, ok", "timed_out, ok", "ok, ok"));
  }
}

// A lane that computes the truth evaluates the case many times, and the other lane does not.
TEST(Batch, TheTruthMayTakeLonger) {
  for (const std::uint32_t perturbations : {0U, 12U}) {
    wire::JobT slow = job_of(0, "a second", false);
    slow.attempt.hang_from_ms = 300;
    slow.trial.perturbations = perturbations;
    EXPECT_THAT(run_batch({slow}),
                ::testing::ElementsAre(perturbations == 0 ? "timed_out, ok" : "ok, ok"));
  }
}

// Its time limit passes in the stage that the text names.
void hangs_in_stage(int, int socket, const wire::ArenaHeader& seen) {
  auto& header = const_cast<wire::ArenaHeader&>(seen);
  const auto bytes = wire::receive_frame(socket);
  if (!bytes || !*bytes) return;
  const auto batch = wire::open<wire::Batch>(**bytes);
  header.stage.store(std::stoul((*batch)->jobs()->Get(0)->test_case()->text()->str()));
  header.started_ns.store(monotonic_ns());
  header.running.store(0);
  ::pause();
}

std::array<std::uint64_t, wire::kStagesOfLane> time_of_lane_that_hangs(const std::string& stage) {
  const ServerProcess server(hangs_in_stage);
  std::vector<LaneSeat> seats;
  seats.push_back(server.seat("paddle"));
  wire::JobT job = job_of(0, stage, false);
  job.attempt.limit_ms = 300;
  const std::vector<wire::JobT> jobs{job};
  const SlotConfig config;
  std::array<std::uint64_t, wire::kStagesOfLane> ran_ns{};
  BatchRun batch(config, seats, jobs, [&](std::size_t, std::vector<LaneResult>& endings) -> Status {
    ran_ns = endings.front().ran_ns;
    return {};
  });
  const Status ran = batch.run();
  EXPECT_TRUE(ran) << ran.error().message;
  return ran_ns;
}

TEST(Batch, TheTimeOfALaneThatIsKilledCountsForWhereItWas) {
  constexpr std::uint64_t kLimitNs = 300'000'000;
  EXPECT_THAT(time_of_lane_that_hangs("3"),
              ::testing::ElementsAre(0, 0, 0, ::testing::Ge(kLimitNs)));
  // The case has overwritten it.
  EXPECT_THAT(time_of_lane_that_hangs("99"),
              ::testing::ElementsAre(::testing::Ge(kLimitNs), 0, 0, 0));
}

// Only the test lane tries a job unfilled.
TEST(Batch, TheFirstLaneIsToldWhatItMayHaveNoKernelFor) {
  wire::JobT doubtful = job_of(0, "fine", true);
  doubtful.attempt.start = wire::Start::test_lane_unfilled;
  EXPECT_THAT(run_batch({doubtful, job_of(1, "fine", true)}),
              ::testing::ElementsAre(kNotAsked, "ok, ok"));
}

// A kernel that is missing under other values only tells nothing about the case.
TEST(Batch, TheFirstKindOfValuesSpeaksForAll) {
  EXPECT_THAT(run_batch({job_of(0, "fine", true), job_of(0, "no kernel", true)}),
              ::testing::ElementsAre("ok, ok", "no_kernel, crashed"));
}

// An answer that lends this many bytes.
wire::Bytes lends(std::uint64_t bytes) {
  flatbuffers::FlatBufferBuilder builder;
  wire::LeafBuilder leaf(builder);
  leaf.add_lent(true);
  leaf.add_bytes(bytes);
  const std::vector<flatbuffers::Offset<wire::Leaf>> leaves{leaf.Finish()};
  const auto outputs = builder.CreateVector(leaves);
  wire::ReplyBuilder reply(builder);
  reply.add_version(wire::kMessageVersion);
  reply.add_outputs(outputs);
  builder.Finish(reply.Finish());
  const auto made = wire::bytes_of(builder);
  return {made.begin(), made.end()};
}

// Lends as many bytes as a job's text says, and releases them after a while, which its header
// shows. "ends" lends much and ends instead.
void lends_by_text(int, int socket, const wire::ArenaHeader& seen) {
  auto& header = const_cast<wire::ArenaHeader&>(seen);
  bool ends = false;
  while (true) {
    const auto bytes = wire::receive_frame(socket);
    if (!bytes || !*bytes) return;
    const auto batch = wire::open<wire::Batch>(**bytes);
    if ((*batch)->jobs()->size() == 0) {
      if (ends) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      header.started_ns.store(-1);
      if (!wire::send_frame(socket, answer())) return;
      continue;
    }
    const std::string text = (*batch)->jobs()->Get(0)->test_case()->text()->str();
    ends = text == "ends";
    const std::uint64_t lent = ends ? kKeepOpenBytes : std::stoull(text);
    if (!wire::send_frame(socket, lends(lent))) return;
  }
}

// Whether a batch that lends this much ends only after the lane has released it.
bool lets_go(const std::string& text, bool* keeps_its_lane = nullptr) {
  const ServerProcess server(lends_by_text);
  std::vector<LaneSeat> seats;
  seats.push_back(server.seat("paddle"));
  const std::vector<wire::JobT> jobs{job_of(0, text, false)};
  const SlotConfig config;
  BatchRun batch(config, seats, jobs,
                 [](std::size_t, std::vector<LaneResult>&) -> Status { return {}; });
  const Status ran = batch.run();
  EXPECT_TRUE(ran) << ran.error().message;
  if (keeps_its_lane != nullptr) *keeps_its_lane = seats.front().lane.has_value();
  return seats.front().arena->header().started_ns.load() == -1;
}

bool may_read_others() {
  const ServerProcess server(answers_all);
  LaneSeat seat = server.seat("steady");
  const auto lane = seat.source.spawn(nullptr);
  return lane && lane->can_lend();
}

// The slot hears of the lane before it has opened its channel. Until then its memory cannot be
// read.
void opens_late(int, int socket, const wire::ArenaHeader& seen) {
  auto& header = const_cast<wire::ArenaHeader&>(seen);
  const std::uint64_t address = header.address.exchange(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  header.address.store(address);
  lends_by_text(0, socket, seen);
}

TEST(Batch, WhatIsLargeIsLentByALaneThatHasJustBeenForkedAsWell) {
  if (!may_read_others()) GTEST_SKIP() << "the kernel lets nobody read another's memory";
  for (const bool large : {true, false}) {
    const ServerProcess server(opens_late);
    std::vector<LaneSeat> seats;
    seats.push_back(server.seat("paddle"));
    wire::JobT job = job_of(0, "1048576", false);
    job.test_case.bytes = large ? kKeepOpenBytes : kKeepOpenBytes - 1;
    const std::vector<wire::JobT> jobs{job};
    const SlotConfig config;
    bool lent = false;
    BatchRun batch(config, seats, jobs,
                   [&](std::size_t, std::vector<LaneResult>& endings) -> Status {
                     lent = endings.front().lender != nullptr;
                     return {};
                   });
    const Status ran = batch.run();
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(lent, large);
  }
}

TEST(Batch, WhatIsLentIsTakenBackBeforeTheCaseCountsAsDone) {
  if (!may_read_others()) GTEST_SKIP() << "the kernel lets nobody read another's memory";
  bool keeps_its_lane = false;
  EXPECT_TRUE(lets_go(std::to_string(kKeepOpenBytes), &keeps_its_lane));
  EXPECT_TRUE(keeps_its_lane);
  // The slot does not ask for small lent results.
  EXPECT_FALSE(lets_go(std::to_string(kKeepOpenBytes - 1), &keeps_its_lane));
  EXPECT_TRUE(keeps_its_lane);
  // A lane that is gone holds nothing, and the case is done.
  EXPECT_FALSE(lets_go("ends", &keeps_its_lane));
  EXPECT_FALSE(keeps_its_lane);
}

}  // namespace
}  // namespace assay
