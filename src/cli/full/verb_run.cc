#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <thread>

#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "campaign/campaign.h"
#include "campaign/pid_file.h"
#include "campaign/runner.h"
#include "campaign/units.h"
#include "cli/api_options.h"
#include "cli/full/verbs.h"

namespace assay::cli::full {

using campaign::Campaign;

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
  std::array<std::pair<std::string, std::string>, 3> inputs{
      {{"api_config", ""}, {"api_config_file", ""}, {"api_config_file_pattern", ""}}};
  std::string log_dir;
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
  return {};
}

// Checks what rounds need. Removes engine arguments that assay does not know: with a note if they
// are off, and a usage error if they are on.
Status check_rounds(const std::string& file, Campaign& campaign) {
  if (campaign.input.empty()) {
    return usage_error(file +
                       ": [input] needs api_config, api_config_file or api_config_file_pattern");
  }
  if (campaign.log_dir.empty()) return usage_error(file + ": [output] needs log_dir");
  ApiOptions options;
  CLI::App api;
  add_api_options(api, options);
  std::vector<campaign::EngineArgument> kept;
  std::vector<std::string> words;
  for (const campaign::EngineArgument& each : campaign.engine_args) {
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

// Reads the file and applies the command line. A campaign of chains has all in its file but
// log_dir.
Result<Campaign> campaign_of(const RunOptions& options) {
  ASSAY_TRY(Campaign campaign, campaign::read_campaign(options.file));
  if (!options.log_dir.empty()) campaign.log_dir = options.log_dir;
  return campaign;
}

Result<int> run(const RunOptions& options) {
  ASSAY_TRY(Campaign campaign, campaign_of(options));
  ASSAY_CHECK(apply(options, campaign));
  if (campaign.models.empty()) ASSAY_CHECK(check_rounds(options.file, campaign));
  campaign::RunnerOptions runner;
  ASSAY_TRY(runner.self, own_executable());
  runner.arguments = options.passed;
  if (campaign.dry_run) {
    show(stdout, "{}", campaign::units_of(campaign, {runner.self, runner.arguments})->commands());
    return kAllGood;
  }
  if (campaign.foreground) return campaign::run_campaign(campaign, runner);
  ASSAY_TRY(const pid_t pid, campaign::run_in_background(campaign, runner));
  show(stdout, "{0} runs as process {1}\nlog: {2}\nassay status {3}; assay stop {3}\n",
       campaign.name, pid, campaign::latest_log(campaign.log_dir).string(), options.file);
  return kAllGood;
}

std::string last_line_of(const std::filesystem::path& file) {
  const std::string text = read_file(file).value_or("");
  const std::string_view all = trimmed(text);
  return std::string(all.substr(all.rfind('\n') + 1));
}

// Prints whether the campaign runs, its units and the last line of its log.
Result<int> show_status(const RunOptions& options) {
  ASSAY_TRY(const Campaign campaign, campaign_of(options));
  const auto running = campaign::running_process(campaign.pid_file);
  if (running) {
    show(stdout, "{} runs as process {}, for {}\n", campaign.name, running->pid,
         campaign::duration(running->seconds));
  } else {
    show(stdout, "{} does not run\n", campaign.name);
  }
  show(stdout, "{}", campaign::units_of(campaign, {})->progress(running.has_value()));
  const std::filesystem::path log = campaign::latest_log(campaign.log_dir);
  if (!log.empty()) show(stdout, "log: {}\n  {}\n", log.string(), last_line_of(log));
  return kAllGood;
}

Result<int> stop_campaign(const RunOptions& options) {
  ASSAY_TRY(const Campaign campaign, campaign_of(options));
  ASSAY_TRY(const bool told, campaign::signal_process(campaign.pid_file, SIGTERM));
  if (!told) {
    show(stdout, "{} does not run\n", campaign.name);
    return kAllGood;
  }
  const auto give_up = std::chrono::steady_clock::now() + kStopPatience;
  while (campaign::running_process(campaign.pid_file)) {
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
  for (auto& [name, value] : options->inputs) {
    app->add_option(dashed(name), value, "Instead of the file's [input]");
  }
  app->add_option("--log-dir", options->log_dir, "Instead of output.log_dir");
  app->add_option("--set-env", options->environment, "Environment variable of the runs, KEY=VALUE")
      ->allow_extra_args(false);
  app->add_option("--engine-arg", options->engine_args, "A flag of assay api, KEY=VALUE")
      ->allow_extra_args(false);
  app->add_option("FLAGS", options->passed, "After --: flags of every round");
  app->footer(kRunExamples);
  return {app, [options] { return run(*options); }};
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
