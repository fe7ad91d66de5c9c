#pragma once

// Numbers out of a training or evaluation log, line by line as it grows.

#include <string>
#include <string_view>
#include <vector>

namespace assay::chain::stage {

struct Reading {
  std::string name;  // batch_cost, reader_cost, ips, loss, or these with eval_ before; accuracy,
                     // gpu_memory_mb, gpu_allocated_mb
  double value = 0;
};

// The readings of one line: `name: 1.5`, `name=1.5`, and ` * Acc@1 0.5`; nothing for other lines.
// Names that repositories spell differently (avg_ips, ips) come out as one.
std::vector<Reading> read_train_line(std::string_view line);

// The word behind `keyword`, where that is a word of the line; empty where it is not.
std::string_view word_behind(std::string_view line, std::string_view keyword);

}  // namespace assay::chain::stage
