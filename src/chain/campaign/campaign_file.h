#pragma once

// The file of a campaign of chains, in TOML:
//
//   version = 1
//   name = "night"                    # default: the file's name
//   [chains]
//   files = ["test_tipc/configs/*/train_infer_python.txt"]
//   exclude = ["*slim*"]              # patterns of paths
//   modes = ["lite_train_lite_infer"]
//   directory = "."                   # the project's folder, where every chain runs
//   flags = ["--python=python3.10"]   # of `assay chain run`
//   known = "known.toml"              # known failures
//   retries = 1                       # of a model that failed
//   quarantine = 3                    # a model that failed in so many campaigns in a row runs last
//   [seats]
//   gpus = ["0", "1", "2,3"]          # one seat for each; default: one seat, all GPUs
//   hosts = ["a", "b"]                # each host has these seats; default: this machine
//   remote = "ssh {host}"             # the command that reaches a host
//   program = "/opt/assay/bin/assay"  # path of assay there
//   [slurm]
//   jobs = 64                         # seats, each a job of Slurm, instead of [seats]
//   nodes = 2                         # machines of each job, which train together
//   options = ["--gres=gpu:8"]        # of srun
//   [limits]
//   model = 3600                      # seconds; also stage, idle, lost
//   [output]
//   log_dir = "runs/${NIGHT}"
//
// Paths are relative to the working folder; `files` to the project's folder.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::chain::campaign {

// A place where one model runs at a time.
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

struct CampaignLimits {
  double model = 0;   // seconds; 0: none
  double stage = -1;  // -1: the default of `assay chain run`
  double idle = -1;
  double lost = 15;  // silence of a host after which its models are lost
};

struct Campaign {
  std::string name;
  std::vector<Model> models;
  std::vector<Seat> seats;
  std::string directory = ".";
  std::vector<std::string> flags;
  std::filesystem::path known;  // "": none
  int retries = 0;
  int quarantine = 3;  // 0: never
  std::string program;
  CampaignLimits limits;
  std::filesystem::path log_dir;
};

// True for a TOML file with a table [chains]; other files are campaigns of API cases.
bool is_campaign_of_chains(const std::filesystem::path& file);

// Reads the file and finds its models. An unknown key, a wrong value, and patterns without any file
// are usage errors.
Result<Campaign> read_campaign(const std::filesystem::path& file);

}  // namespace assay::chain::campaign
