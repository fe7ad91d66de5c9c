#include "report/csv.h"

#include "base/text.h"

namespace assay {

std::string csv_field(std::string_view text) {
  std::string field = one_line(text);
  if (!field.empty() && std::string_view("=+-@\t").find(field[0]) != std::string_view::npos) {
    field.insert(0, 1, '\'');
  }
  if (field.find_first_of(",\"") == std::string::npos) return field;
  std::string made = "\"";
  for (const char c : field) {
    if (c == '"') made += '"';
    made += c;
  }
  return made + '"';
}

}  // namespace assay
