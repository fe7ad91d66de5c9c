// The recorder, in this process and in processes that end badly.

#include "inject/recorder.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "base/fd.h"
#include "base/process.h"
#include "timeline/importers/importer.h"

namespace assay::inject {
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
  // The names of all recorded slices except steps, file by file.
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

// A container's process 1 finds the file of its predecessor.
TEST_F(Recording, OfAReusedProcessNumberHasAFileOfItsOwn) {
  for (const char* name : {"first", "second", "third"}) {
    Recorder recorder(options());
    recorder.begin_range(name);
    recorder.end_range();
  }
  EXPECT_THAT(recorded(), testing::UnorderedElementsAre("first@-1", "second@-1", "third@-1"));
  EXPECT_EQ(files_, 3);
}

TEST_F(Recording, ThatCannotBeWrittenSaysSoOnce) {
  testing::internal::CaptureStderr();
  {
    RecorderOptions nowhere = options();
    nowhere.folder = folder_ / "missing";
    Recorder recorder(nowhere);
    for (int i = 0; i < 2; ++i) {
      recorder.begin_range("job", i);
      recorder.end_range();
      recorder.flush();
    }
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::HasSubstr("is no longer recorded: cannot write " +
                                       (folder_ / "missing").string()));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
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
                       "NVTX_INJECTION64_PATH=" + std::string(ASSAY_INJECTION)};
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

// The library is loaded into any recorded program, so it must not bring large libraries with it.
TEST_F(Recording, TheLibraryBringsNoDatabases) {
  const auto printed = (folder_ / "needed").string();
  SpawnOptions spawn;
  spawn.argv = {"sh", "-c", "readelf -d '" ASSAY_INJECTION "' >'" + printed + "'"};
  auto process = Process::spawn(spawn);
  ASSERT_TRUE(process) << process.error().message;
  ASSERT_TRUE(process->wait()->ok());
  const auto needed = read_file(printed);
  ASSERT_TRUE(needed);
  EXPECT_THAT(*needed, testing::HasSubstr("libc.so.6"));
  for (const char* library : {"libsqlite3", "libpq", "libzstd", "libz.so"}) {
    EXPECT_THAT(*needed, testing::Not(testing::HasSubstr(library)));
  }
}

TEST_F(Recording, WhatOneThreadLaunchesForAnotherIsTheOthers) {
  Recorder recorder(options());
  recorder.begin_step(1);
  const std::uint64_t step = recorder.current_range();
  recorder.begin_range("backward", 0);
  const std::uint64_t backward = recorder.current_range();
  EXPECT_GT(backward, step);
  const auto seen_elsewhere = [&] {
    std::uint64_t seen = 0;
    std::thread([&] { seen = recorder.current_range(); }).join();
    return seen;
  };
  EXPECT_EQ(seen_elsewhere(), backward);
  std::thread([&] {
    recorder.begin_range("other", 0);
    // Two threads have ranges, so a third thread's launches belong to the step.
    EXPECT_EQ(seen_elsewhere(), step);
    recorder.end_range();
  }).join();
  EXPECT_EQ(seen_elsewhere(), backward);
  recorder.end_range();
  EXPECT_EQ(recorder.current_range(), step);
}

TEST_F(Recording, AForkedChildDoesNotRepeatItsParent) {
  // Recorder::instance() needs a process of its own.
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::setenv("ASSAY_RECORD_DIR", folder_.c_str(), 1);
    Recorder& recorder = *Recorder::instance();
    recorder.begin_range("parent", 1);
    recorder.end_range();
    if (::fork() == 0) {
      recorder.begin_range("child", 2);
      recorder.end_range();
      std::exit(0);
    }
    ::wait(nullptr);
    std::exit(0);
  }
  ::waitpid(parent, nullptr, 0);
  EXPECT_THAT(recorded(), testing::UnorderedElementsAre("parent@1", "child@2"));
}

TEST_F(Recording, KeepsToItsWindowOfTime) {
  RecorderOptions window = options();
  window.first_time = 200'000'000;
  window.end_time = 400'000'000;
  {
    Recorder recorder(window);
    const auto at = [&](Nanos age, std::int32_t name) {
      while (recorder.age() < age) std::this_thread::yield();
      // On a machine that stalls here, the job is outside of the window and is left out.
      recorder.begin_range("job", name);
      recorder.end_range();
      return recorder.age();
    };
    if (at(0, 0) >= window.first_time) GTEST_SKIP() << "the machine stalled";
    if (at(250'000'000, 1) >= window.end_time) GTEST_SKIP() << "the machine stalled";
    at(400'000'000, 2);
  }
  EXPECT_THAT(recorded(), testing::ElementsAre("job@1"));
}

#ifdef CUDA_PROGRAM
class CudaRecording : public Recording {
 protected:
  // Runs the program; returns "name begin-end" of its GPU's jobs and kernels.
  std::vector<std::string> run(std::vector<std::string> environment, const std::string& label) {
    SpawnOptions spawn;
    spawn.argv = {CUDA_PROGRAM};
    spawn.environment = {"ASSAY_RECORD_DIR=" + folder_.string(),
                         "CUDA_INJECTION64_PATH=" + std::string(ASSAY_INJECTION),
                         "ASSAY_CUPTI_LIBRARY=" + std::string(FAKE_CUPTI)};
    spawn.environment.insert(spawn.environment.end(), environment.begin(), environment.end());
    auto process = Process::spawn(spawn);
    EXPECT_TRUE(process) << process.error().message;
    EXPECT_TRUE(process->wait()->ok());
    std::vector<std::string> lines;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const auto trace = timeline::import_trace(entry.path());
      if (!trace) continue;
      notes_ = trace->files[0].notes;
      steps_ = trace->steps;
      for (const timeline::Slice& slice : trace->slices) {
        if (trace->tracks[slice.track].label != label) continue;
        lines.push_back(std::string(trace->strings.text(slice.name)) + " " +
                        std::to_string(slice.begin) + "-" + std::to_string(slice.end));
      }
    }
    return lines;
  }
  std::vector<std::string> notes_;
};

TEST_F(CudaRecording, AJobsTimeIsThatOfItsKernels) {
  // forward covers its own kernel and that of its inner range; backward's is another thread's.
  EXPECT_THAT(run({"ASSAY_RECORD_STEPS=1:2"}, "GPU:0 jobs"),
              testing::ElementsAre("forward 1001000-1001050", "attention 1001020-1001050",
                                   "backward 1001060-1001160"));
  ASSERT_EQ(steps_.size(), 1U);  // the step also covers kernels without a job
  EXPECT_EQ(steps_[0].begin, 1'001'000);
  EXPECT_EQ(steps_[0].end, 1'001'230);
  EXPECT_THAT(notes_, testing::Contains(testing::HasSubstr("no room for 5 records")));
}

TEST_F(CudaRecording, KernelsHaveReadableNamesAndKeepToTheWindow) {
  EXPECT_THAT(
      run({"ASSAY_RECORD_STEPS=2:3"}, "GPU:0 stream 7"),
      testing::ElementsAre("at::native::gemm() 1002000-1002010", "flash 1002020-1002050",
                           "flash_bwd 1002060-1002160", "ncclDevKernel_AllReduce 1002200-1002230"));
}

TEST_F(CudaRecording, DevicesAreTheMachines) {
  EXPECT_EQ(run({"CUDA_VISIBLE_DEVICES=5,3"}, "GPU:5 stream 7").size(), 12U);
}

TEST_F(CudaRecording, AnotherProfilerIsToldOf) {
  run({"FAKE_CUPTI_TAKEN=1"}, "");
  EXPECT_THAT(notes_, testing::ElementsAre("no GPU work recorded: another profiler holds CUPTI"));
}
#endif

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
                       "ASSAY_RECORD_LIBRARY=" + std::string(ASSAY_INJECTION)};
  auto process = Process::spawn(spawn);
  ASSERT_TRUE(process) << process.error().message;
  ASSERT_TRUE(process->wait()->ok());
  EXPECT_THAT(recorded(), testing::ElementsAre("forward@0", "forward@1", "forward@0", "forward@1",
                                               "backward@9"));
  EXPECT_EQ(steps_.size(), 2U);
}

}  // namespace
}  // namespace assay::inject
