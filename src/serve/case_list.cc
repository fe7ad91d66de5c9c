#include "serve/case_list.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "case/canonical.h"
#include "pages/packing.h"
#include "report/run_report.h"

namespace assay {

void CaseList::add(const FinishedCase& finished) {
  const Verdict& verdict = finished.verdict;
  add({format_case_id(finished.id), std::string(name(verdict.outcome)),
       describe_mismatch(verdict.mismatch), verdict.lane, describe_flags(verdict.flags),
       std::string(finished.text), verdict.message});
}

void CaseList::add(const InvalidLine& line) {
  add({"", std::string(name(Outcome::invalid)), "", line.where, "", line.text, line.message});
}

void CaseList::add(Row row) {
  if (bytes_ >= kMostBytes) {
    ++left_out_;
    return;
  }
  ++cases_;
  open_.push_back(std::move(row));
  if (open_.size() < kOfPart) return;
  // Similar texts next to each other compress better.
  std::stable_sort(open_.begin(), open_.end(),
                   [](const Row& a, const Row& b) { return a.text < b.text; });
  auto part = packed(open_);
  if (!part) return;  // parts() will report the error
  bytes_ += part->size();
  sealed_.push_back(std::make_shared<const std::string>(std::move(*part)));
  open_.clear();
}

Result<std::string> CaseList::packed(const std::vector<Row>& rows) {
  constexpr std::array<std::pair<const char*, std::string Row::*>, 7> kColumns{
      {{"id", &Row::id},
       {"outcome", &Row::outcome},
       {"kinds", &Row::kinds},
       {"lane", &Row::lane},
       {"flags", &Row::flags},
       {"text", &Row::text},
       {"message", &Row::message}}};
  nlohmann::json part;
  for (const auto& [name, member] : kColumns) {
    nlohmann::json& column = part[name] = nlohmann::json::array();
    for (const Row& row : rows) column.push_back(row.*member);
  }
  return pages::gzipped(dumped(part));
}

Result<std::vector<CaseList::Part>> CaseList::parts() {
  std::vector<Part> all = sealed_;
  if (open_.empty()) return all;
  ASSAY_TRY(std::string last, packed(open_));
  all.push_back(std::make_shared<const std::string>(std::move(last)));
  return all;
}

}  // namespace assay
