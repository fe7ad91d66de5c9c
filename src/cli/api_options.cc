#include "cli/api_options.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

#include "base/text.h"
#include "verdict/mode.h"

namespace assay {
namespace {

// engineV2 writes --flag=True, --flag True and --flag.
void add_bool(CLI::App& app, const std::string& name, bool& target, const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [name, &target](const std::string& text) {
           const std::optional<bool> value = text.empty() ? true : parse_bool(text);
           if (!value) throw CLI::ValidationError(name, "takes True or False, not " + text);
           target = *value;
         },
         help)
      ->expected(0, 1)
      ->type_name("BOOL");
}

void add_case_options(CLI::App& app, ApiOptions& options) {
  const std::string cases = "Which cases";
  app.add_option("--api_config", options.api_config, "One case, as a corpus writes it")
      ->group(cases);
  app.add_option("--api_config_file", options.api_config_file, "A file with a case on each line")
      ->group(cases);
  app.add_option("--api_config_file_pattern", options.api_config_file_pattern,
                 "Files by pattern: 'a/*.txt,b/*.txt'")
      ->group(cases);
  app.add_option(
         "--apis-from", options.apis_from,
         "Only cases of the APIs that a unified diff names (a file, or - for standard input)")
      ->group(cases);
  app.add_option_function<std::string>(
         "--retest",
         [&options](const std::string& text) { options.retest = text.empty() ? "True" : text; },
         "Run cases of --log_dir again: True for all failed ones, or outcomes: crash,timeout")
      ->expected(0, 1)
      ->group(cases);
}

void add_shard_option(CLI::App& app, ApiOptions& options) {
  app.add_option("--shard", options.shard,
                 "Only part I of N of the cases, I/N; parts cost the same (see assay merge)")
      ->group("Which cases");
  app.add_option(
         "--costs-from", options.costs_from,
         "Expect of cases what they took in this run, by its folder or postgresql://…: parts "
         "of --shard are cut by it, and what takes long begins first")
      ->group("Which cases");
}

void add_mode_options(CLI::App& app, ApiOptions& options) {
  app.option_defaults()->group("What is tested");
  for (const ModeInfo& mode : modes()) {
    const bool usual = mode.name == modes().front().name;
    add_bool(app, "--" + std::string(mode.name), options.modes[std::string(mode.name)],
             std::string(mode.meaning) + (usual ? " (the default)" : ""));
  }
  add_bool(app, "--test_backward", options.test_backward,
           "Gradients as well, in modes that leave them out (--paddle_cinn)");
  add_bool(app, "--test_amp", options.test_amp, "All lanes under automatic mixed precision");
  app.add_option("--test-lane", options.test_lane,
                 "The lane under test: one of [lanes.NAME] in assay.toml, or a framework")
      ->capture_default_str();
  app.add_option("--reference-lane", options.reference_lane,
                 "What it is measured against, likewise")
      ->capture_default_str();
}

void add_judgement_options(CLI::App& app, ApiOptions& options) {
  const auto own_tolerance = [&options](const std::string&) { options.own_tolerance = true; };
  app.add_option("--atol", options.settings.atol, "Absolute tolerance, instead of the error bar")
      ->each(own_tolerance)
      ->capture_default_str();
  app.add_option("--rtol", options.settings.rtol, "Relative tolerance, instead of the error bar")
      ->each(own_tolerance)
      ->capture_default_str();
  app.add_option("--tolerance", options.tolerance,
                 "bar: by what rounding can do; engineV2: 0.01 absolute and relative")
      ->capture_default_str();
  add_bool(app, "--error_bar", options.error_bar, "False: as --tolerance=engineV2");
  add_bool(app, "--bitwise_alignment", options.bitwise_alignment, "As --atol=0 --rtol=0");
  app.add_option("--values", options.values,
                 "Kinds of values, with commas between: usual, wide, special, exact, layout; all")
      ->capture_default_str();
  add_bool(app, "--test_tol", options.test_tol,
           "Which tolerance would pass, by API and dtype: tol.csv, tol_stat.csv, the report");
  app.add_option("--speed_margin", options.settings.speed_margin,
                 "A smaller difference in speed is none (modes that time)")
      ->capture_default_str();
  app.add_option("--timing_seconds", options.settings.timing_seconds,
                 "Seconds after which a case that is timed has its last turn")
      ->capture_default_str();
  app.add_option("--random_seed", options.settings.seed, "Seed of all values")
      ->capture_default_str();
}

void add_place_options(CLI::App& app, ApiOptions& options) {
  app.option_defaults()->group("Where it runs");
  add_bool(app, "--test_cpu", options.test_cpu,
           "The test lane on the CPU, also where there is a GPU");
  app.add_option("--num_gpus", options.num_gpus, "GPUs to use; -1: all, 0: none")
      ->capture_default_str();
  app.add_option("--gpu_ids", options.gpu_ids, "Which, as nvidia-smi counts: 0,2,4-7");
  add_bool(app, "--mps", options.mps,
           "Lanes share a GPU by NVIDIA's MPS, which assay starts and ends for itself");
  app.add_option("--use_compute_sanitizer", options.use_compute_sanitizer,
                 "The lane under test under NVIDIA's compute-sanitizer: memcheck (or True), "
                 "racecheck, initcheck");
  app.add_option("--num_workers_per_gpu", options.num_workers_per_gpu,
                 "Workers on each GPU, or on the CPU; -1: as many as pay off")
      ->capture_default_str();
  app.add_option("--required_memory", options.required_memory,
                 "GiB that each worker must have, on its GPU or of the host");
  app.add_option("--paddle_python", options.paddle_python, "Interpreter that has Paddle");
  app.add_option("--torch_python", options.torch_python, "Interpreter that has PyTorch");
  app.add_option("--settings", options.settings_file,
                 "File with settings (default: assay.toml here, where there is one)");
}

void add_timeout(CLI::App& app, ApiOptions& options) {
  app.add_option(
         "--timeout", options.timeout,
         "Seconds for each case; 0: by its size, 90 (up to a million elements in its tensors) "
         "to 3600 (more than 100 million)")
      ->capture_default_str();
}

CLI::Option* add_store(CLI::App& app, ApiOptions& options) {
  return app.add_option(
      "--store", options.store,
      "postgresql://… : a database that is the run's store, for many machines; one that is "
      "given no cases works on those that are there");
}

// Of all who work, `api` as well.
void add_worker_options(CLI::App& app, ApiOptions& options) {
  app.option_defaults()->group("How it goes");
  app.add_option("--hang_timeout", options.hang_timeout,
                 "Seconds after which a slot or fork server that gives no sign of life is replaced")
      ->capture_default_str();
  app.add_option("--keep_frameworks", options.keep_frameworks,
                 "Seconds that imported frameworks stay for the next run, which then starts at "
                 "once (default: as assay.toml says, or not at all)");
  app.add_option("--log_dir", options.log_dir,
                 "Folder of the run; one that is there is resumed (default: a dated one under "
                 "assay-runs/)");
  add_bool(app, "--quiet", options.quiet, "Only the summary");
  add_bool(app, "--show_runtime_status", options.show_runtime_status,
           "False: nothing but failures and the summary");
}

// Flags of upstream's engines that say how they go about it.
void add_without_effect(CLI::App& app, ApiOptions& options) {
  add_bool(app, "--use_cached_numpy", options.use_cached_numpy, "(no effect: nothing to cache)");
  add_bool(app, "--use_gpu_mode,--use_gpu_cache_mode", options.use_gpu_mode,
           "(no effect: a lane on a GPU makes its inputs there, and results are compared there)");
  app.add_option("--sanitizer_command", options.sanitizer_command,
                 "(no effect: --use_compute_sanitizer names the tool)");
  app.add_option("--sanitizer_error_exitcode", options.sanitizer_error_exitcode,
                 "(no effect: its reports are read)");
}

void add_course_options(CLI::App& app, ApiOptions& options) {
  add_worker_options(app, options);
  add_timeout(app, options);
  add_store(app, options);
  add_bool(app, "--exit_on_error", options.exit_on_error, "Stop at the first failed verdict");
  add_bool(app, "--generate_failed_tests", options.generate_failed_tests,
           "A script with its inputs for each failed case, in failed_tests/ of --log_dir");
  add_bool(app, "--shrink", options.shrink,
           "Afterwards make a case of each finding as small as a minute allows (assay shrink)");
  add_bool(app, "--use_dump", options.use_dump,
           "Write what goes into the case of --api_config and comes out of it, in every lane");
  app.add_option("--dump_dir", options.dump_dir, "Where to (default: dump_case in --log_dir)");
  add_without_effect(app, options);
}

}  // namespace

std::optional<bool> parse_bool(std::string text) {
  text = lowered(text);
  if (text == "true" || text == "1" || text == "yes" || text == "y") return true;
  if (text == "false" || text == "0" || text == "no" || text == "n") return false;
  return std::nullopt;
}

void add_api_options(CLI::App& app, ApiOptions& options) {
  add_case_options(app, options);
  add_shard_option(app, options);
  add_mode_options(app, options);
  add_judgement_options(app, options);
  add_place_options(app, options);
  add_course_options(app, options);
  app.option_defaults()->group("Options");
}

void add_plan_options(CLI::App& app, ApiOptions& options) {
  add_case_options(app, options);
  add_mode_options(app, options);
  add_judgement_options(app, options);
  app.option_defaults()->group("Options");
  add_timeout(app, options);
  add_store(app, options)->required();
}

void add_work_options(CLI::App& app, ApiOptions& options) {
  add_place_options(app, options);
  add_worker_options(app, options);
  app.option_defaults()->group("Options");
  add_store(app, options)->required();
}

}  // namespace assay
