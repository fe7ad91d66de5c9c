#include "chain/params/params_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace assay::chain::params {
namespace {

bool is_group(std::string_view line) {
  return !line.empty() && line.find_first_not_of('#') == std::string_view::npos;
}

// True for `====name====` with at least three signs in front; sets the name.
bool is_heading(std::string_view line, std::string& name) {
  if (!line.starts_with("===")) return false;
  const std::size_t first = line.find_first_not_of('=');
  if (first == std::string_view::npos) {
    name.clear();
  } else {
    name = trimmed(line.substr(first, line.find_last_not_of('=') - first + 1));
  }
  return true;
}

int column_of(std::string_view line, std::string_view part) {
  return static_cast<int>(part.data() - line.data()) + 1;
}

void add_entry(std::string_view text, std::string_view whole, std::string_view line, int number,
               ParamsText& out) {
  std::size_t at = line.find(':');
  // The key of another line, whose value is empty without a colon, too.
  if (at == std::string_view::npos && text.find(fmt::format("\n{}:", line)) != text.npos) {
    at = line.size();
  }
  // Scripts read the options of a benchmark as they stand: `--profiler_options="…"`.
  if (at == std::string_view::npos && line.starts_with("--") &&
      out.sections.back().name == "train_benchmark_params") {
    at = line.find('=');
  }
  // Some suites' files end with a shell command that none of their scripts reads.
  if (at == std::string_view::npos && line.starts_with("echo ")) return;
  if (at == std::string_view::npos || trimmed(line.substr(0, at)).empty()) {
    out.problems.push_back({number, column_of(whole, line),
                            "expected `key:value`, found `" + std::string(line) + "`"});
    return;
  }
  Line entry;
  const std::string_view key = trimmed(line.substr(0, at));
  const std::string_view rest = line.substr(std::min(at + 1, line.size()));
  const std::string_view value = trimmed(rest);
  entry.key = key;
  entry.value = value;
  entry.line = number;
  entry.key_column = column_of(whole, key);
  entry.value_column = column_of(whole, value.empty() ? rest : value);
  out.sections.back().lines.push_back(std::move(entry));
}

}  // namespace

ParamsText read_params_text(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  ParamsText out;
  out.sections.emplace_back();
  const std::string_view all = text;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view whole = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const std::string_view line = trimmed(whole);
    if (line.empty()) continue;
    out.last_line = number;
    std::string name;
    if (is_heading(line, name)) {
      out.sections.push_back({std::move(name), number, {}});
    } else if (!is_group(line)) {
      add_entry(all, whole, line, number, out);
    }
  }
  if (out.sections.front().lines.empty()) out.sections.erase(out.sections.begin());
  return out;
}

}  // namespace assay::chain::params
