#include "cli/verb_timeline.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>

#include "timeline/merge.h"

namespace assay {
namespace {

using namespace timeline;

struct TimelineOptions {
  JobLogOptions logs;
  ClockOptions clocks;
  std::filesystem::path out;
};

void add_log_options(CLI::App& app, TimelineOptions& options) {
  app.add_option("--log_dir", options.logs.log_dir, "Folder of workerlog.K (or of machineK/)")
      ->check(CLI::ExistingDirectory);
  app.add_option("--devices", options.logs.devices, "Device numbers: 0,1,… (default: all)")
      ->delimiter(',');
  app.add_flag("--multi_machine", options.logs.multi_machine, "The folder holds machineK folders");
  app.add_option("--clock-manifest", options.clocks.manifest, "JSON file of machine offsets")
      ->check(CLI::ExistingFile);
  app.add_option("--clock-probes", options.clocks.probes, "JSON lines of clock probes")
      ->check(CLI::ExistingFile);
  app.add_flag("--clock-pairs", options.clocks.pairs,
               "The devices in order are the stages of one pipeline: relate clocks by its handovers");
}

Result<int> run_merge(const TimelineOptions& options) {
  const std::filesystem::path out = options.out.empty() ? options.logs.log_dir : options.out;
  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (error) return usage_error(fmt::format("cannot make {}: {}", out.string(), error.message()));
  const OutputPaths outputs = OutputPaths::in(out);
  ASSAY_TRY(const MergeResult result, merge_job_logs(options.logs, options.clocks, outputs));
  fmt::print(stderr, "{}", describe(result.files, result.notes));
  fmt::print("{} slices in {}, {} and {}\n", result.slices, outputs.chrome.string(),
             outputs.perfetto_json.string(), outputs.perfetto_binary.string());
  return 0;
}

}  // namespace

Verb add_timeline_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("timeline", "What every GPU of every machine did, and when");
  app->require_subcommand(1);
  const auto options = std::make_shared<TimelineOptions>();
  CLI::App* merge = app->add_subcommand("merge", "Make one trace of a run's logs");
  add_log_options(*merge, *options);
  merge->add_option("--out", options->out, "Where the traces go (default: the folder of the logs)");
  return {app, [=]() -> Result<int> {
            if (merge->parsed()) return run_merge(*options);
            return usage_error("no such timeline command");
          }};
}

}  // namespace assay
