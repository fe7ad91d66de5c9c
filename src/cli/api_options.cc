#include "cli/api_options.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

#include "base/text.h"
#include "cli/choices.h"
#include "verdict/mode.h"

namespace assay {
namespace {

// engineV2 accepts --flag=True, --flag True and --flag.
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
  app.add_option("--api_config", options.api_config, "One case, in the syntax of a corpus")
      ->group(cases);
  app.add_option("--api_config_file", options.api_config_file, "A file with a case on each line")
      ->group(cases);
  app.add_option("--api_config_file_pattern", options.api_config_file_pattern,
                 "Files by patterns: 'a/*.txt,b/*.txt'")
      ->group(cases);
  app.add_option(
         "--apis-from", options.apis_from,
         "Only cases of the APIs that a unified diff names (a file, or - for standard input)")
      ->check(not_empty())
      ->group(cases);
  app.add_option("-k,--filter", options.filter,
                 "Only cases whose API name matches: 'softmax and not log'. Parts of names with "
                 "and, or, not and parentheses, as in pytest")
      ->group(cases);
  app.add_option_function<std::string>(
         "--retest",
         [&options](const std::string& text) { options.retest = text.empty() ? "True" : text; },
         "Run cases of --log_dir again: True for all failed ones, or a list of outcomes: "
         "crash,timeout")
      ->expected(0, 1)
      ->group(cases);
  app.add_flag("--last-failed,--lf", options.last_failed,
               "Run the failed cases of --log_dir again, or of the newest run under assay-runs/")
      ->group(cases);
  app.add_flag("--rerun", options.rerun,
               "Run all cases of --log_dir again, also with another build of the framework")
      ->group(cases);
}

void add_shard_option(CLI::App& app, ApiOptions& options) {
  app.add_option("--shard", options.shard,
                 "Run only part I of N of the cases: I/N. All parts take about the same time; "
                 "`assay merge` makes one run of them")
      ->group("Which cases");
  app.add_option(
         "--costs-from", options.costs_from,
         "Read case timings from this earlier run (a folder or postgresql://…). --shard balances "
         "its parts by them, and slow cases start first")
      ->group("Which cases");
}

void add_mode_options(CLI::App& app, ApiOptions& options) {
  app.option_defaults()->group("What is tested");
  for (const ModeInfo& mode : modes()) {
    const bool usual = mode.name == modes().front().name;
    add_bool(app, "--" + std::string(mode.name), options.modes[std::string(mode.name)],
             std::string(mode.meaning) + (usual ? " (default)" : ""));
  }
  add_bool(app, "--test_backward", options.test_backward,
           "Test gradients too, in modes that leave them out (--paddle_cinn)");
  add_bool(app, "--test_amp", options.test_amp, "Run all lanes under automatic mixed precision");
  app.add_option(
      "--test-lane", options.test_lane,
      "The lane under test: a [lanes.NAME] of assay.toml, or FRAMEWORK[:DEVICE][+EXECUTION], "
      "such as torch:cuda:0+compile or torch:vmap (default: the framework of the first "
      "case)");
  app.add_option("--reference-lane", options.reference_lane,
                 "The lane to compare with, written in the same way; or gold:PATH, gold:http://…: "
                 "results that `assay record` has kept")
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
                 "bar: the error bar, computed from rounding; engineV2: 0.01 absolute and relative")
      ->capture_default_str();
  app.add_option("--manual_threshold_config_file", options.thresholds,
                 "Tolerances of single APIs: a YAML file of engineV4, manual_threshold_config with "
                 "API: [ATOL, RTOL]. They replace the error bar of these APIs");
  add_bool(app, "--error_bar", options.error_bar, "False is --tolerance=engineV2");
  add_bool(app, "--bitwise_alignment", options.bitwise_alignment,
           "The same as --atol=0 --rtol=0, and bitwise.csv: how far each API is from equal bits");
  app.add_option(
         "--values", options.values,
         "Value regimes, separated by commas: usual, wide, special, exact, layout, "
         "constant, or all; observed: as a capture has seen them (assay capture --summaries)")
      ->capture_default_str();
  app.add_option("--observed", options.settings.observed,
                 "The capture that --values=observed draws by (default: the file of cases)");
  add_bool(app, "--test_tol", options.test_tol,
           "Find the tolerance that each case needs: tol.csv, tol_stat.csv (by API and dtype) and "
           "the report");
  app.add_option("--speed_margin", options.settings.speed_margin,
                 "Ignore differences in speed below this share: 0.025 is 2.5% (modes that time)")
      ->capture_default_str();
  app.add_option("--timing_seconds", options.settings.timing_seconds,
                 "Time budget for each timed case, in seconds")
      ->capture_default_str();
  app.add_option("--random_seed,--seed", options.settings.seed, "Seed of all input values")
      ->check(whole_number())
      ->capture_default_str();
}

void add_place_options(CLI::App& app, ApiOptions& options) {
  app.option_defaults()->group("Where it runs");
  add_bool(app, "--test_cpu", options.test_cpu,
           "Run the test lane on the CPU, even if there is a GPU");
  app.add_option("--num_gpus", options.num_gpus, "How many GPUs to use; -1: all, 0: none")
      ->capture_default_str();
  app.add_option("--gpu_ids", options.gpu_ids,
                 "Which GPUs to use, numbered as in nvidia-smi: 0,2,4-7");
  add_bool(app, "--mps", options.mps,
           "Share each GPU through NVIDIA's MPS, which assay starts and stops");
  app.add_option("--use_compute_sanitizer", options.use_compute_sanitizer,
                 "Run the lane under test under NVIDIA's compute-sanitizer: memcheck (or True), "
                 "racecheck or initcheck");
  app.add_option("-n,--num_workers_per_gpu", options.num_workers_per_gpu,
                 "Workers on each GPU, or on the CPU; -1: as many as are useful")
      ->capture_default_str();
  app.add_option("--required_memory", options.required_memory,
                 "GiB that each worker needs, on its GPU or in the host's memory");
  app.add_option("--paddle_python", options.paddle_python, "Python interpreter that has Paddle");
  app.add_option("--torch_python", options.torch_python, "Python interpreter that has PyTorch");
  app.add_option("--settings", options.settings_file,
                 "Settings file (default: assay.toml in the working folder, if it exists)");
  app.add_option("--apis", options.apis,
                 "Folders, separated by colons, of Python files with your own references, which "
                 "every lane runs: for custom operators");
}

void add_timeout(CLI::App& app, ApiOptions& options) {
  app.add_option(
         "--timeout", options.timeout,
         "Time limit for each case, in seconds; 0: by its size, from 90 (up to a million tensor "
         "elements) to 3600 (more than 100 million). 90s, 5min and 1h are understood, too")
      ->transform(seconds())
      ->capture_default_str();
}

CLI::Option* add_store(CLI::App& app, ApiOptions& options) {
  return app.add_option(
      "--store", options.store,
      "postgresql://…: keep the run in this database, which many machines can share. Without "
      "cases on the command line, assay works on those in the database");
}

// Flags of every verb that runs cases: `api` and `work`.
void add_worker_options(CLI::App& app, ApiOptions& options) {
  app.option_defaults()->group("How it goes");
  app.add_option("--hang_timeout", options.hang_timeout,
                 "Seconds without a heartbeat after which a slot or fork server is replaced")
      ->transform(seconds())
      ->capture_default_str();
  app.add_option("--keep_frameworks", options.keep_frameworks,
                 "Keep imported frameworks in memory for this many seconds, so that the next run "
                 "starts at once (default: keep_frameworks in assay.toml, else 0)")
      ->transform(seconds());
  app.add_option("--log_dir", options.log_dir,
                 "Folder of the run; an existing run is resumed (default: a new dated folder under "
                 "assay-runs/)");
  add_bool(app, "-q,--quiet", options.quiet, "Print only the summary");
  app.add_flag("-v,--verbose", options.verbose, "Print a line for each case");
  add_bool(app, "--show_runtime_status", options.show_runtime_status,
           "False: print only failures and the summary");
}

// Flags of engineV2 and engineV4 that assay accepts and does not need.
void add_without_effect(CLI::App& app, ApiOptions& options) {
  constexpr std::array<std::array<const char*, 2>, 4> kFlags{{
      {"--use_cached_numpy", "assay generates inputs and caches none"},
      {"--use_gpu_mode,--use_gpu_cache_mode", "lanes on a GPU generate inputs and compare there"},
      {"--sanitizer_command", "--use_compute_sanitizer selects the tool"},
      {"--sanitizer_error_exitcode", "assay reads the sanitizer's reports"},
  }};
  for (const auto& [flag, why] : kFlags) {
    app.add_option_function<std::string>(
           flag,
           [&options, flag = flag, why = why](const std::string&) {
             options.without_effect.push_back(fmt::format("{} has no effect: {}", flag, why));
           },
           fmt::format("(no effect: {})", why))
        ->expected(0, 1);
  }
}

// engineV4 compares with results that it uploads and downloads; assay records them.
void add_refused(CLI::App& app) {
  app.add_option_function<std::string>(
         "--custom_device_vs_gpu,--custom_device_vs_gpu_mode",
         [](const std::string& text) {
           if (text == "False" || text == "false") return;
           throw CLI::ValidationError(
               "--custom_device_vs_gpu",
               "is engineV4's. On the machine with the GPU: `assay record --log_dir=GOLD` (for "
               "Paddle's own results with --reference-lane=paddle); on the one with the device: "
               "--reference-lane=gold:PATH or gold:http://…");
         },
         "(refused: `assay record` and --reference-lane=gold:… do this)")
      ->expected(0, 1)
      ->take_last()
      ->type_name("BOOL");
}

void add_course_options(CLI::App& app, ApiOptions& options) {
  add_worker_options(app, options);
  add_timeout(app, options);
  add_store(app, options);
  add_bool(app, "-x,--exit_on_error", options.exit_on_error, "Stop at the first failed verdict");
  app.add_option("--max-failures,--maxfail", options.max_failures,
                 "Stop after this many failed verdicts; 0: never")
      ->check(whole_number());
  add_bool(app, "--generate_failed_tests", options.generate_failed_tests,
           "Write a script with its inputs for each failed case to failed_tests/ in --log_dir");
  add_bool(app, "--shrink", options.shrink,
           "Afterwards shrink one case of each finding, for a minute at most (assay shrink)");
  add_bool(app, "--use_dump", options.use_dump,
           "Write the inputs and outputs of the case of --api_config in every lane");
  app.add_option("--dump_dir", options.dump_dir,
                 "Folder for --use_dump (default: dump_case in --log_dir)");
  add_without_effect(app, options);
  add_refused(app);
}

}  // namespace

std::optional<bool> parse_bool(std::string text) {
  text = lowered(text);
  if (text == "true" || text == "1" || text == "yes" || text == "y") return true;
  if (text == "false" || text == "0" || text == "no" || text == "n") return false;
  return std::nullopt;
}

void add_files(CLI::App& app, ApiOptions& options) {
  app.add_option("FILE", options.files,
                 "Files with a case on each line, or patterns of files; -: standard input; "
                 "FILE::ID: one case of a file");
}

void add_api_options(CLI::App& app, ApiOptions& options) {
  add_case_options(app, options);
  add_shard_option(app, options);
  add_mode_options(app, options);
  add_judgement_options(app, options);
  add_place_options(app, options);
  app.option_defaults()->group("A kernel of one's own");
  add_named_kernel(app, options.kernel);
  add_course_options(app, options);
  app.option_defaults()->group("Options");
}

void add_run_options(CLI::App& app, ApiOptions& options) {
  add_judgement_options(app, options);
  add_place_options(app, options);
  app.add_option("--test-lane", options.test_lane, "The lane of the kernel, one of PyTorch")
      ->default_str("torch");
  add_worker_options(app, options);
  add_timeout(app, options);
  add_bool(app, "--shrink", options.shrink,
           "Afterwards shrink one case of each finding, for a minute at most (assay shrink)");
  app.option_defaults()->group("Options");
}

void add_kernel_options(CLI::App& app, KernelOptions& kernel, const std::string& prefix) {
  app.add_option(prefix + "reference", kernel.reference,
                 "FILE.py:NAME of what is right; it runs in float64, too");
  app.add_option(prefix + "changes", kernel.changes,
                 "Parameters that the kernel changes in place, separated by commas");
  app.add_option(prefix + "rules", kernel.rules,
                 "How tensors are filled: 'index=integers(0, 100); x=positive()'");
  app.add_flag(prefix + "gradients", kernel.gradients, "A kernel without a gradient is wrong");
}

void add_named_kernel(CLI::App& app, KernelOptions& kernel) {
  app.add_option("--kernel", kernel.function,
                 "FILE.py:NAME: the function that cases call torch.kernel.NAME (assay kernel)");
  add_kernel_options(app, kernel, "--kernel-");
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
