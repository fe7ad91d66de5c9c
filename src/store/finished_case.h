#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verdict/verdict.h"

namespace assay {

// A case that has a verdict.
struct FinishedCase {
  std::uint64_t id = 0;
  std::string text;  // canonical
  Verdict verdict;
  std::uint32_t attempts = 1;
  std::int64_t finished_ms = 0;      // since 1970
  std::uint64_t took_us = 0;         // in a slot; 0: not known
  std::vector<std::uint8_t> record;  // wire::Record; empty for cases that never ran
  // Of its job. A store does not give them back.
  std::uint64_t epoch = 1;
  std::uint64_t elements = 0;
};

}  // namespace assay
