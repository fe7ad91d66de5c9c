#include "inject/cuda/cupti_library.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>

namespace assay::inject {
namespace {

constexpr std::array<const char*, 3> kNames{"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

void* open_library() {
  for (const char* name : kNames) {
    if (void* const loaded = ::dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return loaded;
  }
  // First the choice of a test or a user, then the loader's paths, then the toolkit's.
  if (const char* const chosen = std::getenv("ASSAY_CUPTI_LIBRARY")) {
    return ::dlopen(chosen, RTLD_NOW);
  }
  const char* const home = std::getenv("CUDA_HOME");
  const std::string toolkit = home == nullptr ? "/usr/local/cuda" : home;
  for (const std::string& folder :
       {std::string(), toolkit + "/lib64/", toolkit + "/extras/CUPTI/lib64/"}) {
    for (const char* name : kNames) {
      if (void* const found = ::dlopen((folder + name).c_str(), RTLD_NOW)) return found;
    }
  }
  return nullptr;
}

}  // namespace

std::string CuptiLibrary::load() {
  void* const library = open_library();
  if (library == nullptr) return "libcupti was not found";
  std::string missing;
  const auto get = [&](auto& function, const char* name) {
    void* const symbol = ::dlsym(library, name);
    if (symbol == nullptr) missing = std::string("libcupti has no ") + name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  get(register_clock, "cuptiActivityRegisterTimestampCallback");
  get(register_buffers, "cuptiActivityRegisterCallbacks");
  get(enable, "cuptiActivityEnable");
  get(disable, "cuptiActivityDisable");
  get(flush_all, "cuptiActivityFlushAll");
  get(flush_period, "cuptiActivityFlushPeriod");
  get(next_record, "cuptiActivityGetNextRecord");
  get(dropped, "cuptiActivityGetNumDroppedRecords");
  get(subscribe, "cuptiSubscribe");
  get(enable_callback, "cuptiEnableCallback");
  get(callback_name, "cuptiGetCallbackName");
  return missing;
}

}  // namespace assay::inject
