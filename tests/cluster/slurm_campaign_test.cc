// A run on a real Slurm of four nodes on this machine and a real PostgreSQL.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "../engine/cli.h"
#include "../store/postgres_server.h"
#include "base/atomic_file.h"
#include "base/text.h"
#include "slurm_machines.h"
#include "store/open_store.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;

class UnderSlurm : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!Slurm::missing().empty()) return;
    slurm_ = std::make_unique<Slurm>();
    server_ = std::make_unique<PostgresServer>();
    ::setenv("SLURM_CONF", slurm_->configuration().c_str(), 1);
  }
  static void TearDownTestSuite() {
    slurm_.reset();
    server_.reset();
  }
  void SetUp() override {
    if (!slurm_) GTEST_SKIP() << Slurm::missing();
    if (!slurm_->is_up()) GTEST_SKIP() << "Slurm does not come up here";
  }

  static std::vector<std::string> corpus() {
    std::vector<std::string> cases;
    for (int i = 1; i <= 1000; ++i) {
      cases.push_back("paddle.fake.echo(Tensor([" + std::to_string(i) + "], \"float32\"))");
    }
    for (int i = 1; i <= 10; ++i) {
      const std::string tensor = "(Tensor([" + std::to_string(i) + "], \"float32\"))";
      for (const char* api : {"wrong", "crash", "raises"}) {
        cases.push_back("paddle.fake." + std::string(api) + tensor);
      }
    }
    return cases;
  }

  static std::map<std::string, std::string> outcomes_in(const std::string& run) {
    std::map<std::string, std::string> found;
    const auto store = open_store(run, StoreMode::existing);
    if (!store) throw std::runtime_error(store.error().message);
    EXPECT_TRUE((*store)->each_finished([&](const FinishedCase& finished) -> Status {
      EXPECT_TRUE(found.emplace(finished.text, name(finished.verdict.outcome)).second);
      return {};
    }));
    return found;
  }

  CliResult run_documented(const std::string& heading, const std::string& address);
  std::string logs() const {
    std::string text;
    for (const auto& entry : fs::recursive_directory_iterator(cli_.folder() / "night")) {
      if (entry.path().extension() == ".log") text += read_file(entry.path()).value_or("");
    }
    return text;
  }

  static std::unique_ptr<Slurm> slurm_;
  static std::unique_ptr<PostgresServer> server_;
  Cli cli_;
};
std::unique_ptr<Slurm> UnderSlurm::slurm_;
std::unique_ptr<PostgresServer> UnderSlurm::server_;

// The first shell block after this heading of docs/how-to/many-machines.md.
std::string documented(const std::string& heading) {
  const std::string text =
      *read_file(fs::path(ASSAY_SOURCE_DIR) / "docs" / "how-to" / "many-machines.md");
  const std::size_t begin = text.find("```sh\n", text.find("\n## " + heading)) + 6;
  return text.substr(begin, text.find("```", begin) - begin);
}

// Runs the block as written, except for the address; with fake lanes, and `assay` found on the
// PATH.
CliResult UnderSlurm::run_documented(const std::string& heading, const std::string& address) {
  std::string lines = "set -e\n" + documented(heading);
  const std::string shown = "export DB=postgresql://assay@db/runs";
  if (const std::size_t at = lines.find(shown); at != std::string::npos) {
    lines.replace(at, shown.size(), "export DB='" + address + "'");
  }
  SpawnOptions options;
  options.argv = {"bash", "-c", lines};
  options.directory = cli_.folder().string();
  options.environment = {"PATH=" + fs::path(ASSAY_PROGRAM).parent_path().string() + ":" +
                         std::getenv("PATH")};
  const auto log = open_for_append(cli_.folder() / "documented.txt");
  options.fds = {{log->get(), 1}, {log->get(), 2}};
  auto shell = Process::spawn(options);
  CliResult result;
  result.status = *shell->wait();
  result.output = *read_file(cli_.folder() / "documented.txt");
  return result;
}

TEST_F(UnderSlurm, TheDocumentedLinesDoWhatTheySay) {
  (void)cli_.write_cases(corpus());
  const std::string address = server_->address("documented");
  const CliResult with = run_documented("Slurm", address);
  ASSERT_EQ(with.status.code, 0) << with.output;
  EXPECT_THAT(with.output, HasSubstr("1030 cases to run, 1030 of them new"));
  EXPECT_THAT(with.output, HasSubstr("#SBATCH --array=1-4"));
  EXPECT_EQ(outcomes_in(address).size(), corpus().size());
  EXPECT_TRUE(fs::exists(cli_.folder() / "night" / "report.html"));
  EXPECT_TRUE(fs::exists(cli_.folder() / "night" / "report.xml"));
  const CliResult without = run_documented("Without a database", "");
  ASSERT_EQ(without.status.code, 0) << without.output;
  EXPECT_EQ(outcomes_in((cli_.folder() / "all").string()), outcomes_in(address));
}

TEST_F(UnderSlurm, FourNodesComeToWhatOneMachineComesTo) {
  const std::string file = cli_.write_cases(corpus());
  const std::string address = server_->address("night");
  const std::string store = "--store=" + address;
  const CliResult planned = cli_.call({"plan", store, file, "--accuracy=True"});
  ASSERT_EQ(planned.status.code, 0) << planned.output;
  const CliResult submitted =
      cli_.call({"submit", "slurm", "--workers=4", "--gres=gpu:1", store, "--name=night",
                 "--log_dir=night", "--", "--test_cpu=True", "--num_workers_per_gpu=1"});
  ASSERT_EQ(submitted.status.code, 0) << submitted.output;
  EXPECT_THAT(submitted.output, HasSubstr("Submitted batch job"));
  ASSERT_TRUE(slurm_->is_done()) << slurm_->queue() << logs();
  EXPECT_THAT(slurm_->states(), ::testing::Each("COMPLETED")) << logs();
  EXPECT_GE(slurm_->states().size(), 4U);

  ASSERT_LE(cli_.call_api({"--api_config_file=" + file}).status.code, 1);
  EXPECT_EQ(outcomes_in(address), cli_.outcomes());
  EXPECT_EQ(outcomes_in(address).size(), corpus().size());
}

// One worker is cancelled in the middle, another one is requeued by the administrator.
TEST_F(UnderSlurm, TwentyThousandCasesOutliveScancelAndRequeue) {
  const std::vector<std::pair<std::string, std::string>> kinds{
      {"echo", "pass"}, {"wrong", "mismatch"}, {"raises", "test_error"}, {"crash", "crash"}};
  std::vector<std::string> cases;
  std::map<std::string, std::string> expected;
  for (int i = 1; i <= 20'000; ++i) {
    const auto& [api, outcome] = kinds[i % 200 == 0 ? 1 + (i / 200) % 3 : 0];
    cases.push_back("paddle.fake." + api + "(Tensor([" + std::to_string(i) + "], \"float32\"))");
    expected[cases.back()] = outcome;
  }
  const std::string address = server_->address("many");
  const std::string store = "--store=" + address;
  const CliResult planned = cli_.call({"plan", store, cli_.write_cases(cases), "--accuracy=True"});
  ASSERT_EQ(planned.status.code, 0) << planned.output;
  const CliResult submitted =
      cli_.call({"submit", "slurm", "--workers=4", store, "--name=many", "--log_dir=night", "--",
                 "--test_cpu=True", "--num_workers_per_gpu=1"});
  ASSERT_EQ(submitted.status.code, 0) << submitted.output;
  const std::size_t at = submitted.output.find("batch job ");
  ASSERT_NE(at, std::string::npos) << submitted.output;
  const std::string job = std::to_string(std::stoi(submitted.output.substr(at + 10)));
  const auto finished = [&] {
    return (*open_store(address, StoreMode::existing))->counts()->finished;
  };
  for (int tries = 0; tries < 1200 && finished() < 1'000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
  ASSERT_LT(finished(), cases.size()) << "nothing is left to be interrupted";
  ASSERT_TRUE(slurm_->tell({"scancel", job + "_3"}));
  ASSERT_TRUE(slurm_->tell({"scontrol", "requeue", job + "_2"}));
  for (int tries = 0; tries < 1200 && finished() < cases.size(); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
  // Slurm delays a requeued job by two minutes.
  (void)slurm_->tell({"scontrol", "update", "JobId=" + job + "_2", "StartTime=now"});
  ASSERT_TRUE(slurm_->is_done()) << slurm_->queue() << logs();
  EXPECT_EQ(outcomes_in(address), expected);
  const std::vector<std::string> states = slurm_->states();
  EXPECT_EQ(std::count(states.begin(), states.end(), "CANCELLED"), 1) << logs();
}

// Lines of the material's core sample at equal distances, run by Paddle and PyTorch.
std::vector<std::string> real_cases(std::size_t count) {
  const fs::path sample = Slurm::scripts().parent_path() / "corpora" / "sample_core.txt";
  const std::string text = read_file(sample).value_or("");
  std::vector<std::string> lines;
  for (const std::string& line : split_at(text, '\n')) {
    if (!line.empty() && line.front() != '#') lines.push_back(line);
  }
  std::vector<std::string> chosen;
  for (std::size_t i = 0; i < count && lines.size() >= count; ++i) {
    chosen.push_back(lines[i * lines.size() / count]);
  }
  return chosen;
}

TEST_F(UnderSlurm, FiveHundredRealCasesComeToWhatOneMachineComesTo) {
  constexpr std::size_t kCases = 500;
  std::string settings = "version = 1\n";
  for (const char* framework : {"paddle", "torch"}) {
    const fs::path python = fs::path(ASSAY_SOURCE_DIR) / ".venv" / framework / "bin" / "python";
    if (!fs::exists(python)) GTEST_SKIP() << "needs " << python << ": make build";
    settings += fmt::format("[frameworks.{}]\npython = \"{}\"\n", framework, python.string());
  }
  const std::vector<std::string> cases = real_cases(kCases);
  if (cases.empty()) GTEST_SKIP() << "needs corpora/sample_core.txt (ASSAY_SHARED)";
  ASSERT_TRUE(write_file(cli_.folder() / "assay.toml", settings));
  const std::string file = cli_.write_cases(cases);
  const std::string address = server_->address("real");
  const std::string store = "--store=" + address;
  // No case may time out because four nodes share the cores of this machine.
  const CliResult planned = cli_.call({"plan", store, file, "--accuracy=True", "--timeout=300"});
  ASSERT_EQ(planned.status.code, 0) << planned.output;
  const CliResult submitted =
      cli_.call({"submit", "slurm", "--workers=4", store, "--name=real", "--log_dir=night",
                 "--sbatch=--wait", "--", "--test_cpu=True", "--num_workers_per_gpu=1"});
  ASSERT_EQ(submitted.status.code, 0) << submitted.output << logs();
  ASSERT_LE(cli_.call_api({"--api_config_file=" + file, "--accuracy=True", "--timeout=300",
                           "--num_workers_per_gpu=2"})
                .status.code,
            1);
  const auto on_nodes = outcomes_in(address);
  EXPECT_EQ(on_nodes.size(), cli_.outcomes().size());
  EXPECT_EQ(on_nodes, cli_.outcomes());
  // All four workers took part.
  for (int worker = 1; worker <= 4; ++worker) {
    const fs::path log = cli_.folder() / "night" / fmt::format("worker-{}.log", worker);
    EXPECT_THAT(read_file(log).value_or(""), HasSubstr("cases")) << worker;
  }
}

TEST_F(UnderSlurm, WhatCannotBeSubmittedIsOneLine) {
  const CliResult password =
      cli_.call({"submit", "slurm", "--workers=4", "--store=postgresql://me:secret@db/runs"});
  EXPECT_EQ(password.status.code, 2);
  EXPECT_THAT(password.output, HasSubstr("~/.pgpass"));
  EXPECT_EQ(password.output.find("secret@"), std::string::npos);
  const CliResult refused =
      cli_.call({"submit", "slurm", "--workers=4", "--store=postgresql://db/runs",
                 "--log_dir=night", "--sbatch=--partition=none"});
  EXPECT_EQ(refused.status.code, 3);
  EXPECT_THAT(refused.output, HasSubstr("night/assay.sbatch: exit code 1"));
}

}  // namespace
}  // namespace assay::testing
