#include "base/signal_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "base/interruption.h"

namespace assay {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr SignalWatch::Limits kQuick{milliseconds(200), milliseconds(1000)};

// The tests send signals to their process or end it, so each runs in a child.
class SignalWatchDeathTest : public ::testing::Test {
 protected:
  SignalWatchDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(SignalWatchDeathTest, ALoopThatTakesItsSignalsGoesOn) {
  EXPECT_EXIT(
      {
        std::atomic<int> delivered{0};
        auto watch =
            *SignalWatch::start([&] { ++delivered; }, {milliseconds(1000), milliseconds(2000)});
        for (int i = 1; i <= 3; ++i) {
          ::raise(i % 2 == 0 ? SIGTERM : SIGINT);
          while (delivered < i) std::this_thread::sleep_for(milliseconds(1));
          watch->taken();
        }
        std::this_thread::sleep_for(milliseconds(2500));
        ::_exit(interrupted() ? 1 : 7);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST_F(SignalWatchDeathTest, ASignalEndsAReadThatBlocks) {
  EXPECT_EXIT(
      {
        const FdPair ends = *make_socket_pair();
        const InterruptibleSocket socket(ends.first.get());
        auto watch = *SignalWatch::start([] {}, kQuick);
        ::raise(SIGINT);
        char byte = 0;
        const ssize_t got = ::read(ends.first.get(), &byte, 1);
        ::_exit(got == 0 && interrupted() ? 7 : 1);
      },
      ::testing::ExitedWithCode(7), "waits for its database or its disk");
}

TEST_F(SignalWatchDeathTest, ASecondSignalEndsABlockedProgram) {
  const auto began = Clock::now();
  EXPECT_EXIT(
      {
        auto watch = *SignalWatch::start([] {}, {milliseconds(200), milliseconds(60'000)});
        ::raise(SIGTERM);
        std::this_thread::sleep_for(milliseconds(50));
        ::raise(SIGTERM);
        std::this_thread::sleep_for(std::chrono::seconds(50));
        ::_exit(1);
      },
      ::testing::ExitedWithCode(130), "");
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(50));
}

TEST_F(SignalWatchDeathTest, AProgramThatStaysBlockedEndsInTime) {
  EXPECT_EXIT(
      {
        auto watch = *SignalWatch::start([] {}, kQuick);
        ::raise(SIGTERM);
        std::this_thread::sleep_for(std::chrono::seconds(30));
        ::_exit(1);
      },
      ::testing::ExitedWithCode(130), "");
}

TEST_F(SignalWatchDeathTest, AfterItTheSignalsDoWhatTheyDidBefore) {
  EXPECT_EXIT(
      {
        {
          auto watch = *SignalWatch::start([] {}, kQuick);
        }
        ::raise(SIGTERM);
        ::_exit(1);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace assay
