#pragma once

// The flags of `assay api`: engineV2's in snake_case, and assay's own in kebab-case.

#include <CLI/App.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/gate.h"
#include "wire/messages_generated.h"

namespace assay {

// The function that a command line names (python/assay/kernel.py).
struct KernelOptions {
  std::string function;    // FILE.py:NAME; empty: none
  std::string reference;   // likewise
  std::string changes;     // parameters that it changes, separated by commas
  std::string rules;       // PARAMETER=RULE of assay.rules, separated by semicolons
  bool gradients = false;  // whether it has to have a gradient
  bool checks = true;      // whether its calls are repeated in other ways
  bool larger = false;     // whether other shapes are added
};

struct ApiOptions {
  std::vector<std::string> files;  // also patterns, FILE::ID, and - for standard input
  std::string api_config;
  std::string api_config_file;
  std::string api_config_file_pattern;
  std::string apis_from;              // a diff
  std::string filter;                 // -k
  std::map<std::string, bool> modes;  // by name
  bool test_amp = false;
  bool test_backward = false;
  bool test_cpu = false;
  bool test_tol = false;
  bool bitwise_alignment = false;
  bool show_runtime_status = true;
  bool exit_on_error = false;
  std::uint64_t max_failures = 0;
  bool generate_failed_tests = false;
  bool use_dump = false;
  std::string dump_dir;
  int num_gpus = -1;
  int num_workers_per_gpu = -1;
  std::string gpu_ids;
  bool mps = true;
  std::string use_compute_sanitizer;        // the tool's name, or "True"
  double required_memory = 0;               // GiB for each worker
  std::vector<std::string> without_effect;  // notes on flags of engineV2 and engineV4
  std::string log_dir;
  std::string store;
  wire::CaseSettingsT settings;
  std::string values = "all";
  std::string tolerance = "bar";
  std::string thresholds;  // a file of engineV4
  bool error_bar = true;
  bool own_tolerance = false;             // --atol or --rtol is given
  double timeout = 0;                     // seconds; 0: by the case's size
  double hang_timeout = 60;               // seconds
  std::optional<double> keep_frameworks;  // seconds
  std::string retest;
  bool rerun = false;
  bool last_failed = false;
  std::string shard;
  std::string costs_from;  // an earlier run
  std::string test_lane;   // a lane of assay.toml, or a framework; empty: that of the first case
  std::string reference_lane = "torch";  // likewise
  std::string paddle_python;
  std::string torch_python;
  std::string settings_file;  // assay.toml
  std::string apis;           // folders of own API tables, separated by colons
  KernelOptions kernel;
  std::vector<std::string> configs;  // further cases
  bool quiet = false;
  bool verbose = false;
  std::string junit;
  std::string markdown;
  std::size_t durations = 0;  // cases
  GateOptions gate;
  bool shrink = false;
  bool digest = false;  // of `assay record`
};

// The files of cases, without a flag.
void add_files(CLI::App& app, ApiOptions& options);
void add_api_options(CLI::App& app, ApiOptions& options);
// The flags of `assay kernel` beside its own.
void add_run_options(CLI::App& app, ApiOptions& options);
// What is said of a kernel, under flags with this prefix.
void add_kernel_options(CLI::App& app, KernelOptions& kernel, const std::string& prefix = "--");
// --kernel and --kernel-….
void add_named_kernel(CLI::App& app, KernelOptions& kernel);
// The flags of `assay plan`, which define a run, and of `assay work`, which only runs its cases.
void add_plan_options(CLI::App& app, ApiOptions& options);
void add_work_options(CLI::App& app, ApiOptions& options);

// Reads "true", "1", "yes", "y" and their opposites in upper or lower case, as engineV2 does.
std::optional<bool> parse_bool(std::string text);

}  // namespace assay
