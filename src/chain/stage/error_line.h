#pragma once

// Lines that tell of a failure, behind what launchers put in front: `[rank0]: `, `3: `,
// `(worker pid=7) `, `[1,0]<stderr>:`, `node1: `.

#include <string_view>

namespace assay::chain::stage {

// `Traceback (most recent call last)`.
bool starts_traceback(std::string_view line);

// An exception (`torch.OutOfMemoryError: …`), a death by signal (`Killed`), an abort of glibc or
// C++, an error of CUDA or NCCL, or a launcher's word on a child that failed.
bool tells_failure(std::string_view line);

// A line of the level ERROR, CRITICAL or FATAL.
bool has_error_level(std::string_view line);

// A line worth showing beside a stage that failed; it need not be an error.
bool looks_like_error(std::string_view line);

}  // namespace assay::chain::stage
