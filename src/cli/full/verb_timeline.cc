#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/terminal.h"
#include "base/values.h"
#include "cli/full/verbs.h"
#include "timeline/analysis/compare.h"
#include "timeline/analysis/insights.h"
#include "timeline/analysis/page.h"
#include "timeline/analysis/reports.h"
#include "timeline/importers/importer.h"
#include "timeline/load.h"
#include "timeline/merge.h"

namespace assay::cli::full {
namespace {

using namespace timeline;

struct TimelineOptions {
  JobLogOptions logs;
  ClockOptions clocks;
  std::vector<std::filesystem::path> files;
  std::vector<std::string> comm;     // patterns of more communication kernels
  std::vector<std::string> compute;  // patterns of kernels that are none
  std::vector<std::int32_t> ranks;   // of the files, in order
  std::filesystem::path job_names;
  std::filesystem::path out;
  std::vector<std::string> formats;  // formats of merge; empty: all
  std::string format = "table";
  std::filesystem::path baseline;
  std::string fail_on;   // "slower=3%"
  std::size_t top = 10;  // ranks in a table
  double peak = 0;       // TFLOP/s of a GPU; 0: of its data sheet
};

void add_input_options(CLI::App& app, TimelineOptions& options) {
  app.add_option("--log_dir", options.logs.log_dir,
                 "Folder of the logs workerlog.K (or of folders machineK)")
      ->check(CLI::ExistingDirectory);
  app.add_option("--devices", options.logs.devices, "Device numbers: 0,1,… (default: all)")
      ->delimiter(',');
  app.add_flag("--multi_machine", options.logs.multi_machine,
               "The folder contains folders machineK");
  app.add_option("FILE", options.files,
                 "Traces of PyTorch's or Paddle's profiler (also .gz, .zst), nsys SQLite exports, "
                 "recordings, or folders of them");
  app.add_option("--comm", options.comm,
                 "More communication kernels: a regular expression (repeatable)");
  app.add_option("--compute", options.compute,
                 "Kernels that do not communicate, whatever their name: a regular expression "
                 "(repeatable)");
  app.add_option("--ranks", options.ranks,
                 "Ranks of the files in order, instead of those that they name: 0,1,…")
      ->delimiter(',');
  app.add_option(
         "--job-names", options.job_names,
         "File that names pipeline jobs; a line is forward, backward or weight and a regular "
         "expression for the range's name")
      ->check(CLI::ExistingFile);
  app.add_option("--clock-manifest", options.clocks.manifest,
                 "JSON file of the machines' clock offsets")
      ->check(CLI::ExistingFile);
  app.add_option("--clock-probes", options.clocks.probes, "JSON lines of clock probes")
      ->check(CLI::ExistingFile);
  app.add_flag(
      "--clock-pairs", options.clocks.pairs,
      "Relate clocks by the handovers of one pipeline, whose stages are the devices in order");
}

Result<Trace> load_files(const TimelineOptions& options, bool analysis) {
  LoadOptions load;
  load.import.analysis = analysis;
  load.ranks = options.ranks;
  ASSAY_TRY(load.import.kinds, KernelKinds::with(options.comm, options.compute));
  if (!options.job_names.empty()) {
    ASSAY_TRY(load.job_names, JobNames::read(options.job_names));
  }
  load.clocks = options.clocks;
  return load_traces(options.files, load);
}

Status check_inputs(const TimelineOptions& options) {
  if (options.files.empty() != options.logs.log_dir.empty()) return {};
  return usage_error("give either --log_dir or trace files");
}

Result<Trace> load(const TimelineOptions& options, bool analysis) {
  ASSAY_CHECK(check_inputs(options));
  if (!options.files.empty()) return load_files(options, analysis);
  return load_job_logs(options.logs, options.clocks);
}

// Whether the folder is one for --log_dir; other folders contain traces.
bool holds_job_logs(const std::filesystem::path& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("workerlog.") || name.starts_with("machine")) return true;
  }
  return false;
}

// kSomeFailed: the result lacks events that were malformed or truncated, or a file. Logs also have
// lines of other programs, so malformed ones say nothing there.
int exit_code_of(std::span<const FileReport> files, bool traces) {
  const bool lost = std::any_of(files.begin(), files.end(), [&](const FileReport& file) {
    return file.truncated > 0 || (traces ? file.malformed > 0 : file.unrelated());
  });
  return lost ? kSomeFailed : kAllGood;
}

Result<OutputPaths> prepare_outputs(const std::filesystem::path& folder) {
  ASSAY_CHECK(make_folder(folder));
  return OutputPaths::in(folder);
}

constexpr const char* kFormats[] = {"chrome", "perfetto-json", "perfetto"};

// Keeps only the named outputs; all without names.
OutputPaths chosen(OutputPaths outputs, std::span<const std::string> formats) {
  std::filesystem::path* const paths[] = {&outputs.chrome, &outputs.perfetto_json,
                                          &outputs.perfetto_binary};
  for (std::size_t i = 0; i < std::size(paths); ++i) {
    if (!formats.empty() && std::find(formats.begin(), formats.end(), kFormats[i]) == formats.end())
      paths[i]->clear();
  }
  return outputs;
}

void tell(const MergeResult& result, const OutputPaths& outputs) {
  show(stderr, "{}", describe(result.files, result.notes));
  show(stdout, "{} slices in", result.slices);
  for (const auto& path : {outputs.chrome, outputs.perfetto_json, outputs.perfetto_binary}) {
    if (!path.empty()) show(stdout, " {}", path.string());
  }
  show(stdout, "\n");
}

Result<int> run_merge(const TimelineOptions& options) {
  ASSAY_CHECK(check_inputs(options));
  const bool logs = !options.logs.log_dir.empty();
  const std::filesystem::path fallback = logs ? options.logs.log_dir : ".";
  ASSAY_TRY(OutputPaths outputs, prepare_outputs(options.out.empty() ? fallback : options.out));
  outputs = chosen(std::move(outputs), options.formats);
  if (logs) {
    ASSAY_TRY(const MergeResult result, merge_job_logs(options.logs, options.clocks, outputs));
    tell(result, outputs);
    return exit_code_of(result.files, false);
  }
  ASSAY_TRY(Trace trace, load_files(options, false));
  ASSAY_TRY(const MergeResult result, write_trace(trace, outputs));
  tell(result, outputs);
  return exit_code_of(result.files, true);
}

struct Analysed {
  Trace trace;
  Analysis analysis;
  Insights insights;
};

Result<Analysed> analysed(const TimelineOptions& options) {
  // With --out, the whole trace is written again.
  ASSAY_TRY(Trace trace, load(options, options.out.empty()));
  Analysed result{std::move(trace), {}, {}};
  result.analysis = analyse(result.trace, options.format == "html" || !options.out.empty());
  result.insights = insights_of(result.trace, result.analysis, options.peak);
  return result;
}

Result<Analysed> analysed_baseline(const TimelineOptions& options) {
  TimelineOptions before = options;
  before.logs.log_dir.clear();
  before.files.clear();
  before.ranks.clear();
  before.out.clear();
  if (std::filesystem::is_directory(options.baseline) && holds_job_logs(options.baseline)) {
    before.logs.log_dir = options.baseline;
  } else {
    before.files.push_back(options.baseline);
  }
  return analysed(before);
}

// "slower=3%": the percentage; a usage error for anything else.
Result<double> fail_limit(const std::string& condition) {
  constexpr std::string_view kSlower = "slower=";
  std::string_view text = condition;
  double percent = 0;
  if (text.starts_with(kSlower)) {
    text.remove_prefix(kSlower.size());
    if (text.ends_with('%')) text.remove_suffix(1);
    if (read_number(text, percent) && percent >= 0) return percent;
  }
  return usage_error(
      fmt::format("--fail-on {}: expected slower=PERCENT, as in slower=3%", condition));
}

// Prints the comparison; kSomeFailed where --fail-on is met.
Result<int> run_compare(const TimelineOptions& options, const Analysed& now) {
  double limit = 0;
  if (!options.fail_on.empty()) {
    ASSAY_TRY(limit, fail_limit(options.fail_on));
  }
  ASSAY_TRY(const Analysed before, analysed_baseline(options));
  const ComparedRun then{before.trace, before.analysis, before.insights};
  const ComparedRun latest{now.trace, now.analysis, now.insights};
  const Comparison comparison = timeline::compare(then, latest);
  show(stdout, "{}",
       options.format == "html" ? comparison_html(comparison, then, latest)
                                : comparison_text(comparison, options.format));
  const bool failed = !options.fail_on.empty() && comparison.slower(limit);
  if (failed) {
    show(stderr, "--fail-on {}: a step takes {:+.2f}%\n", options.fail_on, comparison.step.percent);
  }
  return failed ? kSomeFailed : kAllGood;
}

std::string page_of(const Analysed& now, const std::string& tables) {
  return analysis_html(now.analysis, now.trace, tables, insights_members(now.insights, false),
                       now.insights.collectives);
}

std::string printed(const TimelineOptions& options, const Analysed& now) {
  if (options.format == "json") {
    return analysis_json(now.analysis, insights_members(now.insights));
  }
  const std::string answer =
      answer_table(now.analysis, now.insights, options.top) + quality_table(now.insights.quality);
  const std::string tables = insights_table(now.insights, options.top);
  if (options.format == "html") return page_of(now, answer + tables);
  return answer + analysis_table(now.analysis, options.top) + tables;
}

// Writes the trace with the analysis as counter tracks, the page and the JSON.
Status write_analysed(const TimelineOptions& options, Analysed& now) {
  now.trace.counters = counters_of(now.analysis);
  ASSAY_TRY(const OutputPaths outputs, prepare_outputs(options.out));
  ASSAY_CHECK(write_trace(now.trace, outputs));
  ASSAY_CHECK(write_file(options.out / "analysis.json",
                         analysis_json(now.analysis, insights_members(now.insights))));
  return write_file(
      options.out / "analysis.html",
      page_of(now, answer_table(now.analysis, now.insights) + insights_table(now.insights)));
}

Result<int> run_analyze(const TimelineOptions& options) {
  ASSAY_TRY(Analysed now, analysed(options));
  if (!options.fail_on.empty() && options.baseline.empty()) {
    return usage_error("--fail-on needs --compare");
  }
  int code = exit_code_of(now.trace.files, !options.files.empty());
  if (!options.baseline.empty()) {
    ASSAY_TRY(const int compared, run_compare(options, now));
    code = std::max(code, compared);
  } else if (options.format == "markdown") {
    return usage_error("--format markdown needs --compare");
  } else {
    show(stdout, "{}", printed(options, now));
  }
  // A page comes alone, unless something is lost.
  if (options.format != "html" || code != kAllGood) {
    show(stderr, "{}", describe(now.trace.files, {}));
  }
  if (!options.out.empty()) ASSAY_CHECK(write_analysed(options, now));
  return code;
}

}  // namespace

Verb add_timeline_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("timeline", "Show and explain what every GPU did");
  const auto options = std::make_shared<TimelineOptions>();

  CLI::App* merge = app->add_subcommand("merge", "Merge a run's logs or traces into one trace");
  add_input_options(*merge, *options);
  merge->add_option("--out", options->out, "Output folder (default: the folder of the logs)");

  merge
      ->add_option("--formats", options->formats,
                   "Formats: chrome, perfetto-json, perfetto (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kFormats), std::end(kFormats))));

  CLI::App* analyze = app->add_subcommand("analyze", "Explain the busy and idle time of each GPU");
  add_input_options(*analyze, *options);
  analyze
      ->add_option("--format", options->format,
                   "Output: table, json or html; with --compare also markdown")
      ->check(CLI::IsMember({"table", "json", "markdown", "html"}));
  analyze
      ->add_option("--compare", options->baseline,
                   "Compare with an earlier trace, or folder of traces or logs")
      ->check(CLI::ExistingPath);
  analyze
      ->add_option("--peak", options->peak,
                   "TFLOP/s that one GPU computes at most (default: its data sheet, by type)")
      ->check(CLI::PositiveNumber);
  analyze->add_option("--top", options->top, "Ranks in a table that lists the slowest");
  analyze->add_option(
      "--fail-on", options->fail_on,
      "With --compare: exit with 1 if steps are slower by so much and not by chance: "
      "slower=3%");
  analyze->add_option("--out", options->out,
                      "Folder for the page, the JSON, and traces with counter tracks");

  return one_of(*app, {{merge, [options] { return run_merge(*options); }},
                       {analyze, [options] { return run_analyze(*options); }},
                       add_timeline_open(*app),
                       add_timeline_record(*app),
                       add_timeline_watch(*app)});
}

}  // namespace assay::cli::full
