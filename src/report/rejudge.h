#pragma once

// Judges a stored run again without running it. This is possible because the judge is a pure
// function of record, policy and settings.

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

  // The new verdict; nullopt if the case never ran or its record cannot be read.
  std::optional<Verdict> judge(const FinishedCase& finished) const;
};

// The policy that replaces the run's own.
struct JudgeBy {
  std::string policies = {};        // text of a policies.toml; empty: no API has its own policy
  std::string policies_name = {};   // name of that file, for messages
  std::optional<double> atol = {};  // atol or rtol switches the error bar off
  std::optional<double> rtol = {};
};

// The judging of a run with these properties. Changes the properties to the new policy.
Result<Judging> judging_by(const JudgeBy& by, std::map<std::string, std::string>& properties);

// A view of a run with new verdicts. Cases that never ran keep their verdicts. The flags flaky and
// contaminated stay, because they come from several attempts.
class RejudgedRun final : public RunReader {
 public:
  // `run` must outlive the result.
  static Result<std::unique_ptr<RunReader>> make(RunReader& run, const JudgeBy& by);

  Result<std::map<std::string, std::string>> properties() override { return properties_; }
  Status each(const RunQuery& query, const VisitFinished& visit) override;
  Status each_unfinished(const VisitPlanned& visit) override { return run_.each_unfinished(visit); }
  Status each_invalid(const VisitInvalid& visit) override { return run_.each_invalid(visit); }
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
