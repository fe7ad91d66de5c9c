#include "report/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_set>

#include "case/canonical.h"
#include "case/parser.h"
#include "report/rejudge.h"
#include "report/run_report.h"
#include "store/quick_reader.h"

namespace assay {
namespace {

constexpr std::size_t kMostOfError = 100;

// Without what differs from case to case: numbers become one sign.
std::string without_numbers(std::string_view text) {
  std::string plain;
  bool in_number = false;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) plain += c;
    if (digit && !in_number) plain += "·";
    in_number = digit;
  }
  return plain;
}

// The kind of an error and the beginning of what it says.
std::string error_kind(std::string_view message) {
  std::string plain = without_numbers(message.substr(0, message.find_first_of("[('\"")));
  if (plain.size() < 16) plain = without_numbers(message);
  if (plain.size() > kMostOfError) plain.resize(kMostOfError);
  // No half of a character.
  while (!plain.empty() && (static_cast<unsigned char>(plain.back()) & 0x80U) != 0)
    plain.pop_back();
  while (!plain.empty() && plain.back() == ' ') plain.pop_back();
  return plain;
}

std::string place_of(const Fault& fault) {
  if (fault.kinds == kInput) return "the input " + fault.leaf;
  const std::string leaf = without_numbers(fault.leaf);
  return fault.gradient ? "gradient of " + leaf : "result" + leaf;
}

std::string difference_of(const Fault& fault) {
  if (fault.kinds == kInput) return "changed";
  if ((fault.kinds & kValue) != 0 && fault.special) return "not finite";
  return describe_mismatch(fault.kinds);
}

bool about_test_lane(Outcome outcome) { return info(outcome).definite; }

std::uint64_t elements_of(std::string_view text) {
  Case parsed;
  return parse_case(text, parsed) ? parsed.total_elements() : 0;
}

}  // namespace

std::string FindingKey::digest() const {
  const std::string all = fmt::format("{}\n{}\n{}\n{}", api, name(outcome), where, how);
  return format_case_id(case_id(all)).substr(0, 8);
}

FindingKey key_of(std::string_view case_text, const Verdict& verdict) {
  FindingKey key;
  key.api = api_of(case_text);
  key.outcome = verdict.outcome;
  const Fault& fault = verdict.fault;
  if (fault.kinds != 0) {
    key.where = place_of(fault);
    key.how = difference_of(fault);
  } else {
    key.where = verdict.lane.empty() ? "" : fmt::format("the {} lane", verdict.lane);
    key.how = error_kind(verdict.message);
  }
  return key;
}

FindingsCollector::FindingsCollector(const RunComparison* comparison) {
  if (comparison == nullptr) return;
  for (const ChangedCase& changed : comparison->changes) {
    if (changed.change == Change::new_failure) new_.insert(changed.id);
    if (changed.change == Change::lost) lost_.insert(changed.id);
  }
}

void FindingsCollector::add(const FinishedCase& finished, const Verdict& verdict) {
  const bool lost = has_lost(finished.id);
  FindingKey key = key_of(finished.text, verdict);
  if (lost) key.how = "no longer tested";
  Finding& finding = findings_[key];
  const bool first = finding.cases++ == 0;
  finding.new_cases += lost || new_.contains(finished.id) ? 1 : 0;
  if (!verdict.fault.values.empty()) finding.values.insert(verdict.fault.values);
  if (!verdict.fault.dtype.empty()) finding.dtypes.insert(verdict.fault.dtype);
  const std::int64_t at_ms = finished.finished_ms;
  finding.first_ms = first ? at_ms : std::min(finding.first_ms, at_ms);
  finding.last_ms = std::max(finding.last_ms, at_ms);
  Rank rank{!lost && !new_.contains(finished.id), elements_of(finished.text),
            std::string(finished.text)};
  Rank& best = ranks_[key];
  if (!first && best <= rank) return;
  best = std::move(rank);
  finding.id = finished.id;
  finding.text = finished.text;
  finding.verdict = verdict;
}

std::vector<Finding> FindingsCollector::findings() const {
  std::vector<Finding> sorted;
  sorted.reserve(findings_.size());
  for (const auto& [key, finding] : findings_) {
    sorted.push_back(finding);
    sorted.back().key = key;
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const Finding& a, const Finding& b) {
    return std::tuple(!about_test_lane(a.key.outcome), b.cases) <
           std::tuple(!about_test_lane(b.key.outcome), a.cases);
  });
  return sorted;
}

Result<std::vector<Finding>> findings_of(RunReader& run, const RunComparison* comparison,
                                         std::uint64_t most) {
  ASSAY_TRY(auto properties, run.properties());
  ASSAY_TRY(const Judging judging, judging_by({}, properties));
  FindingsCollector collector(comparison);
  std::unordered_set<std::uint64_t> seen;
  const auto take = [&](const FinishedCase& finished) -> Status {
    if (seen.insert(finished.id).second) collector.add(finished, judging.with_fault(finished));
    return {};
  };
  if (comparison == nullptr || run.quick() != nullptr) {
    if (comparison != nullptr) {  // what is new comes in before what is known
      ASSAY_CHECK(run.quick()->each_with_id(worse_cases(*comparison, most), take));
    }
    ASSAY_CHECK(run.each_failed(most, take));
    return collector.findings();
  }
  ASSAY_CHECK(run.each_finished([&](const FinishedCase& finished) -> Status {
    if (!info(finished.verdict.outcome).failed && !collector.has_lost(finished.id)) return {};
    collector.add(finished, judging.with_fault(finished));
    return {};
  }));
  return collector.findings();
}

void add_shrunk(const ShrunkCases& shrunk, std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    const auto found = shrunk.find(finding.id);
    if (found != shrunk.end()) finding.shrunk = found->second.text;
  }
}

std::string circumstances(const Finding& finding) {
  std::string text = fmt::format("{}", fmt::join(finding.dtypes, ", "));
  if (!finding.values.empty()) {
    text += fmt::format("{}{} values", text.empty() ? "" : "; ", fmt::join(finding.values, ", "));
  }
  return text;
}

std::string findings_table(const std::vector<Finding>& findings) {
  if (findings.empty()) return {};
  std::string table =
      fmt::format("{} finding{}:\n", findings.size(), findings.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    table += fmt::format("{:>4}  {} {}", i + 1, name(finding.key.outcome), finding.key.api);
    if (!finding.key.where.empty()) table += fmt::format(", {}", finding.key.where);
    if (!finding.key.how.empty()) table += fmt::format(": {}", finding.key.how);
    table += fmt::format("  ({} case{}{}", finding.cases, finding.cases == 1 ? "" : "s",
                         finding.new_cases > 0 ? fmt::format(", {} new", finding.new_cases) : "");
    const std::string where = circumstances(finding);
    table += fmt::format("{}{})\n", where.empty() ? "" : "; ", where);
    table += fmt::format("      {} {}\n      {}\n", format_case_id(finding.id), finding.text,
                         finding.verdict.message);
    if (!finding.shrunk.empty()) table += fmt::format("      shrunk to {}\n", finding.shrunk);
  }
  return table;
}

nlohmann::json findings_json(const std::vector<Finding>& findings) {
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    all.push_back({{"number", i + 1},
                   {"digest", finding.key.digest()},
                   {"api", finding.key.api},
                   {"outcome", name(finding.key.outcome)},
                   {"where", finding.key.where},
                   {"how", finding.key.how},
                   {"cases", finding.cases},
                   {"new_cases", finding.new_cases},
                   {"values", finding.values},
                   {"dtypes", finding.dtypes},
                   {"id", format_case_id(finding.id)},
                   {"case", finding.text},
                   {"shrunk", finding.shrunk},
                   {"message", finding.verdict.message}});
  }
  return all;
}

}  // namespace assay
