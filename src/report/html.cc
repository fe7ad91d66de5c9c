#include "report/html.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/markup.h"
#include "case/canonical.h"
#include "report/findings.h"
#include "report/run_report.h"
#include "report/tolerances.h"

namespace assay {
namespace {

// Beyond this a page is no pleasure in any browser; `assay report DIR --list OUTCOME` has them all.
constexpr std::uint64_t kShownCases = 20'000;

constexpr std::string_view kPageHead = R"html(<!doctype html>
<html lang="en"><meta charset="utf-8"><title>assay report</title>
<style>
:root { color-scheme: light dark; --line: #8884; --bad: #c0392b; --good: #27864b; --soft: #888 }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums; width: 6rem }
code { font: 13px/1.4 ui-monospace, monospace; overflow-wrap: anywhere }
.failed { color: var(--bad); font-weight: 600 } .soft { color: var(--soft) }
article { border-bottom: 1px solid var(--line); padding: .6rem 0 }
input, select { font: inherit; padding: .3rem .5rem; margin-right: .5rem }
.scroll { max-height: 28rem; overflow: auto }
</style>
)html";

constexpr std::string_view kScript = R"html(<script>
const pick = document.getElementById('pick'), find = document.getElementById('find');
const cases = [...document.querySelectorAll('article')];
for (const o of new Set(cases.map(c => c.dataset.outcome))) pick.add(new Option(o));
function show() {
  const text = find.value.toLowerCase(); let n = 0;
  for (const c of cases) {
    const on = (!pick.value || c.dataset.outcome === pick.value) && c.textContent.toLowerCase().includes(text);
    c.hidden = !on; n += on;
  }
  document.getElementById('count').textContent = n + ' shown';
}
pick.onchange = find.oninput = show; show();
</script>
)html";

std::string outcome_rows(const RunReport& report) {
  std::string rows;
  for (const OutcomeInfo& outcome : kOutcomes) {
    const std::uint64_t count = report.outcomes[static_cast<std::size_t>(outcome.outcome)];
    if (count == 0) continue;
    rows += fmt::format("<tr><td class=n>{}<td{}>{}<td class=soft>{}\n", count,
                        outcome.failed ? " class=failed" : "", outcome.name, outcome.meaning);
  }
  return rows;
}

std::string api_rows(const RunReport& report) {
  std::string rows;
  for (const auto& [api, of_api] : report.by_api) {
    const OutcomeCounts& counts = of_api.outcomes;
    std::string outcomes;
    std::uint64_t total = 0;
    for (const OutcomeInfo& outcome : kOutcomes) {
      const std::uint64_t count = counts[static_cast<std::size_t>(outcome.outcome)];
      total += count;
      if (count == 0) continue;
      outcomes += fmt::format("{}<span{}>{} {}</span>", outcomes.empty() ? "" : ", ",
                              outcome.failed ? " class=failed" : "", count, outcome.name);
    }
    rows += fmt::format("<tr><td><code>{}</code><td class=n>{}<td>{}\n", escape_markup(api), total,
                        outcomes);
  }
  return rows;
}

std::string accommodation_rows(const RunReport& report) {
  std::string rows;
  for (const auto& [api, words] : report.accommodations) {
    rows += fmt::format("<tr><td><code>{}</code><td>{}\n", escape_markup(api),
                        escape_markup(fmt::format("{}", fmt::join(words, "; "))));
  }
  return rows;
}

std::string case_article(const FinishedCase& finished,
                         const std::map<std::string, std::string>& properties) {
  const Verdict& verdict = finished.verdict;
  const std::string kinds = describe_mismatch(verdict.mismatch);
  const std::string flags = describe_flags(verdict.flags);
  return fmt::format(
      "<article data-outcome={0}><span class=failed>{0}</span> {1} <span class=soft>{2} {3} id "
      "{7}</span><br><code>{4}</code><br>{5}<br><code class=soft>{6}</code></article>\n",
      name(verdict.outcome), kinds, verdict.lane, flags, escape_markup(finished.text),
      escape_markup(verdict.message), escape_markup(rerun_command(finished.text, properties)),
      format_case_id(finished.id));
}

std::string finding_rows(const std::vector<Finding>& findings) {
  std::string rows;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    rows += fmt::format(
        "<tr><td class=n>{}<td><span class=failed>{}</span> <code>{}</code> {}{} "
        "<span class=soft>{}</span><br><code>{}</code><br>{}<td class=n>{}\n",
        i + 1, name(finding.key.outcome), escape_markup(finding.key.api),
        escape_markup(finding.key.where),
        finding.key.how.empty() ? "" : ": " + escape_markup(finding.key.how),
        escape_markup(circumstances(finding)), escape_markup(finding.text),
        escape_markup(finding.verdict.message), finding.cases);
  }
  return rows;
}

}  // namespace

Status write_html_report(RunReader& run, const std::filesystem::path& file) {
  ASSAY_TRY(const RunReport report, load_report(run));
  std::string facts;
  for (const auto& [key, value] : report.properties) {
    facts += fmt::format("{}{} {}", facts.empty() ? "" : " · ", escape_markup(key),
                         escape_markup(value));
  }
  std::string page(kPageHead);
  page += fmt::format("<h1>assay: {} cases</h1><p class=soft>{}</p>\n<table>{}</table>\n",
                      report.cases, facts, outcome_rows(report));
  ASSAY_TRY(const std::vector<Finding> findings, findings_of(run, nullptr));
  if (!findings.empty()) {
    page += fmt::format("<h2>Findings</h2><table id=findings>{}</table>\n", finding_rows(findings));
  }
  page +=
      "<h2>Cases to look at</h2><p><select id=pick><option value=''>all outcomes</option>"
      "</select><input id=find placeholder='part of a name or message'>"
      "<span id=count class=soft></span></p>\n";
  std::uint64_t shown = 0;
  ASSAY_CHECK(run.each_finished([&](const FinishedCase& finished) -> Status {
    const bool worth = info(finished.verdict.outcome).failed || finished.verdict.flags != 0;
    if (worth && shown++ < kShownCases) page += case_article(finished, report.properties);
    return {};
  }));
  ASSAY_CHECK(run.each_invalid([&](const InvalidLine& line) -> Status {
    if (shown++ < kShownCases) {
      page += fmt::format(
          "<article data-outcome=invalid><span class=failed>invalid</span> "
          "<span class=soft>{}</span><br><code>{}</code><br>{}</article>\n",
          escape_markup(line.where), escape_markup(line.text), escape_markup(line.message));
    }
    return {};
  }));
  if (shown > kShownCases) page += fmt::format("<p>… and {} more</p>\n", shown - kShownCases);
  if (report.properties.contains(std::string(kRerunFlag) + "test_tol")) {
    ASSAY_TRY(const std::string rows, tolerance_rows(run));
    page += fmt::format(
        "<h2>Which tolerance would pass</h2><div class=scroll><table>{}</table></div>\n", rows);
  }
  if (report.accommodated > 0) {
    page += fmt::format(
        "<h2>Accommodated</h2><p>{} cases are of APIs whose reference follows Paddle somewhere, or "
        "whose inputs dodge a fault: there a pass says nothing.</p>"
        "<div class=scroll><table id=accommodated>{}</table></div>\n",
        report.accommodated, accommodation_rows(report));
  }
  page += fmt::format("<h2>By API</h2><div class=scroll><table>{}</table></div>\n{}</html>\n",
                      api_rows(report), kScript);
  return write_file(file, page);
}

}  // namespace assay
