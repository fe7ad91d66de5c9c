#include "chain/run/stage_loop.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace assay::chain::run {

using stage::StageState;

StageLoop::StageLoop(const plan::Plan& plan, const RunOptions& options, stage::Guard guard,
                     Ledger ledger)
    : plan_(plan),
      options_(options),
      guard_(std::move(guard)),
      ledger_(std::move(ledger)),
      sources_(sources_of(".", plan)) {}

Status StageLoop::begin(Job& job, stage::StageCommand command, bool same_inputs) {
  job.identity = identity_of(*job.stage, command, sources_.state);
  if (options_.resume && same_inputs) {
    ASSAY_TRY(const bool kept, ledger_.keep_earlier(job));
    if (kept) return {};
  }
  if (std::string missing = availability_.missing(*job.stage); !missing.empty()) {
    return ledger_.end_unstarted(job, StageState::unavailable, std::move(missing));
  }
  ASSAY_CHECK(ledger_.begin(job));
  command.guard = &guard_;
  auto run = stage::StageRun::start(command, options_.limits,
                                    [&job](std::string_view line) { job.read(line); });
  if (!run) return ledger_.end(job, {StageState::not_started, run.error().message, {}, 0, 0, {}});
  job.run = std::make_unique<stage::StageRun>(std::move(*run));
  ledger_.progress().started(*job.stage);
  return {};
}

void StageLoop::wait(std::vector<pollfd> fds, stage::StageRun* more) {
  std::vector<stage::StageRun*> runs;
  if (more != nullptr) runs.push_back(more);
  for (const Job& job : jobs_) {
    if (job.run) runs.push_back(job.run.get());
  }
  fds.push_back({interrupts_.fd(), POLLIN, 0});
  stage::Clock::time_point next = stage::Clock::now() + std::chrono::seconds(1);
  for (const stage::StageRun* run : runs) {
    run->add_to(fds);
    next = std::min(next, run->deadline());
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(next - stage::Clock::now()).count();
  ::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(0, left)));
  while (interrupts_.next() != 0) {
    for (stage::StageRun* run : runs) {
      if (interrupted_) run->kill();  // a second Ctrl-C
      run->stop(StageState::interrupted, "the run was ended");
    }
    interrupted_ = true;
  }
}

Status StageLoop::collect(const Settle& settle, const Ended& ended) {
  std::string running;
  for (Job& job : jobs_) {
    if (!job.run) continue;
    auto outcome = job.run->tick();
    job.look();
    ledger_.heed(job, outcome);
    if (!outcome) {
      running += (running.empty() ? "" : " | ") + job.progress();
      continue;
    }
    job.run.reset();
    const ExitStatus exit = outcome->exit;
    ASSAY_CHECK(ledger_.end(job, settle(job, std::move(*outcome))));
    if (ended) ended(job, exit);
  }
  if (!running.empty()) ledger_.progress().tick(running);
  return ledger_.show(jobs_);
}

Result<RunResult> StageLoop::finish() {
  ASSAY_CHECK(keep_made_files(".", plan_, sources_));
  return ledger_.finish(jobs_, interrupted_, stage::Seconds(stage::Clock::now() - start_).count());
}

}  // namespace assay::chain::run
