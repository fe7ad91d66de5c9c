#include "base/table.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/terminal.h"

namespace assay {

Table::Table(const std::vector<std::string>& columns) : lines_(1) {
  for (const std::string& column : columns) {
    const std::size_t begin = column.starts_with('>') ? 1 : 0;
    const std::size_t end = std::min(column.rfind(':'), column.size());
    right_.push_back(begin == 1);
    lines_[0].push_back(column.substr(begin, end - begin));
    formats_.push_back("{" + (end < column.size() ? column.substr(end) : ":.3f") + "}");
  }
}

std::string Table::text(std::size_t most) const {
  std::vector<std::size_t> widths(right_.size());
  for (const auto& line : first(most)) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], columns_of(line[i]));
    }
  }
  std::string text;
  for (const auto& line : first(most)) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string padding(widths[i] - columns_of(line[i]), ' ');
      text += (right_[i] ? padding + line[i] : line[i] + padding) + "  ";
    }
    text.resize(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text + more(most);
}

std::string Table::markdown(std::size_t most) const {
  std::string text;
  for (const auto& line : first(most)) {
    text += fmt::format("| {} |\n", fmt::join(line, " | "));
    if (&line != &lines_[0]) continue;
    for (const bool right : right_) text += right ? "|--:" : "|---";
    text += "|\n";
  }
  return lines_.size() - 1 > most ? text + '\n' + more(most) : text;
}

std::span<const std::vector<std::string>> Table::first(std::size_t most) const {
  const std::size_t rows = std::min(most, lines_.size() - 1);
  return std::span(lines_).first(rows == 0 ? 0 : rows + 1);
}

std::string Table::more(std::size_t most) const {
  return lines_.size() - 1 > most ? fmt::format("and {} more\n", lines_.size() - 1 - most) : "";
}

}  // namespace assay
