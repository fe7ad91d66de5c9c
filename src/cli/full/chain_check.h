#pragma once

// `assay chain check`, and what chain verbs share.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chain/params/dialect.h"

namespace assay::cli::full {

// The suite that params files belong to.
struct DialectArguments {
  std::string name;
  std::string file;
};

void add_dialect_options(CLI::App& app, DialectArguments& arguments);

// The dialects to read files by: assay's own, or the user's file, which `own` then holds.
Result<const chain::params::Dialects*> dialects_of(const DialectArguments& arguments,
                                                   std::optional<chain::params::Dialects>& own);

// assay-shim, which lies beside assay.
std::string shim_beside(const std::string& assay);

struct CheckArguments {
  std::vector<std::string> files;
  DialectArguments dialect;
  std::string mode;  // to rehearse the files' own scripts in; "": by the files' names
  bool trusted = false;
};

CLI::App* add_check(CLI::App& chain, CheckArguments& arguments);
Result<int> check(const CheckArguments& arguments);

}  // namespace assay::cli::full
