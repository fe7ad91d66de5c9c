#pragma once

// What every run of stages shares, whoever decides which stage comes next: starts stages, waits for
// their output, ends them on Ctrl-C, and judges and stores how they ended.

#include <poll.h>

#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/interrupts.h"
#include "base/result.h"
#include "chain/run/identity.h"
#include "chain/run/job.h"
#include "chain/run/ledger.h"
#include "chain/run/runner.h"
#include "chain/stage/guard.h"
#include "chain/stage/stage_run.h"

namespace assay::chain::run {

// Checks whether this machine has the tools of a stage.
class Availability {
 public:
  // Returns `needs X` for the first missing tool, or "".
  std::string missing(const plan::Stage& stage);

 private:
  // Runs a question in the interpreter; caches the answer.
  bool says_yes(const std::string& python, const std::string& program, const std::string& about);
  std::map<std::string, bool> answers_;  // by "python program about"
};

class StageLoop {
 public:
  // `plan` and `options` must outlive the loop.
  StageLoop(const plan::Plan& plan, const RunOptions& options, stage::Guard guard, Ledger ledger);

  std::deque<Job>& jobs() { return jobs_; }
  Ledger& ledger() { return ledger_; }
  stage::Guard& guard() { return guard_; }
  bool interrupted() const { return interrupted_; }

  // Starts the job's stage by this command, or ends it: kept from an earlier run (--resume, if its
  // inputs are `same`), a device is missing, the program cannot be started. The job tells which.
  Status begin(Job& job, stage::StageCommand command, bool same_inputs);

  // Waits for up to a second until a stage, one of `fds` or `more` has something to do. Ctrl-C ends
  // all of them.
  void wait(std::vector<pollfd> fds, stage::StageRun* more = nullptr);

  // Reads what the stages wrote. A stage that ended is stored as `settle` judges it; then `ended`
  // is called with its exit status.
  using Settle = std::function<stage::Outcome(Job&, stage::Outcome)>;
  using Ended = std::function<void(Job&, const ExitStatus&)>;
  Status collect(const Settle& settle, const Ended& ended = {});

  Result<RunResult> finish();

 private:
  const plan::Plan& plan_;
  const RunOptions& options_;
  stage::Guard guard_;
  Ledger ledger_;
  Interrupts interrupts_;
  Availability availability_;
  Sources sources_;
  std::deque<Job> jobs_;
  stage::Clock::time_point start_ = stage::Clock::now();
  bool interrupted_ = false;
};

}  // namespace assay::chain::run
