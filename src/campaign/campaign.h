#pragma once

// A campaign: what is tested, in which mode, on which devices, how often what fails is tried again,
// and in which environment. The names are those of upstream's run.py, whose YAML files are read as
// they are; TOML has the same tables and says `version = 1`.
//
//   name                        of the pid file
//   [runner]                    foreground, dry_run, pid_file; engine is read and means nothing
//   [env]                       variables of the environment
//   [input]                     one of api_config, api_config_file, api_config_file_pattern
//   [output]                    log_dir
//   [retest]                    enabled, rounds, error_configs, log_dir_template, skip_unavailable
//   [engine_args]               flags of `assay api`
//
// $NAME and ${NAME} in texts are variables of the environment. Paths are relative to the folder in
// which assay is called.

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace assay {

struct EngineArgument {
  std::string name;   // "num_gpus"
  std::string value;  // "True", "-1"
  std::string where;  // "FILE:LINE", or the flag of the command line that has it
};

struct Retest {
  bool enabled = false;
  std::int64_t rounds = 3;                 // the first run counted in
  std::vector<std::string> error_configs;  // files of the run before; each is tried again by itself
  std::string log_dir_template = "{base_log_dir}_r{round}_{error_name}";
  bool skip_unavailable = true;  // else a missing or empty file of failures ends the campaign
};

struct Campaign {
  std::string name;
  bool foreground = false;
  bool dry_run = false;
  std::filesystem::path pid_file;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string input;  // the name of its flag: "api_config_file"
  std::string input_value;
  std::string log_dir;
  Retest retest;
  std::vector<EngineArgument> engine_args;
};

// Reads FILE.toml, FILE.yaml or FILE.yml. An unknown key, a value of another type or a missing one
// is a usage error that says FILE:LINE.
Result<Campaign> read_campaign(const std::filesystem::path& file);

// Sets or replaces one of the flags of `assay api`.
void set_engine_argument(Campaign& campaign, const EngineArgument& argument);

// The name of a file of failures, "api_config_crash.txt", without what all have: "crash".
std::string error_name(const std::string& error_config);

// {base_log_dir}, {previous_log_dir}, {round}, {error_config} and {error_name} of the template.
Result<std::string> retest_folder(const Campaign& campaign, const std::string& previous,
                                  std::int64_t round, const std::string& error_config);

}  // namespace assay
