#pragma once

// The claims of a run whose cases are created while it runs: searches request cases, the engine
// claims them, and their results go back to the searches. Nothing is stored.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "report/rejudge.h"
#include "shrink/search.h"
#include "store/store.h"

namespace assay {

class ShrinkClaims final : public RunClaims {
 public:
  ShrinkClaims(std::vector<ShrinkSearch>& searches, std::int64_t deadline_ns)
      : searches_(searches), deadline_ns_(deadline_ns) {}

  Result<Supply> claim(std::size_t most, const VisitJob& visit) override;
  Result<bool> finish(const FinishedCase& finished) override;

 private:
  // Takes new requests of the searches. A case that several searches request runs once.
  void collect();

  std::vector<ShrinkSearch>& searches_;
  std::int64_t deadline_ns_;
  std::map<std::uint64_t, std::string> wanted_;             // not yet claimed
  std::map<std::uint64_t, std::set<std::size_t>> waiting_;  // case → searches that wait for it
};

}  // namespace assay
