#pragma once

// Parses numbers from the lines of a training or evaluation log.

#include <string>
#include <string_view>
#include <vector>

namespace assay::chain::stage {

struct Reading {
  std::string name;  // batch_cost, reader_cost, ips, loss, or these with the prefix eval_;
                     // accuracy, gpu_memory_mb, gpu_allocated_mb
  double value = 0;
};

// Returns the readings of a line: `name: 1.5`, `name=1.5`, and ` * Acc@1 0.5`. Different spellings
// of a name (avg_ips, ips) give the same name.
std::vector<Reading> read_train_line(std::string_view line);

// Returns the word after the word `keyword` of the line, or "".
std::string_view word_behind(std::string_view line, std::string_view keyword);

}  // namespace assay::chain::stage
