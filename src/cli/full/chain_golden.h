#pragma once

// `assay chain record` and `assay chain judge`: golden records of models.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "chain/history/record.h"

namespace assay::cli::full {

struct RecordArguments {
  std::string store;
  std::string folder = "goldens";
  std::string purpose = "nightly";
  chain::history::RecordOptions options;
};

struct JudgeArguments {
  std::vector<std::string> paths;
  bool json = false;
};

CLI::App* add_record(CLI::App& chain, RecordArguments& arguments);
CLI::App* add_judge(CLI::App& chain, JudgeArguments& arguments);
Result<int> record(RecordArguments& arguments);
Result<int> judge(const JudgeArguments& arguments);

}  // namespace assay::cli::full
