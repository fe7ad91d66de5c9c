#pragma once

// The search for the smallest case that still shows one failure. It owns no process: what it wants
// to know it asks for as cases, and is told what came of them.

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
  std::uint64_t most_tried = 400;  // cases for one failure
};

class ShrinkSearch {
 public:
  // `failure` is a case of a run that shows what `wanted` says.
  ShrinkSearch(std::uint64_t id, std::string_view failure, FaultKey wanted, ShrinkLimits limits);

  // Canonical texts of cases to run now. Empty: it waits for those it has asked for, or is done.
  std::vector<std::string> ask();
  // What came of a case. Others than it has asked for are not looked at.
  void tell(const FinishedCase& finished);
  // No more cases can be run.
  void give_up();

  bool done() const { return done_; }
  std::uint64_t id() const { return id_; }
  // The smallest case that shows the failure. nullopt: not even the case itself did.
  const std::optional<ShrunkCase>& smallest() const { return smallest_; }

 private:
  void begin_round();
  void end_round();

  std::uint64_t id_;
  FaultKey wanted_;
  ShrinkLimits limits_;
  CaseTree tree_;                     // of the smallest so far
  std::vector<std::string> waiting_;  // smaller cases that nobody has run, best first
  std::set<std::uint64_t> asked_;     // those that run now
  std::set<std::uint64_t> tried_;
  std::optional<ShrunkCase> smallest_;
  double weight_ = 0;    // of it
  bool better_ = false;  // this round has found a smaller one
  bool done_ = false;
};

}  // namespace assay
