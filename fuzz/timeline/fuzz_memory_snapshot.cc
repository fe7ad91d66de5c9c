#include "../expand.h"
#include "fuzz_importers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = assay::expanded(data, size);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  return assay::timeline::fuzz_importer(assay::timeline::kMemorySnapshot, {bytes, text.size()});
}
