#include "cli/verb_doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/terminal.h"
#include "cli/exit_code.h"
#include "cli/settings.h"
#include "device/gpu_choice.h"
#include "device/nvml.h"
#include "device/plugin.h"
#include "lane/fork_server.h"

namespace assay {
namespace {

constexpr std::chrono::minutes kImportLimit{3};

struct DoctorOptions {
  std::string paddle_python;
  std::string torch_python;
  std::string settings_file;
};

// Imports the framework and prints the outcome. Returns whether that worked.
bool examine(FrameworkConfig config, const LanePackage& package) {
  config.keep = std::chrono::seconds(0);  // a kept server would hide a broken installation
  // The folder's name is new, because another user could have put a link at a known name.
  std::string folder = std::filesystem::temp_directory_path() / "assay-doctor-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    show(stdout, "missing  {}\n", errno_error("cannot make " + folder).value().message);
    return false;
  }
  auto server = ForkServer::start(config, package, std::filesystem::path(folder) / "server.log");
  const auto info = server ? server->wait_ready(kImportLimit)
                           : Result<ServerInfo>(tl::unexpected<Error>(server.error()));
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (info) {
    show(stdout, "ok       {} {} in {} (Python {}), {} APIs known\n", info->framework,
         info->version, config.python, info->python, info->apis);
    return true;
  }
  std::string why = info.error().message;
  if (why.ends_with(kDoctorHelps)) why.resize(why.size() - kDoctorHelps.size());
  show(stdout,
       "missing  {}\n         get it with `{} -m pip install {}` (in a clone: `make setup`), or "
       "name an "
       "interpreter that has it: --{}_python, or in assay.toml\n",
       why, config.python, config.name == "paddle" ? "paddlepaddle" : config.name, config.name);
  return false;
}

// Prints the GPUs, their driver and the plug-in. None is required: workers can run on the CPU.
void examine_gpus() {
  const GpuDriver driver = nvml_driver();
  if (!driver.present) return show(stdout, "note     no NVIDIA driver: workers sit on the CPU\n");
  for (const GpuInfo& gpu : nvml_gpus()) {
    show(stdout, "ok       GPU {}: {}, {} of {} MiB free\n", gpu.number, gpu.name,
         gpu.free_bytes >> 20, gpu.total_bytes >> 20);
  }
  const auto plugin = load_device_plugin(device_plugin_file());
  if (!plugin) return show(stdout, "note     {}\n", plugin.error().message);
  const Status runs = check_driver(driver, (*plugin)->needs_driver, (*plugin)->name);
  show(stdout, "{}\n",
       runs ? fmt::format("ok       plug-in for GPUs ({}), driver {}", (*plugin)->name,
                          driver.version)
            : "note     " + runs.error().message);
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
  good = examine(settings.framework("paddle", options.paddle_python), *package) && good;
  good = examine(settings.framework("torch", options.torch_python), *package) && good;
  show(stdout, "ok       {} cores\n", std::thread::hardware_concurrency());
  examine_gpus();
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
