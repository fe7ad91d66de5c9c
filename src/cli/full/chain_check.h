#pragma once

// `assay chain check`, and whose params files the verbs read.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chain/params/dialect.h"

namespace assay::cli::full {

// Whose files they are.
struct DialectArguments {
  std::string name;
  std::string file;
};

void add_dialect_options(CLI::App& app, DialectArguments& arguments);

// The dialects to read by: those of the program, or the user's own, which `own` then holds.
Result<const chain::params::Dialects*> dialects_of(const DialectArguments& arguments,
                                                   std::optional<chain::params::Dialects>& own);

struct CheckArguments {
  std::vector<std::string> files;
  DialectArguments dialect;
};

CLI::App* add_check(CLI::App& chain, CheckArguments& arguments);
Result<int> check(const CheckArguments& arguments);

}  // namespace assay::cli::full
