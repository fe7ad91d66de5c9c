#include "fuzz_importers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return assay::timeline::fuzz_importer(assay::timeline::kNcclInspector, {data, size});
}
