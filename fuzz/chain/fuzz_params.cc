// Checks any bytes as a params file. Positions of problems are those of a text.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "chain/params/standard.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& problem : assay::chain::params::standard_problems(text)) {
    if (problem.line < 1 || problem.column < 1 || problem.message.empty()) std::abort();
  }
  return 0;
}
