#pragma once

// Searches for the smallest case that still shows one failure. It owns no process: it requests
// cases, and the caller reports their results.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "report/findings.h"
#include "report/rejudge.h"
#include "report/shrunk.h"
#include "shrink/tree.h"
#include "store/store.h"

namespace assay {

struct ShrinkLimits {
  std::uint64_t most_tried = 400;  // cases per failure
};

class ShrinkSearch {
 public:
  // `failure` is a case of a run that shows the failure `wanted`.
  ShrinkSearch(std::uint64_t id, std::string_view failure, FaultKey wanted, ShrinkLimits limits);

  // Returns canonical texts of cases to run now; empty while it waits for results, or when it is
  // done.
  std::vector<std::string> ask();
  // Reports the result of a case. Cases that were not requested are ignored.
  void tell(const FinishedCase& finished);
  // Reports that no more cases can be run.
  void give_up();

  bool done() const { return done_; }
  std::uint64_t id() const { return id_; }
  // The smallest case that shows the failure, or nothing if not even the original case did.
  const std::optional<ShrunkCase>& smallest() const { return smallest_; }

 private:
  void begin_round();
  void end_round();

  std::uint64_t id_;
  FaultKey wanted_;
  ShrinkLimits limits_;
  CaseTree tree_;                     // the smallest case so far
  std::vector<std::string> waiting_;  // smaller cases that are not requested yet, best first
  std::set<std::uint64_t> asked_;     // cases without a result yet
  std::set<std::uint64_t> tried_;
  std::optional<ShrunkCase> smallest_;
  double weight_ = 0;    // of tree_
  bool better_ = false;  // this round found a smaller case
  bool done_ = false;
};

}  // namespace assay
