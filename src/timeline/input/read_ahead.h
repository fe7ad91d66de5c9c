#pragma once

// Decompresses in a thread of its own, in parallel with parsing.

#include <memory>

#include "timeline/input/byte_source.h"

namespace assay::timeline {

// Reads up to 2 MiB ahead. Returns an error after the bytes before it.
std::unique_ptr<ByteSource> read_ahead(std::unique_ptr<ByteSource> source);

}  // namespace assay::timeline
