#pragma once

// Names and limits that C++ and Python share. python/assay/shared.py is generated from these and
// from the schemas; tests/slot/shared_constants_test.cc writes it.

#include <cstdint>
#include <string_view>

namespace assay::wire {

// Elements of all tensors of a case, above which it runs under usual values only: the other regimes
// find faults that depend on values, larger tensors faults that depend on sizes.
inline constexpr std::uint64_t kMostElements = 1 << 17;

// Environment of a fork server (python/assay/spares.py): spare lanes of each kind, likewise after a
// GPU had a fault, and whether the run has started an MPS for its lanes.
inline constexpr std::string_view kSparesVariable = "ASSAY_SPARES";
inline constexpr std::string_view kSparesAfterFaultVariable = "ASSAY_SPARES_AFTER_A_FAULT";
inline constexpr std::string_view kOwnMpsVariable = "ASSAY_OWN_MPS";

}  // namespace assay::wire
