#include "cli/full/verb_run.h"

#include <fmt/format.h>
#include <signal.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "campaign/campaign.h"
#include "campaign/pid_file.h"
#include "campaign/rotating_log.h"
#include "campaign/runner.h"
#include "chain/campaign/campaign_file.h"
#include "cli/api_options.h"
#include "cli/exit_code.h"
#include "cli/full/chain_campaign.h"

namespace assay::cli::full {
namespace {

constexpr const char* kRunExamples = R"(Examples:
  assay run night.toml --background
  assay run run_config.yaml --set-env=FLAGS_use_mkldnn=0 --engine-arg=num_gpus=2
  assay status night.toml; assay stop night.toml
  assay run models.toml --background
FILE is TOML, or YAML of PaddleAPITest's run.py; both have the names of run.py. Flags after -- go to every
round of `assay api`. Exit code: that of the worst round. A file with a table [chains] is a campaign of
chains: it runs `assay chain run` for many params files, on GPUs, ssh hosts or Slurm. Exit code: 1 if there
are new failures.)";

constexpr std::chrono::seconds kStopPatience{60};

struct RunOptions {
  std::string file;
  bool background = false;
  bool foreground = false;
  bool dry_run = false;
  std::string engine;
  std::array<std::pair<std::string, std::string>, 3> inputs{
      {{"api_config", ""}, {"api_config_file", ""}, {"api_config_file_pattern", ""}}};
  std::string log_dir;
  std::array<std::pair<std::string, std::string>, 5> usual{{{"timeout", ""},
                                                            {"num_gpus", ""},
                                                            {"num_workers_per_gpu", ""},
                                                            {"gpu_ids", ""},
                                                            {"required_memory", ""}}};
  std::vector<std::string> environment;
  std::vector<std::string> engine_args;
  std::vector<std::string> passed;
};

// "num_gpus" as a flag of run.py: "--num-gpus".
std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

Result<std::pair<std::string, std::string>> key_and_value(const std::string& text,
                                                          std::string_view flag) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return usage_error(fmt::format("{} takes KEY=VALUE, not {}", flag, text));
  }
  return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

Status apply(const RunOptions& options, Campaign& campaign) {
  for (const auto& [name, value] : options.inputs) {
    if (value.empty()) continue;
    campaign.input = name;
    campaign.input_value = value;
  }
  if (!options.log_dir.empty()) campaign.log_dir = options.log_dir;
  for (const auto& [name, value] : options.usual) {
    if (!value.empty()) set_engine_argument(campaign, {name, value, dashed(name)});
  }
  for (const std::string& text : options.environment) {
    ASSAY_TRY(const auto entry, key_and_value(text, "--set-env"));
    campaign.environment.push_back(entry);
  }
  for (const std::string& text : options.engine_args) {
    ASSAY_TRY(auto entry, key_and_value(text, "--engine-arg"));
    std::replace(entry.first.begin(), entry.first.end(), '-', '_');
    set_engine_argument(campaign, {entry.first, entry.second, "--engine-arg"});
  }
  campaign.dry_run = campaign.dry_run || options.dry_run;
  if (options.foreground) campaign.foreground = true;
  if (options.background) campaign.foreground = false;
  if (campaign.input.empty()) {
    return usage_error(options.file +
                       ": [input] needs api_config, api_config_file or api_config_file_pattern");
  }
  if (campaign.log_dir.empty()) return usage_error(options.file + ": [output] needs log_dir");
  return {};
}

// Removes engine arguments that assay does not know: with a note if they are off, and a usage error
// if they are on.
Status keep_known(Campaign& campaign) {
  ApiOptions options;
  CLI::App api;
  add_api_options(api, options);
  std::vector<EngineArgument> kept;
  std::vector<std::string> words;
  for (const EngineArgument& each : campaign.engine_args) {
    if (api.get_option_no_throw("--" + each.name) != nullptr) {
      kept.push_back(each);
      words.push_back(fmt::format("--{}={}", each.name, each.value));
      continue;
    }
    if (parse_bool(each.value) != false) {
      return usage_error(
          fmt::format("{}: assay api has no --{}, and verdicts may depend on it: remove it",
                      each.where, each.name));
    }
    show(stdout, "note: {}: assay has no {}, and it is off: ignored\n", each.where, each.name);
  }
  std::reverse(words.begin(), words.end());  // CLI11 takes the last word first
  try {
    api.parse(words);
  } catch (const CLI::ParseError& error) {
    return usage_error(fmt::format("engine_args: {}", error.what()));
  }
  campaign.engine_args = std::move(kept);
  return {};
}

void print_dry_run(const Campaign& campaign, const RunnerOptions& options) {
  show(stdout, "{}\n",
       shell_line(
           round_words(campaign, options, campaign.input, campaign.input_value, campaign.log_dir)));
  for (const auto& [name, value] : campaign.environment) show(stdout, "  {}={}\n", name, value);
  if (!campaign.retest.enabled) return;
  for (const std::string& file : campaign.retest.error_configs) {
    show(stdout, "then {} more rounds for the cases in {}\n", campaign.retest.rounds - 1, file);
  }
}

void print_background(const std::string& name, pid_t pid, const std::filesystem::path& log_dir,
                      const std::string& file) {
  show(stdout, "{} runs as process {}\nlog: {}\nassay status {}; assay stop {}\n", name, pid,
       latest_log(log_dir).string(), file, file);
}

// A campaign of chains: it has its seats, limits and flags in its file alone.
Result<int> run_chains_file(const RunOptions& options) {
  ASSAY_TRY(chain::campaign::Campaign campaign, chain::campaign::read_campaign(options.file));
  if (!options.log_dir.empty()) campaign.log_dir = options.log_dir;
  if (options.dry_run) return print_chain_campaign(campaign);
  const auto run = [&](const std::function<void()>& started) -> Result<int> {
    const std::filesystem::path pid_path = default_pid_file(campaign.name);
    ASSAY_TRY(const Fd pid_file, take_pid_file(pid_path));
    std::error_code ignored;
    std::filesystem::create_directories(campaign.log_dir, ignored);
    const std::filesystem::path log = new_log(campaign.log_dir);
    const auto show_and_keep = [&](std::string_view text) {
      show_text(stdout, text);
      std::fflush(stdout);
      (void)append_to_log(log, text);
    };
    auto ended = run_chain_campaign(campaign, show_and_keep, started);
    if (!ended) show_and_keep(fmt::format("assay: {}\n", ended.error().message));
    std::filesystem::remove(pid_path, ignored);
    return ended;
  };
  if (!options.background) return run({});
  ASSAY_TRY(const pid_t pid, run_in_background(run));
  print_background(campaign.name, pid, campaign.log_dir, options.file);
  return kAllGood;
}

Result<int> run_campaign_file(const RunOptions& options) {
  if (chain::campaign::is_campaign_of_chains(options.file)) return run_chains_file(options);
  ASSAY_TRY(Campaign campaign, read_campaign(options.file));
  ASSAY_CHECK(apply(options, campaign));
  ASSAY_CHECK(keep_known(campaign));
  RunnerOptions runner;
  ASSAY_TRY(const std::string program, own_executable());
  runner.program = {program, "api"};
  runner.arguments = options.passed;
  if (campaign.dry_run) {
    print_dry_run(campaign, runner);
    return kAllGood;
  }
  if (campaign.foreground) {
    runner.show = [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    };
    return run_campaign(campaign, runner);
  }
  const auto run = [&](const std::function<void()>& started) {
    runner.started = started;
    return run_campaign(campaign, runner);
  };
  ASSAY_TRY(const pid_t pid, run_in_background(run));
  print_background(campaign.name, pid, campaign.log_dir, options.file);
  return kAllGood;
}

// What `status` and `stop` know a campaign by: its name, pid file and folder.
Result<Campaign> identified(const RunOptions& options) {
  if (!chain::campaign::is_campaign_of_chains(options.file)) return read_campaign(options.file);
  ASSAY_TRY(const auto chains, chain::campaign::read_campaign(options.file));
  Campaign campaign;
  campaign.name = chains.name;
  campaign.pid_file = default_pid_file(chains.name);
  campaign.log_dir = chains.log_dir.string();
  return campaign;
}

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string last_line_of(const std::filesystem::path& file) {
  const auto text = read_file(file);
  if (!text) return "";
  const std::string_view all = trimmed(*text);
  return std::string(all.substr(all.rfind('\n') + 1));
}

void show_latest_log(const std::filesystem::path& log_dir) {
  const std::filesystem::path log = latest_log(log_dir);
  if (!log.empty()) show(stdout, "log: {}\n  {}\n", log.string(), last_line_of(log));
}

// Prints whether the campaign runs, its rounds and the last line of its log.
Result<int> show_status(const RunOptions& options) {
  ASSAY_TRY(Campaign campaign, identified(options));
  if (!options.log_dir.empty()) campaign.log_dir = options.log_dir;
  const auto running = running_process(campaign.pid_file);
  if (running) {
    show(stdout, "{} runs as process {}, for {}\n", campaign.name, running->pid,
         duration(running->seconds));
  } else {
    show(stdout, "{} does not run\n", campaign.name);
  }
  if (chain::campaign::is_campaign_of_chains(options.file)) {
    ASSAY_TRY(auto chains, chain::campaign::read_campaign(options.file));
    chains.log_dir = campaign.log_dir;
    show_chain_progress(chains);
    show_latest_log(campaign.log_dir);
    return kAllGood;
  }
  const nlohmann::json progress = read_progress(campaign);
  if (!progress.is_object()) return kAllGood;
  for (const nlohmann::json& round : progress.at("rounds")) {
    const std::int64_t began = round.value("began_ms", std::int64_t{0});
    const std::int64_t until = round.value("ended_ms", wall_ms());
    const std::string usual = running ? "runs" : "was cut off";
    show(stdout, "  {}: {}, {}, {}\n", round.value("label", ""), round.value("ended", usual),
         duration(static_cast<double>(until - began) / 1000), round.value("log_dir", ""));
  }
  show_latest_log(campaign.log_dir);
  return kAllGood;
}

Result<int> stop_campaign(const RunOptions& options) {
  ASSAY_TRY(const Campaign campaign, identified(options));
  ASSAY_TRY(const bool told, signal_process(campaign.pid_file, SIGTERM));
  if (!told) {
    show(stdout, "{} does not run\n", campaign.name);
    return kAllGood;
  }
  const auto give_up = std::chrono::steady_clock::now() + kStopPatience;
  while (running_process(campaign.pid_file)) {
    if (std::chrono::steady_clock::now() > give_up) {
      return fail(
          fmt::format("{} still finishes its running cases; `assay stop` again stops it at once",
                      campaign.name));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  show(stdout, "{} is stopped; the same `assay run` resumes it\n", campaign.name);
  return kAllGood;
}

void add_file(CLI::App& app, RunOptions& options) {
  app.add_option("FILE,-c,--config", options.file, "The campaign: .toml, .yaml or .yml")
      ->required();
}

}  // namespace

Verb add_run_verb(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("run", "Run a campaign from a file, with rounds of retests");
  auto options = std::make_shared<RunOptions>();
  add_file(*app, *options);
  app->add_flag("--background", options->background, "Run in the background; survives a logout");
  app->add_flag("--foreground", options->foreground,
                "Run in the foreground, as runner.foreground does");
  app->add_flag("--dry-run", options->dry_run, "Print the commands without running them");
  app->add_option("--engine", options->engine, "(no effect: assay has one engine)");
  for (auto& [name, value] : options->inputs) {
    app->add_option(dashed(name), value, "Instead of the file's [input]");
  }
  app->add_option("--log-dir", options->log_dir, "Instead of output.log_dir");
  for (auto& [name, value] : options->usual) {
    app->add_option(dashed(name), value, "Instead of engine_args." + name);
  }
  app->add_option("--set-env", options->environment, "Environment variable of the runs, KEY=VALUE")
      ->allow_extra_args(false);
  app->add_option("--engine-arg", options->engine_args, "A flag of assay api, KEY=VALUE")
      ->allow_extra_args(false);
  app->add_option("FLAGS", options->passed, "After --: flags of every round");
  app->footer(kRunExamples);
  return {app, [options] { return run_campaign_file(*options); }};
}

Verb add_status_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("status", "Show how far a campaign is");
  auto options = std::make_shared<RunOptions>();
  add_file(*app, *options);
  app->add_option("--log-dir", options->log_dir, "Instead of output.log_dir");
  return {app, [options] { return show_status(*options); }};
}

Verb add_stop_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("stop", "Stop a campaign that runs in the background");
  auto options = std::make_shared<RunOptions>();
  add_file(*app, *options);
  return {app, [options] { return stop_campaign(*options); }};
}

}  // namespace assay::cli::full
