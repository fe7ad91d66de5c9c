// The ways in which many machines are started: ssh and Slurm.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "chain/results/chain_store.h"
#include "fleet_tools.h"
#include "paddle_project.h"

namespace assay::chain {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- ssh ----

// An ssh server of our own on the second machine, with keys of our own.
class OverSsh : public TwoMachines {
 protected:
  void SetUp() override {
    TwoMachines::SetUp();
    if (IsSkipped()) return;
    if (!has_program("sshd") || !has_program("ssh") || !has_program("ssh-keygen")) {
      GTEST_SKIP() << "needs ssh and sshd (Debian: openssh-server)";
    }
    const std::string here = keys_.path().string();
    fs::create_directories("/run/sshd");  // sshd will not start without it
    for (const char* key : {"host", "user"}) {
      ASSERT_TRUE(run_words("ssh-keygen -q -t ed25519 -N '' -f " + here + "/" + key));
    }
    put(keys_.path() / "server.conf",
        "Port 2222\nListenAddress 10.78.0.2\nHostKey " + here + "/host\nAuthorizedKeysFile " +
            here + "/user.pub\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n");
    put(keys_.path() / "client.conf",
        "Host *\n Port 2222\n BatchMode yes\n IdentityFile " + here +
            "/user\n UserKnownHostsFile " + here +
            "/known\n StrictHostKeyChecking accept-new\n LogLevel ERROR\n");
    SpawnOptions options;
    options.argv = *params::split_words("ip netns exec " + b_ + " /usr/sbin/sshd -D -f " + here +
                                        "/server.conf");
    auto server = Process::spawn(options);
    ASSERT_TRUE(server);
    server_ = std::move(*server);
    const std::string probe =
        "ip netns exec " + a_ + " ssh -F " + here + "/client.conf 10.78.0.2 true";
    if (!comes_true([&] { return run_words(probe); }))
      GTEST_SKIP() << "the ssh server does not answer here";
  }
  void TearDown() override {
    if (server_.pid() > 0) {
      server_.signal_group(SIGKILL);
      (void)server_.wait();
    }
    TwoMachines::TearDown();
  }

  // The chain as it is started on the first machine, which reaches the second by ssh.
  std::vector<std::string> command(const std::vector<std::string>& words) const {
    std::vector<std::string> argv =
        *params::split_words("ip netns exec " + a_ + " " + CHAIN_CLI + " chain");
    argv.insert(argv.end(), words.begin(), words.end());
    argv.insert(argv.end(),
                {"--remote", "ssh -F " + (keys_.path() / "client.conf").string() + " {host}"});
    return argv;
  }

  Scratch keys_;
  Process server_;
};

TEST_F(OverSsh, OneCommandOnTheFirstMachineDrivesBoth) {
  const Project project({.train = "\"say=trained it's $HOME\" \"say=loss: 1\" make=last.w",
                         .gpu_list = "10.78.0.1,10.78.0.2;-1"});
  const CliResult result =
      run_command(project.path(), command({"run", "params.txt", "lite_train_lite_infer"}));
  ASSERT_EQ(result.code, 0) << result.out;
  const std::string log = project.log("norm_train.log");
  // Words come through ssh's shell over there as they are.
  EXPECT_THAT(log, HasSubstr("\ntrained it's $HOME\n"));
  EXPECT_THAT(log, HasSubstr("[10.78.0.2] trained it's $HOME\n"));
  auto store = results::ChainStore::open(project.results() / "chain.db", OpenMode::existing);
  ASSERT_TRUE(store);
  const auto stages = store->stages(1);
  ASSERT_EQ(stages->size(), 4U);
  const auto nodes = store->nodes(stages->front().id);
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ((*nodes)[1].host, "10.78.0.2");
  EXPECT_EQ((*nodes)[1].state, "passed");
}

TEST_F(OverSsh, EndingTheChainEndsWhatRunsOnTheOtherMachine) {
  const Project project({.train = "hang", .gpu_list = "10.78.0.1,10.78.0.2;-1"});
  SpawnOptions options;
  options.argv = command({"run", "params.txt", "lite_train_lite_infer"});
  options.directory = project.path().string();
  auto chain = Process::spawn(options);
  ASSERT_TRUE(chain);
  const std::string log = "norm_train.log";
  const std::string said = "[10.78.0.2] child ";
  ASSERT_TRUE(comes_true([&] { return project.log(log).find(said) != std::string::npos; }));
  const std::string text = project.log(log);
  const pid_t child = std::stoi(text.substr(text.find(said) + said.size()));
  chain->signal(SIGKILL);
  (void)chain->wait();
  EXPECT_TRUE(is_gone(child));
}

TEST_F(OverSsh, AMachineThatCannotBeReachedIsNamed) {
  const Project project({.gpu_list = "10.78.0.1,10.78.0.9;-1"});
  const CliResult result = run_command(
      project.path(), command({"run", "params.txt", "lite_train_lite_infer", "--join-limit", "4"}));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("10.78.0.9"));
}

// ---- Slurm ----

// The material's throw-away Slurm: two nodes, each a network namespace.
class UnderSlurm : public ::testing::Test {
 protected:
  explicit UnderSlurm(int nodes = 2) : nodes_(nodes) {}
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to give Slurm's nodes their own networks";
    for (const char* program : {"slurmctld", "slurmd", "srun", "ip"}) {
      if (!has_program(program)) {
        GTEST_SKIP() << "needs " << program << " (Debian: slurmctld slurmd slurm-client iproute2)";
      }
    }
    const fs::path tipc = tipc_material();
    scripts_ = tipc.parent_path() / "cluster";
    if (tipc.empty() || !fs::exists(scripts_ / "slurm-up.sh")) {
      GTEST_SKIP() << "needs the material's cluster/slurm-up.sh (ASSAY_SHARED)";
    }
    if (run_words("ip link show slbr0")) GTEST_SKIP() << "another throw-away Slurm is up here";
    const bool up = run_words("bash " + (scripts_ / "slurm-up.sh").string(), slurm_environment());
    if (!up) GTEST_SKIP() << "Slurm does not come up here";
    up_ = true;
  }
  void TearDown() override {
    if (up_) run_words("bash " + (scripts_ / "slurm-down.sh").string(), slurm_environment());
  }

  std::vector<std::string> slurm_environment() const {
    return {"ROOT=" + root_.path().string(),
            "NODES=" + std::to_string(nodes_),
            "GPUS=1",
            "CPUS=1",
            "MODE=netns",
            "AUTH=none",
            "SLURM_CONF=" + (root_.path() / "slurm.conf").string()};
  }

  CliResult srun(const fs::path& folder, const std::vector<std::string>& words) const {
    std::vector<std::string> argv{"srun", "-N2", "--ntasks-per-node=1", CHAIN_CLI, "chain"};
    argv.insert(argv.end(), words.begin(), words.end());
    return run_command(folder, argv, slurm_environment());
  }

  Scratch root_;
  fs::path scripts_;
  int nodes_;
  bool up_ = false;
};

class FourNodes : public UnderSlurm {
 protected:
  FourNodes() : UnderSlurm(4) {}
};

// Five models in jobs of two nodes, two of these at once; the files' own addresses are nobody's.
TEST_F(FourNodes, ModelsRunInAllocationsOfTheirOwn) {
  const Project project;
  constexpr int kModels = 5;
  for (int i = 1; i <= kModels; ++i) {
    // The last one's training fails.
    const Commands commands{.train = i < kModels ? "\"say=loss: 1\" make=last.w" : "exit=3",
                            .gpu_list = "192.0.2.1,192.0.2.2;-1"};
    std::string text = params_text(commands);
    const std::string name = "model_name:tiny";
    text.replace(text.find(name), name.size(), name + std::to_string(i));
    put(project.path() / fmt::format("model{}.txt", i), text);
  }
  put(project.path() / "models.toml",
      "version = 1\n[chains]\nfiles = [\"model*.txt\"]\nmodes = [\"lite_train_lite_infer\"]\n"
      "[slurm]\njobs = 2\nnodes = 2\n[output]\nlog_dir = \"night\"\n");
  const CliResult result =
      run_command(project.path(), {CHAIN_CLI, "campaign", "models.toml"}, slurm_environment());
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_THAT(result.out, HasSubstr("4 passed, 1 failed: 1 new failure"));
  for (int i = 1; i <= kModels; ++i) {
    const fs::path results =
        project.path() / fmt::format("night/models/model{}/lite_train_lite_infer", i);
    auto store = results::ChainStore::open(results / "chain.db", OpenMode::existing);
    ASSERT_TRUE(store) << i << result.out << slurp(results / "model.log");
    const auto stages = store->stages(1);
    ASSERT_EQ(stages->size(), 4U) << i;
    EXPECT_EQ(stages->front().state, i < kModels ? "passed" : "failed") << i;
    EXPECT_EQ(stages->back().state, i < kModels ? "passed" : "blocked") << i;
    const auto nodes = store->nodes(stages->front().id);
    EXPECT_EQ(fs::exists(results / "chain.db.rank1"), true) << i;
    ASSERT_FALSE(nodes->empty()) << i;
    EXPECT_TRUE(nodes->front().host.starts_with("10.77.0.1")) << nodes->front().host;
  }
}

TEST_F(UnderSlurm, OneCommandPerNodeTrainsTogetherAndRankZeroGoesOn) {
  const Project project({.gpu_list = "10.77.0.11,10.77.0.12;-1"});
  const CliResult result =
      srun(project.path(), {"run", "params.txt", "lite_train_lite_infer", "--per-node"});
  ASSERT_EQ(result.code, 0) << result.out;
  auto first = results::ChainStore::open(project.results() / "chain.db", OpenMode::existing);
  auto second = results::ChainStore::open(project.results() / "chain.db.rank1", OpenMode::existing);
  ASSERT_TRUE(first && second);
  std::vector<std::string> kinds;
  const auto stages = first->stages(1);
  for (const results::StoredStage& stage : *stages) kinds.push_back(stage.kind + " " + stage.state);
  EXPECT_THAT(kinds, ElementsAre("train passed", "eval passed", "export passed", "infer passed"));
  const auto others = second->stages(1);
  ASSERT_EQ(others->size(), 1U);
  EXPECT_EQ(others->front().kind, "train");
}

TEST_F(UnderSlurm, AKilledTrainingIsNamedByTheFirstNode) {
  const Project project({.gpu_list = "10.77.0.11,10.77.0.12;-1", .python = "./rank.sh"});
  put(project.path() / "rank.sh",
      "#!/bin/sh\nif [ \"$SLURM_PROCID\" = 1 ]; then sleep 0.5; kill -9 $$; fi\nsleep 600\ntouch "
      "finished\n");
  fs::permissions(project.path() / "rank.sh", fs::perms::owner_all);
  const CliResult result =
      srun(project.path(), {"run", "params.txt", "lite_train_lite_infer", "--per-node"});
  EXPECT_NE(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("node 10.77.0.12 (rank 1): killed by SIGKILL"));
  EXPECT_FALSE(fs::exists(project.path() / "finished"));  // it did not wait for the first node's
}

TEST_F(UnderSlurm, PaddleTrainsOnBothNodes) {
  ASSAY_NEED_PADDLE(python);
  const Project project({.train = "train.py",
                         .eval = "null",
                         .export_model = "export.py",
                         .infer = "infer.py",
                         .gpu_list = "10.77.0.11,10.77.0.12;-1",
                         .python = python.string()});
  put(project.path() / "export.py", R"(
import pathlib, sys
out = next(word[6:] for word in sys.argv if word.startswith('--out='))
pathlib.Path(out).mkdir(parents=True, exist_ok=True)
pathlib.Path(out, 'model.json').write_text('{}')
)");
  put(project.path() / "infer.py", "print('inferred')\n");
  put(project.path() / "train.py", R"(
import sys, paddle, paddle.distributed as dist
dist.init_parallel_env()
net = paddle.DataParallel(paddle.nn.Linear(2, 1))
opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
for step in range(5):
    loss = (net(paddle.ones([2, 2]) * (dist.get_rank() + 1)) - 1).square().mean()
    loss.backward(); opt.step(); opt.clear_grad()
    print('step', step, 'loss:', float(loss), flush=True)
print('world', dist.get_world_size(), flush=True)
out = [word[6:] for word in sys.argv if word.startswith('--out=')][0]
if dist.get_rank() == 0: paddle.save(net.state_dict(), out + '/last.w')
)");
  const CliResult result =
      srun(project.path(), {"run", "params.txt", "lite_train_lite_infer", "--per-node"});
  const std::string log = project.log("norm_train.log");
  ASSERT_EQ(result.code, 0) << result.out << log;
  EXPECT_THAT(log, HasSubstr("world 2"));
}

}  // namespace
}  // namespace assay::chain
