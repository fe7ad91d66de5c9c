#pragma once

// The memory that this process may use: the machine's, or the lowest limit of its control groups,
// such as those of a container or of a job of Slurm.

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace assay {

struct SystemMemory {
  std::uint64_t total = 0;      // bytes
  std::uint64_t available = 0;  // bytes that can still be used without swapping
};

// Reads proc/meminfo and the limits of control groups (version 1 and 2) below `root`. An error only
// if proc/meminfo cannot be read.
Result<SystemMemory> system_memory(const std::filesystem::path& root = "/");

// The number of processes that the kernel has killed for want of memory (`oom_kill`): on the
// machine and in the control groups of this process.
std::uint64_t memory_kills(const std::filesystem::path& root = "/");

}  // namespace assay
