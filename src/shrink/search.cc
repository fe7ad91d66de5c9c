#include "shrink/search.h"

#include <algorithm>
#include <utility>

#include "case/canonical.h"
#include "case/parser.h"
#include "shrink/candidates.h"

namespace assay {
namespace {

// The number of cases per request: enough to fill a batch, and few enough that a success soon makes
// the others needless.
constexpr std::size_t kAtOnce = 16;

std::optional<CaseTree> parsed_tree(std::string_view text) {
  Case parsed;
  if (!parse_case(text, parsed)) return std::nullopt;
  return tree_of(parsed);
}

// The text of canonical_text(), or nothing if the text is not a case.
std::optional<std::string> canonical(const std::string& text) {
  Case parsed;
  if (!parse_case(text, parsed)) return std::nullopt;
  return canonical_text(parsed);
}

}  // namespace

ShrinkSearch::ShrinkSearch(std::uint64_t id, std::string_view failure, FaultKey wanted,
                           ShrinkLimits limits)
    : id_(id), wanted_(std::move(wanted)), limits_(limits), waiting_{std::string(failure)} {}

std::vector<std::string> ShrinkSearch::ask() {
  std::vector<std::string> texts;
  if (done_ || !asked_.empty()) return texts;
  while (!waiting_.empty() && texts.size() < kAtOnce && tried_.size() < limits_.most_tried) {
    texts.push_back(std::move(waiting_.front()));
    waiting_.erase(waiting_.begin());
    const std::uint64_t id = case_id(texts.back());
    asked_.insert(id);
    tried_.insert(id);
  }
  if (texts.empty()) give_up();
  return texts;
}

void ShrinkSearch::tell(const FinishedCase& finished) {
  if (done_ || asked_.erase(finished.id) == 0) return;
  const Verdict verdict = finished.verdict;
  if (key_of(finished.text, verdict) == wanted_) {
    if (auto tree = parsed_tree(finished.text)) {
      const double weight = weight_of(*tree);
      if (!smallest_ || weight < weight_) {
        smallest_ = ShrunkCase{finished.id,
                               std::string(finished.text),
                               verdict,
                               {finished.record.begin(), finished.record.end()}};
        tree_ = std::move(*tree);
        weight_ = weight;
        better_ = true;
      }
    }
  }
  if (asked_.empty()) end_round();
}

void ShrinkSearch::end_round() {
  if (!smallest_) return give_up();  // the failure does not reproduce
  if (std::exchange(better_, false)) begin_round();
  if (!waiting_.empty()) return;
  smallest_->whole = true;
  give_up();
}

void ShrinkSearch::begin_round() {
  waiting_.clear();
  for (const CaseTree& smaller : smaller_cases(tree_)) {
    auto text = canonical(text_of(smaller));
    if (!text || tried_.contains(case_id(*text))) continue;
    if (std::find(waiting_.begin(), waiting_.end(), *text) == waiting_.end()) {
      waiting_.push_back(std::move(*text));
    }
  }
}

void ShrinkSearch::give_up() {
  done_ = true;
  asked_.clear();
  waiting_.clear();
  if (smallest_) smallest_->tried = tried_.size();
}

}  // namespace assay
