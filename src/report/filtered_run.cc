#include "report/filtered_run.h"

#include "base/text.h"

namespace assay {

bool FilteredRun::shows(std::string_view text) const {
  return filter_.matches(api_of(trimmed(text)));
}

Status FilteredRun::each(const RunQuery& query, const VisitFinished& visit) {
  RunQuery all = query;
  all.most = kAllOfThem;
  std::map<Outcome, std::uint64_t> visited;
  return run_.each(all, [&](const FinishedCase& finished) -> Status {
    if (!shows(finished.text)) return {};
    if (query.rows != RunQuery::Rows::all && ++visited[finished.verdict.outcome] > query.most) {
      return {};
    }
    return visit(finished);
  });
}

Status FilteredRun::each_unfinished(const VisitPlanned& visit) {
  return run_.each_unfinished([&](const wire::CaseT& stored) -> Status {
    return shows(stored.text) ? visit(stored) : Status();
  });
}

Status FilteredRun::each_invalid(const VisitInvalid& visit) {
  return run_.each_invalid(
      [&](const InvalidLine& line) -> Status { return shows(line.text) ? visit(line) : Status(); });
}

Result<StoreCounts> FilteredRun::counts() {
  StoreCounts counts;
  ASSAY_CHECK(each({.records = false}, [&](const FinishedCase&) -> Status {
    ++counts.finished;
    return {};
  }));
  counts.planned = counts.finished;
  ASSAY_CHECK(each_unfinished([&](const wire::CaseT&) -> Status {
    ++counts.planned;
    return {};
  }));
  return counts;
}

}  // namespace assay
