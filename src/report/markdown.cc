#include "report/markdown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/markup.h"
#include "base/table.h"
#include "base/text.h"
#include "base/utf8.h"
#include "case/canonical.h"

namespace assay {
namespace {

// With the lines around the table at most 60 in all.
constexpr std::size_t kMostRows = 40;
constexpr std::size_t kMostOfCell = 120;     // characters
constexpr std::size_t kMostOfCommand = 400;  // bytes; a longer command is replaced by `assay repro`

std::string shortened(const std::string& line) {
  if (count_characters(line) <= kMostOfCell) return line;
  std::size_t end = 0;
  for (std::size_t i = 1; i < kMostOfCell; ++i) end += character_size(line[end]);
  return line.substr(0, end) + "…";
}

// Plain text in a cell: nothing in it is markup or a mention of a person.
std::string cell(std::string_view text) { return escape_markdown(shortened(one_line(text))); }

// A code span in a cell. Only a bar needs an escape there.
std::string code(std::string_view text) {
  std::string line = one_line(text);
  if (line.empty()) return line;
  std::size_t longest = 0;
  std::size_t run = 0;
  std::string safe;
  for (const char c : line) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
    if (c == '|') safe += '\\';
    safe += c;
  }
  const std::string fence(longest + 1, '`');
  const bool padded = line.front() == '`' || line.back() == '`';
  return padded ? fmt::format("{0} {1} {0}", fence, safe) : fence + safe + fence;
}

struct Row {
  std::string_view state;
  const FaultKey* key = nullptr;
  const FaultExtent* extent = nullptr;
  std::int64_t cases = 0;
  std::string how;
  std::string why;   // what came and what is right
  std::string last;  // what to do, as Markdown
};

class Rows {
 public:
  explicit Rows(const MarkdownParts& parts) : parts_(parts) {
    for (const Finding& each : parts.findings) places_.emplace(each.key, places_.size());
    parts.comparison == nullptr ? add_findings() : add_comparison(*parts.comparison);
  }

  std::string table() const {
    const std::string text = table_.markdown(kMostRows);
    return text.empty() ? text : '\n' + text;
  }

 private:
  void add(const Row& row) {
    table_.row(row.state, code(row.key->api), cell(row.key->where), cell(row.how),
               cell(row.how.ends_with(row.why) ? "" : row.why),
               cell(fmt::format("{}", fmt::join(row.extent->values, ", "))),
               cell(fmt::format("{}", fmt::join(row.extent->dtypes, ", "))), row.cases, row.last);
  }

  // What came and what is right at the element that shows the fault, or else the message.
  std::string why_of(const FaultKey& key, const std::string& message) const {
    const std::size_t place = place_of(key);
    if (place == places_.size() || !parts_.findings[place].element) return message;
    const FaultElement& element = *parts_.findings[place].element;
    if (element.got.empty() || element.expected.empty() || element.got == element.expected) {
      return message;  // the values of a large result are not kept
    }
    return fmt::format("got {}, expected {}", element.got, element.expected);
  }

  // Of the finding with this key, or the end.
  std::size_t place_of(const FaultKey& key) const {
    const auto found = places_.find(key);
    return found == places_.end() ? places_.size() : found->second;
  }

  static std::string how_of(const FaultKey& key, std::string_view why) {
    return fmt::format("{}{}{}{}{}", name(key.outcome), key.how.empty() ? "" : ": ", key.how,
                       why.empty() ? "" : "; ", why);
  }

  std::string command(std::uint64_t id, const std::string& text) const {
    const std::string again = rerun_command(text, parts_.report.properties);
    if (again.size() <= kMostOfCommand || parts_.folder.empty()) return code(again);
    return code(fmt::format("{} repro {} {}", own_command(), shell_word(parts_.folder),
                            format_case_id(id)));
  }

  void add_findings() {
    for (const Finding& each : parts_.findings) {
      add({"fails", &each.key, &each.extent, static_cast<std::int64_t>(each.cases),
           how_of(each.key, {}), why_of(each.key, each.message), command(each.id, each.text)});
    }
  }

  void add_comparison(const RunComparison& comparison) {
    using Entry = std::pair<const FaultKey, ComparedFault>;
    std::vector<const Entry*> worse;
    for (const Entry& each : comparison.faults) {
      if (each.second.state != FaultState::known) worse.push_back(&each);
    }
    std::ranges::stable_sort(worse, {}, [&](const Entry* each) {
      return std::pair(each->second.state, place_of(each->first));
    });
    for (const Entry* each : worse) {
      const auto& [key, compared] = *each;
      const FaultExample& example = compared.example;
      add({word(compared.state), &key, &compared.now.extent, compared.now.cases,
           how_of(key, compared.why), why_of(key, example.message),
           key.outcome == Outcome::invalid ? std::string() : command(example.id, example.text)});
    }
    for (const LostCoverage& lost : comparison.lost) add(lost);
    for (const auto& [key, known] : comparison.fixed) {
      add({"fixed", &key, &known.sums.extent, known.sums.cases, how_of(key, {}), known.reason,
           cell(known.upstream)});
    }
  }

  void add(const LostCoverage& lost) {
    FaultKey key;
    key.api = lost.api;
    FaultExtent extent;
    if (!lost.dtype.empty()) extent.dtypes.insert(lost.dtype);
    add({"lost",
         &key,
         &extent,
         lost.rejected ? lost.now.rejected : lost.now.not_judged,
         lost.text(),
         {},
         {}});
  }

  const MarkdownParts& parts_;
  std::map<FaultKey, std::size_t> places_;  // indexes of the findings
  Table table_{{"", "API", "where", "how", "why", "values", "dtypes", ">cases", "reproduce"}};
};

// "309 cases: 283 pass, 21 mismatch", and the builds: with a comparison, those of both sides.
std::string counts_line(const RunReport& report, const RunComparison* comparison) {
  std::vector<std::string> words;
  for (const OutcomeInfo& outcome : kOutcomes) {
    const std::uint64_t count = report.outcomes[static_cast<std::size_t>(outcome.outcome)];
    if (count > 0) words.push_back(fmt::format("{} {}", count, code(outcome.name)));
  }
  std::string line = fmt::format("{}: {}", count_of(report.cases, "case"), fmt::join(words, ", "));
  if (comparison != nullptr) {
    for (const std::string& build : build_lines(*comparison)) {
      line += fmt::format("\n- {}", cell(build));
    }
    return line;
  }
  for (const char* lane : {"test.lane", "reference.lane"}) {
    const auto label = report.properties.find(lane);
    if (label == report.properties.end()) continue;
    const std::string build = build_of(report.properties, label->second);
    if (build.empty()) continue;
    line += fmt::format("; {} {}", cell(label->second), cell(build.substr(0, build.find(','))));
  }
  return line;
}

}  // namespace

std::string markdown_summary(const MarkdownParts& parts) {
  const bool good = parts.verdict.kind == RunVerdict::Kind::passes;
  return fmt::format("### {} assay {}\n{}\n{}\n",
                     good ? ":white_check_mark:" : ":x:", cell(parts.verdict.line()),
                     Rows(parts).table(), counts_line(parts.report, parts.comparison));
}

}  // namespace assay
