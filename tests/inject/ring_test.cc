// The ring of the last seconds, and the reasons to write it.

#include "inject/ring.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "inject/recorder.h"
#include "inject/triggers.h"
#include "timeline/analysis/hang.h"
#include "timeline/load.h"

namespace assay::inject {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr Nanos kSecond = 1'000'000'000;

TEST(Ring, KeepsTheLastAndForgetsTheRest) {
  BlockRing ring(10 * kSecond, 1000);
  for (int i = 0; i < 30; ++i) ring.push(std::string(1, static_cast<char>('a' + i)), i * kSecond);
  EXPECT_EQ(ring.take(), "tuvwxyz{|}~");  // of seconds 19 to 29
  EXPECT_EQ(ring.take(), "");
}

TEST(Ring, IsBounded) {
  BlockRing ring(60 * kSecond, 1000);
  for (int i = 0; i < 100; ++i) {
    ring.push(std::string(300, static_cast<char>('a' + i % 26)), kSecond);
    EXPECT_LE(ring.bytes(), 1000U);
  }
  EXPECT_EQ(ring.take().size(), 900U);
  ring.push(std::string(1001, 'x'), kSecond);
  EXPECT_EQ(ring.bytes(), 0U);
}

TEST(SlowStep, IsOneThatTakesLongerThanTheMedian) {
  SlowSteps steps(1.5);
  EXPECT_EQ(steps.ended(0, 100 * kSecond),
            "");  // the first steps are slow, and there is nothing to compare them with
  for (int step = 1; step < 10; ++step) EXPECT_EQ(steps.ended(step, kSecond), "");
  EXPECT_EQ(steps.ended(10, 3 * kSecond / 2), "");
  EXPECT_THAT(steps.ended(11, 2 * kSecond), HasSubstr("step 11 took 2.000 s, the median is 1.000"));
}

TEST(Hang, IsAKernelThatDoesNotEnd) {
  HangWatch watch(30 * kSecond);
  EXPECT_EQ(watch.stuck(1000 * kSecond), "");  // nothing was launched
  watch.kernel_launched(1);
  watch.ended(1, 1000 * kSecond);
  EXPECT_EQ(watch.stuck(2000 * kSecond), "");  // a program that computes on the CPU for a long time
  watch.kernel_launched(2);
  EXPECT_EQ(watch.stuck(2001 * kSecond), "");
  EXPECT_EQ(watch.stuck(2029 * kSecond), "");
  EXPECT_THAT(watch.stuck(2030 * kSecond), HasSubstr("no kernel has ended for 30 s"));
  EXPECT_EQ(watch.stuck(2032 * kSecond), "");  // reported already
  watch.ended(2, 2033 * kSecond);
  EXPECT_EQ(watch.stuck(3000 * kSecond), "");
}

TEST(Hang, IsACollectiveThatWaitsWhileOthersGoOn) {
  HangWatch watch(30 * kSecond);
  watch.collective_launched(5, "ncclDevKernel_AllReduce", 100 * kSecond);
  watch.collective_launched(7, "ncclDevKernel_AllGather", 100 * kSecond);
  watch.kernel_launched(9);
  watch.ended(9, 129 * kSecond);
  watch.ended(5, 129 * kSecond);
  EXPECT_EQ(watch.stuck(129 * kSecond), "");
  EXPECT_THAT(watch.stuck(130 * kSecond),
              HasSubstr("AllGather, collective number 2, was launched"));
  EXPECT_EQ(watch.collectives().size(), 2U);
}

TEST(Hang, IsAStepOfWhichNothingIsRecorded) {
  HangWatch watch(30 * kSecond);
  EXPECT_EQ(watch.stuck_in_step(7, 29 * kSecond), "");
  EXPECT_THAT(watch.stuck_in_step(7, 30 * kSecond),
              HasSubstr("step 7, whose work is not recorded"));
  EXPECT_EQ(watch.stuck_in_step(7, 31 * kSecond), "");  // reported already
  EXPECT_NE(watch.stuck_in_step(8, 30 * kSecond), "");
}

class Ringing : public testing::Test {
 protected:
  Ringing() {
    std::string name = (fs::temp_directory_path() / "assay-ring-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Ringing() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  RecorderOptions options(std::int32_t rank = timeline::kNone) const {
    RecorderOptions result;
    result.folder = folder_;
    result.ring = 60 * kSecond;
    result.rank = rank;
    result.world_size = 3;
    return result;
  }
  // Waits until a dump has so many complete recordings.
  std::vector<fs::path> dumped(const std::string& dump, std::size_t files) const {
    for (int tries = 0; tries < 600; ++tries) {
      std::vector<fs::path> paths;
      std::error_code ignored;
      for (const auto& entry : fs::directory_iterator(folder_ / dump, ignored)) {
        if (entry.path().extension() == ".assayrec") paths.push_back(entry.path());
      }
      if (paths.size() >= files) {
        // After its head, a file gets its blocks in one write.
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        return paths;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return {};
  }
  fs::path folder_;
};

void job(Recorder& recorder, std::int32_t number) {
  recorder.begin_range("job", number);
  recorder.end_range();
  recorder.flush();
}

TEST_F(Ringing, WritesNothingUntilItIsAsked) {
  {
    Recorder recorder(options());
    for (int i = 0; i < 100; ++i) job(recorder, i);
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Ringing, AllProcessesWriteWhenOneAsks) {
  Recorder first(options(0));
  Recorder second(options(1));
  job(first, 1);
  job(second, 2);
  ASSERT_TRUE(DumpFolders(folder_).ask("somebody wants to know"));
  const auto paths = dumped("dump-1", 2);
  ASSERT_EQ(paths.size(), 2U);
  const auto trace = timeline::load_traces(paths, {});
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->sources.size(), 2U);
  EXPECT_EQ(trace->sources[0].rank + trace->sources[1].rank, 1);
  for (const auto& file : trace->files) {
    EXPECT_THAT(file.notes, testing::Contains("somebody wants to know"));
    EXPECT_EQ(file.kept, 1U);
  }
  // Written blocks are not written again.
  job(first, 3);
  job(second, 4);
  ASSERT_TRUE(DumpFolders(folder_).ask("again"));
  const auto later = dumped("dump-2", 2);
  const auto again = timeline::load_traces(later, {});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->slices.size(), 2U);
}

TEST_F(Ringing, ASlowStepIsWrittenByAll) {
  RecorderOptions slow = options(0);
  slow.slow = 50;
  Recorder recorder(slow);
  Recorder other(options(1));
  job(other, 0);
  for (int step = 0; step < 8; ++step) {
    recorder.begin_step(step);
    std::this_thread::sleep_for(std::chrono::milliseconds(step == 7 ? 1500 : 2));
  }
  recorder.begin_step(8);
  recorder.flush();
  EXPECT_EQ(dumped("dump-1", 2).size(), 2U);
  const auto why = read_file(folder_ / "dump-1/why.txt");
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, HasSubstr("rank 0: slow step: step 7 took"));
}

// Three ranks: rank 1 does not arrive at the second collective, and rank 2 records nothing.
TEST_F(Ringing, AHangNamesTheRankThatHasNotCome) {
  RecorderOptions watching = options(0);
  watching.hang = kSecond;
  Recorder waits(watching);
  watching.rank = 1;
  watching.hang = 3600 * kSecond;
  Recorder late(watching);
  const auto kernel = [](Recorder& recorder, std::uint64_t correlation) {
    recorder.add({.name = "ncclDevKernel_AllReduce",
                  .kind = timeline::Kind::communication,
                  .gpu = true,
                  .device = 0,
                  .begin = 1000,
                  .end = 2000,
                  .id = correlation});
    recorder.flush();
  };
  // The record of the first is in a buffer that the second keeps open, as observed on an H200.
  for (Recorder* recorder : {&waits, &late}) {
    recorder->collective_launched(1, "ncclDevKernel_AllReduce");
    job(*recorder, 0);
    recorder->on_deliver([=, given = false](bool all) mutable {
      if (all && !std::exchange(given, true)) kernel(*recorder, 1);
    });
  }
  waits.collective_launched(2, "ncclDevKernel_AllReduce");
  const auto paths = dumped("dump-1", 2);
  ASSERT_EQ(paths.size(), 2U);
  const auto trace = timeline::load_traces(paths, {});
  ASSERT_TRUE(trace) << trace.error().message;
  const auto hangs = timeline::find_hangs(*trace);
  ASSERT_EQ(hangs.size(), 1U);
  EXPECT_EQ(hangs[0].sequence, 2);
  EXPECT_THAT(hangs[0].waiting, testing::ElementsAre(0));
  EXPECT_THAT(hangs[0].not_called, testing::ElementsAre(1));
  EXPECT_THAT(hangs[0].no_dump, testing::ElementsAre(2));
}

// Rank 0 hangs in a step that is not recorded; rank 1 is behind it.
TEST_F(Ringing, AHangInAStepThatIsNotRecordedIsNoticed) {
  RecorderOptions watching = options(0);
  watching.hang = kSecond;
  watching.every = 2;
  Recorder waits(watching);
  watching.rank = 1;
  watching.hang = 3600 * kSecond;
  Recorder late(watching);
  for (Recorder* recorder : {&waits, &late}) {
    recorder->begin_step(0);
    job(*recorder, 0);
  }
  waits.begin_step(1);
  const auto paths = dumped("dump-1", 2);
  ASSERT_EQ(paths.size(), 2U);
  const auto why = read_file(folder_ / "dump-1/why.txt");
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, HasSubstr("rank 0: hang: step 1, whose work is not recorded"));
  const auto trace = timeline::load_traces(paths, {});
  ASSERT_TRUE(trace) << trace.error().message;
  for (std::size_t file = 0; file < trace->files.size(); ++file) {
    const char* const where = trace->sources[file].rank == 0 ? "in step 1 for" : "in step 0 for";
    EXPECT_THAT(trace->files[file].notes, testing::Contains(testing::StartsWith(where)));
  }
}

TEST_F(Ringing, EveryNthStepIsRecorded) {
  RecorderOptions some = options();
  some.ring = 0;
  some.every = 3;
  {
    Recorder recorder(some);
    for (int step = 0; step < 7; ++step) {
      recorder.begin_step(step);
      job(recorder, step);
    }
  }
  const auto trace = timeline::load_traces(std::vector<fs::path>{folder_}, {});
  ASSERT_TRUE(trace) << trace.error().message;
  std::vector<std::int64_t> steps;
  for (const auto& step : trace->steps) steps.push_back(step.number);
  EXPECT_THAT(steps, testing::ElementsAre(0, 3, 6));
}

}  // namespace
}  // namespace assay::inject
