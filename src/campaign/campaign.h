#pragma once

// A campaign: rounds of `assay api` as a file describes them. The keys are those of PaddleAPITest's
// run.py, whose YAML files are valid here. TOML has the same keys and `version = 1`.
//
//   name                        of the pid file
//   [runner]                    foreground, dry_run, pid_file; engine has no effect
//   [env]                       environment variables
//   [input]                     one of api_config, api_config_file, api_config_file_pattern
//   [output]                    log_dir
//   [retest]                    enabled, rounds, error_configs, log_dir_template, skip_unavailable
//   [engine_args]               flags of `assay api`
//
// $NAME and ${NAME} in texts are environment variables. Paths are relative to the working
// directory.

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
  std::string where;  // "FILE:LINE", or the flag of the command line that set it
};

struct Retest {
  bool enabled = false;
  std::int64_t rounds = 3;                 // including the first
  std::vector<std::string> error_configs;  // files of failures; each has rounds of its own
  std::string log_dir_template = "{base_log_dir}_r{round}_{error_name}";
  bool skip_unavailable = true;  // false: a missing or empty file of failures is an error
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

// Reads FILE.toml, FILE.yaml or FILE.yml. Unknown keys and values of a wrong type are usage errors
// with FILE:LINE.
Result<Campaign> read_campaign(const std::filesystem::path& file);

// The pid file of a campaign of this name, if its file names none: .run/NAME.pid.
std::filesystem::path default_pid_file(std::string name);

// Sets or replaces a flag of `assay api`.
void set_engine_argument(Campaign& campaign, const EngineArgument& argument);

// The short name of a file of failures: "crash" for "api_config_crash.txt".
std::string error_name(const std::string& error_config);

// Returns the folder of a retest: log_dir_template with its placeholders filled in. An unknown
// placeholder is a usage error.
Result<std::string> retest_folder(const Campaign& campaign, const std::string& previous,
                                  std::int64_t round, const std::string& error_config);

}  // namespace assay
