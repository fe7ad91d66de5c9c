#pragma once

// The functions of assay_native that hand a lane's results to its slot.

#include <cstddef>
#include <cstdint>

#include "native/python.h"

namespace assay::native {

// Smaller results are copied into the arena, whose first pages are warm.
inline constexpr std::size_t kLendFrom = 1 << 20;

// First bytes of the arena, to which a device copies results by itself. Arenas are never trimmed
// below this (kRetryArenaKeep of the slot).
inline constexpr std::uint64_t kPinned = std::uint64_t{1} << 25;

// lend(pointer, count, dtype[, on_device]) -> whether the slot reads this result in place until the
// next batch; for a result on a device, the bytes that the slot needs to open it. False for memory
// of an input, which would have to be kept as well.
PyObject* lend(PyObject* module, PyObject* arguments);

// hand_over(pointer, count, dtype[, on_device]) -> offset in the arena. On a device, the bytes
// arrive there when the device has finished its queued work.
PyObject* hand_over(PyObject* module, PyObject* arguments);

}  // namespace assay::native
