// The recorder, in this process and in ones that end badly.

#include "record/recorder.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "base/process.h"
#include "timeline/importers/importer.h"

namespace assay::record {
namespace {

namespace fs = std::filesystem;

class Recording : public testing::Test {
 protected:
  Recording() {
    std::string name = (fs::temp_directory_path() / "assay-record-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Recording() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  // The names of all recorded slices that are no steps, file after file.
  std::vector<std::string> recorded() {
    std::vector<std::string> names;
    files_ = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      ++files_;
      auto trace = timeline::import_trace(entry.path());
      EXPECT_TRUE(trace) << trace.error().message;
      if (!trace) continue;
      steps_ = trace->steps;
      for (const timeline::Slice& slice : trace->slices) {
        const std::string name(trace->strings.text(slice.name));
        if (!name.starts_with("step")) {
          names.push_back(name + "@" + std::to_string(slice.micro_batch));
        }
        EXPECT_LE(slice.begin, slice.end);
      }
    }
    return names;
  }
  RecorderOptions options() const {
    RecorderOptions result;
    result.folder = folder_;
    return result;
  }
  fs::path folder_;
  int files_ = 0;
  std::vector<timeline::Step> steps_;
};

TEST_F(Recording, RangesNestAndStepsAreNumbers) {
  {
    Recorder recorder(options());
    recorder.begin_range("7");
    recorder.begin_job("forward@3");
    recorder.begin_range("gemm");
    recorder.end_range();
    recorder.end_range();
    recorder.end_range();
    recorder.end_range();  // one too many
  }
  EXPECT_THAT(recorded(), testing::UnorderedElementsAre("7@-1", "forward@3", "gemm@-1"));
  ASSERT_EQ(steps_.size(), 1U);
  EXPECT_EQ(steps_[0].number, 7);
}

TEST_F(Recording, KeepsToItsWindowOfSteps) {
  {
    RecorderOptions window = options();
    window.first_step = 2;
    window.end_step = 4;
    Recorder recorder(window);
    for (int step = 0; step < 6; ++step) {
      recorder.begin_step(step);
      recorder.begin_range("job", step);
      recorder.end_range();
    }
  }
  EXPECT_THAT(recorded(), testing::ElementsAre("job@2", "job@3"));
}

TEST_F(Recording, StartsAndStopsByFlag) {
  {
    RecorderOptions paused = options();
    paused.waiting = true;
    Recorder recorder(paused);
    for (int i = 0; i < 3; ++i) {
      if (i == 1) recorder.start();
      if (i == 2) recorder.stop();
      recorder.begin_range("job", i);
      recorder.end_range();
    }
  }
  EXPECT_THAT(recorded(), testing::ElementsAre("job@1"));
}

TEST_F(Recording, ThreadsDoNotDisturbEachOther) {
  {
    Recorder recorder(options());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&recorder] {
        for (int i = 0; i < 20'000; ++i) {
          recorder.begin_range("a", i);
          recorder.end_range();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(recorded().size(), 80'000U);
}

TEST_F(Recording, AKilledProcessLeavesWhatItHadWritten) {
  const pid_t child = ::fork();
  if (child == 0) {
    Recorder recorder(options());
    recorder.begin_range("early", 1);
    recorder.end_range();
    recorder.flush();
    recorder.begin_range("late", 2);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_THAT(recorded(), testing::ElementsAre("early@1"));
}

TEST_F(Recording, AForkedChildHasAFileOfItsOwn) {
  {
    Recorder recorder(options());
    recorder.begin_range("parent", 1);
    recorder.end_range();
    recorder.flush();
    const pid_t child = ::fork();
    if (child == 0) {
      recorder.begin_range("child", 2);
      recorder.end_range();
      recorder.flush();
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
  }
  EXPECT_THAT(recorded(), testing::UnorderedElementsAre("parent@1", "child@2"));
  EXPECT_EQ(files_, 2);
}

TEST_F(Recording, NvtxRangesComeFromAnyProgram) {
#ifdef NVTX_PROGRAM
  SpawnOptions spawn;
  spawn.argv = {NVTX_PROGRAM};
  spawn.environment = {"ASSAY_RECORD_DIR=" + folder_.string(),
                       "NVTX_INJECTION64_PATH=" + std::string(ASSAY_RECORDER)};
  auto process = Process::spawn(spawn);
  ASSERT_TRUE(process) << process.error().message;
  ASSERT_TRUE(process->wait()->ok());
  EXPECT_THAT(recorded(), testing::UnorderedElementsAre("3@-1", "forward@0", "backward@0", "4@-1",
                                                        "forward@0", "backward@0"));
  EXPECT_EQ(steps_.size(), 2U);
#else
  GTEST_SKIP() << "no NVTX headers";
#endif
}

TEST_F(Recording, PythonsHelperRecordsJobsAndSteps) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "Python cannot load a library that is built with a sanitizer; runs without one";
#endif
  const std::string source = std::string(ASSAY_SOURCE_DIR) + "/python/assay/timeline";
  SpawnOptions spawn;
  spawn.argv = {"python3", "-c",
                "import sys; sys.path.insert(0, '" + source +
                    "/..')\n"
                    "import timeline\n"
                    "for step in timeline.steps(range(5, 7)):\n"
                    "    for m in range(2):\n"
                    "        with timeline.job('forward', micro_batch=m):\n"
                    "            pass\n"
                    "@timeline.job('backward', micro_batch=9)\n"
                    "def backward(): return 1\n"
                    "assert backward() == 1\n"};
  spawn.environment = {"ASSAY_RECORD_DIR=" + folder_.string(),
                       "ASSAY_RECORD_LIBRARY=" + std::string(ASSAY_RECORDER)};
  auto process = Process::spawn(spawn);
  ASSERT_TRUE(process) << process.error().message;
  ASSERT_TRUE(process->wait()->ok());
  EXPECT_THAT(recorded(), testing::ElementsAre("forward@0", "forward@1", "forward@0", "forward@1",
                                               "backward@9"));
  EXPECT_EQ(steps_.size(), 2U);
}

}  // namespace
}  // namespace assay::record
