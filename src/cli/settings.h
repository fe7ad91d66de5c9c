#pragma once

// assay.toml: which interpreter hosts which framework on this machine.
//
//   version = 1
//   [frameworks.paddle]
//   python = "/opt/paddle/bin/python"
//   environment = ["FLAGS_use_system_allocator=1"]

#include <map>
#include <string>

#include "base/result.h"
#include "lane/fork_server.h"

namespace assay {

struct Settings {
  std::map<std::string, FrameworkConfig> frameworks;

  // First of: `python` from the command line, the settings file, the environment that `make setup`
  // makes, python3.
  FrameworkConfig framework(const std::string& name, const std::string& python) const;
};

// An empty path means assay.toml in the working folder, if there is one.
Result<Settings> load_settings(const std::string& path);

}  // namespace assay
