// Uses a GPU like a framework, with the fake CUPTI: steps, jobs, and a backward pass whose kernels
// are launched by another thread while the caller waits in its range.

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <thread>

namespace {

template <typename Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

}  // namespace

int main() {
  void* const recorder = ::dlopen(std::getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
  if (recorder == nullptr) return 1;
  const int started = symbol<int()>(recorder, "InitializeInjection")();
  if (std::getenv("FAKE_CUPTI_TAKEN") != nullptr) return started == 0 ? 0 : 2;
  void* const cupti = ::dlopen(std::getenv("ASSAY_CUPTI_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  if (started != 1 || cupti == nullptr) return 3;
  auto* const launch =
      symbol<void(std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t, const char*)>(
          cupti, "fake_launch");
  auto* const begin = symbol<void(const char*, std::int32_t)>(recorder, "assay_job_begin");
  auto* const end = symbol<void()>(recorder, "assay_job_end");
  auto* const step = symbol<void(std::int64_t)>(recorder, "assay_step");
  for (std::uint32_t number = 0; number < 3; ++number) {
    const std::uint64_t time = 1'000'000 + 1000 * number;
    const std::uint32_t id = 1 + 10 * number;
    step(number);
    begin("forward", 0);
    launch(id, 0, time, time + 10, "_ZN2at6native4gemmEv");
    begin("attention", -1);
    launch(id + 1, 0, time + 20, time + 50, "flash");
    end();
    end();
    begin("backward", 0);
    std::thread([&] { launch(id + 2, 0, time + 60, time + 160, "flash_bwd"); }).join();
    end();
    launch(id + 3, 0, time + 200, time + 230, "ncclDevKernel_AllReduce");
  }
  return 0;
}
