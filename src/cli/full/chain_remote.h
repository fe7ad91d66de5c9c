#pragma once

// `assay chain remote`, which a campaign of chains starts on other machines.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::cli::full {

struct RemoteArguments {
  double lost = 15;
  std::vector<std::string> words;
};
CLI::App* add_remote(CLI::App& chain, RemoteArguments& arguments);
Result<int> remote(const RemoteArguments& arguments);

}  // namespace assay::cli::full
