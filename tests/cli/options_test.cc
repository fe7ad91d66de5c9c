#include <fmt/format.h>
#include <gmock/gmock.h>
#include <stdlib.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <thread>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "cli/api_config.h"
#include "cli/api_options.h"
#include "cli/settings.h"
#include "cli/verb.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

TEST(ParseBool, TakesWhatEngineV2Takes) {
  for (const char* yes : {"True", "true", "TRUE", "1", "yes", "Y"}) {
    EXPECT_EQ(parse_bool(yes), true) << yes;
  }
  for (const char* no : {"False", "false", "FALSE", "0", "no", "N"}) {
    EXPECT_EQ(parse_bool(no), false) << no;
  }
  for (const char* other : {"", "2", "t", "on", " true", "True ", "nope", "-1"}) {
    EXPECT_EQ(parse_bool(other), std::nullopt) << other;
  }
}

// What `assay api FLAGS` reads; the order of the flags is theirs.
ApiOptions options_of(std::vector<std::string> flags) {
  CLI::App app;
  ApiOptions options;
  add_api_options(app, options);
  std::reverse(flags.begin(), flags.end());  // as CLI11 takes them
  app.parse(flags);
  return options;
}

TEST(ApiOptions, AFlagAloneIsTrue) {
  EXPECT_FALSE(options_of({}).quiet);
  EXPECT_TRUE(options_of({"--quiet"}).quiet);
  EXPECT_TRUE(options_of({"--quiet", "True"}).quiet);
  EXPECT_TRUE(options_of({"--quiet=True"}).quiet);
  EXPECT_FALSE(options_of({"--quiet=False"}).quiet);
  EXPECT_FALSE(options_of({"--quiet", "no"}).quiet);
  const ApiOptions several = options_of({"--accuracy", "--test_cpu", "--exit_on_error", "--quiet"});
  EXPECT_TRUE(several.modes.at("accuracy") && several.test_cpu && several.exit_on_error &&
              several.quiet);
  EXPECT_EQ(options_of({"--retest"}).retest, "True");
  EXPECT_EQ(options_of({"--retest=crash"}).retest, "crash");
  EXPECT_THROW(options_of({"--quiet=perhaps"}), CLI::ValidationError);
}

TEST(ApiOptions, ASeedIsAWholeNumberOf64Bits) {
  EXPECT_EQ(options_of({"--random_seed=18446744073709551615"}).settings.seed, ~std::uint64_t{0});
  for (const char* const other : {"-1", "18446744073709551616", "1.5", "", "0x10", "7 "}) {
    EXPECT_THROW(options_of({std::string("--random_seed=") + other}), CLI::ParseError) << other;
  }
}

Result<RunConfig> config_of(std::vector<std::string> flags) {
  std::vector<std::string> notes;
  flags.emplace_back("--api_config=paddle.abs(1)");
  return make_run_config(options_of(std::move(flags)), notes);
}

TEST(ApiOptions, LittleMemoryForEachWorkerIsNoLimit) {
  for (const char* little : {"1e-10", "1e-300", "5e-324"}) {
    const auto config =
        config_of({"--num_workers_per_gpu=3", std::string("--required_memory=") + little});
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->slots, 3U);
  }
}

// As on a GPU: not one worker without what was asked for.
TEST(ApiOptions, MoreMemoryThanThereIsForOneWorkerIsAnError) {
  for (const char* much : {"100000", "1e300", "1.7e308"}) {
    const auto config = config_of({"--num_gpus=0", std::string("--required_memory=") + much});
    ASSERT_FALSE(config) << much;
    EXPECT_EQ(config.error().kind, ErrorKind::usage);
    EXPECT_THAT(config.error().message, HasSubstr("GiB of this machine's memory, and each needs"));
  }
}

TEST(ApiOptions, SomeMoreWorkersThanCoresAreTaken) {
  const unsigned cores = std::thread::hardware_concurrency();
  std::vector<std::string> notes;
  const auto slots = [&](unsigned workers) {
    const auto config =
        make_run_config(options_of({"--api_config=paddle.abs(1)", "--num_gpus=0",
                                    "--num_workers_per_gpu=" + std::to_string(workers)}),
                        notes);
    return config ? config->slots : 0;
  };
  EXPECT_EQ(slots(4 * cores), 4 * cores);
  EXPECT_EQ(notes.size(), 1U) << "where they sit";
  EXPECT_EQ(slots(100'000), 4 * cores);
  EXPECT_THAT(notes.back(), HasSubstr(" of 100000 workers: more than 4 per core are of no use"));
}

TEST(ApiOptions, TwoGpusThatAreNotThereAreMissed) {
  for (const std::string mode : {"accuracy", "accuracy_stable"}) {
    const auto config = config_of({"--" + mode + "_dual_gpu=True", "--num_gpus=0"});
    ASSERT_FALSE(config) << mode;
    EXPECT_EQ(config.error().kind, ErrorKind::usage);
    EXPECT_THAT(config.error().message,
                ::testing::AllOf(
                    HasSubstr("_dual_gpu needs two GPUs, one for each lane, and this run has none"),
                    HasSubstr("--" + mode + ", which")));
  }
}

// A case that runs again shall run where it ran, as far as somebody has said where that is.
TEST(ApiOptions, PlacesThatWereNamedAreNamedAgain) {
  using Flags = std::map<std::string, std::string>;
  EXPECT_EQ(config_of({})->rerun_flags, Flags());
  EXPECT_EQ(config_of({"--num_gpus=0", "--test_cpu=True"})->rerun_flags,
            (Flags{{"flag.num_gpus", "0"}, {"flag.test_cpu", "True"}}));
}

TEST(ApiOptions, AYearIsTheLongestTimeLimit) {
  EXPECT_EQ(config_of({"--timeout=1e6"})->timeout_ms, 1'000'000'000U);
  EXPECT_EQ(config_of({"--timeout=1e-300"})->timeout_ms, 1U);
  for (const char* bad : {"1e300", "4e7", "inf", "nan", "-1"}) {
    const auto config = config_of({std::string("--timeout=") + bad});
    ASSERT_FALSE(config) << bad;
    EXPECT_EQ(config.error().kind, ErrorKind::usage);
    EXPECT_THAT(config.error().message, HasSubstr("--timeout takes seconds"));
  }
}

TEST(ApiOptions, SecondsMayHaveAUnit) {
  EXPECT_EQ(config_of({"--timeout=90s"})->timeout_ms, 90'000U);
  EXPECT_EQ(config_of({"--timeout=1.5min"})->timeout_ms, 90'000U);
  EXPECT_EQ(config_of({"--timeout=1h"})->timeout_ms, 3'600'000U);
  EXPECT_THROW(options_of({"--timeout=1d"}), CLI::ValidationError);
}

class SettingsFile : public ::testing::Test {
 protected:
  SettingsFile() {
    std::string name = (std::filesystem::temp_directory_path() / "assay-cli-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~SettingsFile() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Result<Settings> load(const std::string& text) {
    const auto path = folder_ / "assay.toml";
    EXPECT_TRUE(write_file(path, text));
    return load_settings(path);
  }
  std::filesystem::path folder_;
};

TEST_F(SettingsFile, NamesInterpreters) {
  const auto settings =
      load("version = 1\n[frameworks.paddle]\npython = \"/p\"\nenvironment = [\"A=1\", \"B=2\"]\n");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->framework("paddle", "").python, "/p");
  EXPECT_EQ(settings->framework("paddle", "/other").python, "/other");
  EXPECT_THAT(settings->framework("paddle", "").environment, ::testing::ElementsAre("A=1", "B=2"));
}

TEST_F(SettingsFile, WithAnEnvironmentThatSetsNothingIsRefused) {
  for (const char* const table : {"frameworks.paddle", "lanes.new"}) {
    for (const char* const entry : {"BROKEN", "BROKEN =1", "=B", ""}) {
      const auto settings =
          load(fmt::format("version = 1\n[{}]\nenvironment = [\"{}\"]\n", table, entry));
      ASSERT_FALSE(settings) << entry;
      EXPECT_THAT(settings.error().message, HasSubstr("environment takes NAME=VALUE"));
    }
  }
  EXPECT_TRUE(load("version = 1\n[frameworks.paddle]\nenvironment = [\"EMPTY=\", \"A=b=c\"]\n"));
}

TEST_F(SettingsFile, NamesFoldersOfOwnTablesBesideItself) {
  const auto settings = load("version = 1\napis = [\"own\", \"/elsewhere\"]\n");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_THAT(settings->apis, ::testing::ElementsAre((folder_ / "own").string(), "/elsewhere"));
}

TEST_F(SettingsFile, OwnTablesReachBothLanes) {
  std::vector<std::string> notes;
  const std::string flag = "--apis=" + folder_.string();
  const auto config = make_run_config(options_of({"--api_config=paddle.abs(1)", flag}), notes);
  ASSERT_TRUE(config) << config.error().message;
  const std::string folder = std::filesystem::canonical(folder_).string();
  for (const LaneConfig* lane : {&config->test, &config->reference}) {
    EXPECT_THAT(lane->framework.environment, ::testing::Contains("ASSAY_APIS=" + folder));
  }
  EXPECT_EQ(config->rerun_flags.at(std::string(kRerunFlag) + "apis"), folder_.string());
  const auto missing =
      make_run_config(options_of({"--api_config=paddle.abs(1)", "--apis=/nowhere"}), notes);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("--apis: /nowhere is no folder"));
}

TEST_F(SettingsFile, WithUnknownSettingsIsRefused) {
  const auto outside = load("version = 1\npython = \"/p\"\n");
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().kind, ErrorKind::usage);
  EXPECT_THAT(outside.error().message, HasSubstr("assay.toml:2: unknown setting python"));
  const auto inside = load("version = 1\n[frameworks.paddle]\npyhton = \"/p\"\n");
  ASSERT_FALSE(inside);
  EXPECT_THAT(inside.error().message,
              HasSubstr("assay.toml:3: unknown setting frameworks.paddle.pyhton"));
  EXPECT_FALSE(load("version = 1\n[frameworks.paddle]\npython = 3\n"));
}

TEST(CheckNanInf, IsWarnedOfInTheLanesThatPaddleHas) {
  LaneConfig lane;
  lane.framework.name = "paddle";
  ::unsetenv("FLAGS_check_nan_inf");
  EXPECT_EQ(check_nan_inf_warning(lane), "");
  lane.framework.environment = {"FLAGS_check_nan_inf=True"};
  EXPECT_THAT(check_nan_inf_warning(lane),
              ::testing::StartsWith("FLAGS_check_nan_inf=True is set for lane paddle: "));
  lane.framework.name = "torch";
  EXPECT_EQ(check_nan_inf_warning(lane), "");
  lane.framework.name = "paddle";
  lane.label = "old";
  lane.framework.environment.clear();
  ::setenv("FLAGS_check_nan_inf", "1", 1);
  EXPECT_THAT(check_nan_inf_warning(lane), HasSubstr("set for lane old"));
  lane.framework.environment = {"FLAGS_check_nan_inf=0"};  // overrides the environment
  EXPECT_EQ(check_nan_inf_warning(lane), "");
  ::unsetenv("FLAGS_check_nan_inf");
}

// What no verb foresaw ends with one line and exit code 3, not with a signal.
TEST(Verbs, AnExceptionIsOneLine) {
  const auto code_of = [](std::function<Result<int>()> run, const std::string& said) {
    ::testing::internal::CaptureStderr();
    const Verb verb{nullptr, std::move(run)};
    const int code = run_guarded([&] { return run_verb(verb); });
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                ::testing::AllOf(HasSubstr(said), ::testing::EndsWith("\n")));
    return code;
  };
  EXPECT_EQ(code_of([]() -> Result<int> { throw std::runtime_error("odd thing"); }, "odd thing"),
            kTrouble);
  EXPECT_EQ(code_of([]() -> Result<int> { throw std::bad_alloc(); }, "out of memory"), kTrouble);
  EXPECT_EQ(code_of([]() -> Result<int> { throw 7; }, "unknown exception"), kTrouble);
  EXPECT_EQ(code_of([]() -> Result<int> { return usage_error("bad flag"); }, "assay: bad flag"),
            kUsage);
  EXPECT_EQ(code_of([]() -> Result<int> { return fail("no disk"); }, "assay: no disk"), kTrouble);
  EXPECT_EQ(run_verb({nullptr, []() -> Result<int> { return kSomeFailed; }}), kSomeFailed);
}

}  // namespace
}  // namespace assay
