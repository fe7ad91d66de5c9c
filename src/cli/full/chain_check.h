#pragma once

// `assay chain check`, and what chain verbs share.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::cli::full {

// assay-shim, which lies beside assay.
std::string shim_beside(const std::string& assay);

struct CheckArguments {
  std::vector<std::string> files;
  std::string mode;  // to rehearse the files' scripts in; "": by the files' names
  bool trusted = false;
};

CLI::App* add_check(CLI::App& chain, CheckArguments& arguments);
Result<int> check(const CheckArguments& arguments);

}  // namespace assay::cli::full
