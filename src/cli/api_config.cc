#include "cli/api_config.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "base/nearest.h"
#include "base/system_memory.h"
#include "base/text.h"
#include "cli/api_parts.h"
#include "cli/choices.h"
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
constexpr double kMemoryShare = 0.8;  // of the host's memory, for all slots together

Result<std::string> chosen_mode(const ApiOptions& options) {
  std::string chosen;
  for (const ModeInfo& mode : modes()) {
    const auto flag = options.modes.find(std::string(mode.name));
    if (flag == options.modes.end() || !flag->second) continue;
    if (!chosen.empty()) {
      return usage_error(
          fmt::format("--{} and --{} are both modes: choose one of them", chosen, mode.name));
    }
    chosen = mode.name;
  }
  return chosen.empty() ? std::string(modes().front().name) : chosen;
}

// The regimes of python/assay/regimes.py that --values=special stands for.
constexpr std::string_view kSpecialValues = "nan,infinity,bulk";

constexpr std::array<std::string_view, 2> kTolerances{"bar", "engineV2"};

// The capture that --values=observed draws by.
Result<std::string> capture_of(const ApiOptions& options) {
  std::error_code error;
  std::string file = options.settings.observed;
  if (file.empty()) file = options.files.size() == 1 ? options.files[0] : options.api_config_file;
  if (std::filesystem::exists(file, error)) return std::filesystem::absolute(file).string();
  return usage_error(
      "--values=observed draws by one file of assay capture --summaries: assay api CAPTURE, or "
      "--observed=CAPTURE");
}

Status choose_judgement(const ApiOptions& options, wire::CaseSettingsT& settings) {
  ASSAY_CHECK(check_choice("--tolerance", kTolerances, options.tolerance));
  const ModeInfo* mode = find_mode(settings.mode);
  const bool within = mode != nullptr && mode->agreement == Agreement::within;
  if (options.bitwise_alignment) {
    if (options.own_tolerance) {
      return usage_error("--bitwise_alignment allows no tolerance: leave out --atol and --rtol");
    }
    settings.atol = settings.rtol = 0;
  }
  if (options.tolerance == "engineV2" && options.own_tolerance) {
    return usage_error("--tolerance=engineV2 sets both tolerances: leave out --atol and --rtol");
  }
  settings.error_bar = within && options.error_bar && options.tolerance == "bar" &&
                       !options.own_tolerance && !options.bitwise_alignment;
  if (options.values == "all") {
    // Other modes compare two runs of one build, for which one value regime is enough.
    settings.values = within ? "" : "usual";
    return {};
  }
  settings.values = "usual";
  const std::vector<std::string> regimes = split_at(wire::kAllValues, ',');
  for (const std::string& name : entries_of(options.values)) {
    const std::string_view known = name == "special" ? kSpecialValues : std::string_view(name);
    if (name != "special" && name != wire::kObservedValues &&
        std::ranges::find(regimes, name) == regimes.end()) {
      return usage_error(
          fmt::format("--values: no value regime is called {}; known: {},special,all,observed{}",
                      name, wire::kAllValues, suggest(name, regimes)));
    }
    if (name == wire::kObservedValues) {
      ASSAY_TRY(settings.observed, capture_of(options));
    }
    if (name != "usual") settings.values += fmt::format(",{}", known);
  }
  return {};
}

Result<std::vector<Outcome>> chosen_retest(const ApiOptions& options) {
  std::vector<Outcome> outcomes;
  if (options.rerun) {
    if (options.log_dir.empty()) {
      return usage_error("--rerun needs an earlier run: name it with --log_dir");
    }
    for (const OutcomeInfo& outcome : kOutcomes) outcomes.push_back(outcome.outcome);
    return outcomes;
  }
  if (options.retest.empty()) return outcomes;
  if (const auto all = parse_bool(options.retest)) {
    for (const OutcomeInfo& outcome : kOutcomes) {
      if (*all && outcome.failed) outcomes.push_back(outcome.outcome);
    }
  } else {
    for (const std::string& text : entries_of(options.retest)) {
      ASSAY_TRY(const Outcome outcome, chosen_outcome("--retest", text));
      outcomes.push_back(outcome);
    }
  }
  std::error_code error;
  const auto run = std::filesystem::path(options.log_dir) / "run.db";
  if (options.store.empty() && !std::filesystem::exists(run, error)) {
    return usage_error(fmt::format(
        "--retest needs an earlier run: {}",
        options.log_dir.empty() ? "name it with --log_dir" : options.log_dir + " holds none"));
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
    return usage_error(
        "--shard and --store exclude each other: a database shares out its cases by itself");
  }
  if (options.files.empty() && options.api_config_file.empty() &&
      options.api_config_file_pattern.empty()) {
    return usage_error("--shard needs a corpus: name its files");
  }
  ASSAY_TRY(const Shard shard, parse_shard(options.shard));
  return shard;
}

// For runs without a GPU: limits the workers by the host's memory and by its cores. A few more
// workers than cores are allowed, because some cases mostly wait.
Status limit_slots_of_host(double required_gib, unsigned cores, RunConfig& config,
                           std::vector<std::string>& notes) {
  const auto budget = static_cast<double>(config.memory_budget);
  const double fit = required_gib > 0 ? budget / (required_gib * kGiB) : config.slots;
  if (fit < 1) {
    return usage_error(fmt::format(
        "workers have {:.1f} GiB of this machine's memory, and each needs --required_memory={} "
        "GiB: give a smaller number",
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
        fmt::format("more than {} per core are of no use", kMostWorkersOfCore));
  return {};
}

Status choose_slots(const ApiOptions& options, RunConfig& config, std::vector<std::string>& notes) {
  if (options.num_workers_per_gpu == 0 || options.num_workers_per_gpu < -1) {
    return usage_error(
        "--num_workers_per_gpu takes a number of at least 1, or -1 for as many as are useful");
  }
  if (options.num_gpus < -1) {
    return usage_error("--num_gpus takes a number, 0 for none, or -1 for all");
  }
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  // One worker by default in modes that time: its cases then have the caches to themselves.
  const bool timed = mode_of(config).agreement == Agreement::speed;
  const int asked = timed ? std::max(1, options.num_workers_per_gpu) : options.num_workers_per_gpu;
  config.slots = asked > 0 ? static_cast<std::uint32_t>(asked) : cores;
  ASSAY_TRY(const bool on_gpus, choose_gpu_seats(options, asked, config, notes));
  ASSAY_CHECK(check_two_gpus(config));
  if (!on_gpus && !options.test_cpu) {
    notes.push_back(fmt::format("workers run on the CPU ({} cores): {}", cores,
                                options.num_gpus == 0 ? "--num_gpus=0" : "no GPU was found"));
  }
  ASSAY_TRY(const SystemMemory memory, system_memory());
  config.memory_budget =
      static_cast<std::uint64_t>(static_cast<double>(memory.total) * kMemoryShare);
  return on_gpus ? Status() : limit_slots_of_host(options.required_memory, cores, config, notes);
}

// compute-sanitizer's reports do not name the process, so there is one worker.
Status choose_sanitizer(const ApiOptions& options, RunConfig& config,
                        std::vector<std::string>& notes) {
  ASSAY_TRY(config.sanitizer, sanitizer_tool(options.use_compute_sanitizer));
  if (config.sanitizer.empty()) return {};
  if (config.gpus.empty() || config.test.device == "cpu") {
    return usage_error(
        "--use_compute_sanitizer checks GPU kernels, and the lane under test runs on the CPU: "
        "leave out --test_cpu or --num_gpus=0");
  }
  if (mode_of(config).agreement == Agreement::speed) {
    return usage_error(
        "--use_compute_sanitizer slows everything down: leave it out of modes that time");
  }
  ASSAY_TRY([[maybe_unused]] const std::string program, find_compute_sanitizer());
  if (config.slots > 1) {
    notes.push_back("one worker: reports of compute-sanitizer do not name their process");
  }
  config.slots = 1;
  config.spares = 0;
  config.mps = false;
  return {};
}

std::string python_of(const ApiOptions& options, const std::string& lane) {
  const std::string framework = split_lane(lane).framework;
  if (framework == "paddle") return options.paddle_python;
  return framework == "torch" ? options.torch_python : std::string();
}

// A usage error when `name`, the value of `flag`, is neither a lane of assay.toml nor a framework.
Status check_lane(const Settings& settings, std::string_view flag, const std::string& name) {
  std::vector<std::string> known = known_frameworks();
  if (known.empty() || settings.lanes.contains(name)) return {};
  const PlainLane plain = split_lane(name);
  if (std::ranges::find(known, plain.framework) != known.end()) {
    constexpr std::size_t kDevice = 4;  // letters that the name of a device has at most
    const std::string nearest = suggest(plain.device, known_executions());
    if (nearest.empty() || plain.device.size() <= kDevice) return {};
    return usage_error(fmt::format("--{}: {} is neither a device nor an execution{}", flag,
                                   plain.device, nearest));
  }
  for (const auto& lane : settings.lanes) known.push_back(lane.first);
  return usage_error(fmt::format(
      "--{}: no lane or framework is called {}; known: {} (assay.toml adds one as [lanes.NAME]){}",
      flag, name, fmt::join(known, " "), suggest(split_lane(name).framework, known)));
}

Status choose_dump(const ApiOptions& options, RunConfig& config) {
  if (!options.use_dump) {
    if (options.dump_dir.empty()) return {};
    return usage_error("--dump_dir needs --use_dump=True");
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

// Gives both lanes the folders of own API tables (python/assay/own_tables.py).
Status choose_apis(const ApiOptions& options, const Settings& settings, RunConfig& config) {
  std::vector<std::string> folders = settings.apis;
  for (std::string& folder : split_at(options.apis, ':')) {
    if (!folder.empty()) folders.push_back(std::move(folder));
  }
  if (folders.empty()) return {};
  for (std::string& folder : folders) {
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error)) {
      return usage_error(fmt::format("--apis: {} is no folder", folder));
    }
    folder = std::filesystem::canonical(folder, error).string();
  }
  const std::string variable = fmt::format("ASSAY_APIS={}", fmt::join(folders, ":"));
  config.test.framework.environment.push_back(variable);
  config.reference.framework.environment.push_back(variable);
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
  // The devices, if the command line named them.
  repeat("num_gpus", options.num_gpus == 0 ? "0" : "");
  repeat("gpu_ids", options.gpu_ids);
  repeat("test_cpu", options.test_cpu ? "True" : "");
  repeat("paddle_python", options.paddle_python);
  repeat("torch_python", options.torch_python);
  repeat("settings", options.settings_file);
  repeat("apis", options.apis);
  repeat("kernel", options.kernel.function);
  repeat("kernel-reference", options.kernel.reference);
  repeat("kernel-changes", options.kernel.changes);
  repeat("kernel-rules", options.kernel.rules);
  repeat("kernel-gradients", options.kernel.gradients ? "true" : "");
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
    return usage_error("--speed_margin takes a share of at least 0, such as 0.025 for 2.5%");
  }
  if (bad(options.settings.timing_seconds) || options.settings.timing_seconds > kMostSeconds) {
    return usage_error("--timing_seconds takes seconds, at least 0 and at most a year");
  }
  if (bad(options.required_memory)) return usage_error("--required_memory takes GiB, at least 0");
  return {};
}

// The value that a lane's process has for a variable; nullptr: none.
const char* value_in_lane(const FrameworkConfig& framework, const std::string& name) {
  const char* value = std::getenv(name.c_str());
  for (const std::string& entry : framework.environment) {
    if (entry.starts_with(name + "=")) value = entry.c_str() + name.size() + 1;
  }
  return value;
}

}  // namespace

std::string check_nan_inf_warning(const LaneConfig& lane) {
  constexpr const char* kFlag = "FLAGS_check_nan_inf";
  const char* const value = value_in_lane(lane.framework, kFlag);
  if (lane.framework.name != "paddle" || value == nullptr || *value == '\0') return {};
  if (parse_bool(value) == false) return {};
  return fmt::format(
      "{}={} is set for lane {}: Paddle raises an error at each NaN and infinity, and cases under "
      "the regimes nan and infinity end in a false test_error. Unset it, or run with "
      "--values=usual",
      kFlag, value, lane.label.empty() ? lane.framework.name : lane.label);
}

namespace {

// Lanes take no PYTHONPATH from the shell, so that no file of another project replaces a module.
void note_python_path(const RunConfig& config, std::vector<std::string>& notes) {
  const char* const path = std::getenv("PYTHONPATH");
  if (path == nullptr || *path == '\0') return;
  for (const LaneConfig* lane : {&config.test, &config.reference}) {
    for (const std::string& entry : lane->framework.environment) {
      if (entry.starts_with("PYTHONPATH=")) return;
    }
  }
  notes.emplace_back(
      "lanes do not read PYTHONPATH of the shell; to test an overlay, set it for a lane in "
      "assay.toml: environment = [\"PYTHONPATH=…\"]");
}

}  // namespace

Result<RunConfig> make_plan_config(const ApiOptions& options, std::vector<std::string>& notes) {
  ASSAY_CHECK(check_numbers(options));
  RunConfig config;
  config.settings = options.settings;
  ASSAY_TRY(config.settings.mode, chosen_mode(options));
  ASSAY_CHECK(choose_judgement(options, config.settings));
  ASSAY_TRY(config.settings.thresholds, read_thresholds(options.thresholds));
  ASSAY_TRY(config.sources, chosen_sources(options));
  ASSAY_TRY(config.retest, chosen_retest(options));
  config.rerun = options.rerun;
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
        "every user of this machine can read the password in --store from the list of processes; "
        "put it into ~/.pgpass (PGPASSFILE) instead");
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
  const std::string test_lane =
      options.test_lane.empty() ? usual_test_lane(config.sources) : options.test_lane;
  ASSAY_CHECK(check_lane(settings, "test-lane", test_lane));
  config.folder = options.log_dir.empty() ? dated_folder() : std::filesystem::path(options.log_dir);
  config.test = settings.lane(test_lane, python_of(options, test_lane));
  if (options.reference_lane.starts_with(kGoldens)) {
    ASSAY_CHECK(choose_goldens(options.reference_lane.substr(kGoldens.size()), config, notes));
  } else {
    ASSAY_CHECK(check_lane(settings, "reference-lane", options.reference_lane));
    config.reference =
        settings.lane(options.reference_lane, python_of(options, options.reference_lane));
  }
  // Two lanes of PyTorch compare the tables' functions; one lane has nothing to compare them with.
  if (options.reference_lane != ApiOptions().reference_lane &&
      config.test.framework.name == kTablesFramework && !config.test.reference_functions) {
    config.test.reference_functions = true;
  }
  ASSAY_CHECK(choose_apis(options, settings, config));
  ASSAY_CHECK(choose_kernel(options, config, notes));
  if (options.keep_frameworks) {
    ASSAY_TRY(const auto keep, seconds_to_keep(*options.keep_frameworks, "--keep_frameworks"));
    config.test.framework.keep = config.reference.framework.keep = keep;
  }
  config.exit_on_error = options.exit_on_error || options.max_failures == 1;
  config.most_failures = options.max_failures;
  config.silence_ms = static_cast<std::int64_t>(options.hang_timeout * 1000);
  ASSAY_CHECK(choose_dump(options, config));
  notes.insert(notes.end(), options.without_effect.begin(), options.without_effect.end());
  note_python_path(config, notes);
  for (const LaneConfig* lane : {&config.test, &config.reference}) {
    if (config.settings.values == "usual") break;
    const std::string warning = check_nan_inf_warning(*lane);
    if (!warning.empty() && (notes.empty() || notes.back() != warning)) notes.push_back(warning);
  }
  ASSAY_CHECK(choose_slots(options, config, notes));
  ASSAY_CHECK(choose_sanitizer(options, config, notes));
  return config;
}

}  // namespace assay
