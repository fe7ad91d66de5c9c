#pragma once

// Names and limits that C++ and Python share. tests/slot/shared_constants_test.cc generates
// python/assay/shared.py from these and from the schemas.

#include <cstdint>
#include <string_view>

namespace assay::wire {

// A case whose tensors have more elements than this runs in the usual value regime only. The other
// regimes look for faults that depend on values, large tensors for faults that depend on sizes.
inline constexpr std::uint64_t kMostElements = 1 << 17;

// Environment variables of a fork server (python/assay/spares.py): the number of spare lanes of
// each kind, that number after a GPU fault, and whether the run has started MPS for its lanes.
inline constexpr std::string_view kSparesVariable = "ASSAY_SPARES";
inline constexpr std::string_view kSparesAfterFaultVariable = "ASSAY_SPARES_AFTER_A_FAULT";
inline constexpr std::string_view kOwnMpsVariable = "ASSAY_OWN_MPS";
// Executions with a setting that a server's lanes use: "compile=inductor+threads=4".
inline constexpr std::string_view kExecutionsVariable = "ASSAY_EXECUTIONS";

// The phase in the record of a lane in which compute-sanitizer found a fault.
inline constexpr std::string_view kSanitizerPhase = "sanitizer";

}  // namespace assay::wire
