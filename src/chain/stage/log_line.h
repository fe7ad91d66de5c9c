#pragma once

// A line of a log as names with what stands behind them, in whatever style: `loss: 1.5`,
// `'loss': '1.5'`, `"loss": 1.5`, `loss=1.5`, `Loss 1.5 (1.6)`.

#include <optional>
#include <string_view>

namespace assay::chain::stage {

inline bool has(std::string_view line, std::string_view text) {
  return line.find(text) != line.npos;
}

struct Pair {
  std::string_view name;
  std::string_view before;  // the name before it in the line
  std::string_view kind;    // `train` of `Epoch(train) [3]`
  std::string_view value;   // from the value on, without blanks, quotes and brackets in front
  bool marked = false;      // `:` or `=` stands between
};

// Takes the next pair off a line; none at its end.
std::optional<Pair> take_pair(std::string_view& line, std::string_view before = {});

// The number at the front of a text, with separators of thousands, also `tensor(1.5)`, `nan`,
// `-inf`.
std::optional<double> number_at(std::string_view text);

// The first value of a line that is NaN or infinite, as it is written; "" if there is none.
std::string_view bad_number_in(std::string_view line);

}  // namespace assay::chain::stage
