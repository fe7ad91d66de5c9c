#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <thread>

#include "base/private_folder.h"
#include "base/terminal.h"
#include "cli/api_config.h"
#include "cli/settings.h"
#include "cli/verbs.h"
#include "device/gpu_choice.h"
#include "device/plugin.h"
#include "engine/lane_plan.h"
#include "lane/fork_server.h"
#include "nvml/nvml.h"

namespace assay {
namespace {

constexpr std::chrono::minutes kImportLimit{3};

struct DoctorOptions {
  std::string paddle_python;
  std::string torch_python;
  std::string settings_file;
};

// Imports frameworks, each configuration once.
class Frameworks {
 public:
  // `apis`: folders of own references.
  Frameworks(const LanePackage& package, const std::vector<std::string>& apis)
      : package_(package), apis_(apis) {}

  // Imports it and prints the outcome, if that has not happened yet. A framework that is not needed
  // is not missing, but noted.
  const Result<ServerInfo>& examine(FrameworkConfig config, bool needed = true);

 private:
  Result<ServerInfo> import(const FrameworkConfig& config) const;

  const LanePackage& package_;
  const std::vector<std::string>& apis_;
  std::list<std::pair<FrameworkConfig, Result<ServerInfo>>> known_;
};

Result<ServerInfo> Frameworks::import(const FrameworkConfig& config) const {
  ASSAY_TRY(const PrivateFolder folder, PrivateFolder::make("doctor"));
  ASSAY_TRY(ForkServer server, ForkServer::start(config, package_, folder.path() / "server.log"));
  return server.wait_ready(kImportLimit);
}

const Result<ServerInfo>& Frameworks::examine(FrameworkConfig config, bool needed) {
  config.keep = std::chrono::seconds(0);  // a kept server would hide a broken installation
  for (const auto& [known, info] : known_) {
    if (known == config) return info;
  }
  FrameworkConfig with_apis = config;
  if (!apis_.empty()) {
    with_apis.environment.push_back(fmt::format("ASSAY_APIS={}", fmt::join(apis_, ":")));
  }
  const Result<ServerInfo>& info = known_.emplace_back(config, import(with_apis)).second;
  if (info) {
    show(stdout, "ok       {} {} in {} (Python {}), {} APIs known\n", info->framework,
         info->version, config.python, info->python, info->apis);
    for (const std::string& entry : config.environment) {
      for (const std::string_view key : {kModules, kModulesInLane}) {
        if (entry.starts_with(key)) {
          show(stdout, "         with the modules {}\n", entry.substr(key.size()));
        }
      }
    }
    if (!info->own.empty()) {
      show(stdout, "         with own references of {}\n", fmt::join(info->own, ", "));
    }
    if (!info->uncompiled.empty()) {
      show(
          stdout,
          "note     {} has no bytecode, so each start compiles it; do that once: `{} -m compileall "
          "-q {}`\n",
          config.name, config.python, info->uncompiled);
    }
    return info;
  }
  std::string why = info.error().message;
  if (why.ends_with(kDoctorHelps)) why.resize(why.size() - kDoctorHelps.size());
  const char* word = needed ? "missing " : "note    ";
  if (info.error().kind == ErrorKind::usage) {  // the interpreter does not start
    show(stdout, "{} {}\n", word, why);
    return info;
  }
  show(stdout,
       "{} {}\n         get it with `{} -m pip install {}` (in a clone: `make setup`), or "
       "name an "
       "interpreter that has it: --{}_python, or in assay.toml\n",
       word, why, config.python, config.name == "paddle" ? "paddlepaddle" : config.name,
       config.name);
  return info;
}

// Whether the framework has the device and the execution of the lane. A lane without a device gets
// one from the run.
Status check_lane(const ServerInfo& info, const std::string& name, const LaneConfig& lane) {
  wire::LaneSpecT spec;
  spec.label = name;
  spec.device = lane.device.empty() ? "cpu" : lane.device;
  spec.execution = lane.execution;
  ASSAY_CHECK(check_execution(info, spec));
  return place_lane(info, spec);
}

// A lane of assay.toml. Returns whether it can run.
bool examine_lane(const std::string& name, const LaneConfig& lane, Frameworks& frameworks) {
  const Result<ServerInfo>& info = frameworks.examine(lane.framework);
  const Status fits = info ? check_lane(*info, name, lane)
                           : Status(fail(fmt::format("{}: see its framework above", name)));
  if (!fits) {
    show(stdout, "missing  lane {}\n", fits.error().message);
    return false;
  }
  show(stdout, "ok       lane {}: {} {}, device {}, {}\n", name, info->framework, info->version,
       lane.device.empty() ? "of the run" : lane.device, lane.execution);
  return true;
}

// Every lane that a run may name, and the warnings about their environment.
bool examine_lanes(const DoctorOptions& options, const Settings& settings,
                   const LanePackage& package) {
  Frameworks frameworks(package, settings.apis);
  std::map<std::string, LaneConfig> lanes;
  bool good = true;
  const auto found = [&](const char* name, const std::string& python, bool needed) {
    lanes[name] = settings.lane(name, python);
    return frameworks.examine(settings.framework(name, python), needed).has_value();
  };
  good = found("torch", options.torch_python, true);
  // PyTorch can be tested alone, so Paddle is missing only if it is named or there is no PyTorch.
  const bool named = !options.paddle_python.empty() || settings.frameworks.contains("paddle");
  const bool needed = named || !good;
  good = (found("paddle", options.paddle_python, needed) || !needed) && good;
  for (const auto& [name, lane] : settings.lanes) {
    lanes[name] = lane;
    good = examine_lane(name, lane, frameworks) && good;
  }
  for (const auto& [name, lane] : lanes) {
    const std::string warning = check_nan_inf_warning(lane);
    if (!warning.empty()) show(stdout, "note     {}\n", warning);
  }
  return good;
}

// Prints the GPUs, their driver and the plug-in. None is required: workers can run on the CPU.
// Returns whether the plug-in that ASSAY_DEVICE_PLUGIN names, if any, can be loaded.
bool examine_gpus() {
  const std::filesystem::path file = device_plugin_file();
  if (std::getenv("ASSAY_DEVICE_PLUGIN") != nullptr) {
    const auto named = load_device_plugin(file);
    show(stdout, "{}\n",
         named ? fmt::format("ok       plug-in {}: {}", file.string(), (*named)->name)
               : "missing  " + named.error().message);
    if (!named) return false;
  }
  const GpuDriver driver = nvml_driver();
  if (!driver.present) {
    show(stdout, "note     no NVIDIA driver: workers sit on the CPU\n");
    return true;
  }
  for (const GpuInfo& gpu : nvml_gpus()) {
    show(stdout, "ok       GPU {}: {}, {} of {} MiB free\n", gpu.number, gpu.name,
         gpu.free_bytes >> 20, gpu.total_bytes >> 20);
  }
  const auto plugin = load_device_plugin(file);
  if (!plugin) {
    show(stdout, "note     {}\n", plugin.error().message);
    return true;
  }
  const Status runs = check_driver(driver, (*plugin)->needs_driver, (*plugin)->name);
  show(stdout, "{}\n",
       runs ? fmt::format("ok       plug-in for GPUs ({}), driver {}", (*plugin)->name,
                          driver.version)
            : "note     " + runs.error().message);
  return true;
}

Result<int> run_doctor(const DoctorOptions& options) {
  bool good = true;
  const auto package = LanePackage::find();
  if (!package) {
    show(stdout, "missing  {}\n", package.error().message);
    return kSomeFailed;
  }
  const auto native = package->native_path / "assay_native.abi3.so";
  if (std::filesystem::exists(native)) {
    show(stdout, "ok       lane package and native module\n");
  } else {
    show(stdout, "missing  {}\n         build it with `make build`\n", native.string());
    good = false;
  }
  ASSAY_TRY(const Settings settings, load_settings(options.settings_file));
  show(stdout, "{}\n",
       settings.file.empty() ? "note     no assay.toml in this folder: each lane is a framework"
                             : "ok       settings of " + settings.file);
  good = examine_lanes(options, settings, *package) && good;
  show(stdout, "ok       {} cores\n", std::thread::hardware_concurrency());
  good = examine_gpus() && good;
  return good ? kAllGood : kSomeFailed;
}

}  // namespace

Verb add_doctor_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("doctor", "What is found here, and what is missing");
  auto options = std::make_shared<DoctorOptions>();
  app->add_option("--paddle_python", options->paddle_python, "Interpreter that has Paddle");
  app->add_option("--torch_python", options->torch_python, "Interpreter that has PyTorch");
  app->add_option("--settings", options->settings_file, "File with settings (assay.toml)");
  return {app, [options] { return run_doctor(*options); }};
}

}  // namespace assay
