// Twelve breaks of the real MobileNet chain. Each changes what really happens: the training's code,
// its memory, its disk, its clock, or what is done to the run.

#include <gmock/gmock.h>
#include <sys/mount.h>

#include <csignal>

#include "chain/results/chain_store.h"
#include "little_memory.h"
#include "paddle_project.h"

namespace assay::chain {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kEndOfEpoch = "        lr_scheduler.step()\n";

class RealBreak : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSAY_NEED_TIPC(tipc);
    ASSAY_NEED_PADDLE(python);
    python_ = python.string();
    ASSERT_TRUE(make_mobilenet(tipc, python, project()));
    put_params("--epochs:lite_train_lite_infer=2");
  }

  fs::path project() const { return scratch_.path() / "model"; }
  fs::path folder() const {
    return project() / "test_tipc/assay/mobilenet_v3_small/params/lite_train_lite_infer";
  }
  // Where the suite's script has its training write.
  fs::path weights() const {
    return project() /
           "test_tipc/output/mobilenet_v3_small/lite_train_lite_infer/"
           "norm_train_gpus_-1_autocast_False_nodes_1.log";
  }
  void put_params(const std::string& epochs, const std::string& batch = "4") const {
    std::string text = mobilenet_params();
    replace(text, "--epochs:lite_train_lite_infer=1", epochs);
    replace(text, "--batch-size:lite_train_lite_infer=4",
            "--batch-size:lite_train_lite_infer=" + batch);
    put(project() / "params.txt", text);
  }
  static void replace(std::string& text, const std::string& what, const std::string& by) {
    const std::size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos) << what;
    text.replace(at, what.size(), by);
  }
  // Changes a program of the project.
  void change(const std::string& file, const std::string& what, const std::string& by) const {
    std::string text = slurp(project() / file);
    replace(text, what, by);
    put(project() / file, text);
  }
  std::vector<std::string> words(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"run", "params.txt", "lite_train_lite_infer", "--python", python_};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  CliResult run(const std::vector<std::string>& more = {}) const {
    return run_cli(project(), words(more), kEnvironment);
  }
  // What the training of the latest run came to.
  std::string trained() const {
    auto store = results::ChainStore::open(folder() / "chain.db", OpenMode::existing);
    if (!store) return "no store";
    const auto runs = store->runs();
    const auto stages = store->stages(runs->back().id);
    return stages->empty() ? "no stage" : stages->front().state;
  }
  // A run that goes on beside the test.
  Process start() const {
    SpawnOptions options;
    options.argv = words();
    options.argv.insert(options.argv.begin(), {CHAIN_CLI, "chain"});
    options.directory = project().string();
    options.environment = kEnvironment;
    const auto log = open_for_append(scratch_.path() / "run.log");
    options.fds = {{log->get(), 1}, {log->get(), 2}};
    return std::move(*Process::spawn(options));
  }
  bool training_says(const std::string& text) const {
    const fs::path log = folder() / "norm_train.log";
    return comes_true([&] { return slurp(log).find(text) != std::string::npos; });
  }

  inline static const std::vector<std::string> kEnvironment{"FLAGS_enable_pir_api=0",
                                                            "OMP_NUM_THREADS=1"};
  Scratch scratch_;
  std::string python_;
};

TEST_F(RealBreak, NoCheckpoint) {
  change("train.py", "            if args.output_dir:\n", "            if False:\n");
  const CliResult result = run();
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_EQ(trained(), "not_made") << result.out;
}

TEST_F(RealBreak, TracebackWithExitCode0) {
  change("train.py", "    top1 = main(args)\n",
         "    try:\n        main(args)\n        paddle.zeros([2]) @ paddle.zeros([3])\n"
         "    except Exception:\n        __import__('traceback').print_exc()\n");
  const CliResult result = run();
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_EQ(trained(), "traceback") << result.out;
}

TEST_F(RealBreak, NanLoss) {
  change("train.py", "            loss.backward()\n            optimizer.step()\n",
         "            loss = paddle.log(-loss)\n            loss.backward()\n"
         "            optimizer.step()\n");
  const CliResult result = run();
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_EQ(trained(), "not_finite") << result.out;
}

TEST_F(RealBreak, HalfTheSpeed) {
  put_params("--epochs:lite_train_lite_infer=7", "1");
  change("train.py", "        train_start = time.time()\n",
         "        train_start = time.time()\n        time.sleep(0.5 if epoch > 3 else 0)\n");
  const CliResult result = run({"--stop-on", "slow"});
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_EQ(trained(), "failed") << result.out;
  EXPECT_THAT(result.out, HasSubstr("norm_train: slow: ips fell from "));
}

TEST_F(RealBreak, Hang) {
  change("train.py", kEndOfEpoch, "        time.sleep(1000)\n");
  const CliResult result = run({"--idle-limit", "10"});
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_EQ(trained(), "silent") << result.out;
}

TEST_F(RealBreak, OutOfMemory) {
  LittleMemory memory("1073741824");
  if (!memory.why_not().empty()) GTEST_SKIP() << memory.why_not();
  change("train.py", kEndOfEpoch, "        np.ones(400_000_000)\n");
  std::vector<std::string> argv = memory.inside({CHAIN_CLI, "chain"});
  for (const std::string& word : words()) argv.push_back(word);
  const CliResult result = run_command(project(), argv, kEnvironment);
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_EQ(trained(), "out_of_memory") << result.out;
}

TEST_F(RealBreak, FullDisk) {
  fs::create_directories(weights());
  if (::mount("tmpfs", weights().c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "needs root to mount a small file system";
  }
  const CliResult result = run();
  ::umount2(weights().c_str(), MNT_DETACH);
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_EQ(trained(), "disk_full") << result.out;
}

TEST_F(RealBreak, PredictionOf101Percent) {
  change("deploy/inference_python/infer.py", "prob: {prob}\"", "prob: {prob * 1.01}\"");
  EXPECT_EQ(run().code, 0);
  const CliResult result = compare_with_dynamic(python_, project(), weights() / "latest.pdparams",
                                                folder() / "inference.log");
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_THAT(result.out, HasSubstr("BAD"));
}

TEST_F(RealBreak, MissingLines) {
  // The second epoch trains, but prints nothing.
  change("train.py", "            if paddle.distributed.get_rank() <= 0:\n",
         "            if epoch == 0:\n");
  const CliResult result = run();
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_EQ(trained(), "unfinished") << result.out;
}

TEST_F(RealBreak, TwoRunsAtOnce) {
  change("train.py", kEndOfEpoch, "        time.sleep(1000)\n");
  Process first = start();
  ASSERT_TRUE(training_says("Start training"));
  const CliResult second = run();
  EXPECT_EQ(second.code, 2) << second.out;
  EXPECT_THAT(second.out, HasSubstr("another run uses"));
  first.signal(SIGINT);
  EXPECT_EQ(first.wait()->code, 130);
}

TEST_F(RealBreak, CtrlCAndResume) {
  put_params("--epochs:lite_train_lite_infer=1");
  change("deploy/inference_python/infer.py", "    args = get_args()\n",
         "    args = get_args()\n    import os, time\n"
         "    while not os.path.exists('go'): time.sleep(0.1)\n");
  Process first = start();
  const fs::path log = folder() / "inference.log";
  ASSERT_TRUE(comes_true([&] { return fs::exists(log); })) << slurp(scratch_.path() / "run.log");
  first.signal(SIGINT);
  EXPECT_EQ(first.wait()->code, 130);
  put(project() / "go", "");
  const CliResult result = run({"--resume"});
  EXPECT_EQ(result.code, 0) << result.out;
  const std::string kept = "kept from an earlier run: ";
  EXPECT_THAT(result.out,
              AllOf(HasSubstr(kept + "norm_train"), Not(HasSubstr(kept + "inference"))));
}

// The clock of assay and of all its stages jumps back by two days while the training runs.
TEST_F(RealBreak, AClockThatJumpsBreaksNothing) {
  const char* library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
  if (!fs::exists(library)) GTEST_SKIP() << "needs libfaketime (Debian: libfaketime)";
  const fs::path clock = scratch_.path() / "clock";
  put(clock, "+0");
  put(project() / "jump", "-2d");
  change("train.py", kEndOfEpoch,
         std::string(kEndOfEpoch) + "        os.rename('jump', '" + clock.string() +
             "') if epoch == 0 else None\n        print('jumped to', time.time(), flush=True)\n");
  std::vector<std::string> environment = kEnvironment;
  for (const std::string& entry :
       {std::string("LD_PRELOAD=") + library, "FAKETIME_TIMESTAMP_FILE=" + clock.string(),
        std::string("FAKETIME_NO_CACHE=1"), std::string("FAKETIME_DONT_FAKE_MONOTONIC=1")}) {
    environment.push_back(entry);
  }
  const std::time_t before = std::time(nullptr);
  const CliResult result = run_cli(project(), words(), environment);
  EXPECT_EQ(result.code, 0) << result.out;
  const std::string log = slurp(folder() / "norm_train.log");
  ASSERT_THAT(log, HasSubstr("jumped to "));
  EXPECT_LT(std::stod(log.substr(log.find("jumped to ") + 10)), static_cast<double>(before) - 1e5);
}

}  // namespace
}  // namespace assay::chain
