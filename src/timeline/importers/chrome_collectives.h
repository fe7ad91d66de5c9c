#pragma once

// Which collective an event of PyTorch's profiler is or makes: a kernel's own args (since 2.3), or
// the host's call around the kernel's launch.

#include <optional>

#include "timeline/importers/chrome_events.h"
#include "timeline/model.h"

namespace assay::timeline {

// "[[1024, 8], [5]]", or lists of such: the elements of all tensors; 0 for anything else.
std::int64_t elements_in(std::string_view shapes);

// Whether the event is a host's call that may say more of its kernels than they do themselves:
// "record_param_comms", "nccl:all_reduce".
bool calls_collective(std::string_view name);

// What the event's args tell: name and group since PyTorch 2.2, shapes of tensors before.
std::optional<Collective> collective_in(const ChromeEvent& event, Strings& strings);

}  // namespace assay::timeline
