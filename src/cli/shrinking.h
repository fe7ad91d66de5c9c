#pragma once

// Shrinks failures of a stored run, for `assay shrink` and `assay api --shrink`.

#include <CLI/App.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/shrunk.h"

namespace assay {

struct ShrinkOptions {
  std::string budget = "60s";
  std::uint64_t most_tried = 400;
  // What names programs and folders of code, by its flag, instead of what the run says: a run of
  // somebody else is only data.
  std::optional<std::map<std::string, std::string>> programs = {};
};

void add_shrink_options(CLI::App& app, ShrinkOptions& options);

// Reads "90", "90s", "2m" or "1h" and returns seconds. Anything else is a usage error.
Result<double> parse_duration(const std::string& text);

// Shrinks these cases of the run in `folder`, or one case of each finding if `ids` is empty. Adds
// the results to those in the folder, and returns the new ones by the id of the failure.
Result<ShrunkCases> shrink_stored(const std::string& folder, std::vector<std::uint64_t> ids,
                                  const ShrinkOptions& options,
                                  const std::function<void(const std::string&)>& note);

}  // namespace assay
