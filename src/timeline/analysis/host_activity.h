#pragma once

// What a host did while its GPU waited.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/model.h"

namespace assay::timeline {

class HostActivity {
 public:
  explicit HostActivity(const Trace& trace);

  // The shortest range or call of the process that covers most of the gap; empty: none.
  std::string_view in(std::uint32_t source, const Interval& gap) const;

 private:
  struct Range {
    Nanos begin = 0;
    Nanos end = 0;
    Nanos last_end = 0;  // of this one and all before
    StringId name = 0;
  };
  const Trace& trace_;
  std::map<std::uint32_t, std::vector<Range>> ranges_;  // by source; by begin
};

struct HostShare {
  std::string what;
  Nanos time = 0;
  std::size_t gaps = 0;
};

// What the hosts did in the longest waits of their GPUs, the longest first.
std::vector<HostShare> host_shares(const Trace& trace, const Analysis& analysis);

}  // namespace assay::timeline
