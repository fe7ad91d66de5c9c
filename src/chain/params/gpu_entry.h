#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::chain::params {

struct GpuEntry {
  std::string gpus;                // as written: "-1", "0", "0,1"
  std::vector<std::string> ids;    // on each machine; empty: trains on the CPU
  std::vector<std::string> hosts;  // the machines by rank; empty: this one

  bool on_cpu() const { return ids.empty(); }
  std::string ips() const;  // "10.0.0.1,10.0.0.2"
};

// Parses one entry of a gpu_list: "-1", "0", "0,1" or "ip,ip;0,1". It uses a grammar, because by
// length twelve GPUs look like twelve machines.
Result<GpuEntry> parse_gpu_entry(std::string_view text);

// Returns the text of a params file with `machines` in each gpu_list entry that names machines.
std::string on_machines(std::string_view text, const std::vector<std::string>& machines);

// The same with the n-th of `gpus` for GPU n. An entry with more GPUs is an error. `-1` (the CPU)
// and entries that are no numbers stay.
Result<std::string> on_gpus(std::string_view text, const std::vector<std::string>& gpus);

}  // namespace assay::chain::params
