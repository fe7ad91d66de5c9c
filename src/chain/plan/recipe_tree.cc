#include "chain/plan/recipe_tree.h"

#include <fmt/format.h>

#include "base/text.h"

namespace assay::chain::plan {
namespace {

struct TextLine {
  int number = 0;
  std::size_t indent = 0;
  std::string_view said;
};

std::vector<TextLine> lines_of(std::string_view text, int number) {
  std::vector<TextLine> lines;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const std::string_view said = trimmed(line);
    if (said.empty() || said.front() == '#') continue;
    lines.push_back({number, line.find_first_not_of(' '), said});
  }
  return lines;
}

// The statements of one depth, from `at` on.
std::vector<Statement> block(const std::vector<TextLine>& lines, std::size_t& at) {
  std::vector<Statement> statements;
  const std::size_t indent = lines[at].indent;
  while (at < lines.size() && lines[at].indent >= indent) {
    if (lines[at].indent > indent) {
      statements.back().body = block(lines, at);
      continue;
    }
    Statement statement;
    statement.line = lines[at].number;
    const std::string_view said = lines[at].said;
    const std::size_t blank = said.find(' ');
    statement.word = said.substr(0, blank);
    if (blank != std::string_view::npos) statement.rest = trimmed(said.substr(blank));
    statements.push_back(std::move(statement));
    ++at;
  }
  return statements;
}

}  // namespace

Result<std::vector<Statement>> read_statements(std::string_view text, int first_line) {
  const std::vector<TextLine> lines = lines_of(text, first_line);
  if (lines.empty()) return std::vector<Statement>{};
  std::size_t at = 0;
  std::vector<Statement> statements = block(lines, at);
  if (at < lines.size()) {
    return fail(
        fmt::format("line {} stands further left than the recipe's first", lines[at].number));
  }
  return statements;
}

}  // namespace assay::chain::plan
