#include "chain/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <memory>

namespace assay {
namespace {

// NVML's C interface, the part that is used, as its documentation gives it.
using Device = struct nvmlDevice_st*;
struct ProcessInfo {
  unsigned int pid;
  unsigned long long used_memory;
  unsigned int gpu_instance;
  unsigned int compute_instance;
};
struct Utilization {
  unsigned int gpu;
  unsigned int memory;
};
constexpr int kSuccess = 0;
constexpr int kAbsent = 12;  // NVML_ERROR_LIBRARY_NOT_FOUND

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
                       load("nvmlDeviceGetComputeRunningProcesses_v3", processes_);
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

  std::vector<ProcessInfo> processes(Device device) const {
    std::vector<ProcessInfo> list(64);
    auto number = static_cast<unsigned int>(list.size());
    if (processes_(device, &number, list.data()) != kSuccess) number = 0;
    list.resize(number);
    return list;
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
  int (*processes_)(Device, unsigned int*, ProcessInfo*) = [](Device, unsigned int*, ProcessInfo*) {
    return kAbsent;
  };
};

const Nvml& nvml() {
  static const Nvml library;
  return library;
}

}  // namespace

GpuUse nvml_use_of(std::span<const pid_t> family) {
  GpuUse use;
  for (const Device device : nvml().devices()) {
    bool on_device = false;
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

}  // namespace assay
