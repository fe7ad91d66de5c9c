// A training on two machines, with small programs first and then with Paddle on the CPU.

#include "chain/fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "chain/results/chain_store.h"
#include "fleet_tools.h"
#include "paddle_project.h"

namespace assay::chain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A training that nobody may wait for.
const std::string kLong = "sleep 600; touch finished";

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

// Not the training but what watches it there: the whole machine may as well be gone.
TEST_F(TwoMachines, ANodeThatDiesIsNamedOnEitherSide) {
  const Scratch scratch;
  const CliResult second =
      fleet(scratch.path(), {"--gloo"}, on_ranks(kLong, "sleep 0.5; kill -9 $PPID; " + kLong));
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.out, HasSubstr("\nassay-fleet: node 10.78.0.2 (rank 1) "));
  const CliResult first =
      fleet(scratch.path(), {"--gloo"}, on_ranks("sleep 0.5; kill -9 $PPID; " + kLong, kLong));
  EXPECT_EQ(first.code, 1);
  EXPECT_THAT(first.out, HasSubstr("\nassay-fleet: node 10.78.0.1"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "finished"));
}

TEST_F(TwoMachines, APeerThatNeverComesIsNamedWithinTheLimit) {
  const Scratch scratch;
  // The cable is cut before the start: the second machine's node runs but reaches nobody.
  ASSERT_TRUE(cut_the_cable());
  const CliResult result = fleet(scratch.path(), {"--join-limit", "2"}, {"touch", "started"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("assay-fleet: node 10.78.0.2 (rank 1) never came within 2 s"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "started"));
}

TEST_F(TwoMachines, APeerThatIsCutOffIsNamedWithinTheLimit) {
  const Scratch scratch;
  std::thread cutter([&] {
    while (!std::filesystem::exists(scratch.path() / "training"))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cut_the_cable();
  });
  const CliResult result =
      fleet(scratch.path(), {"--lost-limit", "3"}, {"sh", "-c", "touch training; " + kLong});
  cutter.join();
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("assay-fleet: node 10.78.0.2 (rank 1) was cut off"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "finished"));
}

// The real thing: mobilenet_v3_small trained by both machines together; eval, export and inference
// on the first alone.
TEST_F(TwoMachines, MobilenetTrainsOnBothAndGoesOnOnTheFirst) {
  ASSAY_NEED_TIPC(tipc);
  ASSAY_NEED_PADDLE(python);
  const Scratch scratch;
  const auto project = scratch.path() / "model";
  ASSERT_TRUE(make_mobilenet(tipc, python, project));
  put(project / "params.txt", mobilenet_params("10.78.0.1,10.78.0.2;-1", "fleet_train"));
  std::filesystem::remove(project / "test_tipc/test_train_inference_python.sh");
  std::vector<std::string> words{"run", "params.txt", "lite_train_lite_infer", "--python",
                                 python.string()};
  for (const std::string& word : reach()) words.push_back(word);
  const CliResult result = run_cli(project, words, {"FLAGS_enable_pir_api=0", "OMP_NUM_THREADS=1"});
  const auto folder = project / "test_tipc/assay/mobilenet_v3_small/params/lite_train_lite_infer";
  ASSERT_EQ(result.code, 0) << result.out << slurp(folder / "fleet_train.log");
  auto store = results::ChainStore::open(folder / "chain.db", OpenMode::existing);
  ASSERT_TRUE(store);
  const auto stages = store->stages(1);
  ASSERT_EQ(stages->size(), 4U);
  const auto nodes = store->nodes(stages->front().id);
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ((*nodes)[0].host, "10.78.0.1");
  EXPECT_EQ((*nodes)[1].host, "10.78.0.2");
  for (const results::NodeRecord& node : *nodes) {
    EXPECT_EQ(node.state, "passed") << node.host;
    EXPECT_EQ(node.gpu_model, "CPU") << node.host;
    EXPECT_THAT(node.framework, HasSubstr("paddlepaddle")) << node.host;
    EXPECT_GT(node.ips, 0) << node.host;
  }
  // Two machines measure two times of their own; equal to the last digit would be a copy.
  EXPECT_NE((*nodes)[0].ips, (*nodes)[1].ips);
}

// The suite's own script reads `ip,ip;0` and starts one command; both machines run it, and the
// first alone exports and infers.
TEST_F(TwoMachines, ASuitesOwnScriptTrainsOnBoth) {
  const Scratch scratch;
  put(scratch.path() / "test_tipc/test_train_inference_python.sh", R"sh(
value() { grep "^$1:" $file | head -1 | cut -d: -f2-; }
file=$1 python=$(value python) gpus=$(value gpu_list) out=./test_tipc/output/tiny/$2
mkdir -p $out
eval "$python -m paddle.distributed.launch --ips=${gpus%%;*} --gpus=${gpus##*;} $(value norm_train) --out=$out/w --epochs=2"
eval "$python $(value norm_export) --out=$out/model --weights=$out/w/last.w"
eval "$python $(value inference) --model_dir=$out/model"
)sh");
  put(scratch.path() / "f.txt",
      std::string("model_name:tiny\npython:") + CHAIN_CHILD +
          "\ngpu_list:10.78.0.1,10.78.0.2;0\nnorm_train:train.py \"say=epoch 2/2 loss: 0.5\" "
          "make=last.w\nnorm_export:export.py make=inference.pdmodel make=inference.pdiparams\n"
          "inference:infer.py say=inferred\n");
  std::vector<std::string> words{"run", "f.txt", "lite_train_lite_infer"};
  for (const std::string& word : reach()) words.push_back(word);
  const CliResult result = run_cli(scratch.path(), words);
  const auto folder = scratch.path() / "test_tipc/assay/tiny/f/lite_train_lite_infer";
  ASSERT_EQ(result.code, 0) << result.out << slurp(folder / "norm_train.log");
  auto store = results::ChainStore::open(folder / "chain.db", OpenMode::existing);
  ASSERT_TRUE(store);
  const auto stages = store->stages(1);
  std::vector<std::string> names;
  for (const results::StoredStage& stage : *stages) names.push_back(stage.name + " " + stage.state);
  EXPECT_THAT(names, ElementsAre("norm_train passed", "norm_export passed", "inference passed"));
  const auto nodes = store->nodes(stages->front().id);
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ((*nodes)[1].host, "10.78.0.2");
  EXPECT_EQ((*nodes)[1].state, "passed");
  EXPECT_THAT(slurp(folder / "norm_train.log"), HasSubstr("[10.78.0.2] epoch 2/2 loss: 0.5"));
  EXPECT_EQ(slurp(folder / "inference.log"), "inferred\n");
}

// Real Paddle, and one machine's training killed on the way. Both machines work in one folder, as
// on a shared file system: what one writes must not be taken for the other's.
class KilledPaddle : public TwoMachines, public ::testing::WithParamInterface<int> {};

TEST_P(KilledPaddle, IsNamed) {
  ASSAY_NEED_PADDLE(python);
  const Scratch scratch;
  put(scratch.path() / "dp.py", R"(
import os, signal, sys, time, paddle, paddle.distributed as dist
dist.init_parallel_env()
net = paddle.DataParallel(paddle.nn.Linear(4, 1))
opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
for step in range(200):
    loss = net(paddle.ones([2, 4])).mean()
    loss.backward()
    opt.step()
    opt.clear_grad()
    print('step', step, 'loss:', float(loss), flush=True)
    if step == 3 and dist.get_rank() == int(sys.argv[1]): os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.1)
)");
  const CliResult result =
      fleet(scratch.path(), {"--gloo"},
            {python.string(), "-m", "paddle.distributed.launch", "--ips=10.78.0.1,10.78.0.2",
             "--nproc_per_node=1", "dp.py", std::to_string(GetParam())});
  EXPECT_EQ(result.code, 1);
  const std::string named =
      GetParam() == 0 ? "node 10.78.0.1 (rank 0): " : "node 10.78.0.2 (rank 1): ";
  EXPECT_THAT(result.out, HasSubstr("\nassay-fleet: " + named)) << result.out;
  EXPECT_THAT(result.out, HasSubstr("killed by signal 9")) << result.out;
  EXPECT_THAT(result.out, Not(HasSubstr("step 199 ")));  // nobody trained on as if nothing were
}

INSTANTIATE_TEST_SUITE_P(TwoMachines, KilledPaddle, ::testing::Values(0, 1),
                         [](const auto& test) { return "Rank" + std::to_string(test.param); });

TEST(NodeArgv, TellsTheLauncherItsOwnAddressAndFolder) {
  EXPECT_THAT(fleet::node_argv({"python", "-m", "paddle.distributed.launch", "--ips=a,b", "t.py"},
                               "a", "x/rank0"),
              ElementsAre("python", "-m", "paddle.distributed.launch", "--host=a",
                          "--log_dir=x/rank0", "--ips=a,b", "t.py"));
  EXPECT_THAT(fleet::node_argv(
                  {"python", "-m", "paddle.distributed.launch", "--log_dir=own", "t.py"}, "a", "x"),
              ElementsAre("python", "-m", "paddle.distributed.launch", "--host=a", "--log_dir=own",
                          "t.py"));
  EXPECT_THAT(fleet::node_argv({"python", "t.py"}, "a", "x"), ElementsAre("python", "t.py"));
}

// A whole machine that stood still (a paused virtual machine, a stopped container) finds the others
// silent for as long, and they may have stood still with it: only silence that was listened to
// counts.
TEST(RendezvousOfTwo, SilenceCountsOnlyWhileSomebodyListens) {
  fleet::RendezvousOptions options;
  options.hosts = {"127.0.0.1", "127.0.0.2"};
  options.port = 6791;
  options.token = "word";
  options.lost = stage::Seconds(1.5);
  auto first = fleet::Rendezvous::open(options);
  options.rank = 1;
  auto second = fleet::Rendezvous::open(options);
  ASSERT_TRUE(first && second);
  bool both = false;
  for (int tries = 0; tries < 6000 && !both; ++tries) {
    const bool one = *first->gather();
    both = *second->gather() && one;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(both);
  EXPECT_EQ(first->watch(), "");
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_EQ(first->watch(), "");
  std::string complaint;
  while (complaint.empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    complaint = first->watch();
  }
  EXPECT_EQ(complaint, "node 127.0.0.2 (rank 1) was cut off: nothing heard of it for 1.5 s");
}

TEST(OwnRank, IsFoundByAddress) {
  EXPECT_EQ(*fleet::own_rank({"203.0.113.7", "127.0.0.1"}), 1U);
  EXPECT_FALSE(fleet::own_rank({"203.0.113.7"}));
}

}  // namespace
}  // namespace assay::chain
