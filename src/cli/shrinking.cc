#include "cli/shrinking.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>

#include "cli/api_config.h"
#include "cli/api_options.h"
#include "cli/choices.h"
#include "report/findings.h"
#include "report/run_report.h"
#include "shrink/shrink.h"
#include "store/open_store.h"

namespace assay {
namespace {

constexpr double kLongestBudget = 7.0 * 24 * 60 * 60;

// The configuration of the stored run, from the flags that it was started with.
Result<RunConfig> config_of(const std::map<std::string, std::string>& properties) {
  std::vector<std::string> flags = rerun_flags(properties);
  flags.emplace_back(
      "--api_config=paddle.nothing()");      // a placeholder: the searches bring their own cases
  std::reverse(flags.begin(), flags.end());  // as CLI11 takes them
  CLI::App app;
  ApiOptions options;
  add_api_options(app, options);
  try {
    app.parse(flags);
  } catch (const CLI::ParseError& error) {
    return usage_error(
        fmt::format("this assay does not know all flags of the run ({}): use the version that "
                    "made the run",
                    error.what()));
  }
  std::vector<std::string> notes;  // printed when the run started
  return make_run_config(options, notes);
}

// One case of each finding, except time-outs, each of whose attempts takes the whole limit, and
// invalid lines, which do not run.
Result<std::vector<std::uint64_t>> one_of_each(RunReader& run) {
  std::vector<std::uint64_t> ids;
  ASSAY_TRY(const std::vector<Finding> findings, findings_of(run, nullptr));
  for (const Finding& finding : findings) {
    const Outcome outcome = finding.key.outcome;
    if (outcome != Outcome::timeout && outcome != Outcome::invalid) ids.push_back(finding.id);
  }
  return ids;
}

}  // namespace

void add_shrink_options(CLI::App& app, ShrinkOptions& options) {
  app.add_option("--budget", options.budget,
                 "Time for all searches together: 90 (seconds), 90s, 2m, 1h")
      ->capture_default_str();
  app.add_option("--most-cases", options.most_tried, "Most cases to try for each failure")
      ->capture_default_str();
}

Result<double> parse_duration(const std::string& text) {
  const std::optional<double> seconds = read_seconds(text);
  if (seconds && *seconds > 0 && *seconds <= kLongestBudget) return *seconds;
  return usage_error(
      fmt::format("--budget takes a time of at most a week (90, 90s, 2m, 1h), not {}", text));
}

Result<ShrunkCases> shrink_stored(const std::string& folder, std::vector<std::uint64_t> ids,
                                  const ShrinkOptions& options,
                                  const std::function<void(const std::string&)>& note) {
  ASSAY_TRY(const double seconds, parse_duration(options.budget));
  if (is_store_address(folder)) {
    return usage_error(
        "assay shrink writes into the folder of a run: name a folder, not a database");
  }
  RunConfig config;
  ShrinkJob job;
  {
    ASSAY_TRY(const std::unique_ptr<Store> store, open_store(folder, StoreMode::read));
    ASSAY_TRY(auto properties, store->properties());
    if (options.programs) {
      for (const char* flag : {"paddle_python", "torch_python", "settings", "apis"}) {
        properties.erase(std::string(kRerunFlag) + flag);
      }
      for (const auto& [flag, value] : *options.programs) {
        properties[std::string(kRerunFlag) + flag] = value;
      }
    }
    ASSAY_TRY(config, config_of(properties));
    if (ids.empty()) {
      ASSAY_TRY(ids, one_of_each(*store));
    }
    ASSAY_TRY(job, plan_shrink(*store, ids, {options.most_tried}));
  }
  RunObserver observer;
  observer.note = note;
  const auto budget = std::chrono::nanoseconds(std::llround(seconds * 1e9));
  ASSAY_TRY(ShrunkCases found, run_shrink(std::move(config), job, budget, observer));
  ASSAY_CHECK(add_shrunk(folder, found));
  return found;
}

}  // namespace assay
