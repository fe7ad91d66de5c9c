#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/terminal.h"
#include "cli/api_config.h"
#include "cli/api_options.h"
#include "cli/api_progress.h"
#include "cli/fresh_folder.h"
#include "cli/verbs.h"
#include "goldens/folder.h"
#include "store/open_store.h"
#include "verdict/mode.h"
#include "wire/frame.h"

namespace assay {
namespace {

constexpr const char* kRecordExamples = R"(Examples:
  assay record --api_config_file=cases.txt --log_dir=GOLD
  assay api --api_config_file=cases.txt --reference-lane=gold:GOLD --log_dir=out
The same command again records only what is missing. Any static HTTP server can hand out the folder:
--reference-lane=gold:http://host/GOLD.
Exit code: 0 every case is recorded, whatever it gave; 2 usage; 3 the engine or the machine failed;
130 interrupted.)";

// The properties of the run, which the runs that compare check.
Result<nlohmann::json> facts_of(const RunConfig& config) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(store_of(config), StoreMode::read));
  ASSAY_TRY(const auto properties, store->properties());
  nlohmann::json facts = properties;
  facts["version.messages"] = std::to_string(wire::kMessageVersion);
  return facts;
}

Result<int> run_record(const ApiOptions& options) {
  if (options.log_dir.empty()) return usage_error("assay record needs --log_dir=GOLD, its folder");
  if (!options.store.empty())
    return usage_error("assay record keeps its results in --log_dir only");
  std::vector<std::string> notes;
  ASSAY_TRY(RunConfig config, make_run_config(options, notes));
  if (config.goldens || config.settings.mode != modes().front().name) {
    return usage_error(
        fmt::format("assay record takes a lane that computes, in mode --{}", modes().front().name));
  }
  config.records = true;
  config.digest = options.digest;
  ApiProgress progress(config, options.quiet, options.show_runtime_status);
  for (const std::string& note : notes) progress.note(note);
  RunObserver observer = progress.observer();
  ASSAY_TRY(const RunSummary summary, run_in(FreshFolder(config.folder), config, observer));
  ASSAY_TRY(const nlohmann::json facts, facts_of(config));
  ASSAY_TRY(const SealedGoldens sealed, seal_goldens(config.folder, facts));
  for (const std::string& shard : sealed.damaged) {
    progress.note(fmt::format("{}: what follows damage in it is left out; --rerun records it again",
                              (config.folder / shard).string()));
  }
  show(stdout, "{} cases in {} ({:.1f} MB); compare with --reference-lane=gold:{}\n", sealed.cases,
       config.folder.string(), static_cast<double>(sealed.bytes) / 1e6, config.folder.string());
  return summary.ending == RunEnding::interrupted ? kInterrupted : kAllGood;
}

}  // namespace

Verb add_record_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "record", "Keep the results of the reference lane for runs on other machines");
  auto options = std::make_shared<ApiOptions>();
  add_files(*app, *options);
  add_api_options(*app, *options);
  app->add_flag("--digest", options->digest,
                "Keep of large results some elements, sums of blocks and a checksum only");
  app->footer(kRecordExamples);
  return {app, [options] { return run_record(*options); }};
}

}  // namespace assay
