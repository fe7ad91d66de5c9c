#pragma once

// A campaign: a file that describes many runs. With a table [chains] it runs the chains of many
// models (docs/reference/chain-campaigns.md); else rounds of `assay api`, where the keys are those
// of PaddleAPITest's run.py, whose YAML files are valid here (docs/how-to/run-a-campaign.md). TOML
// has the same keys as YAML, and `version = 1`. Paths are relative to the working directory.

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace assay::campaign {

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

// A place where one unit runs at a time.
struct Seat {
  std::string host;     // "": this machine
  std::string gpus;     // "0,1"; "": all
  std::string command;  // the command that reaches the host; {host} is its name; "": none
};

// A params file in one mode.
struct Model {
  std::string file;   // relative to the project's folder
  std::string mode;   // "" for a list of stages (.toml)
  std::string group;  // models with the same group write to one folder; "": none
  // "FILE MODE": the model's name in results and in the list of known failures.
  std::string key() const { return mode.empty() ? file : file + " " + mode; }
};

struct Limits {
  double model = 0;   // seconds; 0: none
  double stage = -1;  // -1: the default of `assay chain run`
  double idle = -1;
  double lost = 15;  // silence of a host after which its models are lost
};

struct Campaign {
  std::string name;
  bool foreground = false;
  bool dry_run = false;
  std::filesystem::path pid_file;
  std::filesystem::path log_dir;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<Seat> seats{Seat()};

  // Of rounds:
  std::string input;  // the name of its flag: "api_config_file"
  std::string input_value;
  Retest retest;
  std::vector<EngineArgument> engine_args;

  // Of chains:
  std::vector<Model> models;  // empty: a campaign of rounds
  std::string directory = ".";
  std::vector<std::string> flags;
  std::filesystem::path known;  // "": none
  int retries = 0;
  int quarantine = 3;  // 0: never
  std::string program;
  Limits limits;
};

// Reads FILE.toml, FILE.yaml or FILE.yml, and finds the models. Unknown keys, values of a wrong
// type and patterns without any file are usage errors.
Result<Campaign> read_campaign(const std::filesystem::path& file);

// Sets or replaces a flag of `assay api`.
void set_engine_argument(Campaign& campaign, const EngineArgument& argument);

// The short name of a file of failures: "crash" for "api_config_crash.txt".
std::string error_name(const std::string& error_config);

}  // namespace assay::campaign
