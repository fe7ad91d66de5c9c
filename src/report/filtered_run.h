#pragma once

// The part of a stored run that `-k` selects: reports of it count nothing else.

#include "case/name_filter.h"
#include "store/store.h"

namespace assay {

// Shows the cases of another run, which must outlive it, whose API name matches.
class FilteredRun final : public RunReader {
 public:
  FilteredRun(RunReader& run, NameFilter filter) : run_(run), filter_(std::move(filter)) {}

  Result<std::map<std::string, std::string>> properties() override { return run_.properties(); }
  Status each(const RunQuery& query, const VisitFinished& visit) override;
  Status each_unfinished(const VisitPlanned& visit) override;
  Status each_invalid(const VisitInvalid& visit) override;
  Result<StoreCounts> counts() override;
  Result<std::vector<RunTotals>> other_runs() override { return run_.other_runs(); }
  Result<std::string> run_name() override { return run_.run_name(); }

 private:
  bool shows(std::string_view text) const;

  RunReader& run_;
  NameFilter filter_;
};

}  // namespace assay
