// Stands in for libnvidia-ml.so.1 where no GPU is: one GPU whose state is read from the file that
// FAKE_NVML names, "used_mb percent pid pid_mb", anew at each question.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

struct State {
  double used_mb = 0;
  unsigned int percent = 0;
  unsigned int pid = 0;
  double pid_mb = 0;
};

State state() {
  State now;
  const char* path = std::getenv("FAKE_NVML");
  std::FILE* file = path != nullptr ? std::fopen(path, "r") : nullptr;
  if (file == nullptr) return now;
  if (std::fscanf(file, "%lf %u %u %lf", &now.used_mb, &now.percent, &now.pid, &now.pid_mb) < 1)
    now = {};
  std::fclose(file);
  std::ofstream(std::string(path) + ".looks", std::ios::app) << '.';
  return now;
}

int device = 0;

}  // namespace

extern "C" {
#define EXPORT __attribute__((visibility("default")))
struct Process {
  unsigned int pid;
  unsigned long long memory;
  unsigned int gpu_instance;
  unsigned int compute_instance;
};

EXPORT int nvmlInit_v2() { return 0; }
EXPORT int nvmlDeviceGetCount_v2(unsigned int* count) {
  const char* said = std::getenv("FAKE_NVML_GPUS");
  *count = said != nullptr ? static_cast<unsigned int>(std::atoi(said)) : 1;
  return 0;
}
EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned int size) {
  std::snprintf(text, size, "550.1");
  return 0;
}
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  const char* said = std::getenv("FAKE_NVML_CUDA");
  *version = said != nullptr ? std::atoi(said) : 12040;
  return 0;
}
EXPORT int nvmlDeviceGetUUID(void*, char* text, unsigned int size) {
  std::snprintf(text, size, "GPU-0123");
  return 0;
}
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int, void** handle) {
  *handle = &device;
  return 0;
}
EXPORT int nvmlDeviceGetName(void*, char* name, unsigned int size) {
  std::snprintf(name, size, "Fake GPU");
  return 0;
}
EXPORT int nvmlDeviceGetUtilizationRates(void*, unsigned int* rates) {
  rates[0] = state().percent;
  rates[1] = 0;
  return 0;
}
EXPORT int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  memory[0] = 100000ULL << 20;
  memory[2] = static_cast<unsigned long long>(state().used_mb) << 20;
  memory[1] = memory[0] - memory[2];
  return 0;
}
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned int* count, Process* list) {
  const State now = state();
  *count = now.pid != 0 ? 1 : 0;
  if (now.pid != 0) list[0] = {now.pid, static_cast<unsigned long long>(now.pid_mb) << 20, 0, 0};
  return 0;
}
}
