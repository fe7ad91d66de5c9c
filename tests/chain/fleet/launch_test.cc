// The ways in which many machines are started: ssh, Slurm, and Parameter Server mode.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "chain/params/params.h"
#include "chain/plan/make_plan.h"
#include "chain/plan/plan.h"
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
  const std::string cell = "norm_train_gpus_-1_autocast_False_nodes_2";
  const std::string log = project.log(cell + "_train.log");
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
  const std::string log = "norm_train_gpus_-1_autocast_False_nodes_2_train.log";
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
                         .export_model = "null",
                         .infer = "null",
                         .gpu_list = "10.77.0.11,10.77.0.12;-1",
                         .python = python.string()});
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
  const std::string log = project.log("norm_train_gpus_-1_autocast_False_nodes_2_train.log");
  ASSERT_EQ(result.code, 0) << result.out << log;
  EXPECT_THAT(log, HasSubstr("world 2"));
}

// ---- Parameter Server mode ----

plan::Plan plan_with_servers(const std::string& gpu_list, int servers, int trainers) {
  const params::ParsedParams parsed =
      params::parse_params(params_text({.train = "t.py", .gpu_list = gpu_list}));
  EXPECT_TRUE(parsed.good()) << params::describe("f", parsed.problems);
  plan::PlanOptions options;
  options.ps_servers = servers;
  options.ps_trainers = trainers;
  auto plan = plan::make_plan(parsed.params, "lite_train_lite_infer", options);
  EXPECT_TRUE(plan);
  return plan ? *plan : plan::Plan{};
}

TEST(ParameterServer, NamesEveryServerAndTrainer) {
  const plan::Plan here = plan_with_servers("-1", 2, 1);
  EXPECT_EQ(here.stages.front().name, "norm_train_gpus_-1_autocast_False_ps_2x1_nodes_1/train");
  const std::vector<std::string>& argv = here.stages.front().argv;
  EXPECT_THAT(
      std::vector<std::string>(argv.begin() + 1, argv.begin() + 6),
      ElementsAre("-m", "paddle.distributed.launch", "--servers=127.0.0.1:6170,127.0.0.1:6171",
                  "--trainers=127.0.0.1:6270", "t.py"));
  const plan::Plan both = plan_with_servers("10.0.0.1,10.0.0.2;-1", 1, 2);
  EXPECT_EQ(both.stages.front().argv[3], "--servers=10.0.0.1:6170,10.0.0.2:6170");
  EXPECT_EQ(both.stages.front().argv[4],
            "--trainers=10.0.0.1:6270,10.0.0.1:6271,10.0.0.2:6270,10.0.0.2:6271");
}

// A line y = 3 x - 1 whose slope lies on the first server and whose height on the second; each
// trainer has half of the points. Right only when every server and every trainer took part.
constexpr const char* kLineByServers = R"(
import json, os, socket, sys, time
servers = os.environ['PADDLE_PSERVERS_IP_PORT_LIST'].split(',')
trainers = int(os.environ['PADDLE_TRAINERS_NUM'])
def ask(server, message):
    for tries in range(1200):
        try:
            with socket.create_connection(server.split(':'), timeout=120) as link:
                link.sendall((json.dumps(message) + '\n').encode())
                return json.loads(link.makefile().readline())
        except OSError:
            time.sleep(0.1)
    sys.exit('no server at ' + server)
if os.environ['TRAINING_ROLE'] == 'PSERVER':
    value, done = 0.0, 0
    with socket.create_server((os.environ['POD_IP'], int(os.environ['PADDLE_PORT']))) as listener:
        while done < trainers:
            with listener.accept()[0] as link:
                message = json.loads(link.makefile().readline())
                value -= 0.1 * message.get('gradient', 0.0)
                done += message.get('done', 0)
                link.sendall((json.dumps(value) + '\n').encode())
else:
    rank = int(os.environ['PADDLE_TRAINER_ID'])
    points = [x / 10 for x in range(-10, 11)][rank::trainers]
    for step in range(150):
        slope, height = ask(servers[0], {}), ask(servers[1], {})
        errors = [slope * x + height - (3 * x - 1) for x in points]
        ask(servers[0], {'gradient': sum(e * x for e, x in zip(errors, points)) / len(points)})
        ask(servers[1], {'gradient': sum(errors) / len(points)})
        if step % 50 == 0: print('loss:', sum(e * e for e in errors) / len(points), flush=True)
    for server in servers: ask(server, {'done': 1})
    if rank == 0:
        out = [word[6:] for word in sys.argv if word.startswith('--out=')][0]
        os.makedirs(out, exist_ok=True)
        with open(out + '/last.w', 'w') as file: file.write(f'{slope} {height}\n')
)";

Commands line_by_servers(const fs::path& python, const std::string& gpu_list) {
  return {.train = "line.py",
          .eval = "null",
          .export_model = "null",
          .infer = "null",
          .gpu_list = gpu_list,
          .python = python.string()};
}

void expect_the_line(const Project& project, const std::string& cell) {
  std::istringstream weights(slurp(project.results() / (cell + ".log") / "last.w"));
  double slope = 0;
  double height = 0;
  weights >> slope >> height;
  EXPECT_NEAR(slope, 3, 0.2);
  EXPECT_NEAR(height, -1, 0.1);
}

TEST(ParameterServer, PaddlesLauncherRunsServersAndTrainersHere) {
  ASSAY_NEED_PADDLE(python);
  const Project project(line_by_servers(python, "-1"));
  put(project.path() / "line.py", kLineByServers);
  const CliResult result = project.run({"--ps-servers", "2", "--ps-trainers", "2"});
  ASSERT_EQ(result.code, 0) << result.out;
  expect_the_line(project, "norm_train_gpus_-1_autocast_False_ps_2x2_nodes_1");
}

class ServersOnTwoMachines : public TwoMachines {};

TEST_F(ServersOnTwoMachines, PaddlesLauncherRunsThemOnBoth) {
  ASSAY_NEED_PADDLE(python);
  const Project project(line_by_servers(python, "10.78.0.1,10.78.0.2;-1"));
  put(project.path() / "line.py", kLineByServers);
  std::vector<std::string> words{"--ps-servers", "1"};
  for (const std::string& word : reach()) words.push_back(word);
  const CliResult result = project.run(words);
  const std::string cell = "norm_train_gpus_-1_autocast_False_ps_1x1_nodes_2";
  ASSERT_EQ(result.code, 0) << result.out << project.log(cell + "_train.log");
  expect_the_line(project, cell);
}

}  // namespace
}  // namespace assay::chain
