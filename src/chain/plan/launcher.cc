#include "chain/plan/launcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace assay::chain::plan {
namespace {

constexpr std::string_view kLaunch = "-m paddle.distributed.launch";

// Parameter Server mode: lists every server and trainer by address, so that the launchers agree
// without a master. Servers use ports from 6170, trainers from 6270.
std::string parameter_servers(const params::GpuEntry& entry, const PlanOptions& options) {
  constexpr int kServerPort = 6170;
  constexpr int kTrainerPort = 6270;
  const std::vector<std::string> hosts =
      entry.hosts.empty() ? std::vector<std::string>{"127.0.0.1"} : entry.hosts;
  const auto endpoints = [&](int port, int number) {
    std::vector<std::string> list;
    for (const std::string& host : hosts) {
      for (int i = 0; i < number; ++i) list.push_back(fmt::format("{}:{}", host, port + i));
    }
    return list;
  };
  return fmt::format("{} --servers={} --trainers={} ", kLaunch,
                     fmt::join(endpoints(kServerPort, options.ps_servers), ","),
                     fmt::join(endpoints(kTrainerPort, options.ps_trainers), ","));
}

// True if the entry trains on the CPU; --fleet-on-cpu makes many machines do so.
bool trains_on_cpu(const params::GpuEntry& entry, const PlanOptions& options) {
  return entry.on_cpu() || (options.fleet_on_cpu && entry.many_machines());
}

// `-m paddle.distributed.launch … ` with a final blank, or "" for one device.
std::string launcher(const params::GpuEntry& entry, const PlanOptions& options) {
  if (options.ps_servers > 0) return parameter_servers(entry, options);
  if (entry.ids.size() <= 1 && !entry.many_machines()) return {};
  std::string line(kLaunch);
  if (entry.many_machines()) line += " --ips=" + entry.ips();
  return line + (trains_on_cpu(entry, options) ? " --nproc_per_node=1 "
                                               : fmt::format(" --gpus={} ", entry.gpus));
}

}  // namespace

Result<Devices> devices_of(const std::string& text, const PlanOptions& options) {
  Devices devices;
  ASSAY_TRY(devices.entry, params::parse_gpu_entry(text));
  const params::GpuEntry& entry = devices.entry;
  const bool cpu = trains_on_cpu(entry, options);
  // The launcher takes an empty CUDA_VISIBLE_DEVICES for a GPU without a name.
  const bool launched = entry.many_machines() || options.ps_servers > 0;
  const std::string ids = fmt::format("{}", fmt::join(entry.ids, ","));
  devices.launch = launcher(entry, options);
  devices.visible = !cpu ? ids : launched ? "" : "-";
  devices.device = cpu ? "cpu" : "gpu " + ids;
  devices.first = cpu ? "-" : entry.ids.front();
  devices.first_device = cpu ? "cpu" : "gpu " + entry.ids.front();
  if (options.ps_servers > 0) {
    devices.servers = fmt::format("_ps_{}x{}", options.ps_servers, options.ps_trainers);
  }
  return devices;
}

}  // namespace assay::chain::plan
