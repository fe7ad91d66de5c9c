// Reads any bytes as a pickle; what is read can be written as JSON.

#include "../expand.h"
#include "timeline/input/pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = assay::timeline::read_pickle(assay::expanded(data, size));
  if (read) (void)read->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return 0;
}
