#include "case/parser.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "case/case_reader.h"

namespace assay {

namespace {

tl::unexpected<ParseError> error_at(std::string_view line, std::size_t offset,
                                    std::string message) {
  return tl::unexpected(
      ParseError{count_characters(line.substr(0, offset)) + 1, std::move(message)});
}

constexpr std::string_view kExpectedEnd = "expected the end of the line after the call";

}  // namespace

ParseStatus parse_case(std::string_view text, Case& out) {
  auto bytes = CaseReader(out).read(text);
  if (!bytes) return tl::unexpected(std::move(bytes.error()));
  if (*bytes != text.size()) return error_at(text, *bytes, std::string(kExpectedEnd));
  return {};
}

ParseStatus parse_line(std::string_view line, Case& scratch,
                       const std::function<void(const Case&)>& on_case) {
  auto bytes = CaseReader(scratch).read(line);
  if (!bytes) return tl::unexpected(std::move(bytes.error()));
  std::vector<Case> joined;  // the calls after the first
  for (std::size_t begin = *bytes; begin != line.size(); begin += *bytes) {
    if (!is_name_start(line[begin])) return error_at(line, begin, std::string(kExpectedEnd));
    if (joined.size() + 1 == kMaxCallsPerLine) {
      return error_at(line, begin, fmt::format("more than {} calls on one line", kMaxCallsPerLine));
    }
    bytes = CaseReader(joined.emplace_back()).read(line.substr(begin));
    if (!bytes) {
      bytes.error().column += count_characters(line.substr(0, begin));
      return tl::unexpected(std::move(bytes.error()));
    }
  }
  on_case(scratch);
  for (const Case& other : joined) on_case(other);
  return {};
}

}  // namespace assay
