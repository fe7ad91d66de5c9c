#pragma once

// A params file as lines: sections, groups and `key:value` entries with their places in the file.
// Nothing here knows what a line means; that is the layout's business (layouts.h).

#include <string>
#include <string_view>
#include <vector>

namespace assay::chain::params {

// Something wrong with a params file, as `file:line:column: message` prints it.
struct Problem {
  int line = 1;
  int column = 1;
  std::string message;
  bool warning = false;  // told, but the file is still good
};

struct Line {
  enum class Type { entry, group };
  Type type = Type::entry;
  std::string key;
  std::string value;
  std::string text;  // the whole line, as it stands there
  int line = 1;
  int key_column = 1;
  int value_column = 1;
};

struct Section {
  std::string name;  // empty: lines before the first heading
  int line = 1;
  std::vector<Line> lines;
};

enum class Separator { colon, blank };

struct ParamsText {
  std::vector<Section> sections;  // the headless one only where it has lines
  std::vector<Problem> problems;  // lines that are no `key:value` at all
  int last_line = 0;
};

// Reads the text of a params file. Carriage returns, blank lines, blanks around keys and values, a
// byte-order mark and repeated `##` lines do no harm. With Separator::blank a line is `key value`,
// and `# …` is a comment.
ParamsText read_params_text(std::string_view text, Separator separator);

}  // namespace assay::chain::params
