#pragma once

// A table as text and as Markdown.

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace assay {

class Table {
 public:
  static constexpr std::size_t kAllRows = std::numeric_limits<std::size_t>::max();

  // What each column is called. ">GB/s:.2f" is aligned to the right and prints fractions with two
  // decimals instead of three.
  explicit Table(const std::vector<std::string>& columns);

  void add(std::vector<std::string> row) { lines_.push_back(std::move(row)); }
  // The same for texts and numbers. NaN becomes "?".
  template <typename... Cells>
  void row(const Cells&... cells) {
    std::size_t column = 0;
    add({cell(column++, cells)...});
  }

  // The first rows as text, and how many more there are; "" without a row.
  std::string text(std::size_t most = kAllRows) const;
  // The same for GitHub. Cells are Markdown already.
  std::string markdown(std::size_t most = kAllRows) const;

 private:
  template <typename Cell>
  std::string cell(std::size_t column, const Cell& value) const {
    if constexpr (std::floating_point<Cell>) {
      return std::isnan(value) ? "?" : fmt::format(fmt::runtime(formats_[column]), value);
    } else {
      return fmt::format("{}", value);
    }
  }
  // The head and the first rows; nothing without a row.
  std::span<const std::vector<std::string>> first(std::size_t most) const;
  std::string more(std::size_t most) const;

  std::vector<bool> right_;
  std::vector<std::string> formats_;
  std::vector<std::vector<std::string>> lines_;  // the head, then the rows
};

// For Table::row(): the number, or "?".
inline double if_known(bool known, double number) {
  return known ? number : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace assay
