#include "report/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/text.h"
#include "case/canonical.h"
#include "report/inputs.h"
#include "report/run_report.h"

namespace assay {
namespace {

// Crashes and hangs, then errors, then wrong results; what says nothing of the test lane is last.
int severity(const FaultKey& key) {
  if (!info(key.outcome).definite) return 5;
  switch (key.outcome) {
    case Outcome::crash:
    case Outcome::sanitizer:
    case Outcome::timeout:
    case Outcome::oom:
      return 0;
    case Outcome::mismatch:
      return key.how == "value" ? 3 : 2;
    case Outcome::test_error:
      return 1;
    default:
      return 4;
  }
}

// The element of the case's fault with this key; nullopt if the record does not have it.
std::optional<FaultElement> element_with(const FaultKey& key, const FinishedCase& finished,
                                         std::uint64_t seed, const wire::Record& record) {
  const Fault* fault = find_fault(key, finished.verdict);
  if (fault == nullptr) return std::nullopt;
  auto element = element_of(finished.text, finished.id, seed, record, *fault);
  return element ? std::optional(std::move(*element)) : std::nullopt;
}

}  // namespace

FaultKey key_of(std::string_view case_text, const Verdict& verdict) {
  Verdict first = verdict;
  if (first.faults.size() > 1) first.faults.resize(1);
  complete_faults(first);
  const auto faults = faults_of_case(traits_of(case_text), first);
  if (!faults.empty()) return faults.begin()->first;
  return {std::string(api_of(case_text)), verdict.outcome, "", ""};
}

void FindingsCollector::add(const FinishedCase& finished) {
  const CaseTraits traits = traits_of(finished.text);
  const FaultKey first = key_of(finished.text, finished.verdict);
  for (const auto& [key, extent] : faults_of_case(traits, finished.verdict)) {
    bool wanted = key == first;
    if (!wanted && comparison_ != nullptr) {
      const auto found = comparison_->faults.find(key);
      wanted = found != comparison_->faults.end() && found->second.state != FaultState::known;
    }
    if (wanted) add(finished, key, extent);
  }
}

void FindingsCollector::add(const InvalidLine& line) {
  Finding& finding = findings_[key_of(line)];
  if (finding.cases++ > 0) return;  // the first line stands for all
  finding.id = invalid_line_id(line);
  finding.text = line.text;
  finding.message = fmt::format("{}: {}", line.where, line.message);
  finding.verdict.outcome = Outcome::invalid;
  finding.verdict.message = finding.message;
}

void FindingsCollector::add(const FinishedCase& finished, const FaultKey& key,
                            const FaultExtent& extent) {
  Finding& finding = findings_[key];
  const bool first = finding.cases++ == 0;
  finding.extent.add(extent);
  const std::int64_t at_ms = finished.finished_ms;
  finding.first_ms = first ? at_ms : std::min(finding.first_ms, at_ms);
  finding.last_ms = std::max(finding.last_ms, at_ms);
  Rank rank{elements_of(finished.text), std::string(finished.text)};
  Rank& best = ranks_[key];
  if (!first && best <= rank) return;
  best = std::move(rank);
  finding.id = finished.id;
  finding.text = finished.text;
  finding.verdict = finished.verdict;
  finding.message = message_of(key, finished.verdict);
  finding.element.reset();
  if (const wire::Record* record = record_with_lanes(finished)) {
    finding.element = element_with(key, finished, seed_, *record);
  }
}

std::vector<Finding> FindingsCollector::findings() const {
  std::vector<Finding> sorted;
  sorted.reserve(findings_.size());
  for (const auto& [key, finding] : findings_) {
    sorted.push_back(finding);
    Finding& added = sorted.back();
    added.key = key;
    if (comparison_ == nullptr) continue;
    const auto found = comparison_->faults.find(key);
    if (found == comparison_->faults.end()) continue;
    const ComparedFault& compared = found->second;
    added.state = compared.state;
    added.why = compared.why;
    if (compared.example.text.empty() || compared.example.text == added.text) continue;
    // The case that shows what is new about the fault.
    added.id = compared.example.id;
    added.text = compared.example.text;
    added.message = compared.example.message;
    added.element.reset();
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const Finding& a, const Finding& b) {
    const auto spread = [](const Finding& each) {
      return each.extent.dtypes.size() * each.extent.values.size();
    };
    return std::tuple(a.state, severity(a.key), b.extent.error_step, spread(b), b.cases) <
           std::tuple(b.state, severity(b.key), a.extent.error_step, spread(a), a.cases);
  });
  return sorted;
}

Result<std::vector<Finding>> findings_of(RunReader& run, const RunComparison* comparison,
                                         std::uint64_t most) {
  FindingsCollector collector(comparison);
  const RunQuery query{.rows = RunQuery::Rows::failed, .most = most, .records = false};
  ASSAY_CHECK(run.each(query, [&](const FinishedCase& finished) -> Status {
    collector.add(finished);
    return {};
  }));
  ASSAY_CHECK(run.each_invalid([&](const InvalidLine& line) -> Status {
    collector.add(line);
    return {};
  }));
  return collector.findings();
}

Status add_elements(RunReader& run, std::vector<Finding>& findings) {
  ASSAY_TRY(const auto properties, run.properties());
  ASSAY_TRY(const std::uint64_t seed, run_seed(properties));
  std::multimap<std::uint64_t, Finding*> of_case;
  std::vector<std::uint64_t> ids;
  for (Finding& finding : findings) {
    of_case.emplace(finding.id, &finding);
    ids.push_back(finding.id);
  }
  return each_with_lanes(run, ids, [&](const FinishedCase& finished, const wire::Record& record) {
    const auto [first, last] = of_case.equal_range(finished.id);
    for (auto at = first; at != last; ++at) {
      at->second->element = element_with(at->second->key, finished, seed, record);
    }
  });
}

void add_shrunk(const ShrunkCases& shrunk, std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    const auto found = shrunk.find(finding.id);
    if (found != shrunk.end()) finding.shrunk = found->second.text;
  }
}

std::string circumstances(const Finding& finding) {
  std::string text = fmt::format("{}", fmt::join(finding.extent.dtypes, ", "));
  if (!finding.extent.values.empty()) {
    text += fmt::format("{}{} values", text.empty() ? "" : "; ",
                        fmt::join(finding.extent.values, ", "));
  }
  return text;
}

std::string findings_table(const std::vector<Finding>& findings, bool compared,
                           const Terminal& terminal) {
  if (findings.empty()) return {};
  std::string table = fmt::format("{}:\n", count_of(findings.size(), "finding"));
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    std::string title =
        terminal.paint(paint_of(info(finding.key.outcome)), name(finding.key.outcome));
    title += " " + terminal.paint(Paint::bold, one_line(finding.key.api));
    if (!finding.key.where.empty()) title += fmt::format(", {}", one_line(finding.key.where));
    if (!finding.key.how.empty()) title += fmt::format(": {}", one_line(finding.key.how));
    std::string where = circumstances(finding);
    if (!where.empty()) where = "; " + where;
    std::string state(compared ? word(finding.state) : std::string_view());
    if (!finding.why.empty()) state += fmt::format(", {}", one_line(finding.why));
    title += fmt::format("  ({}{}{}{})", state, state.empty() ? "" : ", ",
                         count_of(finding.cases, "case"), where);
    table +=
        fmt::format("{:>4}  {}\n      {} {}\n      {}\n", i + 1, title, format_case_id(finding.id),
                    one_line(finding.text), one_line(finding.message));
    const std::string inputs = finding.element ? finding.element->inputs_line() : std::string();
    if (!inputs.empty()) table += fmt::format("      with {}\n", inputs);
    if (!finding.shrunk.empty()) {
      table += fmt::format("      shrunk to {}\n", one_line(finding.shrunk));
    }
  }
  return terminal.wrap(table);
}

nlohmann::json finding_json(const Finding& finding) {
  nlohmann::json object =
      fault_json(finding.key, {static_cast<std::int64_t>(finding.cases), finding.extent});
  object.update({{"state", word(finding.state)},
                 {"why", finding.why},
                 {"id", format_case_id(finding.id)},
                 {"shrunk", finding.shrunk},
                 {"message", finding.message}});
  if (finding.element) object["element"] = finding.element->json();
  return object;
}

nlohmann::json findings_json(const std::vector<Finding>& findings) {
  nlohmann::json all = nlohmann::json::array();
  for (const Finding& finding : findings) {
    nlohmann::json& object = all.emplace_back(finding_json(finding));
    object["number"] = all.size();
    object["case"] = finding.text;
  }
  return all;
}

}  // namespace assay
