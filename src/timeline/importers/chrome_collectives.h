#pragma once

// Reads the description of a collective from an event of PyTorch's profiler: a kernel (since 2.3),
// or the host call around the kernel's launch.

#include <optional>

#include "timeline/importers/chrome_events.h"
#include "timeline/model.h"

namespace assay::timeline {

// The number of elements of "[[1024, 8], [5]]", or of nested lists of such shapes; 0 for anything
// else.
std::int64_t elements_in(std::string_view shapes);

// Whether the range is a collective of a library on the CPU: "gloo:all_reduce".
bool is_cpu_collective(std::string_view name);

// Whether the event is a host call that describes the collectives of its kernels:
// "record_param_comms", "nccl:all_reduce".
bool calls_collective(std::string_view name);

// The collective in the event's args: name and group since PyTorch 2.2, shapes of tensors before.
std::optional<Collective> collective_in(const ChromeEvent& event, Strings& strings);

}  // namespace assay::timeline
