#pragma once

// assay.toml: which interpreter hosts which framework on this machine
// (docs/reference/configuration.md).

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/run_config.h"
#include "lane/fork_server.h"

namespace assay {

struct Settings {
  std::string file;  // absolute path of what was read; empty: there is no assay.toml
  std::chrono::seconds keep_frameworks{0};
  std::vector<std::string> apis;  // folders of own API tables; absolute
  std::map<std::string, FrameworkConfig> frameworks;
  std::map<std::string, LaneConfig> lanes;

  // The interpreter is the first of these: `python` (from the command line), the settings file, the
  // environment of `make setup`, the environment that assay is installed in, python3.
  FrameworkConfig framework(const std::string& name, const std::string& python) const;
  // The lane of this name. Without such a table it is the framework of this name, with `python`,
  // and with the device and the execution that may follow it: "torch:cuda:0+compile",
  // "torch:compile".
  LaneConfig lane(const std::string& name, const std::string& python) const;
};

// The frameworks that python/assay/frameworks has a file for, in alphabetical order; empty if there
// is no such folder.
std::vector<std::string> known_frameworks();

// The executions that python/assay/execution has a file for, in alphabetical order.
std::vector<std::string> known_executions();

// A lane without a table: FRAMEWORK[:[DEVICE+]EXECUTION…].
struct PlainLane {
  std::string framework;
  std::string device;     // empty: that of the run
  std::string execution;  // empty: eager
};
PlainLane split_lane(const std::string& text);

// Checks a value of keep_frameworks. `named` is the setting's name for the error.
Result<std::chrono::seconds> seconds_to_keep(double seconds, const std::string& named);

// Reads the settings. An empty path means assay.toml in the working folder, if there is one. An
// error if another user may have written that file, unless ASSAY_SAFE_FOLDER names its folder.
Result<Settings> load_settings(const std::string& path);

}  // namespace assay
