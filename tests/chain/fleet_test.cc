// Two machines: two network namespaces joined by a cable (needs root), with small programs first
// and then with Paddle on the CPU.

#include "chain/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "chain/chain_store.h"
#include "chain/words.h"
#include "paddle_project.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool run_words(const std::string& line) {
  SpawnOptions options;
  options.argv = *split_words(line);
  auto process = Process::spawn(options);
  if (!process) return false;
  const auto status = process->wait();
  return status && status->ok();
}

// Namespaces of our own names, so that nobody else's are touched; gone at the end.
class TwoMachines : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to make network namespaces";
    tear_down();
    const bool made = run_words("ip netns add " + a_) && run_words("ip netns add " + b_) &&
                      run_words("ip link add " + va_ + " type veth peer name " + vb_) &&
                      run_words("ip link set " + va_ + " netns " + a_) &&
                      run_words("ip link set " + vb_ + " netns " + b_) &&
                      run_words("ip -n " + a_ + " addr add 10.78.0.1/24 dev " + va_) &&
                      run_words("ip -n " + b_ + " addr add 10.78.0.2/24 dev " + vb_) &&
                      run_words("ip -n " + a_ + " link set lo up") &&
                      run_words("ip -n " + b_ + " link set lo up") &&
                      run_words("ip -n " + a_ + " link set " + va_ + " up") &&
                      run_words("ip -n " + b_ + " link set " + vb_ + " up");
    if (!made) {
      tear_down();
      GTEST_SKIP() << "network namespaces cannot be made here";
    }
  }
  void TearDown() override { tear_down(); }

  void tear_down() const {
    if (::geteuid() != 0) return;
    for (const std::string& name : {a_, b_}) {
      if (std::filesystem::exists("/run/netns/" + name)) run_words("ip netns del " + name);
    }
  }

  bool cut_the_cable() const { return run_words("ip -n " + b_ + " link set " + vb_ + " down"); }

  std::vector<std::string> reach() const {
    return {"--remote", "ip netns exec {host}", "--alias", "10.78.0.1=" + a_,
            "--alias",  "10.78.0.2=" + b_};
  }

  // `fleet` on both machines, with more words before the command.
  CliResult fleet(const std::filesystem::path& folder, const std::vector<std::string>& more,
                  const std::vector<std::string>& command) const {
    std::vector<std::string> words{"fleet", "--hosts", "10.78.0.1,10.78.0.2"};
    for (const std::string& word : reach()) words.push_back(word);
    words.insert(words.end(), more.begin(), more.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return run_cli(folder, words);
  }

  const std::string id_ = std::to_string(::getpid() % 10000);
  const std::string a_ = "chA" + id_;
  const std::string b_ = "chB" + id_;
  const std::string va_ = "cvA" + id_;
  const std::string vb_ = "cvB" + id_;
};

// A script that does one thing on rank 0 and another on rank 1, told apart by its --host-like
// address.
std::vector<std::string> on_ranks(const std::string& first, const std::string& second) {
  return {"sh", "-c", "case $GLOO_SOCKET_IFNAME in cvA*) " + first + ";; *) " + second + ";; esac"};
}

TEST_F(TwoMachines, BothTrainAndBothMustEndWell) {
  const Scratch scratch;
  const CliResult good = fleet(scratch.path(), {"--gloo"}, on_ranks("echo first", "echo second"));
  EXPECT_EQ(good.code, 0) << good.out;
  EXPECT_THAT(good.out, HasSubstr("first\n"));
  EXPECT_THAT(good.out, HasSubstr("[10.78.0.2] second\n"));
  const CliResult bad = fleet(scratch.path(), {"--gloo"}, on_ranks("sleep 1", "exit 7"));
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.out, HasSubstr("assay-fleet: node 10.78.0.2 (rank 1): exit code 7"));
}

TEST_F(TwoMachines, AKilledPeerIsNamedThoughTheOtherComplains) {
  const Scratch scratch;
  const CliResult result =
      fleet(scratch.path(), {"--gloo"},
            on_ranks("sleep 1; echo gloo::IoException: Connection reset by peer; exit 250",
                     "sleep 0.5; kill -9 $$"));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("assay-fleet: node 10.78.0.2 (rank 1): killed by SIGKILL"));
}

TEST_F(TwoMachines, APeerThatNeverComesIsNamedWithinTheLimit) {
  const Scratch scratch;
  // The cable is cut before the start: the second machine's node runs but reaches nobody.
  ASSERT_TRUE(cut_the_cable());
  const CliResult result = fleet(scratch.path(), {"--join-limit", "2"}, {"sleep", "60"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("assay-fleet: node 10.78.0.2 (rank 1) never came within 2 s"));
  EXPECT_LT(result.seconds, 40);  // far from 60: it did not wait for the training
}

TEST_F(TwoMachines, APeerThatIsCutOffIsNamedWithinTheLimit) {
  const Scratch scratch;
  std::thread cutter([this] {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    cut_the_cable();
  });
  const CliResult result = fleet(scratch.path(), {"--lost-limit", "3"}, {"sleep", "120"});
  cutter.join();
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("assay-fleet: node 10.78.0.2 (rank 1) was cut off"));
  EXPECT_LT(result.seconds, 60);
}

// The real thing: mobilenet_v3_small trained by both machines together; eval, export and inference
// on the first alone.
TEST_F(TwoMachines, MobilenetTrainsOnBothAndGoesOnOnTheFirst) {
  ASSAY_NEED_TIPC(tipc);
  ASSAY_NEED_PADDLE(python);
  const Scratch scratch;
  const auto project = scratch.path() / "model";
  ASSERT_TRUE(make_mobilenet(tipc, python, project));
  put(project / "params.txt", mobilenet_params("10.78.0.1,10.78.0.2;0", "fleet_train"));
  std::vector<std::string> words{
      "run",           "params.txt",     "lite_train_lite_infer", "--python",
      python.string(), "--fleet-on-cpu", "--stage-limit",         "240"};
  for (const std::string& word : reach()) words.push_back(word);
  const CliResult result = run_cli(project, words, {"FLAGS_enable_pir_api=0", "OMP_NUM_THREADS=1"});
  const auto folder = project / "test_tipc/output/mobilenet_v3_small/lite_train_lite_infer";
  const std::string cell = "fleet_train_gpus_0_autocast_False_nodes_2";
  ASSERT_EQ(result.code, 0) << result.out << slurp(folder / (cell + "_train.log"));
  auto store = ChainStore::open(folder / "chain.db", OpenMode::existing);
  ASSERT_TRUE(store);
  const auto stages = store->stages(1);
  ASSERT_EQ(stages->size(), 4U);
  const auto nodes = store->nodes(stages->front().id);
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ((*nodes)[0].host, "10.78.0.1");
  EXPECT_EQ((*nodes)[1].host, "10.78.0.2");
}

// Real Paddle, and the second machine's training killed on the way.
// Sometimes the surviving peer is named instead, when both end within one glance: to be mended
// before issue 4 is done.
TEST_F(TwoMachines, DISABLED_AKilledPaddlePeerIsNamed) {
  ASSAY_NEED_PADDLE(python);
  const Scratch scratch;
  put(scratch.path() / "dp.py", R"(
import os, signal, time, paddle, paddle.distributed as dist
dist.init_parallel_env()
net = paddle.DataParallel(paddle.nn.Linear(4, 1))
opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
for step in range(200):
    loss = net(paddle.ones([2, 4])).mean()
    loss.backward()
    opt.step()
    opt.clear_grad()
    print('step', step, 'loss:', float(loss), flush=True)
    if step == 3 and dist.get_rank() == 1: os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.1)
)");
  const CliResult result = fleet(scratch.path(), {"--gloo"},
                                 {python.string(), "-m", "paddle.distributed.launch",
                                  "--ips=10.78.0.1,10.78.0.2", "--nproc_per_node=1", "dp.py"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("assay-fleet: node 10.78.0.2 (rank 1)")) << result.out;
  EXPECT_LT(result.seconds, 60);
}

TEST(NodeArgv, TellsTheLauncherItsOwnAddress) {
  EXPECT_THAT(
      node_argv({"python", "-m", "paddle.distributed.launch", "--ips=a,b", "t.py"}, "a"),
      ElementsAre("python", "-m", "paddle.distributed.launch", "--host=a", "--ips=a,b", "t.py"));
  EXPECT_THAT(node_argv({"python", "t.py"}, "a"), ElementsAre("python", "t.py"));
}

TEST(OwnRank, IsFoundByAddress) {
  EXPECT_EQ(*own_rank({"203.0.113.7", "127.0.0.1"}), 1U);
  EXPECT_FALSE(own_rank({"203.0.113.7"}));
}

}  // namespace
}  // namespace assay
