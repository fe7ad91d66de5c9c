#pragma once

// How much memory the machine has for us: a container's limit where it is lower than the machine's.

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace assay {

struct SystemMemory {
  std::uint64_t total = 0;      // bytes
  std::uint64_t available = 0;  // bytes that can still be used without swapping
};

// Reads proc/meminfo and the limits of both versions of Linux's control groups below `root`.
// Fails only where there is no readable proc/meminfo.
Result<SystemMemory> system_memory(const std::filesystem::path& root = "/");

}  // namespace assay
