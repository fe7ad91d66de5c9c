// What NVML is asked, where no GPU is: a stand-in library tells what the test wants it to tell.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "chain/params/shell_words.h"
#include "chain/results/chain_store.h"
#include "cli_run.h"
#include "fleet_tools.h"

namespace assay::chain {
namespace {

using ::testing::HasSubstr;

// A project whose inference is told to use the GPU; while it runs it shows the GPU's state.
Project gpu_project(const std::string& state) {
  return Project({.train = "\"say=loss: 1\" make=last.w",
                  .eval = "null",
                  .infer = "\"gpu=" + state + "\"",
                  .infer_use_gpu = "True"});
}

std::vector<std::string> with_fake(const Project& project) {
  return {"LD_LIBRARY_PATH=" + std::string(FAKE_NVML_FOLDER),
          "FAKE_NVML=" + (project.path() / "gpu.state").string()};
}

results::StoredStage inference_of(const Project& project) {
  auto store = results::ChainStore::open(project.results() / "chain.db", OpenMode::existing);
  EXPECT_TRUE(store);
  if (!store) return {};
  const auto stages = store->stages(1);
  return stages->back();
}

const std::vector<std::string> kRun{"run", "params.txt", "lite_train_lite_infer"};

TEST(Nvml, TheStagesOwnProcessesAreCounted) {
  if (::access("/proc/self/ns/pid", F_OK) != 0) GTEST_SKIP() << "needs PID namespaces in /proc";
  const Project project = gpu_project("9000 55 SELF 700");
  put(project.path() / "gpu.state", "5000 0 0 0\n");
  const CliResult result = run_cli(project.path(), kRun, with_fake(project));
  std::array<char, 64> name{};
  (void)::readlink("/proc/self/ns/pid", name.data(), name.size() - 1);
  if (std::string(name.data()) != "pid:[4026531836]") {
    GTEST_SKIP() << "runs in a container, whose process numbers are not the GPU driver's";
  }
  EXPECT_EQ(result.code, 0) << result.out;
  const results::StoredStage stage = inference_of(project);
  EXPECT_EQ(stage.gpu_memory_mb, 700);
  EXPECT_EQ(stage.gpu_percent, 55);
}

// In a PID namespace of our own, as in a container: the driver's number for the process is no
// number of ours, so what the GPU holds more than before is the measure.
TEST(Nvml, InAContainerTheGpusMemoryTells) {
  if (::geteuid() != 0 || !has_program("unshare")) {
    GTEST_SKIP() << "needs root and unshare to make a PID namespace";
  }
  if (!run_words("unshare --pid --fork --mount-proc true")) {
    GTEST_SKIP() << "this machine lets nobody make PID namespaces";
  }
  const Project project = gpu_project("5700 40 999999 700");
  put(project.path() / "gpu.state", "5000 0 0 0\n");
  std::vector<std::string> argv = *params::split_words(
      std::string("unshare --pid --fork --mount-proc ") + CHAIN_CLI + " chain");
  argv.insert(argv.end(), kRun.begin(), kRun.end());
  const CliResult result = run_command(project.path(), argv, with_fake(project));
  EXPECT_EQ(result.code, 0) << result.out;
  EXPECT_EQ(inference_of(project).gpu_memory_mb, 700);
}

// Looked at often enough, and no sign on any GPU: a false GPU pass, also where AutoLog says
// nothing.
TEST(Nvml, AnInferenceThatNoGpuSawDoesNotPass) {
  const Project project({.train = "\"say=loss: 1\" make=last.w",
                         .eval = "null",
                         .infer = "looks=60",
                         .infer_use_gpu = "True"});
  put(project.path() / "gpu.state", "5000 90 0 0\n");
  const CliResult result = run_cli(project.path(), kRun, with_fake(project));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("no process of it was seen on one"));
  EXPECT_EQ(inference_of(project).state, "wrong_device");
}

TEST(Nvml, ATrainingThatNoGpuSawDoesNotPass) {
  const Project project({.train = "looks=60 \"say=loss: 1\" make=last.w", .gpu_list = "0"});
  put(project.path() / "gpu.state", "5000 90 0 0\n");
  const CliResult result = run_cli(project.path(), kRun, with_fake(project));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("no process of it was seen on one"));
  auto store = results::ChainStore::open(project.results() / "chain.db", OpenMode::existing);
  ASSERT_TRUE(store);
  EXPECT_EQ(store->stages(1)->front().state, "wrong_device");
}

TEST(Nvml, ANodesRecordNamesItsGpu) {
  const Project project({.gpu_list = "0"});
  put(project.path() / "gpu.state", "0 0 0 0\n");
  EXPECT_EQ(run_cli(project.path(), kRun, with_fake(project)).code, 0);
  auto store = results::ChainStore::open(project.results() / "chain.db", OpenMode::existing);
  ASSERT_TRUE(store);
  const auto nodes = store->nodes(store->stages(1)->front().id);
  ASSERT_EQ(nodes->size(), 1U);
  EXPECT_EQ(nodes->front().gpu_model, "Fake GPU");
}

}  // namespace
}  // namespace assay::chain
