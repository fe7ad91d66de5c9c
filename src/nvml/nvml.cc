#include "nvml/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

namespace assay {
namespace {

// The part of NVML's C interface that is used here, declared as in its documentation.
using Handle = struct nvmlDevice_st*;
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
                       // Drivers before 510 have version 2, with the same structure.
                       (load("nvmlDeviceGetComputeRunningProcesses_v3", processes_) ||
                        load("nvmlDeviceGetComputeRunningProcesses_v2", processes_));
    // Functions that an older library lacks stay null.
    (void)load("nvmlDeviceGetUUID", uuid_);
    (void)load("nvmlSystemGetDriverVersion", driver_);
    (void)load("nvmlSystemGetCudaDriverVersion_v2", cuda_);
    ready_ = found && init_() == kSuccess;
  }

  bool ready() const { return ready_; }

  std::vector<Handle> devices() const {
    std::vector<Handle> list;
    unsigned int number = 0;
    if (!ready_ || count_(&number) != kSuccess) return list;
    for (unsigned int i = 0; i < number; ++i) {
      Handle device = nullptr;
      if (handle_(i, &device) == kSuccess) list.push_back(device);
    }
    return list;
  }

  std::string name(Handle device) const {
    std::array<char, 96> text{};
    if (name_(device, text.data(), static_cast<unsigned int>(text.size())) != kSuccess) return {};
    return text.data();
  }

  double percent(Handle device) const {
    Utilization rates{};
    return utilization_(device, &rates) == kSuccess ? rates.gpu : 0;
  }

  std::string uuid(Handle device) const {
    std::array<char, 96> text{};
    if (uuid_(device, text.data(), static_cast<unsigned int>(text.size())) != kSuccess) return {};
    return text.data();
  }

  Memory memory(Handle device) const {
    Memory memory{};
    return memory_(device, &memory) == kSuccess ? memory : Memory{};
  }
  double used_mb(Handle device) const {
    return static_cast<double>(memory(device).used) / (1 << 20);
  }

  GpuDriver driver() const {
    GpuDriver driver;
    driver.present = ready_;
    std::array<char, 96> text{};
    if (ready_ && driver_(text.data(), static_cast<unsigned int>(text.size())) == kSuccess) {
      driver.version = text.data();
    }
    int cuda = 0;
    if (ready_ && cuda_(&cuda) == kSuccess) driver.cuda = static_cast<std::uint32_t>(cuda);
    return driver;
  }

  std::vector<ProcessInfo> processes(Handle device) const {
    std::vector<ProcessInfo> list(64);
    for (int tries = 0; tries < 3; ++tries) {
      auto number = static_cast<unsigned int>(list.size());
      const int status = processes_(device, &number, list.data());
      if (status == kTooSmall) {
        list.resize(number + 16);  // more processes may start before the next call
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
  int (*handle_)(unsigned int, Handle*) = [](unsigned int, Handle*) { return kAbsent; };
  int (*name_)(Handle, char*, unsigned int) = [](Handle, char*, unsigned int) { return kAbsent; };
  int (*uuid_)(Handle, char*, unsigned int) = [](Handle, char*, unsigned int) { return kAbsent; };
  int (*driver_)(char*, unsigned int) = [](char*, unsigned int) { return kAbsent; };
  int (*cuda_)(int*) = [](int*) { return kAbsent; };
  int (*utilization_)(Handle, Utilization*) = [](Handle, Utilization*) { return kAbsent; };
  int (*memory_)(Handle, Memory*) = [](Handle, Memory*) { return kAbsent; };
  int (*processes_)(Handle, unsigned int*, ProcessInfo*) = [](Handle, unsigned int*, ProcessInfo*) {
    return kAbsent;
  };
};

// A process that computes on a GPU holds at least a CUDA context of some hundred MB.
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
  for (const Handle device : nvml().devices()) used.push_back(nvml().used_mb(device));
  return used;
}

GpuUse nvml_use_of(std::span<const pid_t> family, std::span<const double> before) {
  static const bool pids_are_ours = in_first_pid_namespace();
  GpuUse use;
  std::size_t index = 0;
  for (const Handle device : nvml().devices()) {
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
  for (const Handle device : nvml().devices()) names.push_back(nvml().name(device));
  return names;
}

std::vector<GpuInfo> nvml_gpus() {
  std::vector<GpuInfo> gpus;
  for (const Handle device : nvml().devices()) {
    const Memory memory = nvml().memory(device);
    gpus.push_back({static_cast<int>(gpus.size()), nvml().name(device), nvml().uuid(device),
                    memory.free, memory.total});
  }
  return gpus;
}

GpuDriver nvml_driver() { return nvml().driver(); }

}  // namespace assay
