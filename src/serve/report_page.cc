#include "serve/report_page.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "pages/page.h"
#include "report/issue.h"
#include "report/performance.h"
#include "report/shown_case.h"
#include "report/shrunk.h"
#include "report/tolerances.h"
#include "serve/live_run.h"
#include "serve/past_runs.h"
#include "serve/source.h"
#include "verdict/judge.h"
#include "wire/settings.h"

namespace assay {
namespace {

constexpr std::size_t kWithScripts = 300;  // findings that come with a script and logs

Result<nlohmann::json> data_of(RunReader& run, const LiveRun& grown) {
  ASSAY_TRY(const std::uint64_t unfinished, run.unfinished());
  nlohmann::json data = grown.json();
  data["version"] = kPageVersion;
  data["begun"] = 0;
  data["planned"] = grown.cases() + unfinished;
  data["unfinished"] = unfinished;
  if (grown.properties().contains(std::string(kRerunFlag) + "test_tol")) {
    ASSAY_TRY(data["tolerances"], tolerances_json(run));
  }
  ASSAY_TRY(wire::CaseSettingsT settings, wire::settings_of(grown.properties()));
  ASSAY_TRY(const Rules rules, Rules::of(std::move(settings)));
  if (rules.agreement == Agreement::speed) {
    ASSAY_TRY(data["times"], performance_json(run));
  }
  return data;
}

Result<TracedCall> no_trace(const FaultyLane& /*lane*/, const std::string& /*api*/,
                            const std::string& /*script*/) {
  return fail("a page starts no interpreter");
}

// The paths of the case's logs, as links in a file of the folder `from`.
nlohmann::json log_links(const LiveRun::Properties& properties, const FoundCase& found,
                         const std::filesystem::path& folder, const std::filesystem::path& from) {
  nlohmann::json links = nlohmann::json::array();
  const auto shown = shown_case(properties, found, folder);
  if (!shown) return links;
  for (const nlohmann::json& log : shown->json.at("logs")) {
    std::error_code error;
    const auto link = std::filesystem::relative(log.get<std::string>(), from, error);
    if (!error) links.push_back(link.generic_string());
  }
  return links;
}

// Adds to the first findings the script that shows them, their text for an issue tracker, and links
// to their logs.
Status add_scripts(RunReader& run, const LiveRun& grown, const ReportPage& page,
                   nlohmann::json& shown) {
  const std::vector<Finding> findings = grown.findings();
  std::multimap<std::uint64_t, std::size_t> places;
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < std::min({findings.size(), shown.size(), kWithScripts}); ++i) {
    places.emplace(findings[i].id, i);
    ids.push_back(findings[i].id);
  }
  const auto from = std::filesystem::absolute(page.file).parent_path();
  return each_with_lanes(run, ids, [&](const FinishedCase& finished, const wire::Record&) {
    FoundCase found;
    found.id = finished.id;
    found.text = finished.text;
    found.verdict = finished.verdict;
    found.record.assign(finished.record.begin(), finished.record.end());
    const nlohmann::json logs = log_links(grown.properties(), found, page.folder, from);
    const auto [first, last] = places.equal_range(finished.id);
    for (auto at = first; at != last; ++at) {
      nlohmann::json& finding = shown[at->second];
      finding["logs"] = logs;
      const auto issue = write_issue(grown.properties(), findings[at->second], found, no_trace);
      if (!issue) continue;  // a page without a script is better than none
      finding["script"] = issue->script;
      finding["issue"] = issue->text;
    }
  });
}

}  // namespace

Status write_report_page(RunReader& run, const ReportPage& page) {
  ASSAY_TRY(LiveRun grown, live_run_of(run, page.most, page.against));
  if (!page.folder.empty()) {
    ASSAY_TRY(const ShrunkCases shrunk, read_shrunk(page.folder));
    std::vector<Finding> findings = grown.findings();
    add_shrunk(shrunk, findings);
    grown.set_findings(std::move(findings));
  }
  ASSAY_TRY(nlohmann::json data, data_of(run, grown));
  ASSAY_CHECK(add_scripts(run, grown, page, data["findings"]));
  if (page.against != nullptr) {
    data["against"] = comparison_json(*page.against);
    data["against"]["rows"] = page.against->speed.rows();
  }
  ASSAY_TRY(const std::string name, run.run_name());
  ASSAY_TRY(const std::vector<RunTotals> others, run.other_runs());
  put_history(others, grown.totals(name), data);
  data["name"] = name;
  ASSAY_TRY(const std::vector<CaseList::Part> parts, grown.listed().parts());
  const std::string text = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  ASSAY_TRY(
      const std::string html,
      pages::whole_page({.title = name.empty() ? "assay" : name, .data = text, .parts = parts}));
  return write_file(page.file, html);
}

}  // namespace assay
