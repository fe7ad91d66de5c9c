#include "chain/stage/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

namespace assay::chain::stage {
namespace {

// NVML's C interface, the part that is used, as its documentation gives it.
using Device = struct nvmlDevice_st*;
struct ProcessInfo {
  unsigned int pid;
  unsigned long long used_memory;
  unsigned int gpu_instance;
  unsigned int compute_instance;
};
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct Utilization {
  unsigned int gpu;
  unsigned int memory;
};
constexpr int kSuccess = 0;
constexpr int kTooSmall = 7;  // NVML_ERROR_INSUFFICIENT_SIZE
constexpr int kAbsent = 12;   // NVML_ERROR_LIBRARY_NOT_FOUND

class Nvml {
 public:
  Nvml() {
    // Never unloaded: NVML's own threads may outlive a dlclose.
    library_ = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    const bool found = load("nvmlInit_v2", init_) && load("nvmlDeviceGetCount_v2", count_) &&
                       load("nvmlDeviceGetHandleByIndex_v2", handle_) &&
                       load("nvmlDeviceGetName", name_) &&
                       load("nvmlDeviceGetUtilizationRates", utilization_) &&
                       load("nvmlDeviceGetMemoryInfo", memory_) &&
                       // Drivers before 510 have the second version, with the same structure.
                       (load("nvmlDeviceGetComputeRunningProcesses_v3", processes_) ||
                        load("nvmlDeviceGetComputeRunningProcesses_v2", processes_));
    ready_ = found && init_() == kSuccess;
  }

  std::vector<Device> devices() const {
    std::vector<Device> list;
    unsigned int number = 0;
    if (!ready_ || count_(&number) != kSuccess) return list;
    for (unsigned int i = 0; i < number; ++i) {
      Device device = nullptr;
      if (handle_(i, &device) == kSuccess) list.push_back(device);
    }
    return list;
  }

  std::string name(Device device) const {
    std::array<char, 96> text{};
    if (name_(device, text.data(), static_cast<unsigned int>(text.size())) != kSuccess) return {};
    return text.data();
  }

  double percent(Device device) const {
    Utilization rates{};
    return utilization_(device, &rates) == kSuccess ? rates.gpu : 0;
  }

  double used_mb(Device device) const {
    Memory memory{};
    return memory_(device, &memory) == kSuccess ? static_cast<double>(memory.used) / (1 << 20) : 0;
  }

  std::vector<ProcessInfo> processes(Device device) const {
    std::vector<ProcessInfo> list(64);
    for (int tries = 0; tries < 3; ++tries) {
      auto number = static_cast<unsigned int>(list.size());
      const int status = processes_(device, &number, list.data());
      if (status == kTooSmall) {
        list.resize(number + 16);  // more may come until the next call
        continue;
      }
      list.resize(status == kSuccess ? number : 0);
      return list;
    }
    return {};
  }

 private:
  template <typename Function>
  bool load(const char* symbol, Function& function) {
    void* found = ::dlsym(library_, symbol);
    if (found != nullptr) function = reinterpret_cast<Function>(found);
    return found != nullptr;
  }

  void* library_ = nullptr;
  bool ready_ = false;
  int (*init_)() = [] { return kAbsent; };
  int (*count_)(unsigned int*) = [](unsigned int*) { return kAbsent; };
  int (*handle_)(unsigned int, Device*) = [](unsigned int, Device*) { return kAbsent; };
  int (*name_)(Device, char*, unsigned int) = [](Device, char*, unsigned int) { return kAbsent; };
  int (*utilization_)(Device, Utilization*) = [](Device, Utilization*) { return kAbsent; };
  int (*memory_)(Device, Memory*) = [](Device, Memory*) { return kAbsent; };
  int (*processes_)(Device, unsigned int*, ProcessInfo*) = [](Device, unsigned int*, ProcessInfo*) {
    return kAbsent;
  };
};

// A process that computes on a GPU holds at least a CUDA context, of some hundred MB.
constexpr double kContextMb = 64;

// The kernel gives its first PID namespace this number, in every Linux (PROC_PID_INIT_INO).
bool in_first_pid_namespace() {
  std::array<char, 64> link{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", link.data(), link.size() - 1);
  return length > 0 && std::string_view(link.data()) == "pid:[4026531836]";
}

const Nvml& nvml() {
  static const Nvml library;
  return library;
}

}  // namespace

std::vector<double> nvml_used_mb() {
  std::vector<double> used;
  for (const Device device : nvml().devices()) used.push_back(nvml().used_mb(device));
  return used;
}

GpuUse nvml_use_of(std::span<const pid_t> family, std::span<const double> before) {
  static const bool pids_are_ours = in_first_pid_namespace();
  GpuUse use;
  std::size_t index = 0;
  for (const Device device : nvml().devices()) {
    const double grown = index < before.size() ? nvml().used_mb(device) - before[index] : 0;
    ++index;
    bool on_device = false;
    if (pids_are_ours) {
      for (const ProcessInfo& process : nvml().processes(device)) {
        if (std::find(family.begin(), family.end(), static_cast<pid_t>(process.pid)) ==
            family.end()) {
          continue;
        }
        on_device = true;
        constexpr unsigned long long kUnknown = ~0ULL;
        if (process.used_memory != kUnknown) {
          use.memory_mb += static_cast<double>(process.used_memory) / (1 << 20);
        }
      }
    } else if (grown >= kContextMb) {
      on_device = true;
      use.memory_mb += grown;
    }
    if (on_device) use.percent = std::max(use.percent, nvml().percent(device));
    use.seen = use.seen || on_device;
  }
  return use;
}

std::vector<std::string> nvml_gpu_names() {
  std::vector<std::string> names;
  for (const Device device : nvml().devices()) names.push_back(nvml().name(device));
  return names;
}

}  // namespace assay::chain::stage
