#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/markup.h"
#include "base/table.h"
#include "base/text.h"
#include "campaign/results.h"
#include "pages/page.h"

namespace assay::campaign {
namespace {

constexpr std::size_t kMostRows = 200;  // of a table for people

// The kinds of stages in the order of the first model that has them.
std::vector<std::string> kinds_of(const Findings& findings) {
  std::vector<std::string> kinds;
  for (const UnitEnd& model : findings.models) {
    for (const StageEnd& stage : model.stages) {
      if (std::ranges::find(kinds, stage.kind) == kinds.end()) kinds.push_back(stage.kind);
    }
  }
  return kinds;
}

// What a model's stages of a kind came to: "ok", "3 ok", "1 of 3 failed", "" without any.
std::string cell_of(const UnitEnd& model, const std::string& kind) {
  std::size_t all = 0;
  std::size_t bad = 0;
  std::string state;
  for (const StageEnd& stage : model.stages) {
    if (stage.kind != kind) continue;
    ++all;
    if (stage.state == "passed") continue;
    ++bad;
    if (state.empty() || state == "blocked") state = stage.state;
  }
  if (all == 0) return "";
  if (bad == 0) return all == 1 ? "ok" : fmt::format("{} ok", all);
  return all == 1 ? state : fmt::format("{} of {} {}", bad, all, state);
}

std::string_view mark_of(const Failure& failure) { return failure.known ? "known" : "NEW"; }

std::string failure_line(const Failure& failure) {
  return fmt::format("{}  {}{}{}: {}{}{}{}", mark_of(failure), failure.model,
                     failure.stage.empty() ? "" : " · ", failure.stage, failure.state,
                     failure.detail.empty() ? "" : ": ", one_line(failure.detail),
                     failure.reason.empty() ? "" : " (" + failure.reason + ")");
}

std::map<std::string, std::vector<const Failure*>> by_model(const Findings& findings) {
  std::map<std::string, std::vector<const Failure*>> failures;
  for (const Failure& each : findings.failures) failures[each.model].push_back(&each);
  return failures;
}

// `inside` is the element that says why the test case did not pass; "": it passed.
std::string junit_case(const std::string& model, const std::string& name, double seconds,
                       const std::string& inside) {
  return fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\">{}</testcase>\n",
                     escape_markup(model), escape_markup(name), seconds, inside);
}

std::string skipped(const std::string& why) {
  return fmt::format("<skipped message=\"{}\"/>", escape_markup(why));
}

// What a test case has inside for the failure of a stage ("": of the model), if there is one.
std::string junit_failure(const UnitEnd& model, const std::vector<const Failure*>& failures,
                          const std::string& stage) {
  const auto found = std::ranges::find(failures, stage, &Failure::stage);
  if (found == failures.end()) return "";
  const Failure& failure = **found;
  if (failure.known) return skipped(fmt::format("known {}: {}", failure.state, failure.detail));
  return fmt::format("<failure type=\"{}\" message=\"{}\">{}</failure>",
                     escape_markup(failure.state), escape_markup(failure.detail),
                     escape_markup(model.log));
}

// The test cases of a model: its stages, and the model itself if it failed or has no stages.
std::string junit_cases(const UnitEnd& model, const std::vector<const Failure*>& failures) {
  std::string text;
  for (const StageEnd& stage : model.stages) {
    const bool ran = stage.state != "blocked" && stage.state != "interrupted";
    text += junit_case(model.key, stage.name, stage.seconds,
                       ran ? junit_failure(model, failures, stage.name)
                           : skipped(stage.state + ": " + stage.detail));
  }
  std::string whole = junit_failure(model, failures, "");
  if (model.state == "not_run") whole = skipped("not_run");
  if (whole.empty() && !model.stages.empty()) return text;
  return text + junit_case(model.key, "model", model.seconds, whole);
}

}  // namespace

std::string summary_line(const Findings& findings) {
  std::vector<std::string> words;
  for (const char* state :
       {"passed", "failed", "refused", "trouble", "timed_out", "lost", "not_run"}) {
    const std::size_t count = findings.count(state);
    if (count > 0) words.push_back(fmt::format("{} {}", count, state));
  }
  const std::size_t fresh = findings.new_failures();
  return fmt::format("{}: {}, {} known, {} fixed{}", fmt::join(words, ", "),
                     count_of(fresh, "new failure"), findings.failures.size() - fresh,
                     findings.fixed.size(), findings.interrupted ? ", interrupted" : "");
}

std::string matrix_text(const Findings& findings, bool all) {
  std::vector<std::string> heads{"model"};
  const std::vector<std::string> kinds = kinds_of(findings);
  heads.insert(heads.end(), kinds.begin(), kinds.end());
  heads.insert(heads.end(), {"result", "s"});
  Table table(heads);
  for (const UnitEnd& model : findings.models) {
    if (model.passed() && !all) continue;
    std::vector<std::string> row{one_line(model.key)};
    for (const std::string& kind : kinds) row.push_back(cell_of(model, kind));
    row.insert(row.end(), {model.state, fmt::format("{:.1f}", model.seconds)});
    table.add(std::move(row));
  }
  std::string text = table.text();
  for (const Failure& each : findings.failures) text += failure_line(each) + "\n";
  for (const Failure& each : findings.fixed) {
    text += fmt::format("fixed  {}{}{}\n", each.model, each.stage.empty() ? "" : " · ", each.stage);
  }
  return text + summary_line(findings) + "\n";
}

std::string markdown(const std::string& name, const Findings& findings) {
  std::string text =
      fmt::format("### {} {}\n\n{}\n", findings.new_failures() == 0 ? ":white_check_mark:" : ":x:",
                  escape_markdown(name), summary_line(findings));
  Table table({"", "model", "stage", "state", "detail"});
  for (const bool known : {false, true}) {
    for (const Failure& each : findings.failures) {
      if (each.known != known) continue;
      table.row(mark_of(each), escape_markdown(each.model), escape_markdown(each.stage),
                escape_markdown(each.state), escape_markdown(each.detail));
    }
  }
  const std::string rows = table.markdown(kMostRows);
  return rows.empty() ? text : text + '\n' + rows;
}

std::string junit(const std::string& name, const Findings& findings) {
  auto failures = by_model(findings);
  std::string text;
  for (const UnitEnd& model : findings.models) {
    text += fmt::format("  <testsuite name=\"{}\" time=\"{:.3f}\">\n{}  </testsuite>\n",
                        escape_markup(model.key), model.seconds,
                        junit_cases(model, failures[model.key]));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" failures=\"{}\">\n"
      "{}</testsuites>\n",
      escape_markup(name), findings.new_failures(), text);
}

nlohmann::json json_report(const std::string& name, const Findings& findings) {
  using nlohmann::json;
  json report{{"version", 1},
              {"name", name},
              {"new_failures", findings.new_failures()},
              {"interrupted", findings.interrupted}};
  for (const char* list : {"models", "failures", "fixed"}) report[list] = json::array();
  for (const UnitEnd& model : findings.models) {
    report["models"].push_back(json_of(model));
  }
  const auto add = [&](const char* list, const Failure& each) {
    report[list].push_back({{"model", each.model},
                            {"stage", each.stage},
                            {"state", each.state},
                            {"detail", each.detail},
                            {"known", each.known},
                            {"reason", each.reason}});
  };
  for (const Failure& each : findings.failures) add("failures", each);
  for (const Failure& each : findings.fixed) add("fixed", each);
  return report;
}

Result<std::string> html(const std::string& name, const Findings& findings) {
  nlohmann::json page = json_report(name, findings);
  page["summary"] = summary_line(findings);
  page["kinds"] = kinds_of(findings);
  const std::string text = dumped(page);
  return pages::whole_page(
      {.kind = pages::Kind::chain, .title = name, .data = text, .packed = false});
}

}  // namespace assay::campaign
