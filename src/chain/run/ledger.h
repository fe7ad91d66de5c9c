#pragma once

// What a run keeps of its stages: the store, the page, the progress on the
// terminal. It also holds the output folder, so that no second run writes there.

#include <cstdint>
#include <deque>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "chain/plan/plan.h"
#include "chain/results/chain_store.h"
#include "chain/run/job.h"
#include "chain/run/progress.h"
#include "chain/run/runner.h"
#include "chain/stage/stage_run.h"

namespace assay::chain::run {

class Ledger {
 public:
  // Makes the plan's folder and begins a run in the store. An error if another run uses the folder,
  // or if the store's last run was of another params file.
  static Result<Ledger> open(const plan::Plan& plan, const RunOptions& options);

  // With --resume: whether the stage passed before with the same identity and its files are
  // unchanged. The job then counts as done.
  Result<bool> keep_earlier(Job& job);
  Status begin(Job& job);
  // Ends a stage that was never started.
  Status end_unstarted(Job& job, stage::StageState state, std::string detail);
  Status end(Job& job, stage::Outcome outcome);
  // Reports the alarms of a training, and ends it if the user asked for that. If it has ended
  // already, the alarm makes it fail.
  void heed(Job& job, std::optional<stage::Outcome>& outcome);
  // Writes new readings to the store and the page, every two seconds.
  Status show(std::deque<Job>& jobs);
  Result<RunResult> finish(const std::deque<Job>& jobs, bool interrupted, double seconds);

  Progress& progress() { return *progress_; }

 private:
  // Names the alarms of --stop-on that had too few readings to be raised.
  void name_blind_alarms(const Job& job);
  Ledger(const plan::Plan& plan, const RunOptions& options, results::ChainStore store);
  Status store_readings(Job& job);
  Status write_page();

  const plan::Plan* plan_;
  const RunOptions* options_;
  results::ChainStore store_;
  std::unique_ptr<Progress> progress_;
  Fd lock_;
  std::int64_t run_ = 0;
  stage::Clock::time_point next_show_;
};

}  // namespace assay::chain::run
