#pragma once

// A params file as lines: sections and `key:value` entries with their positions.

#include <string>
#include <string_view>
#include <vector>

namespace assay::chain::params {

// An error, printed as `file:line:column: message`.
struct Problem {
  int line = 1;
  int column = 1;
  std::string message;
};

struct Line {
  std::string key;
  std::string value;
  int line = 1;
  int key_column = 1;
  int value_column = 1;
};

struct Section {
  std::string name;  // "": lines before the first heading
  int line = 1;
  std::vector<Line> lines;
};

struct ParamsText {
  std::vector<Section> sections;  // includes a headless one only if it has lines
  std::vector<Problem> problems;  // lines that are not `key:value`
  int last_line = 0;
};

// Splits the text of a params file. Ignores carriage returns, blank lines, `##` lines, blanks
// around keys and values, and a byte-order mark.
ParamsText read_params_text(std::string_view text);

}  // namespace assay::chain::params
