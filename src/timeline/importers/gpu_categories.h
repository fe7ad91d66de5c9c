#pragma once

// Classifies profiler events by category. Paddle's profiler uses the categories of PyTorch's before
// 2022.

#include <array>
#include <string_view>
#include <utility>

#include "timeline/importers/chrome_trace.h"

namespace assay::timeline {

inline EventKind profiler_event_kind(std::string_view category) {
  constexpr std::array<std::pair<std::string_view, EventKind>, 31> kKinds{{
      {"kernel", EventKind::kernel},
      {"Kernel", EventKind::kernel},
      {"concurrent_kernel", EventKind::kernel},
      {"gpu_memcpy", EventKind::copy},
      {"Memcpy", EventKind::copy},
      {"memcpy", EventKind::copy},
      {"gpu_memset", EventKind::copy},
      {"Memset", EventKind::copy},
      {"memset", EventKind::copy},
      {"gpu_user_annotation", EventKind::gpu_range},
      {"cuda_sync", EventKind::gpu_range},
      {"cuda_runtime", EventKind::launch},
      {"cuda_driver", EventKind::launch},
      {"xpu_runtime", EventKind::launch},
      {"xpu_driver", EventKind::launch},
      {"mtia_runtime", EventKind::launch},
      {"privateuse1_runtime", EventKind::launch},
      {"Runtime", EventKind::launch},
      {"CudaRuntime", EventKind::launch},
      {"user_annotation", EventKind::annotation},
      {"ProfileStep", EventKind::annotation},
      {"nvtx", EventKind::annotation},
      // Paddle's RecordEvent, with each of its event types.
      {"PythonUserDefined", EventKind::annotation},
      {"UserDefined", EventKind::annotation},
      {"Forward", EventKind::annotation},
      {"Backward", EventKind::annotation},
      {"Optimization", EventKind::annotation},
      {"Dataloader", EventKind::annotation},
      {"Communication", EventKind::annotation},
      {"Trace", EventKind::other},
      {"overhead", EventKind::other},
  }};
  for (const auto& [name, kind] : kKinds) {
    if (name == category) return kind;
  }
  return EventKind::host;
}

}  // namespace assay::timeline
