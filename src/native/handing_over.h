#pragma once

// The functions of assay_native by which a lane's results come to its slot.

#include <cstddef>
#include <cstdint>

#include "native/python.h"

namespace assay::native {

// Smaller results are copied into the arena, whose first pages are warm.
inline constexpr std::size_t kLendFrom = 1 << 20;

// Of the arena's first bytes, which a device copies results to by itself; no arena is ever cut to
// less (kFreshArenaKeep of the slot).
inline constexpr std::uint64_t kPinned = std::uint64_t{1} << 25;

// lend(pointer, count, dtype[, on_device]) -> whether the slot reads this result where it is, until
// the next batch; of one on the device what the slot needs for that. Not where it lies in an input,
// which would have to be kept as well.
PyObject* lend(PyObject* module, PyObject* arguments);

// hand_over(pointer, count, dtype[, on_device]) -> offset in the arena, where its bytes are once
// the device has come that far
PyObject* hand_over(PyObject* module, PyObject* arguments);

}  // namespace assay::native
