#pragma once

// The Zstandard dictionary in src/store/record.dict, which tools/train-record-dictionary made from
// the records of a run. Stored records refer to it by its number, so it must never change. A better
// dictionary needs another file and number.

#include <cstdint>
#include <span>

namespace assay {

// The bytes of the dictionary.
std::span<const std::uint8_t> record_dictionary();

}  // namespace assay
