// Parses any bytes as a params file. A file that is accepted must have a value for every role.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "chain/params/params.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const assay::chain::params::ParsedParams parsed = assay::chain::params::parse_params(text);
  if (parsed.good()) {
    for (const assay::chain::params::Place& place :
         parsed.params.layout().sections.front().places) {
      if (!place.role.empty() && !parsed.params.has(place.role)) std::abort();
    }
  } else if (parsed.problems.empty()) {
    std::abort();
  }
  return 0;
}
