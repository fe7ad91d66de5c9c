#include "chain/run/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "chain/run/stage_loop.h"
#include "chain/run/verdict.h"

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
      : options_(options),
        loop_(plan, options, std::move(guard), std::move(ledger)),
        jobs_(loop_.jobs()) {
    jobs_.resize(plan.stages.size());
    for (std::size_t i = 0; i < jobs_.size(); ++i) jobs_[i].stage = &plan.stages[i];
  }

  Result<RunResult> run() {
    while (true) {
      ASSAY_CHECK(settle());
      if (all_done()) return loop_.finish();
      loop_.wait({});
      ASSAY_CHECK(loop_.collect([this](Job& job, stage::Outcome outcome) {
        return judged(job, std::move(outcome), options_.lenient);
      }));
    }
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
      if (loop_.interrupted()) {
        ASSAY_CHECK(
            loop_.ledger().end_unstarted(job, StageState::interrupted, "the run was ended"));
        continue;
      }
      const Job* unmade = nullptr;
      bool ready = true;
      for (const std::size_t need : job.stage->needs) {
        if (jobs_[need].done && !jobs_[need].outcome.passed()) unmade = &jobs_[need];
        ready = ready && jobs_[need].done;
      }
      if (unmade != nullptr && unmade->outcome.state == StageState::unavailable) {
        ASSAY_CHECK(
            loop_.ledger().end_unstarted(job, StageState::unavailable, unmade->outcome.detail));
      } else if (unmade != nullptr) {
        ASSAY_CHECK(loop_.ledger().end_unstarted(
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
    if (!stage.hosts.empty()) command = fleet::fleet_command(stage, options_.self, options_.fleet);
    const bool same_inputs =
        std::ranges::all_of(stage.needs, [&](std::size_t need) { return jobs_[need].kept; });
    return loop_.begin(job, std::move(command), same_inputs);
  }

  const RunOptions& options_;
  StageLoop loop_;
  std::deque<Job>& jobs_;
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
    if (stage.kept) continue;
    text += fmt::format("{:8.1f} s {:5.1f}%  {}\n", stage.outcome.seconds,
                        100 * stage.outcome.seconds / std::max(result.seconds, 1e-9), stage.name);
  }
  text += fmt::format("{:8.1f} s in all, {:.0f}% of the budget of {:g} s{}\n", result.seconds,
                      100 * result.seconds / std::max(budget.count(), 1e-9), budget.count(),
                      result.seconds > budget.count() ? ": OVER BUDGET" : "");
  return text;
}

}  // namespace assay::chain::run
