#include "case/corpus_tools.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "base/json.h"
#include "case/corpus.h"
#include "case/diagnostic.h"

namespace assay {
namespace {

constexpr std::size_t kShown = 5;  // diagnostics

// Reads one file. A case is passed on when the line after it has shown whether it has a note.
class NotedReader {
 public:
  NotedReader(CorpusReading& reading, const std::function<void(const CorpusCase&)>& take)
      : reading_(reading), take_(take) {}

  Status read(const std::filesystem::path& file) {
    ASSAY_TRY(CorpusReader reader, CorpusReader::open(file));
    reader.keep_notes();
    CorpusLine line;
    while (true) {
      ASSAY_TRY(const bool more, reader.next(line));
      if (!more) break;
      if (line.text.starts_with(kCaptureHead)) {
        if (reading_.head.empty()) reading_.head = line.text;
      } else if (line.text.starts_with(kCaptureNote)) {
        pass_on(line.text);
      } else {
        pass_on({});
        take_line(file, line);
      }
    }
    pass_on({});
    return {};
  }

 private:
  void take_line(const std::filesystem::path& file, const CorpusLine& line) {
    const ParseStatus status = parse_line(line.text, scratch_, [&](const Case& found) {
      pass_on({});  // a line that has lost its line break has several
      parsed_ = &found;
      text_.clear();
      append_canonical(found, text_);
      if (&found != &scratch_) pass_on({});  // it lives as long as this call
    });
    if (status) return;
    if (++reading_.failed > kShown) return;
    reading_.shown.push_back(
        describe(status.error(), fmt::format("{}:{}", file.string(), line.number), line.text));
  }

  void pass_on(std::string_view note) {
    if (parsed_ == nullptr) return;
    ++reading_.cases;
    take_({*parsed_, case_id(text_), text_, note, reading_.head});
    parsed_ = nullptr;
  }

  CorpusReading& reading_;
  const std::function<void(const CorpusCase&)>& take_;
  Case scratch_;
  const Case* parsed_ = nullptr;  // the case that was not passed on yet
  std::string text_;
};

// The note with the calls of another note of the same case.
std::string added(std::string_view note, std::string_view other) {
  nlohmann::json mine = parse_json(note.substr(kCaptureNote.size()));
  const nlohmann::json theirs = parse_json(other.substr(kCaptureNote.size()));
  const auto calls = [](const nlohmann::json& value) {
    const bool known = value.is_object() && value.contains("calls");
    return known && value["calls"].is_number_unsigned() ? value["calls"].get<std::uint64_t>() : 0;
  };
  if (!mine.is_object() || calls(theirs) == 0) return std::string(note);
  mine["calls"] = calls(mine) + calls(theirs);
  return fmt::format("{} {}", kCaptureNote, dumped(mine));
}

Result<std::unordered_map<CaseId, std::string>> texts_of(const std::string& pattern,
                                                         std::vector<CaseId>& order) {
  std::unordered_map<CaseId, std::string> texts;
  ASSAY_CHECK(each_case({pattern}, [&](const CorpusCase& found) {
    if (texts.emplace(found.id, found.text).second) order.push_back(found.id);
  }));
  return texts;
}

}  // namespace

Status write_case(const TextSink& out, std::string_view text, std::string_view note) {
  ASSAY_CHECK(out(fmt::format("{}\n", text)));
  return note.empty() ? Status() : out(fmt::format("{}\n", note));
}

Result<CorpusReading> each_case(const std::vector<std::string>& patterns,
                                const std::function<void(const CorpusCase&)>& take) {
  CorpusReading reading;
  NotedReader reader(reading, take);
  for (const std::string& pattern : patterns) {
    ASSAY_TRY(const auto files, expand_corpus_pattern(pattern));
    for (const std::filesystem::path& file : files) ASSAY_CHECK(reader.read(file));
  }
  if (reading.cases + reading.failed == 0) {
    return usage_error(fmt::format("no case in {}: one API call on each line is expected",
                                   patterns.size() == 1 ? patterns[0] : "any of the files"));
  }
  return reading;
}

Result<CorpusReading> merge_corpora(const std::vector<std::string>& patterns, const TextSink& out) {
  std::unordered_map<CaseId, std::size_t> places;
  std::vector<std::pair<std::string, std::string>> cases;  // texts and notes
  ASSAY_TRY(CorpusReading reading, each_case(patterns, [&](const CorpusCase& found) {
              const auto [place, fresh] = places.emplace(found.id, cases.size());
              if (fresh) {
                cases.emplace_back(found.text, found.note);
              } else if (std::string& note = cases[place->second].second; note.empty()) {
                note = found.note;
              } else if (!found.note.empty()) {
                note = added(note, found.note);
              }
            }));
  if (!reading.head.empty()) ASSAY_CHECK(out(reading.head + "\n"));
  for (const auto& [text, note] : cases) ASSAY_CHECK(write_case(out, text, note));
  return reading;
}

Result<CorpusDifference> diff_corpora(const std::string& before, const std::string& after,
                                      const TextSink& out) {
  CorpusDifference difference;
  std::vector<CaseId> old_order;
  std::vector<CaseId> new_order;
  ASSAY_TRY(const auto old_texts, texts_of(before, old_order));
  ASSAY_TRY(const auto new_texts, texts_of(after, new_order));
  for (const CaseId id : old_order) {
    if (new_texts.contains(id)) {
      ++difference.common;
      continue;
    }
    ++difference.removed;
    ASSAY_CHECK(out(fmt::format("- {}\n", old_texts.at(id))));
  }
  for (const CaseId id : new_order) {
    if (old_texts.contains(id)) continue;
    ++difference.added;
    ASSAY_CHECK(out(fmt::format("+ {}\n", new_texts.at(id))));
  }
  return difference;
}

bool CorpusFilter::keeps(const CorpusCase& found) const {
  const Case& parsed = found.parsed;
  if (ids && !ids->contains(found.id)) return false;
  if (names && !names->matches(parsed.api())) return false;
  const std::string api(parsed.api());
  const auto like = [&](const std::string& glob) {
    return ::fnmatch(glob.c_str(), api.c_str(), 0) == 0;
  };
  if (!globs.empty() && std::ranges::none_of(globs, like)) return false;
  const auto wanted = [&](const TensorSpec& tensor) {
    return std::ranges::find(dtypes, tensor.dtype) != dtypes.end();
  };
  if (!dtypes.empty() && std::ranges::none_of(parsed.tensors(), wanted)) return false;
  const std::uint64_t elements = parsed.total_elements();
  return least_elements <= elements && elements <= most_elements;
}

Result<CorpusReading> filter_corpora(const std::vector<std::string>& patterns,
                                     const CorpusFilter& filter, const TextSink& out) {
  Status written;
  bool headed = false;
  ASSAY_TRY(CorpusReading reading, each_case(patterns, [&](const CorpusCase& found) {
              if (!written || !filter.keeps(found)) return;
              if (!headed && !found.head.empty()) written = out(fmt::format("{}\n", found.head));
              headed = true;
              if (written) written = write_case(out, found.text, found.note);
            }));
  ASSAY_CHECK(written);
  return reading;
}

}  // namespace assay
