#pragma once

// A stored run, judged again without running anything: the judge is a pure function of a record and
// a policy.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "store/store.h"
#include "verdict/judge.h"

namespace assay {

// How records of a run are judged.
struct Judging {
  Policies policies;
  Rules rules;

  // nullopt: there is nothing to judge, because the case never ran or its record cannot be read.
  std::optional<Verdict> judge(const FinishedCase& finished) const;
};

// What a run is judged by instead of its own policy.
struct JudgeBy {
  std::string policies = {};        // text of a policies.toml; empty: no API has its own
  std::string policies_name = {};   // of that file, for messages
  std::optional<double> atol = {};  // with either of them results are judged by atol and rtol alone
  std::optional<double> rtol = {};
};

// With `properties` of the run, which then say by what it is judged.
Result<Judging> judging_by(const JudgeBy& by, std::map<std::string, std::string>& properties);

// Shows another run with its verdicts judged again. What never ran keeps what it came to, and so
// does what only attempts tell: flaky, contaminated.
class RejudgedRun final : public RunReader {
 public:
  static Result<std::unique_ptr<RunReader>> make(RunReader& run, const JudgeBy& by);

  Result<std::map<std::string, std::string>> properties() override { return properties_; }
  Status each(const RunQuery& query, const VisitFinished& visit) override;
  // Judges every case.
  Result<Tally> tally() override;
  Status each_unfinished(const std::function<Status(const StoredCase&)>& visit) override {
    return run_.each_unfinished(visit);
  }
  Status each_invalid(const std::function<Status(const InvalidLine&)>& visit) override {
    return run_.each_invalid(visit);
  }
  Result<StoreCounts> counts() override { return run_.counts(); }
  Result<std::uint64_t> unfinished() override { return run_.unfinished(); }
  Result<std::vector<RunTotals>> other_runs() override { return run_.other_runs(); }
  Result<std::string> run_name() override { return run_.run_name(); }

 private:
  RejudgedRun(RunReader& run, Judging judging, std::map<std::string, std::string> properties)
      : run_(run), judging_(std::move(judging)), properties_(std::move(properties)) {}

  RunReader& run_;
  Judging judging_;
  std::map<std::string, std::string> properties_;
};

}  // namespace assay
