#include "report/annotations.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "case/canonical.h"
#include "case/corpus.h"
#include "report/run_report.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr const char* kSchema = "https://json.schemastore.org/sarif-2.1.0.json";

bool is_known(const Finding& finding, bool compared) {
  return compared && finding.state == FaultState::known;
}

template <typename Special>
std::string percent_escaped(std::string_view text, const Special& special) {
  std::string safe;
  for (const char c : text) {
    safe += special(c) ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return safe;
}

// A path as a URI reference (RFC 3986).
std::string uri_of(const std::string& file) {
  return percent_escaped(file, [](char c) {
    return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') &&
           std::string_view("-._~/").find(c) == std::string_view::npos;
  });
}

json rules() {
  json all = json::array();
  for (const OutcomeInfo& outcome : kOutcomes) {
    if (outcome.outcome == Outcome::pass) continue;
    all.push_back({{"id", outcome.name}, {"shortDescription", {{"text", outcome.meaning}}}});
  }
  return all;
}

json result_of(const Finding& finding, const CorpusPlaces& places, bool compared) {
  json location = {
      {"logicalLocations", {{{"fullyQualifiedName", finding.key.api}, {"kind", "function"}}}}};
  if (const auto* place = places.find(finding.id)) {
    location["physicalLocation"] = {{"artifactLocation", {{"uri", uri_of(place->file)}}},
                                    {"region", {{"startLine", place->line}}}};
  }
  json result = {
      {"ruleId", name(finding.key.outcome)},
      {"level", is_known(finding, compared) ? "note" : "error"},
      {"message", {{"text", fmt::format("{}\n{}", finding_line(finding), finding.text)}}},
      {"locations", json::array({location})},
      {"occurrenceCount", finding.cases},
      // GitHub tracks an alert by rule, file and primaryLocationLineHash. If that is missing, the
      // upload computes it from the corpus line, and two faults of one case become one alert.
      {"partialFingerprints",
       {{"fault/v2", finding.key.digest()},
        {"primaryLocationLineHash", finding.key.digest() + ":1"}}},
      {"properties",
       {{"values", finding.extent.values},
        {"dtypes", finding.extent.dtypes},
        {"caseId", format_case_id(finding.id)}}}};
  if (compared) result["baselineState"] = is_known(finding, compared) ? "unchanged" : "new";
  return result;
}

// Escapes a text for a workflow command: line ends, and in a property also colons and commas.
std::string escaped(std::string_view text, bool property) {
  return percent_escaped(printable(text), [property](char c) {
    return c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
  });
}

// `where` is empty, or properties with a comma at the end.
std::string command_line(std::string_view level, std::string_view where, std::string_view title,
                         std::string_view message) {
  return fmt::format("::{} {}title={}::{}\n", level, where, escaped(title, true),
                     escaped(message, false));
}

}  // namespace

Result<CorpusPlaces> CorpusPlaces::read(std::span<const std::string> patterns) {
  CorpusPlaces places;
  Case scratch;
  ASSAY_CHECK(each_corpus_line(patterns, [&](const auto& file, const CorpusLine& line) -> Status {
    (void)parse_line(line.text, scratch, [&](const Case& found) {
      places.places_.try_emplace(case_id(canonical_text(found)), Place{file.string(), line.number});
    });
    return {};
  }));
  return places;
}

const CorpusPlaces::Place* CorpusPlaces::find(std::uint64_t id) const {
  const auto found = places_.find(id);
  return found == places_.end() ? nullptr : &found->second;
}

std::string finding_line(const Finding& finding) {
  return fmt::format("{}{}{}: {} ({})", finding.key.api, finding.key.where.empty() ? "" : ", ",
                     finding.key.where, finding.message, count_of(finding.cases, "case"));
}

std::string sarif_log(const std::vector<Finding>& findings, const CorpusPlaces& places,
                      bool compared, const std::string& version) {
  json results = json::array();
  for (const Finding& finding : findings) {
    results.push_back(result_of(finding, places, compared));
  }
  const json driver = {{"name", "assay"}, {"version", version}, {"rules", rules()}};
  const json run = {
      {"tool", {{"driver", driver}}}, {"columnKind", "unicodeCodePoints"}, {"results", results}};
  const json log = {{"$schema", kSchema}, {"version", "2.1.0"}, {"runs", json::array({run})}};
  return json_text(log);
}

std::string github_annotations(const std::vector<Finding>& findings, const CorpusPlaces& places,
                               const RunVerdict& verdict, const RunComparison* comparison) {
  const bool good = verdict.kind == RunVerdict::Kind::passes;
  std::string lines = command_line(good ? "notice" : "error", "", "assay", verdict.line());
  for (const Finding& finding : findings) {
    if (is_known(finding, comparison != nullptr)) continue;
    std::string where;
    if (const auto* place = places.find(finding.id)) {
      where = fmt::format("file={},line={},", escaped(place->file, true), place->line);
    }
    const std::string title = fmt::format("{} {}", name(finding.key.outcome), finding.key.api);
    lines += command_line("error", where, title,
                          fmt::format("{}\n{}", finding_line(finding), finding.text));
  }
  if (comparison == nullptr) return lines;
  for (const LostCoverage& lost : comparison->lost) {
    lines += command_line("error", "", "lost " + lost.api, lost.text());
  }
  return lines;
}

}  // namespace assay
