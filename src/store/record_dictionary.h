#pragma once

// src/store/record.dict: what records have in common, for Zstandard. tools/train-record-dictionary
// made it from a run. Stored records name it by its number, so it never changes; a better one gets
// another file and number.

#include <cstdint>
#include <span>

namespace assay {

std::span<const std::uint8_t> record_dictionary();

}  // namespace assay
