#include "chain/run/runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/interrupts.h"
#include "base/text.h"
#include "chain/fleet/fleet.h"
#include "chain/results/chain_store.h"
#include "chain/results/node_record.h"
#include "chain/results/report_html.h"
#include "chain/run/job.h"
#include "chain/run/progress.h"
#include "chain/run/speed_environment.h"
#include "chain/stage/artifacts.h"
#include "chain/stage/autolog.h"
#include "chain/stage/availability.h"
#include "chain/stage/monitor.h"
#include "chain/stage/train_log.h"
#include "device/nvml.h"

namespace assay::chain::run {
namespace {

constexpr std::chrono::seconds kShowEvery{2};  // writes readings to the store and the page

// "fp32" of "infer_gpu_usetrt_True_precision_fp32_batchsize_1".
std::string named_value(std::string_view name, std::string_view what) {
  const std::size_t at = name.rfind(what);
  if (at == std::string_view::npos) return {};
  name.remove_prefix(at + what.size());
  return std::string(name.substr(0, name.find('_')));
}

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
  Runner(const plan::Plan& plan, const RunOptions& options, stage::Guard guard,
         results::ChainStore store, Fd results)
      : plan_(plan),
        options_(options),
        guard_(std::move(guard)),
        store_(std::move(store)),
        results_(std::move(results)),
        progress_(options.progress, options.live, plan.stages.size()) {
    jobs_.resize(plan.stages.size());
    for (std::size_t i = 0; i < jobs_.size(); ++i) jobs_[i].stage = &plan.stages[i];
  }

  Result<RunResult> run() {
    const stage::Clock::time_point start = stage::Clock::now();
    ASSAY_TRY(run_id_, store_.begin_run(plan_, options_.params_path));
    while (true) {
      ASSAY_CHECK(settle());
      if (all_done()) break;
      wait();
      ASSAY_CHECK(collect());
    }
    RunResult result;
    for (Job& job : jobs_) {
      result.stages.push_back({job.stage->name, job.stage->kind, job.outcome, job.kept});
    }
    result.seconds = stage::Seconds(stage::Clock::now() - start).count();
    result.interrupted = interrupted_;
    ASSAY_CHECK(store_.finish_run(run_id_, interrupted_ ? 130 : result.all_passed() ? 0 : 1));
    ASSAY_CHECK(write_page());
    return result;
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
        ASSAY_CHECK(end_unstarted(job, stage::StageState::interrupted, "the run was ended"));
        continue;
      }
      const Job* unmade = nullptr;
      bool ready = true;
      for (const std::size_t need : job.stage->needs) {
        if (jobs_[need].done && !jobs_[need].outcome.passed()) unmade = &jobs_[need];
        ready = ready && jobs_[need].done;
      }
      if (unmade != nullptr && unmade->outcome.state == stage::StageState::unavailable) {
        ASSAY_CHECK(end_unstarted(job, stage::StageState::unavailable, unmade->outcome.detail));
      } else if (unmade != nullptr) {
        ASSAY_CHECK(
            end_unstarted(job, stage::StageState::blocked,
                          fmt::format("{} {}", unmade->stage->name, name(unmade->outcome.state))));
      } else if (seat && ready && may_run_now(job)) {
        ASSAY_CHECK(begin(job));
        seat = has_seat();
      }
    }
    return {};
  }

  // True for stages that count against -j; a server that is up does not.
  static bool is_busy(const Job& job) { return job.run && !job.done; }

  bool has_seat() const {
    const auto busy = static_cast<std::size_t>(std::count_if(jobs_.begin(), jobs_.end(), is_busy));
    return busy < std::max<std::size_t>(1, options_.jobs);
  }

  bool may_run_now(const Job& job) const {
    // Earlier stages with the same files must have ended.
    const std::span<const Job> earlier(jobs_.data(), job.stage->index);
    const bool waits = std::any_of(earlier.begin(), earlier.end(), [&](const Job& other) {
      return !other.done && shares_files(*other.stage, *job.stage);
    });
    return !waits && std::none_of(jobs_.begin(), jobs_.end(), [&](const Job& other) {
      return is_busy(other) && excludes(*other.stage, *job.stage);
    });
  }

  Status begin(Job& job) {
    const plan::Stage& stage = *job.stage;
    if (options_.resume) {
      ASSAY_TRY(const bool kept, keep_earlier(job));
      if (kept) return {};
    }
    const std::string missing = availability_.missing(stage);
    if (!missing.empty()) return end_unstarted(job, stage::StageState::unavailable, missing);
    ASSAY_TRY(job.stored, store_.begin_stage(run_id_, stage));
    job.before = stage::mark_files("", stage.output);
    if (stage.kind == plan::StageKind::train) job.nodes = results::NodeRecords(stage, plan_.model);
    stage::StageCommand command;
    command.argv = stage.argv;
    command.environment = stage.environment;
    command.directory = stage.directory;
    command.log = stage.log;
    if (!stage.hosts.empty()) command = fleet::fleet_command(stage, options_.self, options_.fleet);
    command.guard = &guard_;
    if (stage.expands) expand_names(command.argv, stage.directory);
    command.follows = stage.follows;
    use_own(stage, command);
    Fd input;
    if (!stage.stdin_file.empty()) {
      input = Fd(::open(stage.stdin_file.c_str(), O_RDONLY | O_CLOEXEC));
      if (!input) {
        return end(
            job,
            stage::Outcome{
                stage::StageState::not_started, "cannot read " + stage.stdin_file, {}, 0, 0, {}});
      }
      command.input = input.get();
    }
    stage::Limits limits = options_.limits;
    if (stage.idle_limit > 0 && !options_.own_idle_limit) {
      limits.idle = stage::Seconds(stage.idle_limit);
    }
    auto run =
        stage::StageRun::start(command, limits, [&job](std::string_view line) { job.read(line); });
    if (!run)
      return end(job,
                 stage::Outcome{stage::StageState::not_started, run.error().message, {}, 0, 0, {}});
    job.run = std::make_unique<stage::StageRun>(std::move(*run));
    progress_.started(stage);
    return {};
  }

  // Uses assay's own command if the suite's script does not exist, and sets the environment of a
  // speed record.
  void use_own(const plan::Stage& stage, stage::StageCommand& command) const {
    if (!stage.tells_speed) return;
    std::error_code error;
    const std::string interpreter =
        command.argv.front() == options_.self ? "python" : command.argv.front();
    if (!stage.own_argv.empty() && command.argv.size() > 1 &&
        !std::filesystem::exists(command.argv[1], error)) {
      std::vector<std::string> argv = stage.own_argv;
      argv.insert(argv.end(), command.argv.begin() + 2, command.argv.end());
      command.argv = std::move(argv);
    }
    double seconds = 0;
    std::string commit;
    for (const Job& job : jobs_) {
      const bool needed =
          std::find(stage.needs.begin(), stage.needs.end(), job.stage->index) != stage.needs.end();
      if (needed) seconds += job.outcome.seconds;
      if (job.done && job.stage->name == "framework_commit") {
        commit = trimmed(read_file(job.stage->log).value_or(""));
      }
    }
    for (std::string& entry : speed_environment(stage.directory, interpreter, commit, seconds)) {
      command.environment.push_back(std::move(entry));
    }
  }

  // With --resume: true if the stage passed before and its files are unchanged. Otherwise, and if a
  // stage that it needs was run again, it runs again.
  Result<bool> keep_earlier(Job& job) {
    for (const std::size_t need : job.stage->needs) {
      if (!jobs_[need].kept) return false;
    }
    ASSAY_TRY(const std::optional<stage::FileMarks> made, store_.last_passed(*job.stage));
    if (!made) return false;
    const stage::FileMarks now = stage::mark_files("", job.stage->output);
    for (const auto& [path, mark] : *made) {
      const auto found = now.find(path);
      if (found == now.end() || found->second != mark) return false;
    }
    job.kept = true;
    job.done = true;
    progress_.note(fmt::format("kept from an earlier run: {}", job.stage->name));
    return true;
  }

  Status end_unstarted(Job& job, stage::StageState state, std::string detail) {
    ASSAY_TRY(job.stored, store_.begin_stage(run_id_, *job.stage));
    return end(job, stage::Outcome{state, std::move(detail), {}, 0, 0, {}});
  }

  void wait() {
    std::vector<pollfd> fds{{interrupts_.fd(), POLLIN, 0}};
    stage::Clock::time_point next = stage::Clock::now() + std::chrono::seconds(1);
    for (const Job& job : jobs_) {
      if (!job.run) continue;
      job.run->add_to(fds);
      next = std::min(next, job.run->deadline());
      if (!job.done && job.stage->kind == plan::StageKind::server)
        next = std::min(next, stage::Clock::now() + std::chrono::milliseconds(100));
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(next - stage::Clock::now()).count();
    ::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(0, left)));
    while (interrupts_.next() != 0) {
      for (Job& job : jobs_) {
        if (!job.run) continue;
        if (interrupted_) job.run->kill();  // a second Ctrl-C
        job.run->stop(stage::StageState::interrupted, "the run was ended");
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
      heed(job, outcome);
      if (outcome) {
        const bool was_done = job.done;
        job.run.reset();
        if (!was_done) ASSAY_CHECK(end(job, judged(job, *outcome)));
        continue;
      }
      if (job.stage->kind == plan::StageKind::server) watch_server(job);
      running += (running.empty() ? "" : " | ") + job.progress();
    }
    if (!running.empty()) progress_.tick(running);
    return show();
  }

  // Writes new readings to the store and the page, every kShowEvery.
  Status show() {
    const stage::Clock::time_point now = stage::Clock::now();
    if (now < next_show_) return {};
    next_show_ = now + kShowEvery;
    for (Job& job : jobs_) {
      if (job.run) ASSAY_CHECK(store_readings(job));
    }
    return write_page();
  }

  Status store_readings(Job& job) {
    const std::span<const results::StoredReading> fresh =
        std::span(job.readings).subspan(job.stored_readings);
    ASSAY_CHECK(store_.add_readings(job.stored, {fresh.begin(), fresh.end()}));
    job.stored_readings = job.readings.size();
    return {};
  }

  Status write_page() {
    if (options_.page_path.empty()) return {};
    ASSAY_TRY(const std::string page, results::chain_report(store_, options_.budget.count()));
    return write_file(options_.page_path, page);
  }

  // Reports alarms of a training, and ends the training if the user asked for it. If it has ended
  // already, the alarm makes it fail.
  void heed(Job& job, std::optional<stage::Outcome>& outcome) {
    for (const stage::Finding& found : std::exchange(job.findings, {})) {
      progress_.note(fmt::format("{}: {}: {}", job.stage->name, found.word, found.text));
      const auto& words = options_.stop_on;
      if (std::find(words.begin(), words.end(), found.word) == words.end()) continue;
      job.run->stop(stage::StageState::failed, found.text);
      if (outcome && outcome->passed()) {
        outcome->state = stage::StageState::failed;
        outcome->detail = found.text;
      }
    }
  }

  // A live server counts as up. It is ended when no stage needs it.
  void watch_server(Job& job) {
    if (!job.done && job.run->seconds() >= options_.server_ready.count()) {
      const Status ended =
          end(job, stage::Outcome{stage::StageState::passed, "", {}, job.run->seconds(), 0, {}});
      if (!ended) job.run->stop(stage::StageState::failed, ended.error().message);
    }
    const std::size_t own = job.stage->index;
    const bool needed = std::any_of(jobs_.begin(), jobs_.end(), [&](const Job& other) {
      const auto& needs = other.stage->needs;
      return !other.done && std::find(needs.begin(), needs.end(), own) != needs.end();
    });
    if (job.done && !needed) job.run->stop(stage::StageState::passed, "");
  }

  // Exit code 0 is not enough: the promised files must exist, and the stage must have used the
  // requested device.
  stage::Outcome judged(Job& job, stage::Outcome outcome) {
    const plan::Stage& stage = *job.stage;
    if (!outcome.passed()) {
      if (!job.fleet_word.empty()) outcome.detail = job.fleet_word;
      return outcome;
    }
    if (!stage.output.empty()) {
      job.made = stage::made_between(job.before, stage::mark_files("", stage.output));
      if (job.made.empty()) {
        outcome.state = stage::StageState::not_made;
        outcome.detail = fmt::format("ended with exit code 0 but made no new {}*{}", stage.output,
                                     job.before.empty() ? "" : " (there is an older one)");
      }
    }
    if (stage.same_log_as && outcome.passed()) {
      const std::string difference = difference_of(*jobs_[*stage.same_log_as].stage, stage);
      if (!difference.empty()) {
        outcome.state = stage::StageState::failed;
        outcome.detail = difference;
      }
    }
    if (outcome.passed()) {
      const std::string complaint = complaint_of(job, outcome);
      if (!complaint.empty()) {
        outcome.state = stage::StageState::wrong_device;
        outcome.detail = complaint;
      }
    }
    return outcome;
  }

  // Returns why the device of a training or inference is wrong, or "".
  std::string complaint_of(const Job& job, const stage::Outcome& outcome) const {
    const plan::Stage& stage = *job.stage;
    const std::size_t gpus = nvml_gpu_names().size();
    if (stage.kind == plan::StageKind::infer) {
      return stage::device_complaint(facts_of(job, outcome), gpus);
    }
    const bool on_gpu = stage.kind == plan::StageKind::train && !stage.on_cpu &&
                        stage.hosts.empty() && stage.device.starts_with("gpu");
    return on_gpu && gpus > 0 ? stage::unseen_complaint(outcome.peak, outcome.looks) : "";
  }

  stage::InferenceFacts facts_of(const Job& job, const stage::Outcome& outcome) const {
    stage::InferenceFacts facts;
    facts.model = plan_.model;
    facts.asked_device = job.stage->asks_for_gpu ? "gpu" : "cpu";
    facts.total_seconds = outcome.seconds;
    facts.looks = outcome.looks;
    facts.peak = outcome.peak;
    facts.printed = job.autolog;
    facts.batch_size = named_value(job.stage->name, "batchsize_");
    facts.precision = named_value(job.stage->name, "precision_");
    return facts;
  }

  Status end(Job& job, stage::Outcome outcome) {
    job.outcome = std::move(outcome);
    job.done = true;
    progress_.finished(*job.stage, job.outcome);
    ASSAY_CHECK(store_.finish_stage(job.stored, job.outcome, job.made));
    ASSAY_CHECK(store_readings(job));
    ASSAY_CHECK(store_.add_autolog(job.stored, job.autolog));
    if (job.stage->kind == plan::StageKind::train) ASSAY_CHECK(add_nodes(job));
    if (job.stage->kind == plan::StageKind::infer && job.outcome.log_bytes > 0) {
      ASSAY_CHECK(write_file(job.stage->log + ".autolog",
                             stage::write_autolog(facts_of(job, job.outcome))));
    }
    if (job.outcome.state == stage::StageState::unavailable) return {};
    const std::string line = plan::status_line(plan_, *job.stage, job.outcome.passed()) + "\n";
    return write_all(results_.get(), std::as_bytes(std::span(line)));
  }

  Status add_nodes(const Job& job) {
    for (const results::NodeRecord& node : job.nodes.finish(name(job.outcome.state))) {
      ASSAY_CHECK(store_.add_node(job.stored, node));
    }
    return {};
  }

  const plan::Plan& plan_;
  const RunOptions& options_;
  stage::Guard guard_;
  results::ChainStore store_;
  Fd results_;
  Progress progress_;
  Interrupts interrupts_;
  stage::Availability availability_;
  std::vector<Job> jobs_;
  std::int64_t run_id_ = 0;
  stage::Clock::time_point next_show_;
  bool interrupted_ = false;
};

}  // namespace

bool RunResult::all_passed() const {
  return std::all_of(stages.begin(), stages.end(),
                     [](const StageResult& stage) { return stage.outcome.passed(); });
}

Result<RunResult> run_plan(const plan::Plan& plan, const RunOptions& options) {
  const std::filesystem::path store = options.store_path.empty()
                                          ? std::filesystem::path(plan.folder) / "chain.db"
                                          : std::filesystem::path(options.store_path);
  std::error_code error;
  std::filesystem::create_directories(plan.folder, error);
  if (error) return fail(fmt::format("cannot create {}: {}", plan.folder, error.message()));
  for (const auto& [path, text] : plan.files) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    ASSAY_CHECK(write_file(path, text));
  }
  for (const plan::Stage& stage : plan.stages) {
    const std::filesystem::path folder = std::filesystem::path(stage.follows).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, error);
  }
  ASSAY_TRY(stage::Guard guard, stage::Guard::start());
  ASSAY_TRY(results::ChainStore opened, results::ChainStore::open(store, OpenMode::create));
  ASSAY_TRY(Fd results, open_for_append(plan.results_log));
  return Runner(plan, options, std::move(guard), std::move(opened), std::move(results)).run();
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
