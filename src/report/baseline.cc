#include "report/baseline.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/text.h"
#include "case/canonical.h"
#include "store/accommodations.h"

namespace assay {
namespace {

constexpr std::string_view kFirstLine = "assay-baseline 1";
constexpr std::string_view kFlakyWord = "flaky";

// The first word of a line, which loses it and the blanks behind it.
std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
  return word;
}

struct Entry {
  std::uint64_t id = 0;
  PastCase stands;
  std::string text;
};

std::optional<Entry> parse_entry(std::string_view line) {
  const std::string_view word = take_word(line);
  const auto id = parse_case_id(take_word(line));
  if (!id || line.empty() || case_id(line) != *id) return std::nullopt;
  Entry entry{*id, {}, std::string(line)};
  entry.stands.flaky = word == kFlakyWord;
  if (entry.stands.flaky) return entry;
  const auto outcome = find_outcome(word);
  if (!outcome) return std::nullopt;
  entry.stands.outcome = *outcome;
  return entry;
}

struct Baseline {
  PastRun past;
  std::string head;                                         // comments before the settings
  std::unordered_map<std::uint64_t, std::string> comments;  // above each case
};

Result<Baseline> parse_baseline(std::string_view text, const std::string& file) {
  Baseline baseline;
  baseline.past.only_what_did_not_pass = true;
  const std::vector<std::string> lines = split_at(text, '\n');
  if (lines.empty() || trimmed(lines.front()) != kFirstLine) {
    return usage_error(fmt::format(
        "{}: neither the folder of a run nor a baseline file that this assay knows (its first line "
        "is not \"{}\"); write one with assay report DIR --write-baseline FILE",
        file, kFirstLine));
  }
  std::string comment;
  bool in_head = true;
  for (std::size_t number = 1; number < lines.size(); ++number) {
    std::string_view line = trimmed(lines[number]);
    if (line.empty()) continue;
    if (line.starts_with('#')) {
      (in_head ? baseline.head : comment) += fmt::format("{}\n", line);
      continue;
    }
    in_head = false;
    if (line.starts_with("setting ")) {
      take_word(line);
      const std::string key(take_word(line));
      baseline.past.properties[key] = line;
      continue;
    }
    const auto entry = parse_entry(line);
    if (!entry) {
      return usage_error(
          fmt::format("{}:{}: no line of a baseline: OUTCOME ID CASE, with the id of that case",
                      file, number + 1));
    }
    baseline.past.cases[entry->id] = entry->stands;
    if (!comment.empty()) baseline.comments[entry->id] = std::exchange(comment, {});
  }
  return baseline;
}

Result<Baseline> load_baseline(const std::filesystem::path& file) {
  auto text = read_file(file);
  if (!text) return usage_error(text.error().message);
  return parse_baseline(*text, file.string());
}

// A line of the file, with what stands above it, by the text that sorts it.
using Lines = std::map<std::string, std::string>;

void add_line(Lines& lines, const Baseline& old, std::uint64_t id, std::string_view word,
              std::string_view text) {
  const auto comment = old.comments.find(id);
  lines[std::string(text)] =
      fmt::format("{}{} {} {}\n", comment == old.comments.end() ? "" : "\n" + comment->second, word,
                  format_case_id(id), text);
}

Result<Lines> entries_of(RunReader& run, const Baseline& old) {
  Lines lines;
  ASSAY_CHECK(run.each_finished([&](const FinishedCase& finished) -> Status {
    const Verdict& verdict = finished.verdict;
    const bool flaky = verdict.outcome == Outcome::pass && (verdict.flags & kFlaky) != 0;
    if (verdict.outcome == Outcome::pass && !flaky) return {};
    add_line(lines, old, finished.id, flaky ? kFlakyWord : name(verdict.outcome), finished.text);
    return {};
  }));
  ASSAY_CHECK(run.each_invalid([&](const InvalidLine& line) -> Status {
    add_line(lines, old, invalid_line_id(line), name(Outcome::invalid), trimmed(line.text));
    return {};
  }));
  return lines;
}

}  // namespace

Result<PastRun> read_baseline(const std::filesystem::path& file) {
  ASSAY_TRY(Baseline baseline, load_baseline(file));
  return std::move(baseline.past);
}

Status write_baseline(RunReader& run, const std::filesystem::path& file) {
  Baseline old;
  std::error_code error;
  if (std::filesystem::exists(file, error)) {
    ASSAY_TRY(old, load_baseline(file));
  }
  std::string text = fmt::format("{}\n{}", kFirstLine, old.head);
  ASSAY_TRY(const auto properties, run.properties());
  for (const auto& [key, value] : properties) {
    // Interpreters, time limits and the like belong to a machine.
    if (key == kAccommodations) continue;
    if (!key.starts_with(kRerunFlag)) text += fmt::format("setting {} {}\n", key, value);
  }
  text += '\n';
  ASSAY_TRY(const Lines lines, entries_of(run, old));
  for (const auto& [sorted_by, line] : lines) text += line;
  return write_file(file, text);
}

}  // namespace assay
