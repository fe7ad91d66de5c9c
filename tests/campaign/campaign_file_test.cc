// Reading campaign files: TOML, and the YAML of PaddleAPITest's run.py.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "../store/folder.h"
#include "campaign/campaign.h"
#include "campaign/runner.h"
#include "campaign/units.h"
#include "yaml/yaml.h"

namespace assay::campaign {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// Has every kind of line in the template of run.py.
constexpr const char* kYaml = R"(# yaml-language-server: $schema=./run_config.schema.json
name: run_config

runner:
  engine: engineV4
  foreground: false   # or true
  dry_run: no
  # pid_file: ".run/run_config.pid"

env:
  FLAGS_use_system_allocator: "true"
  FLAGS_alloc_fill_value: 255
  FLAGS_check_nan_inf: true
  NOTHING:

input:
  api_config: null
  api_config_file: "${ASSAY_TEST_MODEL}/cases.txt"
  api_config_file_pattern: ~

output:
  log_dir: "test_$ASSAY_TEST_MODEL/${ASSAY_TEST_UNSET}/log"

retest:
  enabled: true
  rounds: 2
  error_configs:
    - api_config_accuracy_error.txt
    - api_config_paddle_accuracy.txt
    - api_config_crash.txt
  log_dir_template: "{previous_log_dir}_r{round}_{error_name}"
  skip_unavailable: false

engine_args:
  accuracy: true
  gpu_ids: "4-7"
  num_gpus: -1
  rtol: 1e-2
  timeout: 600
)";

constexpr const char* kToml = R"(version = 1
name = "night"
[runner]
pid_file = "night.pid"
[env]
FLAGS_check_nan_inf = true
[input]
api_config_file_pattern = "a/*.txt,b/*.txt"
[output]
log_dir = "night"
[engine_args]
accuracy = true
num_gpus = -1
atol = 0.5
)";

class CampaignFile : public ::testing::Test {
 protected:
  Result<Campaign> read(const std::string& text, const std::string& name = "c.yaml") {
    std::ofstream(folder_ / name) << text;
    return read_campaign(folder_ / name);
  }
  std::string refusal(const std::string& text, const std::string& name = "c.yaml") {
    const auto refused = read(text, name);
    if (refused) return "it was read";
    EXPECT_EQ(refused.error().kind, ErrorKind::usage);
    const std::string& message = refused.error().message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
    const std::size_t at = message.find(name);
    return at == std::string::npos ? message : message.substr(at);
  }
  assay::testing::Folder folder_;
};

std::vector<std::pair<std::string, std::string>> words(const Campaign& campaign) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const EngineArgument& each : campaign.engine_args) found.emplace_back(each.name, each.value);
  return found;
}

TEST_F(CampaignFile, ReadsTheYamlOfRunPy) {
  ::setenv("ASSAY_TEST_MODEL", "gpt", 1);
  const auto campaign = read(kYaml);
  ASSERT_TRUE(campaign.has_value()) << campaign.error().message;
  EXPECT_EQ(campaign->name, "run_config");
  EXPECT_EQ(campaign->pid_file, ".run/run_config.pid");
  EXPECT_FALSE(campaign->foreground);
  EXPECT_THAT(
      campaign->environment,
      ElementsAre(Pair("FLAGS_use_system_allocator", "true"), Pair("FLAGS_alloc_fill_value", "255"),
                  Pair("FLAGS_check_nan_inf", "True")));  // as Python writes it
  EXPECT_EQ(campaign->input, "api_config_file");
  EXPECT_EQ(campaign->input_value, "gpt/cases.txt");
  EXPECT_EQ(campaign->log_dir, "test_gpt/${ASSAY_TEST_UNSET}/log");
  EXPECT_TRUE(campaign->retest.enabled);
  EXPECT_EQ(campaign->retest.rounds, 2);
  EXPECT_FALSE(campaign->retest.skip_unavailable);
  // assay writes engineV4's paddle_accuracy into the same file, so that file is listed once.
  EXPECT_THAT(campaign->retest.error_configs,
              ElementsAre("api_config_accuracy_error.txt", "api_config_crash.txt"));
  EXPECT_THAT(words(*campaign),
              ElementsAre(Pair("accuracy", "True"), Pair("gpu_ids", "4-7"), Pair("num_gpus", "-1"),
                          Pair("rtol", "1e-2"), Pair("timeout", "600")));
}

TEST_F(CampaignFile, ReadsTheSameKeysFromToml) {
  const auto campaign = read(kToml, "c.toml");
  ASSERT_TRUE(campaign.has_value()) << campaign.error().message;
  EXPECT_EQ(campaign->name, "night");
  EXPECT_EQ(campaign->pid_file, "night.pid");
  EXPECT_EQ(campaign->input, "api_config_file_pattern");
  EXPECT_FALSE(campaign->retest.enabled);
  EXPECT_THAT(campaign->environment, ElementsAre(Pair("FLAGS_check_nan_inf", "True")));
  EXPECT_THAT(words(*campaign),
              ::testing::UnorderedElementsAre(Pair("accuracy", "True"), Pair("num_gpus", "-1"),
                                              Pair("atol", "0.5")));
}

TEST_F(CampaignFile, AFolderNamedByAnUnsetVariableIsRefusedInToml) {
  std::string text = kToml;
  text.replace(text.find("\"night\"\n[engine"), 7, "\"runs/${ASSAY_TEST_UNSET}\"");
  EXPECT_THAT(refusal(text, "c.toml"), HasSubstr("runs/${ASSAY_TEST_UNSET} names a variable"));
}

TEST_F(CampaignFile, RefusesErrorsWithTheirLine) {
  EXPECT_THAT(refusal("name: a\ninputs: {}\n"),
              HasSubstr("c.yaml:2: unknown setting inputs; known here: name, "));
  EXPECT_THAT(refusal("runner:\n  engine: engineV4\n  fast: true\n"),
              HasSubstr("c.yaml:3: unknown setting runner.fast; known here: engine, foreground"));
  EXPECT_THAT(refusal("retest:\n  rounds: many\n"), HasSubstr("c.yaml:2: retest.rounds wants"));
  EXPECT_THAT(refusal("retest:\n  rounds: 0\n"), HasSubstr("c.yaml:2: retest.rounds wants"));
  EXPECT_THAT(refusal("retest:\n  enabled: \"yes\"\n"),
              HasSubstr("c.yaml:2: retest.enabled wants"));
  EXPECT_THAT(refusal("retest:\n  error_configs: [1]\n"), HasSubstr("c.yaml:2: retest.error_con"));
  EXPECT_THAT(refusal("env:\n  A: [1]\n"), HasSubstr("c.yaml:2: env.A wants one value"));
  EXPECT_THAT(refusal("env: A\n"), HasSubstr("c.yaml:1: env wants a table"));
  EXPECT_THAT(refusal("input:\n  api_config: a\n  api_config_file: b\n"),
              HasSubstr("[input] takes api_config or api_config_file, not both"));
  EXPECT_THAT(refusal("name: a\nname: b\n"), HasSubstr("c.yaml:2: duplicate key name"));
  EXPECT_THAT(refusal("name: [a\n"), HasSubstr("c.yaml:2: "));
  EXPECT_THAT(refusal("- a\n"), HasSubstr("a campaign must be a table"));
  EXPECT_THAT(refusal("version = 1\n[runner]\nfast = true\n", "c.toml"),
              HasSubstr("c.toml:3: unknown setting runner.fast"));
  EXPECT_THAT(refusal("version = 1\n[runner]\nforeground = 1\n", "c.toml"),
              HasSubstr("c.toml:3: runner.foreground wants true or false"));
  EXPECT_THAT(refusal("version = 1\nname = a\n", "c.toml"), HasSubstr("c.toml:2: "));
  EXPECT_THAT(refusal("name = 'a'\n", "c.toml"), HasSubstr("version = 1 is wanted"));
  EXPECT_THAT(refusal("{}", "c.json"), HasSubstr(".toml, .yaml or .yml"));
}

TEST(Yaml, RefusesWhatIsTooLargeBeforeItIsParsed) {
  const auto tree = yaml_tree(std::string((std::size_t{1} << 20) + 1, '['), "f");
  ASSERT_FALSE(tree.has_value());
  EXPECT_EQ(tree.error().message, "f: larger than 1 MiB");
}

TEST_F(CampaignFile, GivesPlainYamlScalarsTheTypesOfPyYaml) {
  const auto tree = yaml_tree("[yes, Off, 12, 1e-3, 1.5, +3, x1, '12', null, 4-7]", "f");
  ASSERT_TRUE(tree.has_value());
  using Kind = ConfigNode::Kind;
  std::vector<Kind> kinds;
  for (const ConfigNode& entry : tree->entries) kinds.push_back(entry.kind);
  EXPECT_THAT(kinds, ElementsAre(Kind::flag, Kind::flag, Kind::number, Kind::number, Kind::number,
                                 Kind::number, Kind::text, Kind::text, Kind::nothing, Kind::text));
}

TEST_F(CampaignFile, FillsInTheTemplateOfRetestFolders) {
  Campaign campaign;
  campaign.log_dir = "logs/night/";
  const auto folder = [&](const std::string& previous, int round) {
    return retest_folder(campaign, previous, round, "api_config_accuracy_error.txt");
  };
  EXPECT_EQ(*folder(campaign.log_dir, 2), "logs/night_r2_accuracy_error");
  campaign.retest.log_dir_template = "{previous_log_dir}/{round}/{error_config}";
  EXPECT_EQ(*folder("a/b", 3), "a/b/3/api_config_accuracy_error.txt");
  campaign.retest.log_dir_template = "{base}";
  EXPECT_THAT(folder("a", 2).error().message, HasSubstr("{base}"));
  campaign.retest.log_dir_template = "{base_log_dir";
  EXPECT_FALSE(folder("a", 2).has_value());
}

TEST_F(CampaignFile, ReplacesAnEarlierValueOfAnArgument) {
  Campaign campaign;
  campaign.engine_args = {{"timeout", "600", "c:1"}, {"num_gpus", "1", "c:2"}};
  set_engine_argument(campaign, {"timeout", "5", "--timeout"});
  EXPECT_THAT(words(campaign), ElementsAre(Pair("num_gpus", "1"), Pair("timeout", "5")));
}

// The runs of a campaign leave log_inorder.log beside its logs.
TEST_F(CampaignFile, TheLatestLogIsTheCampaigns) {
  Campaign campaign;
  campaign.log_dir = folder_.path().string();
  for (const char* name :
       {"log_20260101_000000.log", "log_20260102_000000.log", "log_inorder.log"}) {
    std::ofstream(folder_ / name) << "x";
  }
  EXPECT_EQ(latest_log(campaign.log_dir), folder_ / "log_20260102_000000.log");
}

// 430 bytes of aliases were 3 GB of copies.
TEST_F(CampaignFile, YamlAliasesDoNotMultiply) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    text += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i,
                        i - 1);
  }
  EXPECT_THAT(refusal(text), HasSubstr("too many values"));
}

TEST_F(CampaignFile, DeepOnesAreRefused) {
  EXPECT_THAT(refusal("a: " + std::string(100'000, '[')), HasSubstr("c.yaml:"));
  std::string key = "a";
  for (int i = 0; i < 100'000; ++i) key += ".a";
  EXPECT_THAT(refusal("[" + key + "]\n", "c.toml"), HasSubstr("a key has more than 16 parts"));
}

}  // namespace
}  // namespace assay::campaign
