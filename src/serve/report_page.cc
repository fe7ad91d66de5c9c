#include "serve/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "case/canonical.h"
#include "pages/page.h"
#include "report/issue.h"
#include "report/performance.h"
#include "report/repro.h"
#include "report/run_report.h"
#include "report/scripts.h"
#include "report/shown_case.h"
#include "report/shrunk.h"
#include "report/tolerances.h"
#include "serve/live_run.h"
#include "serve/past_runs.h"
#include "serve/source.h"
#include "store/open_store.h"
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

// Adds their scripts and texts for an issue tracker to findings, or why there are none.
void add_issues(const std::vector<nlohmann::json>& requests,
                const std::vector<nlohmann::json*>& findings) {
  const auto answers = ask_scripts(requests);
  for (std::size_t i = 0; i < findings.size(); ++i) {
    nlohmann::json& shown = *findings[i];
    if (!answers) shown["no_script"] = answers.error().message;
    if (!answers || (*answers)[i].contains("error")) continue;
    shown["script"] = text_of((*answers)[i], "script");
    shown["issue"] = text_of((*answers)[i], "text");
  }
}

// Adds to the first findings the script that shows them, by a shrunk case if there is one, their
// text for an issue tracker, and links to their logs.
Status add_scripts(RunReader& run, const LiveRun& grown, const ReportPage& page,
                   const ShrunkCases& shrunk, nlohmann::json& shown) {
  const std::vector<Finding> findings = grown.findings();
  std::multimap<std::uint64_t, std::size_t> places;
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < std::min({findings.size(), shown.size(), kWithScripts}); ++i) {
    places.emplace(findings[i].id, i);
    ids.push_back(findings[i].id);
  }
  const auto from = std::filesystem::absolute(page.file).parent_path();
  std::vector<nlohmann::json> requests;
  std::vector<nlohmann::json*> asking;
  ASSAY_CHECK(each_with_lanes(run, ids, [&](const FinishedCase& finished, const wire::Record&) {
    FoundCase found;
    found.id = finished.id;
    found.text = finished.text;
    found.verdict = finished.verdict;
    found.record.assign(finished.record.begin(), finished.record.end());
    const nlohmann::json logs = log_links(grown.properties(), found, page.folder, from);
    if (const auto smaller = shrunk.find(found.id); smaller != shrunk.end()) {
      const ShrunkCase& better = smaller->second;
      found = {better.id, better.text, better.verdict, better.record};
    }
    const auto [first, last] = places.equal_range(finished.id);
    for (auto at = first; at != last; ++at) {
      nlohmann::json& finding = shown[at->second];
      finding["logs"] = logs;
      auto request = issue_request(grown.properties(), findings[at->second], found);
      if (!request) continue;  // a page without a script is better than none
      requests.push_back(std::move(*request));
      asking.push_back(&finding);
    }
  }));
  add_issues(requests, asking);
  return {};
}

}  // namespace

Status write_report_page(RunReader& run, const ReportPage& page) {
  ASSAY_TRY(LiveRun grown, live_run_of(run, page.most, page.against));
  ShrunkCases shrunk;
  if (!page.folder.empty()) {
    ASSAY_TRY(shrunk, read_shrunk(page.folder));
    std::vector<Finding> findings = grown.findings();
    add_shrunk(shrunk, findings);
    grown.set_findings(std::move(findings));
  }
  ASSAY_TRY(nlohmann::json data, data_of(run, grown));
  ASSAY_CHECK(add_scripts(run, grown, page, shrunk, data["findings"]));
  if (page.against != nullptr) {
    data["against"] = comparison_json(*page.against);
    data["against"]["rows"] = page.against->speed.rows();
  }
  if (page.verdict) {
    const bool passes = page.verdict->kind == RunVerdict::Kind::passes;
    const bool fails = page.verdict->kind == RunVerdict::Kind::fails;
    data["verdict"] = {{"word", passes  ? "passes"
                                : fails ? "fails"
                                        : "not judged"},
                       {"reason", page.verdict->reason}};
  }
  ASSAY_TRY(const std::string name, run.run_name());
  ASSAY_TRY(const std::vector<RunTotals> others, run.other_runs());
  put_history(others, grown.totals(name), data);
  data["name"] = name;
  if (!page.folder.empty()) {
    data["finding"] = fmt::format("{} finding {}", own_command(),
                                  shell_word(std::filesystem::absolute(page.folder).string()));
  }
  if (!page.scores.is_null()) data["scorecard"] = page.scores;
  ASSAY_TRY(const std::vector<CaseList::Part> parts, grown.listed().parts());
  const std::string text = dumped(data);
  ASSAY_TRY(
      const std::string html,
      pages::whole_page({.title = name.empty() ? "assay" : name, .data = text, .parts = parts}));
  return write_file(page.file, html);
}

Result<std::string> served_finding(const std::string& where, std::string_view digest) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(where, StoreMode::read));
  ASSAY_TRY(const auto properties, store->properties());
  ASSAY_TRY(const std::vector<Finding> findings, findings_of(*store, nullptr));
  const auto finding = std::ranges::find_if(
      findings, [&](const Finding& each) { return each.key.digest() == digest; });
  if (finding == findings.end()) return fail("the run has no such finding");
  ASSAY_TRY(const FoundCase found, find_case(*store, format_case_id(finding->id)));
  const std::filesystem::path folder = is_store_address(where) ? "" : where;
  nlohmann::json shown{{"logs", log_links(properties, found, folder, folder / "lanes")}};
  for (nlohmann::json& log : shown["logs"]) log = "log/" + log.get<std::string>();
  ASSAY_TRY(const nlohmann::json request, issue_request(properties, *finding, found));
  add_issues({request}, {&shown});
  return json_text(shown);
}

Result<std::string> served_log(const std::filesystem::path& folder, std::string_view name) {
  constexpr std::size_t kMost = 1 << 20;
  if (!name.ends_with(".log") || name.find('/') != std::string_view::npos) return fail("no log");
  ASSAY_TRY(std::string text, read_file(folder / "lanes" / name));
  return text.size() > kMost ? text.substr(text.size() - kMost) : text;
}

}  // namespace assay
