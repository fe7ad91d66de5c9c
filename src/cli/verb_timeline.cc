#include "cli/verb_timeline.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <atomic>
#include <cstdio>
#include <memory>

#include "base/fd.h"
#include "timeline/analysis_report.h"
#include "timeline/clocks.h"
#include "timeline/importers/importer.h"
#include "timeline/merge.h"
#include "timeline/serve.h"

namespace assay {
namespace {

using namespace timeline;

struct TimelineOptions {
  JobLogOptions logs;
  ClockOptions clocks;
  std::vector<std::filesystem::path> files;
  std::filesystem::path out;
  std::string format = "table";
  std::filesystem::path baseline;
  std::uint16_t port = kPerfettoPort;
};

void add_input_options(CLI::App& app, TimelineOptions& options) {
  app.add_option("--log_dir", options.logs.log_dir, "Folder of workerlog.K (or of machineK/)")
      ->check(CLI::ExistingDirectory);
  app.add_option("--devices", options.logs.devices, "Device numbers: 0,1,… (default: all)")
      ->delimiter(',');
  app.add_flag("--multi_machine", options.logs.multi_machine, "The folder holds machineK folders");
  app.add_option("FILE", options.files,
                 "Traces of PyTorch's or Paddle's profiler, nsys SQLite exports, recordings");
  app.add_option("--clock-manifest", options.clocks.manifest, "JSON file of machine offsets")
      ->check(CLI::ExistingFile);
  app.add_option("--clock-probes", options.clocks.probes, "JSON lines of clock probes")
      ->check(CLI::ExistingFile);
  app.add_flag("--clock-pairs", options.clocks.pairs,
               "The devices in order are the stages of one pipeline: relate clocks by its handovers");
}

Result<Trace> load_files(std::span<const std::filesystem::path> files, const ClockOptions& clocks) {
  Trace trace;
  for (const auto& file : files) {
    ASSAY_TRY(const Trace other, import_trace(file));
    append_trace(trace, other);
  }
  ASSAY_TRY(const auto related, relate_clocks(machines_of(trace.tracks), clocks, &trace));
  apply_clocks(trace, related);
  return trace;
}

Result<Trace> load(const TimelineOptions& options) {
  if (options.files.empty() == options.logs.log_dir.empty()) {
    return usage_error("give either --log_dir or trace files");
  }
  if (!options.files.empty()) return load_files(options.files, options.clocks);
  return load_job_logs(options.logs, options.clocks);
}

Result<OutputPaths> prepare_outputs(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return usage_error(fmt::format("cannot make {}: {}", folder.string(), error.message()));
  return OutputPaths::in(folder);
}

void tell(const MergeResult& result, const OutputPaths& outputs) {
  fmt::print(stderr, "{}", describe(result.files, result.notes));
  fmt::print("{} slices in {}, {} and {}\n", result.slices, outputs.chrome.string(),
             outputs.perfetto_json.string(), outputs.perfetto_binary.string());
}

Result<int> run_merge(const TimelineOptions& options) {
  const bool logs = !options.logs.log_dir.empty();
  if (logs != options.files.empty()) return usage_error("give either --log_dir or trace files");
  const std::filesystem::path fallback = logs ? options.logs.log_dir : ".";
  ASSAY_TRY(const OutputPaths outputs, prepare_outputs(options.out.empty() ? fallback : options.out));
  if (logs) {
    ASSAY_TRY(const MergeResult result, merge_job_logs(options.logs, options.clocks, outputs));
    tell(result, outputs);
    return 0;
  }
  ASSAY_TRY(Trace trace, load_files(options.files, options.clocks));
  ASSAY_TRY(const MergeResult result, write_trace(trace, outputs));
  tell(result, outputs);
  return 0;
}

Result<int> run_analyze(const TimelineOptions& options) {
  ASSAY_TRY(Trace trace, load(options));
  fmt::print(stderr, "{}", describe(trace.files, {}));
  const Analysis analysis = analyse(trace);
  if (!options.baseline.empty()) {
    ASSAY_TRY(const Trace baseline, import_trace(options.baseline));
    fmt::print("{}", comparison_table(analyse(baseline), analysis));
  } else if (options.format == "json") {
    fmt::print("{}", analysis_json(analysis));
  } else if (options.format == "html") {
    fmt::print("{}", analysis_html(analysis, trace));
  } else {
    fmt::print("{}", analysis_table(analysis));
  }
  if (options.out.empty()) return 0;
  // The trace again, with the analysis as counter tracks, and the page beside it.
  trace.counters = counters_of(analysis);
  ASSAY_TRY(const OutputPaths outputs, prepare_outputs(options.out));
  ASSAY_CHECK(write_trace(trace, outputs));
  ASSAY_CHECK(write_file(options.out / "analysis.json", analysis_json(analysis)));
  ASSAY_CHECK(write_file(options.out / "analysis.html", analysis_html(analysis, trace)));
  return 0;
}

Result<int> run_open(const TimelineOptions& options) {
  const auto say = [](std::uint16_t port) {
    fmt::print("open {}\nCtrl-C ends\n", perfetto_address(port));
    std::fflush(stdout);
  };
  ASSAY_CHECK(serve_trace(options.files.front(), options.port, say, std::atomic<bool>(false)));
  return 0;
}

}  // namespace

Verb add_timeline_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("timeline", "What every GPU of every machine did, and when");
  app->require_subcommand(1);
  const auto options = std::make_shared<TimelineOptions>();

  CLI::App* merge = app->add_subcommand("merge", "Make one trace of a run's logs or traces");
  add_input_options(*merge, *options);
  merge->add_option("--out", options->out, "Where the traces go (default: the folder of the logs)");

  CLI::App* analyze = app->add_subcommand("analyze", "Where the GPUs' time went, and why they idled");
  add_input_options(*analyze, *options);
  analyze->add_option("--format", options->format, "table, json or html")
      ->check(CLI::IsMember({"table", "json", "html"}));
  analyze->add_option("--compare", options->baseline, "An earlier trace to compare with")
      ->check(CLI::ExistingFile);
  analyze->add_option("--out", options->out, "Folder for the page, the JSON, and traces with counters");

  CLI::App* open = app->add_subcommand("open", "Serve a trace on loopback for the Perfetto UI");
  open->add_option("FILE", options->files, "The trace")->required()->expected(1)->check(CLI::ExistingFile);
  open->add_option("--port", options->port, "Port (the Perfetto UI may fetch from 9001 only)");

  return {app, [=]() -> Result<int> {
            if (merge->parsed()) return run_merge(*options);
            if (analyze->parsed()) return run_analyze(*options);
            return run_open(*options);
          }};
}

}  // namespace assay
