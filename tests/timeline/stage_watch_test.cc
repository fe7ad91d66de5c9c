// Files as `assay timeline record --watch` writes them, and which ranks are named.

#include "timeline/analysis/stage_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include <fstream>
#include <functional>
#include <memory>
#include <random>

#include "support.h"

namespace assay::timeline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The rank's own work in a step, in milliseconds.
using Work = std::function<double(int rank, int step)>;

class StageWatchTest : public testing::Test {
 protected:
  std::ofstream open(int rank) {
    return std::ofstream(folder_ / fmt::format("rank{}.stages", rank), std::ios::app);
  }
  // Steps of ranks that wait for the slowest one. Half of the work is backward.
  void write(int ranks, int first, int end, const Work& work, int every = 1) {
    for (int rank = 0; rank < ranks; ++rank) {
      std::ofstream file = open(rank);
      if (first == 0) file << fmt::format("assay-stages 2 {{\"rank\": {}}}\n", rank);
      for (int step = first; step < end; ++step) {
        double longest = 0;
        for (int other = 0; other < ranks; ++other) longest = std::max(longest, work(other, step));
        const double own = work(rank, step);
        if (step % every != 0) continue;
        file << fmt::format("{} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}\n", step,
                            0.1 * own * 1000, 0.3 * own * 1000, 0.5 * own * 1000,
                            (longest - own + 2) * 1000, 0.1 * own * 1000, 0.1 * own * 1000);
      }
    }
  }
  // Each rank has the same line in all steps.
  void write_lines(const std::vector<std::string>& lines, int first, int end) {
    for (std::size_t rank = 0; rank < lines.size(); ++rank) {
      std::ofstream file = open(static_cast<int>(rank));
      if (first == 0) file << fmt::format("assay-stages 2 {{\"rank\": {}}}\n", rank);
      for (int step = first; step < end; ++step) file << step << ' ' << lines[rank] << '\n';
    }
  }
  std::vector<std::string> look() {
    auto lines = watch_.look();
    EXPECT_TRUE(lines) << lines.error().message;
    return lines ? *lines : std::vector<std::string>();
  }

  test::TempFolder temporary_;
  std::filesystem::path folder_ = temporary_.path();
  StageWatch watch_{folder_};
};

// The work of a rank with a spread, the same in each call.
Work noisy(double work, double spread) {
  constexpr std::size_t kDraws = 4001;
  auto draws = std::make_shared<std::vector<double>>();
  std::mt19937 random(65);
  std::normal_distribution<double> distribution(work, spread > 0 ? spread : 1e-9);
  for (std::size_t i = 0; i < kDraws; ++i) draws->push_back(distribution(random));
  return [draws](int rank, int step) {
    return (*draws)[static_cast<std::size_t>(step + 1009 * rank) % kDraws];
  };
}

TEST_F(StageWatchTest, NobodyIsNamedInBalancedRuns) {
  for (const int ranks : {2, 3, 8}) {
    for (const double spread : {0.0, 1.0, 10.0, 25.0}) {
      std::filesystem::remove_all(folder_);
      std::filesystem::create_directories(folder_);
      write(ranks, 0, 2000, noisy(100, spread));
      StageWatch watch(folder_);
      EXPECT_THAT(*watch.look(), IsEmpty()) << ranks << " ranks, spread " << spread;
    }
  }
}

TEST_F(StageWatchTest, ASlowRankIsNamedWithItsStageAndTimes) {
  const Work work = [usual = noisy(150, 2)](int rank, int step) {
    return usual(rank, step) + (rank == 3 && step >= 100 ? 60 : 0);
  };
  write(4, 0, 100, work);
  EXPECT_THAT(look(), IsEmpty());
  write(4, 100, 200, work);
  EXPECT_THAT(look(), ElementsAre(testing::AllOf(
                          HasSubstr("rank 3 is slow since step 100: its own work takes 2"),
                          HasSubstr("most of the excess in backward; the others take 1"),
                          HasSubstr(" ms and wait 6"))));
  write(4, 200, 300, work);
  EXPECT_THAT(look(), IsEmpty()) << "named again";
}

TEST_F(StageWatchTest, ASlownessThatEndsIsToldAsEnded) {
  write(2, 0, 400, [](int rank, int step) {
    return 100.0 + (rank == 1 && step >= 100 && step < 200 ? 20 : 0);
  });
  EXPECT_THAT(look(), ElementsAre(HasSubstr("rank 1 is slow since step 100"),
                                  HasSubstr("rank 1 is no longer slow (it was since step 100)")));
}

TEST_F(StageWatchTest, SingleSlowStepsNameNobody) {
  write(4, 0, 400,
        [](int rank, int step) { return 100.0 + (rank == 1 && step % 40 < 3 ? 300 : 0); });
  EXPECT_THAT(look(), IsEmpty());
}

// Of equal hosts one is the last: the other's GPU always has work, and waits.
TEST_F(StageWatchTest, OfEqualHostsNobodyIsNamed) {
  write_lines({"100 45900 0 0 0 100 host", "0 12000 0 34000 0 90"}, 0, 100);
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_EQ(watch_.malformed(), 0);
  EXPECT_THAT(watch_.table(), HasSubstr("in 90 of 90 steps a GPU waited for its host"));
}

TEST_F(StageWatchTest, ASlowLoaderIsNamedWhereTheGpuWaitsForIt) {
  write_lines({"100 8000 0 100 0 100 host", "100 8000 0 100 0 100 host"}, 0, 50);
  write_lines({"100 8000 0 90100 0 100", "90000 8000 0 200 0 90000 host"}, 50, 150);
  EXPECT_THAT(look(),
              ElementsAre(testing::AllOf(
                  HasSubstr("rank 1 is slow since step 50: its own work takes 98.0 ms"),
                  HasSubstr("excess in data loading; the others take 8.1 ms and wait 90.1"))));
  write_lines({"100 8000 0 100 0 100 host", "100 8000 0 100 0 100 host"}, 150, 170);
  EXPECT_THAT(look(), ElementsAre(HasSubstr("rank 1 is no longer slow")));
}

// Loaders bind all ranks. One waits longer for its loader because its host is faster.
TEST_F(StageWatchTest, WaitingLongerForALoaderIsNotSlowIfNobodyWaitsForIt) {
  write_lines({"15000 5000 0 100 0 15000 host", "10000 10000 0 100 0 10000 host"}, 0, 100);
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(StageWatchTest, ALoaderThatIsSlowOnceInAnEpochNamesNobody) {
  for (int step = 0; step < 2000; step += 25) {
    write_lines({"0 8000 0 90000 0 100", "90000 8000 0 200 0 90000 host"}, step, step + 1);
    write_lines({"100 8000 0 100 0 100 host", "100 8000 0 100 0 100 host"}, step + 1, step + 25);
  }
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(StageWatchTest, WarmingUpNamesNobody) {
  write(2, 0, 100, [](int rank, int step) { return rank == 1 && step < 13 ? 400.0 : 100.0; });
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(StageWatchTest, RanksThatMeasureOtherStepsAreComparedInTheCommonOnes) {
  const Work work = [](int rank, int) { return rank == 0 ? 130.0 : 100.0; };
  write(2, 0, 80, work);
  std::filesystem::remove(folder_ / "rank1.stages");
  std::ofstream one = open(1);
  one << "assay-stages 2 {\"rank\": 1}\n";
  for (int step = 0; step < 80; step += 2) one << step << " 10000 30000 50000 32000 10000 10000\n";
  one.close();
  EXPECT_THAT(look(), ElementsAre(HasSubstr("rank 0 is slow since step 10")));
}

TEST_F(StageWatchTest, TheTableIsOfAllStepsAndNotOfThoseThatWarmUp) {
  std::ofstream file = open(0);
  file << "assay-stages 2 {\"rank\": 0}\n";
  file << "1 0 9000000 0 0 0 0\n2 0 50000 0 0 0 0\n102 0 10000 20000 5000 0 0\n";
  file.close();
  look();
  // One step of 50 ms and 100 of 30 ms of its own.
  EXPECT_THAT(watch_.table(), HasSubstr("\n0             3        30.2 "));
}

TEST_F(StageWatchTest, AFileThatEndsWithinALineIsRead) {
  const Work work = [](int rank, int) { return rank == 1 ? 130.0 : 100.0; };
  write(2, 0, 40, work);
  open(0) << "40 10000 300";
  EXPECT_THAT(look(), ElementsAre(HasSubstr("rank 1 is slow")));
  EXPECT_EQ(watch_.malformed(), 0);
  open(0) << "00 50000 32000 10000 10000\n";  // it was not killed
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(watch_.table(), HasSubstr("\n0            41 "));
}

TEST_F(StageWatchTest, MalformedLinesAreCountedAndShown) {
  write(2, 0, 40, [](int, int) { return 100; });
  open(0) << "41 1 2 3 4 5\n42 1 2 3 4 5 6 7\n43 1 -2 3 4 5 6\nx\n39 1 2 3 4 5 6\n"
             "44 99999999999999999999 2 3 4 5 6\n\n";
  look();
  EXPECT_EQ(watch_.malformed(), 7);
  EXPECT_THAT(watch_.table(), HasSubstr("7 malformed lines are left out"));
}

TEST_F(StageWatchTest, ARankThatStartsAgainIsReadAnew) {
  write(2, 0, 40, [](int rank, int) { return rank == 1 ? 130.0 : 100.0; });
  EXPECT_THAT(look(), ElementsAre(HasSubstr("rank 1 is slow")));
  for (const int rank : {0, 1})
    std::filesystem::resize_file(folder_ / fmt::format("rank{}.stages", rank), 0);
  look();
  write(2, 0, 30, [](int, int) { return 100; });
  EXPECT_THAT(look(), ElementsAre(HasSubstr("rank 1 is no longer slow")));
  EXPECT_EQ(watch_.malformed(), 0);
}

TEST_F(StageWatchTest, ARunHasEndedWithTheLocksOfItsRanks) {
  write(2, 0, 40, [](int, int) { return 100; });
  {
    const Fd writer(::open((folder_ / "rank1.stages").c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::flock(writer.get(), LOCK_SH), 0);
    look();
    EXPECT_FALSE(watch_.ended());
    StageWatch::clean(folder_);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "rank0.stages"));
    EXPECT_TRUE(std::filesystem::exists(folder_ / "rank1.stages"));
  }
  StageWatch::clean(folder_);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "rank1.stages"));
}

TEST_F(StageWatchTest, ARankThatHasLeftIsNotWaitedFor) {
  const Work work = [](int rank, int) { return rank == 1 ? 130.0 : 100.0; };
  write(3, 0, 40, work);
  EXPECT_THAT(look(), ElementsAre(HasSubstr("rank 1 is slow since step 10")));
  write(2, 40, 100, [](int, int) { return 100; });
  EXPECT_THAT(look(), ElementsAre(HasSubstr("rank 1 is no longer slow")));
}

TEST_F(StageWatchTest, AnotherVersionIsRefusedByName) {
  open(0) << "assay-stages 1 {\"rank\": 0}\n";
  const auto lines = watch_.look();
  ASSERT_FALSE(lines);
  EXPECT_THAT(lines.error().message,
              HasSubstr("rank0.stages: written by another version of assay"));
}

TEST_F(StageWatchTest, ProcessesWithoutARankAreShownAndNotCompared) {
  std::ofstream(folder_ / "pid7.stages") << "assay-stages 2 {\"rank\": null}\n1 1 2 3 4 5 1\n";
  std::ofstream(folder_ / "notes.txt") << "no stages\n";
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(watch_.table(), HasSubstr("\n?             1 "));
}

}  // namespace
}  // namespace assay::timeline
