// Reads any bytes as a run_benchmark.sh and as the script that launches it.

#include "../expand.h"
#include "chain/params/run_benchmark.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = assay::expanded(data, size);
  assay::chain::params::ReadLaunch out;
  assay::chain::params::read_run_benchmark(
      "_set_params() {\n  device_num=N1C8\n" + text + "\n}\n_set_params \"$@\"\n", text, out);
  return 0;
}
