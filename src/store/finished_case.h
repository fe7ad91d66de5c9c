#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "verdict/verdict.h"

namespace assay {

// A case that has a verdict. Its views are valid as long as the caller's data; when a store shows
// the case, they are valid until its next row.
struct FinishedCase {
  std::uint64_t id = 0;
  std::string_view text;  // canonical
  Verdict verdict;
  std::uint32_t attempts = 1;
  std::int64_t finished_ms = 0;          // since 1970
  std::uint64_t took_us = 0;             // in a slot; 0: not known
  std::span<const std::uint8_t> record;  // wire::Record; empty for lines that never ran
};

}  // namespace assay
