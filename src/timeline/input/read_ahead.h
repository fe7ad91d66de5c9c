#pragma once

// Bytes that a thread of their own unpacks while the ones before are read: a packed file takes as
// long as the slower of both, not as long as both together.

#include <memory>

#include "timeline/input/byte_source.h"

namespace assay::timeline {

// A few blocks are unpacked ahead, 2 MiB in all. An error comes behind the bytes before it.
std::unique_ptr<ByteSource> read_ahead(std::unique_ptr<ByteSource> source);

}  // namespace assay::timeline
