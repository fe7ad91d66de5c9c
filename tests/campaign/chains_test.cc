// Campaigns of chains with real processes.

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>

#include "campaign/campaign.h"
#include "campaign/results.h"
#include "chains_tools.h"

namespace assay::chain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

constexpr const char* kHead =
    "version = 1\n[chains]\nfiles = [\"*.txt\"]\nexclude = [\"ran.txt\"]\n"
    "modes = [\"lite_train_lite_infer\"]\n";
constexpr const char* kOutput = "[output]\nlog_dir = \"night\"\n";

CliResult run_models(const fs::path& folder) {
  return run_command(folder, {CHAIN_CLI, "campaign", "models.toml"});
}

std::map<std::string, int> counted(const std::string& lines) {
  std::map<std::string, int> counts;
  for (const std::string& line : split_at(lines, '\n')) {
    ++counts[line.starts_with("begin") ? line.substr(0, line.rfind(' ')) : line];
  }
  return counts;
}

nlohmann::json report_of(const fs::path& folder) {
  return nlohmann::json::parse(slurp(folder / "night/campaign.json"));
}

// The state of each model of a report, by file.
std::map<std::string, std::string> states_of(const fs::path& folder) {
  std::map<std::string, std::string> states;
  const nlohmann::json report = report_of(folder);
  for (const auto& model : report.at("models")) {
    const std::string key = model.at("model");
    states[key.substr(0, key.find(' '))] = model.at("state");
  }
  return states;
}

TEST(CampaignFile, NamesItsMistakes) {
  const Scratch scratch;
  const auto error_of = [&](const std::string& text) {
    put(scratch.path() / "models.toml", text);
    return run_models(scratch.path()).out;
  };
  put(scratch.path() / "a.txt", "model_name:a\n");
  EXPECT_THAT(error_of("version = 2\n[chains]\n"), HasSubstr("version = 1 is wanted"));
  EXPECT_THAT(error_of(std::string(kHead) + "fils = 1\n" + kOutput), HasSubstr("fils"));
  EXPECT_THAT(
      error_of(std::string(kHead) + "[seat]\n" + kOutput),
      HasSubstr("unknown setting seat; known here: version, name, output, chains, seats, "));
  EXPECT_THAT(error_of(kHead), HasSubstr("[output] needs log_dir"));
  EXPECT_THAT(error_of(std::string(kHead) + "[output]\nlog_dir = \"x/${NO_SUCH_NAME}\"\n"),
              HasSubstr("names a variable that is not set"));
  EXPECT_THAT(error_of("version = 1\n[chains]\nfiles = [\"b*.txt\"]\nmodes = [\"m\"]\n" +
                       std::string(kOutput)),
              HasSubstr("no file matches b*.txt"));
  EXPECT_THAT(error_of("version = 1\n[chains]\nfiles = [\"a.txt\"]\n" + std::string(kOutput)),
              HasSubstr("chains.modes is missing"));
}

TEST(CampaignFile, FindsModelsAndSeats) {
  const Scratch scratch;
  for (const char* file : {"p/c/a/x.txt", "p/c/a_slim/x.txt", "p/c/b/x.txt"}) {
    put(scratch.path() / file, std::string("model_name:") + file[4] + "\n");
  }
  put(scratch.path() / "p/c/stages.toml", "version = 1\n");
  put(scratch.path() / "models.toml",
      "version = 1\n[chains]\nfiles = [\"c/*/x.txt\", \"c/*.toml\"]\nexclude = [\"*slim*\"]\n"
      "modes = [\"m1\", \"m2\"]\ndirectory = \"" +
          (scratch.path() / "p").string() +
          "\"\n[seats]\ngpus = [\"0\", \"1,2\"]\nhosts = [\"h1\", \"h2\"]\n" + kOutput);
  const auto campaign = campaign::read_campaign(scratch.path() / "models.toml");
  ASSERT_TRUE(campaign) << campaign.error().message;
  std::vector<std::string> models;
  for (const campaign::Model& model : campaign->models) models.push_back(model.key());
  EXPECT_THAT(models, ElementsAre("c/a/x.txt m1", "c/a/x.txt m2", "c/b/x.txt m1", "c/b/x.txt m2",
                                  "c/stages.toml"));
  EXPECT_EQ(campaign->models[0].group, "a");
  ASSERT_EQ(campaign->seats.size(), 4U);
  EXPECT_EQ(campaign->seats[3].host, "h2");
  EXPECT_EQ(campaign->seats[3].gpus, "1,2");
}

// One of four machines loses its power while it runs a model.
TEST(Campaign, EveryModelEndsOnceThoughAMachineIsLost) {
  std::vector<Machine> hosts = machines(4);
  if (hosts.empty()) GTEST_SKIP() << "this machine lets nobody make namespaces (unshare)";
  const Scratch scratch;
  constexpr int kModels = 40;
  std::vector<std::string> models{"waits"};
  for (int i = 1; i < kModels; ++i) models.push_back(fmt::format("m{}", i));
  for (const std::string& model : models) {
    put(scratch.path() / (model + ".txt"), recorded_params(model));
  }
  put(scratch.path() / "stage.sh", kRecordedStage);
  put(scratch.path() / "models.toml",
      std::string(kHead) + "[seats]\n" + hosts_line(hosts) + "[limits]\nlost = 2\n" + kOutput);
  RunningCampaign campaign(scratch.path());
  const auto ran = [&] { return slurp(scratch.path() / "ran.txt"); };
  ASSERT_TRUE(comes_true([&] { return ran().find("begin waits export ") != std::string::npos; }))
      << campaign.out();
  const std::string text = ran();
  const auto lost = std::ranges::find_if(hosts, [&](const Machine& host) {
    return text.find("begin waits export " + host.space()) != std::string::npos;
  });
  ASSERT_NE(lost, hosts.end());
  lost->lose_power();
  put(scratch.path() / "go", "");
  ASSERT_EQ(campaign.wait(), 0) << campaign.out();

  std::map<std::string, int> lines = counted(ran());
  for (const std::string& model : models) {
    for (const char* stage : {"train", "eval", "export", "infer"}) {
      EXPECT_EQ(lines[fmt::format("end {} {}", model, stage)], 1) << model << " " << stage;
    }
  }
  EXPECT_EQ(lines["begin waits train"], 1);  // its stages that passed are kept
  EXPECT_EQ(lines["begin waits export"], 2);
  EXPECT_THAT(campaign.out(), HasSubstr("lost waits.txt lite_train_lite_infer: "));
  EXPECT_EQ(campaign::count_ends(scratch.path() / "night")["passed"], kModels);
  EXPECT_THAT(campaign.out(), HasSubstr("40 passed: 0 new failures, 0 known, 0 fixed"));
}

// A campaign on two seats of this machine with one model of each end.
class LocalCampaign : public ::testing::Test {
 protected:
  LocalCampaign() {
    put_model("good", {});
    Commands commands;
    commands.export_model = "say=x exit=3";
    put_model("bad_export", commands);
    put(path() / "broken.txt", "===train_params===\nmodel_name:broken\n");
    put_campaign("");
  }
  fs::path path() const { return scratch_.path(); }
  void put_model(const std::string& name, const Commands& commands) const {
    std::string text = params_text(commands);
    text.replace(text.find("model_name:tiny"), 15, "model_name:" + name);
    put(path() / (name + ".txt"), text);
  }
  void put_campaign(const std::string& more, const std::string& chains = "") const {
    put(path() / "models.toml",
        std::string(kHead) + chains + "[seats]\ngpus = [\"0\", \"1\"]\n" + more + kOutput);
  }

 private:
  Scratch scratch_;
};

TEST_F(LocalCampaign, NamesEachEndAndWritesItInAllFormats) {
  const CliResult result = run_models(path());
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_THAT(states_of(path()),
              ::testing::UnorderedElementsAre(::testing::Pair("bad_export.txt", "failed"),
                                              ::testing::Pair("broken.txt", "refused"),
                                              ::testing::Pair("good.txt", "passed")));
  EXPECT_THAT(result.out, AllOf(HasSubstr("1 passed, 1 failed, 1 refused: 2 new failures"),
                                HasSubstr("NEW  bad_export.txt lite_train_lite_infer · ")));
  const std::string junit = slurp(path() / "night/junit.xml");
  EXPECT_THAT(junit, AllOf(HasSubstr("<testsuites name=\"models\" failures=\"2\">"),
                           HasSubstr("<failure type=\"failed\" message=\"exit code 3"),
                           HasSubstr("<failure type=\"refused\"")));
  EXPECT_THAT(slurp(path() / "night/summary.md"), HasSubstr("| NEW | broken.txt lite"));
  const std::string page = slurp(path() / "night/index.html");
  const nlohmann::json report = report_of(path());
  for (const auto& model : report.at("models")) {
    const std::string log = model.at("log");
    EXPECT_TRUE(fs::exists(path() / "night" / log)) << log;
    EXPECT_THAT(page, HasSubstr("\"log\":\"" + log + "\""));
  }
  EXPECT_TRUE(fs::exists(path() / "night/models/good/lite_train_lite_infer/chain.db"));
}

TEST_F(LocalCampaign, KnownFailuresDoNotFail) {
  EXPECT_EQ(run_models(path()).code, 1);
  fs::copy_file(path() / "night/known.toml", path() / "known.toml");
  put_campaign("", "known = \"known.toml\"\n");
  const CliResult known = run_models(path());
  EXPECT_EQ(known.code, 0) << known.out;
  EXPECT_THAT(known.out, HasSubstr("0 new failures, 2 known, 0 fixed"));
  EXPECT_THAT(slurp(path() / "night/junit.xml"), HasSubstr("<skipped message=\"known failed: "));
  // Another state of a known stage is a new failure; a fixed one is named.
  Commands commands;
  commands.export_model = "say=made-nothing";
  put_model("bad_export", commands);
  put_model("broken", {});
  const CliResult other = run_models(path());
  EXPECT_EQ(other.code, 1) << other.out;
  EXPECT_THAT(other.out, AllOf(HasSubstr("not_made"), HasSubstr("1 new failure, 0 known, 2 fixed"),
                               HasSubstr("fixed  broken.txt lite_train_lite_infer")));
}

TEST_F(LocalCampaign, KeepsWhatPassedUntilItChanges) {
  EXPECT_EQ(run_models(path()).code, 1);
  const CliResult again = run_models(path());
  EXPECT_THAT(again.out, HasSubstr("1 passed, 1 failed, 1 refused"));
  const auto kept = [&] {
    const std::string log = slurp(path() / "night/models/good/lite_train_lite_infer/model.log");
    return std::ranges::count_if(split_at(log, '\n'), [](const std::string& line) {
      return line.starts_with("kept from an earlier run: ");
    });
  };
  EXPECT_EQ(kept(), 4);
  Commands commands;
  commands.eval = "say=changed";
  put_model("good", commands);
  EXPECT_EQ(run_models(path()).code, 1);
  EXPECT_EQ(kept(), 3);
}

TEST_F(LocalCampaign, RetriesAndLimitsAModel) {
  fs::remove(path() / "broken.txt");
  Commands commands;
  commands.eval = "hang";
  put_model("hangs", commands);
  put_campaign("[limits]\nmodel = 3\n", "retries = 1\n");
  const CliResult result = run_models(path());
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("again  bad_export.txt lite_train_lite_infer: norm_export"),
                    HasSubstr("timed_out hangs.txt lite_train_lite_infer")));
  const nlohmann::json report = report_of(path());
  for (const auto& model : report.at("models")) {
    EXPECT_EQ(model.at("tries"), model.at("state") == "passed" ? 1 : 2) << model;
  }
}

TEST_F(LocalCampaign, AModelThatFailedForNightsRunsLast) {
  put_campaign("", "quarantine = 2\n");
  for (int night = 1; night <= 3; ++night) {
    fs::remove_all(path() / "night");
    EXPECT_EQ(run_models(path()).code, 1);
  }
  // Two seats: both quarantined models start after the good one has a seat.
  const std::string out = slurp(path() / "night/models.jsonl");
  const auto history = nlohmann::json::parse(slurp(path() / ".run/models.history.json"));
  EXPECT_EQ(history.at("models").at("bad_export.txt lite_train_lite_infer").at("failed"), 3);
  EXPECT_EQ(history.at("models").at("good.txt lite_train_lite_infer").at("failed"), 0);
}

TEST_F(LocalCampaign, CtrlCEndsEverything) {
  Commands commands;
  commands.train = "meet=1 hang";
  put_model("hangs", commands);
  fs::remove(path() / "broken.txt");
  RunningCampaign campaign(path());
  ASSERT_TRUE(comes_true([&] { return fs::exists(path() / "meeting"); })) << campaign.out();
  ASSERT_TRUE(comes_true(
      [&] { return slurp(path() / "night/models.jsonl").find("good.txt") != std::string::npos; }));
  campaign.process().signal(SIGINT);
  EXPECT_EQ(campaign.wait(), 130);
  EXPECT_EQ(states_of(path())["hangs.txt"], "not_run");
  EXPECT_THAT(campaign.out(), HasSubstr("interrupted"));
}

// Models whose own script drives them, three at a time, and again with all their stages kept.
TEST(Campaign, RunsModelsByTheirOwnScript) {
  const Scratch scratch;
  put(scratch.path() / "test_tipc/test_train_inference_python.sh", R"sh(
value() { grep "^$1:" $file | head -1 | cut -d: -f2-; }
file=$1 python=$(value python) out=./test_tipc/output/$(value model_name)/$2
mkdir -p $out
eval "$python $(value norm_train) --out=$out/w --epochs=2"
eval "$python $(value norm_export) --out=$out/model --weights=$out/w/last.w"
eval "$python $(value inference) --model_dir=$out/model"
)sh");
  constexpr int kModels = 6;
  for (int i = 0; i < kModels; ++i) {
    put(scratch.path() / fmt::format("configs/m{}/train.txt", i),
        fmt::format("model_name:m{}\npython:{}\nnorm_train:train.py \"say=epoch 2/2 loss: 0.5\" "
                    "make=last.w\nnorm_export:export.py make=inference.pdmodel "
                    "make=inference.pdiparams\ninference:infer.py say=inferred\n",
                    i, CHAIN_CHILD));
  }
  put(scratch.path() / "models.toml",
      "version = 1\n[chains]\nfiles = [\"configs/*/train.txt\"]\n"
      "modes = [\"lite_train_lite_infer\"]\n[seats]\ngpus = [\"0\", \"1\", \"2\"]\n" +
          std::string(kOutput));
  for (const char* times : {"first", "second"}) {
    const CliResult result = run_models(scratch.path());
    EXPECT_EQ(result.code, 0) << times << result.out;
    EXPECT_THAT(result.out, HasSubstr("6 passed: 0 new failures"));
  }
  for (int i = 0; i < kModels; ++i) {
    const std::string folder =
        fmt::format("night/models/configs/m{}/train/lite_train_lite_infer", i);
    const std::string log = slurp(scratch.path() / folder / "model.log");
    for (const char* stage : {"norm_train", "norm_export", "inference"}) {
      EXPECT_THAT(log, HasSubstr(fmt::format("kept from an earlier run: {}", stage)));
    }
  }
}

TEST(CampaignExample, Runs) {
  const Scratch scratch;
  fs::copy(fs::path(ASSAY_SOURCE_DIR) / "examples/chain", scratch.path());
  const CliResult result = run_models(scratch.path());
  EXPECT_EQ(result.code, 0) << result.out;
  EXPECT_THAT(result.out, HasSubstr("1 passed: 0 new failures"));
}

// Nothing lives on, on this machine and on another, when the campaign is killed.
TEST(CampaignEnd, TakesItsModelsAlong) {
  std::vector<Machine> hosts = machines(1);
  if (hosts.empty()) GTEST_SKIP() << "this machine lets nobody make namespaces (unshare)";
  for (const int signal : {SIGINT, SIGKILL}) {
    const Scratch scratch;
    put(scratch.path() / "stage.sh", kRecordedStage);
    put(scratch.path() / "waits.txt", recorded_params("waits"));
    put(scratch.path() / "models.toml",
        std::string(kHead) + "[seats]\n" + hosts_line(hosts) + "[limits]\nlost = 2\n" + kOutput);
    RunningCampaign campaign(scratch.path());
    ASSERT_TRUE(comes_true([&] {
      return slurp(scratch.path() / "ran.txt").find("begin waits export") != std::string::npos;
    })) << campaign.out();
    const auto lives = [&] {
      return run_command(scratch.path(), {"nsenter", "--target", hosts[0].name(), "--pid",
                                          "--mount", "pgrep", "-f", "stage.sh"})
                 .code == 0;
    };
    EXPECT_TRUE(lives());
    campaign.process().signal(signal);
    (void)campaign.process().wait();
    EXPECT_TRUE(comes_true([&] { return !lives(); })) << signal;
  }
}

// The host's side alone: it ends its model when its campaign is silent or gone.
TEST(Remote, EndsItsModelWithoutItsCampaign) {
  for (const bool closes : {true, false}) {
    Commands commands;
    commands.train = "meet=1 hang";
    const Project project(commands);
    auto pipe = make_pipe();
    const auto log = open_for_append(project.path() / "remote.out");
    SpawnOptions options;
    options.argv = {CHAIN_CLI, "chain", "remote",     "--lost-limit",         "3",
                    "--",      "run",   "params.txt", "lite_train_lite_infer"};
    options.directory = project.path().string();
    options.fds = {{pipe->first.get(), 0}, {log->get(), 1}, {log->get(), 2}};
    auto process = Process::spawn(options);
    const auto out = [&] { return slurp(project.path() / "remote.out"); };
    EXPECT_TRUE(comes_true([&] { return fs::exists(project.path() / "meeting"); })) << out();
    if (closes) pipe->second.reset();
    const auto status = process->wait_at_most(std::chrono::seconds(60));
    EXPECT_EQ(status->code, 130) << out();
    EXPECT_THAT(out(), AllOf(HasSubstr("assay-remote: alive\n"), HasSubstr("ended 130\n")));
  }
}

}  // namespace
}  // namespace assay::chain
