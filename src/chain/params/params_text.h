#pragma once

// A params file as lines: sections, groups and `key:value` entries with their positions. layouts.h
// gives them a meaning.

#include <string>
#include <string_view>
#include <vector>

namespace assay::chain::params {

// An error or warning, printed as `file:line:column: message`.
struct Problem {
  int line = 1;
  int column = 1;
  std::string message;
  bool warning = false;  // reported, but the file is good
};

struct Line {
  enum class Type { entry, group };
  Type type = Type::entry;
  std::string key;
  std::string value;
  std::string text;  // the whole line as written
  int line = 1;
  int key_column = 1;
  int value_column = 1;
};

struct Section {
  std::string name;  // "": lines before the first heading
  int line = 1;
  std::vector<Line> lines;
};

enum class Separator { colon, blank };

struct ParamsText {
  std::vector<Section> sections;  // includes a headless one only if it has lines
  std::vector<Problem> problems;  // lines that are not `key:value`
  int last_line = 0;
};

// Splits the text of a params file. Ignores carriage returns, blank lines, blanks around keys and
// values, a byte-order mark and repeated `##` lines. With Separator::blank a line is `key value`,
// and `# …` is a comment.
ParamsText read_params_text(std::string_view text, Separator separator);

}  // namespace assay::chain::params
