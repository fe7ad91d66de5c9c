#include "cli/api_config.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "base/system_memory.h"
#include "base/text.h"
#include "cli/gpu_seats.h"
#include "cli/settings.h"
#include "device/compute_sanitizer.h"
#include "engine/earlier_costs.h"
#include "store/open_store.h"
#include "verdict/mode.h"
#include "wire/settings.h"

namespace assay {
namespace {

constexpr double kMostSeconds = 366.0 * 24 * 60 * 60;
constexpr unsigned kMostWorkersOfCore = 4;
constexpr double kMemoryShare = 0.8;  // of what the machine has, for all slots together

// The entries of a list with commas, as a person writes it.
std::vector<std::string> entries_of(const std::string& text) {
  std::vector<std::string> entries;
  for (const std::string& part : split_at(text, ',')) {
    if (!trimmed(part).empty()) entries.emplace_back(trimmed(part));
  }
  return entries;
}

Result<std::string> chosen_mode(const ApiOptions& options) {
  std::string chosen;
  for (const ModeInfo& mode : modes()) {
    const auto flag = options.modes.find(std::string(mode.name));
    if (flag == options.modes.end() || !flag->second) continue;
    if (!chosen.empty()) {
      return usage_error(fmt::format("choose one of --{} and --{}", chosen, mode.name));
    }
    chosen = mode.name;
  }
  return chosen.empty() ? std::string(modes().front().name) : chosen;
}

// Regimes of python/assay/regimes.py by the names of the command line.
constexpr std::string_view kSpecialValues = "nan,infinity,bulk";

Status choose_judgement(const ApiOptions& options, wire::CaseSettingsT& settings) {
  if (options.tolerance != "bar" && options.tolerance != "engineV2") {
    return usage_error("--tolerance takes bar or engineV2, not " + options.tolerance);
  }
  const ModeInfo* mode = find_mode(settings.mode);
  const bool within = mode != nullptr && mode->agreement == Agreement::within;
  if (options.bitwise_alignment) {
    if (options.own_tolerance) {
      return usage_error("--bitwise_alignment leaves no tolerance: leave --atol and --rtol out");
    }
    settings.atol = settings.rtol = 0;
  }
  settings.error_bar = within && options.error_bar && options.tolerance == "bar" &&
                       !options.own_tolerance && !options.bitwise_alignment;
  if (options.values == "all") {
    // Other modes ask whether two runs agree; they take the values that they are given.
    settings.values = within ? "" : "usual";
    return {};
  }
  settings.values = "usual";
  for (const std::string& name : entries_of(options.values)) {
    const std::string_view known = name == "special" ? kSpecialValues : std::string_view(name);
    if (wire::kAllValues.find(known) == std::string_view::npos) {
      return usage_error(
          fmt::format("--values: no values are called {}; there are {}", name, wire::kAllValues));
    }
    if (name != "usual") settings.values += fmt::format(",{}", known);
  }
  return {};
}

Result<Sources> chosen_sources(const ApiOptions& options) {
  Sources sources;
  if (!options.api_config.empty()) sources.configs.push_back(options.api_config);
  if (!options.api_config_file.empty()) sources.patterns.push_back(options.api_config_file);
  for (const std::string& pattern : entries_of(options.api_config_file_pattern)) {
    sources.patterns.push_back(pattern);
  }
  if (!options.apis_from.empty()) {
    ASSAY_TRY(sources.only, ChangedApis::read(options.apis_from));
  }
  // A store that others have filled has cases enough.
  if (sources.configs.empty() && sources.patterns.empty() && options.retest.empty() &&
      options.store.empty()) {
    return usage_error(
        "nothing to run: give --api_config, --api_config_file or --api_config_file_pattern");
  }
  return sources;
}

Result<std::vector<Outcome>> chosen_retest(const ApiOptions& options) {
  std::vector<Outcome> outcomes;
  if (options.retest.empty()) return outcomes;
  if (options.log_dir.empty() && options.store.empty()) {
    return usage_error("--retest runs cases of an earlier run again: name its --log_dir");
  }
  if (const auto all = parse_bool(options.retest)) {
    for (const OutcomeInfo& outcome : kOutcomes) {
      if (*all && outcome.failed) outcomes.push_back(outcome.outcome);
    }
    return outcomes;
  }
  for (const std::string& text : entries_of(options.retest)) {
    const auto outcome = find_outcome(text);
    if (!outcome) {
      std::string known;
      for (const OutcomeInfo& entry : kOutcomes) known += fmt::format(" {}", entry.name);
      return usage_error(
          fmt::format("--retest: no outcome is called {}; there are{}", text, known));
    }
    outcomes.push_back(*outcome);
  }
  return outcomes;
}

std::filesystem::path dated_folder() {
  const std::time_t now = std::time(nullptr);
  return std::filesystem::path("assay-runs") /
         fmt::format("{:%Y-%m-%d_%H-%M-%S}_{}", fmt::localtime(now), ::getpid());
}

Result<std::optional<Shard>> chosen_shard(const ApiOptions& options) {
  if (options.shard.empty()) return std::nullopt;
  if (!options.store.empty()) {
    return usage_error("--shard is for machines that share no database: leave it, or --store, out");
  }
  if (options.api_config_file.empty() && options.api_config_file_pattern.empty()) {
    return usage_error("--shard takes a part of a corpus: name it with --api_config_file");
  }
  ASSAY_TRY(const Shard shard, parse_shard(options.shard));
  return shard;
}

// Where no GPU is taken: not more workers than have room in the host's memory, nor than its cores
// serve. Some more than cores are for those who know that their cases wait a lot.
Status limit_slots_of_host(double required_gib, unsigned cores, RunConfig& config,
                           std::vector<std::string>& notes) {
  const auto budget = static_cast<double>(config.memory_budget);
  const double fit = required_gib > 0 ? budget / (required_gib * kGiB) : config.slots;
  if (fit < 1) {
    return usage_error(fmt::format(
        "workers have {:.1f} GiB of this machine's memory, and each needs --required_memory={} "
        "GiB: ask for less",
        budget / kGiB, required_gib));
  }
  const auto limit = [&](double most, const std::string& why) {
    if (most >= config.slots) return;
    notes.push_back(fmt::format("{} of {} workers: {}", most, config.slots, why));
    config.slots = static_cast<std::uint32_t>(most);
  };
  limit(std::floor(fit),
        fmt::format("more do not fit with --required_memory={} GiB each", required_gib));
  limit(static_cast<double>(cores) * kMostWorkersOfCore,
        fmt::format("more than {} a core do not pay off", kMostWorkersOfCore));
  return {};
}

Status choose_slots(const ApiOptions& options, RunConfig& config, std::vector<std::string>& notes) {
  if (options.num_workers_per_gpu == 0 || options.num_workers_per_gpu < -1) {
    return usage_error(
        "--num_workers_per_gpu takes a number of at least 1, or -1 for as many as pay off");
  }
  if (options.num_gpus < -1) {
    return usage_error("--num_gpus takes a number, 0 for none, or -1 for all");
  }
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  // What is timed has caches and memory to itself, unless more workers are asked for.
  const bool timed = mode_of(config).agreement == Agreement::speed;
  const int asked = timed ? std::max(1, options.num_workers_per_gpu) : options.num_workers_per_gpu;
  config.slots = asked > 0 ? static_cast<std::uint32_t>(asked) : cores;
  ASSAY_TRY(const bool on_gpus,
            choose_gpu_seats({options.num_gpus, options.gpu_ids, asked, options.required_memory,
                              options.test_cpu, options.mps},
                             config, notes));
  ASSAY_CHECK(check_two_gpus(config));
  if (!on_gpus && !options.test_cpu) {
    notes.push_back(fmt::format("workers sit on the CPU ({} cores): {}", cores,
                                options.num_gpus == 0 ? "--num_gpus=0" : "no GPU is here"));
  }
  ASSAY_TRY(const SystemMemory memory, system_memory());
  config.memory_budget =
      static_cast<std::uint64_t>(static_cast<double>(memory.total) * kMemoryShare);
  return on_gpus ? Status() : limit_slots_of_host(options.required_memory, cores, config, notes);
}

// What it writes is not told apart by process, so one worker has to do.
Status choose_sanitizer(const ApiOptions& options, RunConfig& config,
                        std::vector<std::string>& notes) {
  ASSAY_TRY(config.sanitizer, sanitizer_tool(options.use_compute_sanitizer));
  if (config.sanitizer.empty()) return {};
  if (config.gpus.empty() || config.test.device == "cpu") {
    return usage_error(
        "--use_compute_sanitizer looks at kernels of a GPU, and the lane under test sits on the "
        "CPU");
  }
  if (mode_of(config).agreement == Agreement::speed) {
    return usage_error("--use_compute_sanitizer makes everything slow; do not time that");
  }
  ASSAY_TRY([[maybe_unused]] const std::string program, find_compute_sanitizer());
  if (config.slots > 1) {
    notes.push_back("one worker: compute-sanitizer does not say which process its reports are of");
  }
  config.slots = 1;
  config.spares = 0;
  config.mps = false;
  return {};
}

std::string python_of(const ApiOptions& options, const std::string& lane) {
  if (lane == "paddle") return options.paddle_python;
  return lane == "torch" ? options.torch_python : std::string();
}

Status choose_dump(const ApiOptions& options, RunConfig& config) {
  if (!options.use_dump) {
    if (options.dump_dir.empty()) return {};
    return usage_error("--dump_dir: give --use_dump=True as well");
  }
  if (options.api_config.empty() || config.sources.configs.size() != 1 ||
      !config.sources.patterns.empty()) {
    return usage_error("--use_dump writes one case: give it with --api_config");
  }
  const std::filesystem::path folder = options.dump_dir.empty()
                                           ? config.folder / "dump_case"
                                           : std::filesystem::path(options.dump_dir);
  std::error_code error;
  config.dump_dir = std::filesystem::absolute(folder, error).string();
  return {};
}

std::map<std::string, std::string> repeated_flags(const ApiOptions& options) {
  std::map<std::string, std::string> flags;
  const auto repeat = [&](const char* flag, const std::string& value) {
    if (!value.empty()) flags[std::string(kRerunFlag) + flag] = value;
  };
  const auto repeat_lane = [&](const char* flag, const std::string& lane,
                               const std::string& usual) {
    repeat(flag, lane == usual ? "" : lane);
  };
  repeat("timeout", options.timeout > 0 ? fmt::format("{}", options.timeout) : "");
  // Where it ran, as far as somebody has said so.
  repeat("num_gpus", options.num_gpus == 0 ? "0" : "");
  repeat("gpu_ids", options.gpu_ids);
  repeat("test_cpu", options.test_cpu ? "True" : "");
  repeat("paddle_python", options.paddle_python);
  repeat("torch_python", options.torch_python);
  repeat("settings", options.settings_file);
  repeat("test_amp", options.test_amp ? "True" : "");
  repeat("test_backward", options.test_backward ? "True" : "");
  repeat("use_compute_sanitizer", options.use_compute_sanitizer);
  repeat("test_tol", options.test_tol ? "True" : "");
  repeat_lane("test-lane", options.test_lane, ApiOptions().test_lane);
  repeat_lane("reference-lane", options.reference_lane, ApiOptions().reference_lane);
  return flags;
}

Status check_numbers(const ApiOptions& options) {
  const auto bad = [](double value) { return !std::isfinite(value) || value < 0; };
  if (bad(options.settings.atol)) return usage_error("--atol takes a finite number of at least 0");
  if (bad(options.settings.rtol)) return usage_error("--rtol takes a finite number of at least 0");
  if (bad(options.timeout) || options.timeout > kMostSeconds) {
    return usage_error("--timeout takes seconds, at least 0 and at most a year");
  }
  if (!(options.hang_timeout >= 1 && options.hang_timeout <= 86'400)) {
    return usage_error("--hang_timeout takes seconds, 1 to 86400");
  }
  if (bad(options.settings.speed_margin)) {
    return usage_error("--speed_margin takes a share of at least 0: 0.025 for 2.5%");
  }
  if (bad(options.settings.timing_seconds) || options.settings.timing_seconds > kMostSeconds) {
    return usage_error("--timing_seconds takes seconds, at least 0 and at most a year");
  }
  if (bad(options.required_memory)) return usage_error("--required_memory takes GiB, at least 0");
  return {};
}

void note_without_effect(const ApiOptions& options, std::vector<std::string>& notes) {
  const auto note = [&](bool given, std::string_view flag, std::string_view why) {
    if (given) notes.push_back(fmt::format("--{} changes nothing: {}", flag, why));
  };
  note(options.use_cached_numpy, "use_cached_numpy",
       "inputs come from a counter, so there is nothing to cache");
  note(options.use_gpu_mode, "use_gpu_mode", "on GPUs inputs are made and results compared there");
  note(!options.sanitizer_command.empty(), "sanitizer_command",
       "--use_compute_sanitizer names the tool");
  note(!options.sanitizer_error_exitcode.empty(), "sanitizer_error_exitcode",
       "what compute-sanitizer reports is read");
}

}  // namespace

Result<RunConfig> make_plan_config(const ApiOptions& options, std::vector<std::string>& notes) {
  ASSAY_CHECK(check_numbers(options));
  RunConfig config;
  config.settings = options.settings;
  ASSAY_TRY(config.settings.mode, chosen_mode(options));
  ASSAY_CHECK(choose_judgement(options, config.settings));
  ASSAY_TRY(config.sources, chosen_sources(options));
  ASSAY_TRY(config.retest, chosen_retest(options));
  ASSAY_TRY(config.shard, chosen_shard(options));
  if (!options.costs_from.empty()) {
    ASSAY_TRY(EarlierCosts costs, EarlierCosts::read(options.costs_from));
    config.earlier = std::make_shared<const EarlierCosts>(std::move(costs));
  }
  if (!options.store.empty() && !is_store_address(options.store)) {
    return usage_error("--store takes the address of a database: postgresql://…");
  }
  if (has_password(options.store)) {
    notes.emplace_back(
        "the password in --store is seen by everybody who lists the processes here; give it in "
        "~/.pgpass (PGPASSFILE) instead");
  }
  config.store = options.store;
  config.settings.backward = mode_of(config).backward || options.test_backward;
  config.amp = options.test_amp;
  if (options.timeout > 0) {
    config.timeout_ms = static_cast<std::uint64_t>(std::ceil(options.timeout * 1000));
  }
  config.rerun_flags = repeated_flags(options);
  return config;
}

Result<RunConfig> make_run_config(const ApiOptions& options, std::vector<std::string>& notes) {
  ASSAY_TRY(RunConfig config, make_plan_config(options, notes));
  ASSAY_TRY(const Settings settings, load_settings(options.settings_file));
  config.test = settings.lane(options.test_lane, python_of(options, options.test_lane));
  config.reference =
      settings.lane(options.reference_lane, python_of(options, options.reference_lane));
  if (options.keep_frameworks) {
    ASSAY_TRY(const auto keep, seconds_to_keep(*options.keep_frameworks, "--keep_frameworks"));
    config.test.framework.keep = config.reference.framework.keep = keep;
  }
  config.folder = options.log_dir.empty() ? dated_folder() : std::filesystem::path(options.log_dir);
  config.exit_on_error = options.exit_on_error;
  config.silence_ms = static_cast<std::int64_t>(options.hang_timeout * 1000);
  ASSAY_CHECK(choose_dump(options, config));
  note_without_effect(options, notes);
  ASSAY_CHECK(choose_slots(options, config, notes));
  ASSAY_CHECK(choose_sanitizer(options, config, notes));
  return config;
}

}  // namespace assay
