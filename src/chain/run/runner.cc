#include "chain/run/runner.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/interrupts.h"
#include "base/text.h"
#include "chain/run/identity.h"
#include "chain/run/job.h"
#include "chain/run/ledger.h"
#include "chain/run/verdict.h"
#include "chain/stage/availability.h"

namespace assay::chain::run {
namespace {

using stage::StageState;

bool shares_gpu(std::string_view a, std::string_view b) {
  constexpr std::string_view kGpu = "gpu ";
  if (!a.starts_with(kGpu) || !b.starts_with(kGpu)) return false;
  const std::vector<std::string> ours = split_at(a.substr(kGpu.size()), ',');
  const std::vector<std::string> theirs = split_at(b.substr(kGpu.size()), ',');
  return std::any_of(ours.begin(), ours.end(), [&](const std::string& id) {
    return std::find(theirs.begin(), theirs.end(), id) != theirs.end();
  });
}

// True if one writes files that the other reads or writes.
bool shares_files(const plan::Stage& a, const plan::Stage& b) {
  const auto touches = [](const std::string& written, const std::string& other) {
    return !written.empty() && !other.empty() &&
           (written.starts_with(other) || other.starts_with(written));
  };
  return touches(a.output, b.output) || touches(a.output, b.input) || touches(a.input, b.output);
}

bool excludes(const plan::Stage& a, const plan::Stage& b) {
  return shares_gpu(a.device, b.device) || shares_files(a, b) || !a.hosts.empty() ||
         !b.hosts.empty();
}

class Runner {
 public:
  Runner(const plan::Plan& plan, const RunOptions& options, stage::Guard guard, Ledger ledger)
      : options_(options), guard_(std::move(guard)), ledger_(std::move(ledger)) {
    jobs_.resize(plan.stages.size());
    for (std::size_t i = 0; i < jobs_.size(); ++i) jobs_[i].stage = &plan.stages[i];
    sources_ = sources_of(".", "test_tipc/output");
  }

  Result<RunResult> run() {
    const stage::Clock::time_point start = stage::Clock::now();
    while (true) {
      ASSAY_CHECK(settle());
      if (all_done()) break;
      wait();
      ASSAY_CHECK(collect());
    }
    return ledger_.finish(jobs_, interrupted_, stage::Seconds(stage::Clock::now() - start).count());
  }

 private:
  bool all_done() const {
    return std::all_of(jobs_.begin(), jobs_.end(),
                       [](const Job& job) { return job.done && !job.run; });
  }

  // Starts the stages that can start, and ends those that never can.
  Status settle() {
    bool seat = has_seat();
    for (Job& job : jobs_) {
      if (job.done || job.run) continue;
      if (interrupted_) {
        ASSAY_CHECK(ledger_.end_unstarted(job, StageState::interrupted, "the run was ended"));
        continue;
      }
      const Job* unmade = nullptr;
      bool ready = true;
      for (const std::size_t need : job.stage->needs) {
        if (jobs_[need].done && !jobs_[need].outcome.passed()) unmade = &jobs_[need];
        ready = ready && jobs_[need].done;
      }
      if (unmade != nullptr && unmade->outcome.state == StageState::unavailable) {
        ASSAY_CHECK(ledger_.end_unstarted(job, StageState::unavailable, unmade->outcome.detail));
      } else if (unmade != nullptr) {
        ASSAY_CHECK(ledger_.end_unstarted(
            job, StageState::blocked,
            fmt::format("{} {}", unmade->stage->name, name(unmade->outcome.state))));
      } else if (seat && ready && may_run_now(job)) {
        ASSAY_CHECK(begin(job));
        seat = has_seat();
      }
    }
    return {};
  }

  static bool is_busy(const Job& job) { return bool(job.run); }

  bool has_seat() const {
    const auto busy = static_cast<std::size_t>(std::count_if(jobs_.begin(), jobs_.end(), is_busy));
    return busy < std::max<std::size_t>(1, options_.jobs);
  }

  bool may_run_now(const Job& job) const {
    // Earlier stages with the same files must have ended.
    const auto own = jobs_.begin() + static_cast<std::ptrdiff_t>(job.stage->index);
    const bool waits = std::any_of(jobs_.begin(), own, [&](const Job& other) {
      return !other.done && shares_files(*other.stage, *job.stage);
    });
    return !waits && std::none_of(jobs_.begin(), jobs_.end(), [&](const Job& other) {
      return is_busy(other) && excludes(*other.stage, *job.stage);
    });
  }

  Status begin(Job& job) {
    const plan::Stage& stage = *job.stage;
    stage::StageCommand command;
    command.argv = stage.argv;
    command.environment = stage.environment;
    command.directory = stage.directory;
    command.log = stage.log;
    job.identity = identity_of(stage, command, sources_);
    if (options_.resume) {
      const bool same_inputs =
          std::ranges::all_of(stage.needs, [&](std::size_t need) { return jobs_[need].kept; });
      ASSAY_TRY(const bool kept, same_inputs ? ledger_.keep_earlier(job) : Result<bool>(false));
      if (kept) return {};
    }
    if (std::string missing = availability_.missing(stage); !missing.empty()) {
      return ledger_.end_unstarted(job, StageState::unavailable, std::move(missing));
    }
    ASSAY_CHECK(ledger_.begin(job));
    if (!stage.hosts.empty()) command = fleet::fleet_command(stage, options_.self, options_.fleet);
    command.guard = &guard_;
    auto run = stage::StageRun::start(command, options_.limits,
                                      [&job](std::string_view line) { job.read(line); });
    if (!run) {
      return ledger_.end(job, {StageState::not_started, run.error().message, {}, 0, 0, {}});
    }
    job.run = std::make_unique<stage::StageRun>(std::move(*run));
    ledger_.progress().started(stage);
    return {};
  }

  void wait() {
    std::vector<pollfd> fds{{interrupts_.fd(), POLLIN, 0}};
    stage::Clock::time_point next = stage::Clock::now() + std::chrono::seconds(1);
    for (const Job& job : jobs_) {
      if (!job.run) continue;
      job.run->add_to(fds);
      next = std::min(next, job.run->deadline());
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(next - stage::Clock::now()).count();
    ::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(0, left)));
    while (interrupts_.next() != 0) {
      for (Job& job : jobs_) {
        if (!job.run) continue;
        if (interrupted_) job.run->kill();  // a second Ctrl-C
        job.run->stop(StageState::interrupted, "the run was ended");
      }
      interrupted_ = true;
    }
  }

  Status collect() {
    std::string running;
    for (Job& job : jobs_) {
      if (!job.run) continue;
      auto outcome = job.run->tick();
      job.look();
      ledger_.heed(job, outcome);
      if (outcome) {
        job.run.reset();
        ASSAY_CHECK(ledger_.end(job, judged(job, *outcome, options_.lenient)));
        continue;
      }
      running += (running.empty() ? "" : " | ") + job.progress();
    }
    if (!running.empty()) ledger_.progress().tick(running);
    return ledger_.show(jobs_);
  }

  const RunOptions& options_;
  stage::Guard guard_;
  Ledger ledger_;
  Interrupts interrupts_;
  stage::Availability availability_;
  std::string sources_;
  std::deque<Job> jobs_;
  bool interrupted_ = false;
};

}  // namespace

bool RunResult::all_passed() const {
  return std::all_of(stages.begin(), stages.end(),
                     [](const StageResult& stage) { return stage.outcome.passed(); });
}

Result<RunResult> run_plan(const plan::Plan& plan, const RunOptions& options) {
  ASSAY_TRY(stage::Guard guard, stage::Guard::start());
  ASSAY_TRY(Ledger ledger, Ledger::open(plan, options));
  return Runner(plan, options, std::move(guard), std::move(ledger)).run();
}

std::string time_table(const RunResult& result, stage::Seconds budget) {
  std::string text;
  for (const StageResult& stage : result.stages) {
    text += fmt::format("{:8.1f} s {:5.1f}%  {}{}\n", stage.outcome.seconds,
                        100 * stage.outcome.seconds / std::max(result.seconds, 1e-9), stage.name,
                        stage.kept ? " (kept)" : "");
  }
  text += fmt::format("{:8.1f} s in all, {:.0f}% of the budget of {:g} s{}\n", result.seconds,
                      100 * result.seconds / std::max(budget.count(), 1e-9), budget.count(),
                      result.seconds > budget.count() ? ": OVER BUDGET" : "");
  return text;
}

}  // namespace assay::chain::run
