#include "chain/stage/usage.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "nvml/nvml.h"

namespace assay::chain::stage {
namespace {

constexpr std::size_t kMaxFamily = 4096;

// The leader and all its descendants, from the kernel's lists of children.
std::vector<pid_t> family_of(pid_t leader) {
  std::vector<pid_t> family{leader};
  for (std::size_t i = 0; i < family.size() && family.size() < kMaxFamily; ++i) {
    const std::string base =
        "/proc/" + std::to_string(family[i]) + "/task/" + std::to_string(family[i]) + "/children";
    std::ifstream children(base);
    pid_t child = 0;
    while (children >> child) family.push_back(child);
  }
  return family;
}

double rss_mb(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  long total = 0;
  long resident = 0;
  if (!(file >> total >> resident)) return 0;
  static const long page = ::sysconf(_SC_PAGESIZE);
  return static_cast<double>(resident) * static_cast<double>(page) / (1 << 20);
}

}  // namespace

void Usage::keep_peak(const Usage& other) {
  rss_mb = std::max(rss_mb, other.rss_mb);
  gpu_memory_mb = std::max(gpu_memory_mb, other.gpu_memory_mb);
  gpu_percent = std::max(gpu_percent, other.gpu_percent);
  gpu_seen = gpu_seen || other.gpu_seen;
}

Usage sample_usage(pid_t leader, const std::vector<double>& gpus_before) {
  Usage usage;
  const std::vector<pid_t> family = family_of(leader);
  for (const pid_t pid : family) usage.rss_mb += rss_mb(pid);
  const GpuUse gpu = nvml_use_of(family, gpus_before);
  usage.gpu_memory_mb = gpu.memory_mb;
  usage.gpu_percent = gpu.percent;
  usage.gpu_seen = gpu.seen;
  return usage;
}

}  // namespace assay::chain::stage
