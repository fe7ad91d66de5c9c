#pragma once

// One entry of a gpu_list: where a model is trained.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::chain::params {

struct GpuEntry {
  std::string gpus;                // as written: "-1", "0", "0,1"
  std::vector<std::string> ids;    // of each machine; none on the CPU
  std::vector<std::string> hosts;  // the machines, first one first; none: this one

  bool on_cpu() const { return ids.empty(); }
  bool many_machines() const { return hosts.size() > 1; }
  std::string ips() const;  // "10.0.0.1,10.0.0.2"
};

// "-1", "0", "0,1" or "ip,ip;0,1". By grammar, not by length: twelve GPUs are not twelve machines.
Result<GpuEntry> parse_gpu_entry(std::string_view text);

// The text of a params file in which each entry of a gpu_list that names machines names these.
std::string on_machines(std::string_view text, const std::vector<std::string>& machines);

}  // namespace assay::chain::params
