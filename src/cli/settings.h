#pragma once

// assay.toml: which interpreter hosts which framework on this machine.
//
//   version = 1
//   keep_frameworks = 600           # seconds that what was imported stays for the next run
//   [frameworks.paddle]
//   python = "/opt/paddle/bin/python"
//   environment = ["FLAGS_use_system_allocator=1"]
//   [lanes.old]                     # for --test-lane=old, --reference-lane=old
//   framework = "paddle"
//   python = "/opt/paddle-3.1/bin/python"
//   device = "cpu"
//   execution = "eager"
//   reference_functions = false     # calls the functions of the API tables instead of the
//   framework's

#include <chrono>
#include <map>
#include <string>

#include "base/result.h"
#include "engine/run_config.h"
#include "lane/fork_server.h"

namespace assay {

struct Settings {
  std::chrono::seconds keep_frameworks{0};
  std::map<std::string, FrameworkConfig> frameworks;
  std::map<std::string, LaneConfig> lanes;

  // First of: `python` from the command line, the settings file, the environment that `make setup`
  // makes, the one that assay is installed in, python3.
  FrameworkConfig framework(const std::string& name, const std::string& python) const;
  // The lane of this name or, where the file has none, one of the framework of this name with
  // `python`.
  LaneConfig lane(const std::string& name, const std::string& python) const;
};

// `seconds` if that is a time to keep a framework for; `named` is the setting that says so.
Result<std::chrono::seconds> seconds_to_keep(double seconds, const std::string& named);

// An empty path means assay.toml in the working folder, if there is one.
Result<Settings> load_settings(const std::string& path);

}  // namespace assay
