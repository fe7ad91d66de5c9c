#pragma once

// Makes failures of a stored run small: what `assay shrink` and `assay api --shrink` do.

#include <CLI/App.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/shrunk.h"

namespace assay {

struct ShrinkOptions {
  std::string budget = "60s";
  std::uint64_t most_tried = 400;
};

void add_shrink_options(CLI::App& app, ShrinkOptions& options);

// "90", "90s", "2m", "1h" in seconds; an error for anything else.
Result<double> parse_duration(const std::string& text);

// These cases of the run in `folder`; none: one of each finding. What is found is kept in the
// folder, beside what was found earlier, and given by the id of the failure.
Result<ShrunkCases> shrink_stored(const std::string& folder, std::vector<std::uint64_t> ids,
                                  const ShrinkOptions& options,
                                  const std::function<void(const std::string&)>& note);

}  // namespace assay
