#include "chain/run/ledger.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/system_memory.h"
#include "chain/results/compare.h"
#include "chain/results/report_html.h"
#include "chain/run/verdict.h"

namespace assay::chain::run {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kShowEvery{2};  // writes readings to the store and the page

Result<Fd> lock_folder(const std::string& folder, const std::string& suffix) {
  const std::string path = folder + "/.assay-lock" + suffix;
  ASSAY_TRY(Fd lock, open_output(path, O_RDWR));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return usage_error(
        fmt::format("another run uses {}: wait for it, or run in a copy of the project", folder));
  }
  return lock;
}

// Two params files of one model write to the same folder.
Status check_owner(results::ChainStore& store, const std::string& file, const fs::path& path) {
  ASSAY_TRY(const std::vector<results::StoredRun> runs, store.runs());
  if (runs.empty() || runs.back().file == file) return {};
  return usage_error(fmt::format(
      "{} has the results of {}: remove its folder, or give --output-root a folder of its own",
      path.string(), runs.back().file));
}

}  // namespace

Ledger::Ledger(const plan::Plan& plan, const RunOptions& options, results::ChainStore store)
    : plan_(&plan),
      options_(&options),
      store_(std::move(store)),
      progress_(std::make_unique<Progress>(options.progress, options.live, plan.stages.size())) {}

Result<Ledger> Ledger::open(const plan::Plan& plan, const RunOptions& options) {
  const fs::path path = options.store_path.empty() ? fs::path(plan.folder) / "chain.db"
                                                   : fs::path(options.store_path);
  const std::string& shared = options.results.empty() ? plan.folder : options.results;
  for (const std::string& folder : {plan.folder, shared}) {
    ASSAY_CHECK(make_folder(folder));
  }
  ASSAY_TRY(Fd lock, lock_folder(shared, options.rank_suffix));
  ASSAY_TRY(results::ChainStore store, results::ChainStore::open(path, OpenMode::create));
  if (options.store_path.empty()) ASSAY_CHECK(check_owner(store, options.params_path, path));
  Ledger ledger(plan, options, std::move(store));
  ledger.lock_ = std::move(lock);
  ASSAY_TRY(ledger.run_, ledger.store_.begin_run(plan, options.params_path));
  return ledger;
}

Result<bool> Ledger::keep_earlier(Job& job) {
  ASSAY_TRY(const std::optional<stage::FileMarks> made,
            store_.last_passed(*job.stage, job.identity));
  if (!made) return false;
  const stage::FileMarks now = stage::mark_files("", job.stage->output);
  for (const auto& [path, mark] : *made) {
    const auto found = now.find(path);
    if (found == now.end() || found->second != mark) return false;
  }
  job.kept = true;
  job.done = true;
  job.made = *made;
  progress().note(fmt::format("kept from an earlier run: {}", job.stage->name));
  return true;
}

Status Ledger::begin(Job& job) {
  ASSAY_TRY(job.stored, store_.begin_stage(run_, *job.stage, job.identity));
  job.before = stage::mark_files("", job.stage->output);
  job.memory_kills = memory_kills();
  job.started = stage::Clock::now();
  if (job.stage->kind == plan::StageKind::train) {
    job.nodes = results::NodeRecords(*job.stage, plan_->model);
  }
  return {};
}

Status Ledger::end_unstarted(Job& job, stage::StageState state, std::string detail) {
  ASSAY_TRY(job.stored, store_.begin_stage(run_, *job.stage, job.identity));
  return end(job, stage::Outcome{state, std::move(detail), {}, 0, 0, {}});
}

Status Ledger::end(Job& job, stage::Outcome outcome) {
  job.outcome = std::move(outcome);
  job.done = true;
  job.ended = stage::Clock::now();
  progress().finished(*job.stage, job.outcome);
  ASSAY_CHECK(store_.finish_stage(job.stored, job.outcome, job.made));
  if (job.stage->kind == plan::StageKind::infer && job.outcome.passed()) {
    const std::string log = read_file(job.stage->log).value_or("");
    for (const auto& [image, numbers] : results::predictions_in(log)) {
      for (const double number : numbers) job.keep(std::string(results::kPrediction), number);
    }
  }
  ASSAY_CHECK(store_readings(job));
  ASSAY_CHECK(store_.add_autolog(job.stored, job.autolog));
  if (job.stage->kind == plan::StageKind::train) {
    if (job.outcome.passed()) name_blind_alarms(job);
    for (const results::NodeRecord& node : job.nodes.finish(name(job.outcome.state))) {
      ASSAY_CHECK(store_.add_node(job.stored, node));
    }
  }
  if (job.stage->kind == plan::StageKind::infer && job.outcome.log_bytes > 0) {
    ASSAY_CHECK(write_file(job.stage->log + ".autolog",
                           stage::write_autolog(facts_of(job, job.outcome, plan_->model))));
  }
  return {};
}

void Ledger::name_blind_alarms(const Job& job) {
  for (const stage::Alarm& alarm : stage::alarms()) {
    const std::size_t readings = job.monitor.readings_of(alarm);
    const bool wanted = std::ranges::find(options_->stop_on, alarm.word) != options_->stop_on.end();
    if (!wanted || readings >= alarm.needs) continue;
    progress().note(fmt::format("{}: --stop-on {} needs {} readings, and the log has {}",
                                job.stage->name, alarm.word, alarm.needs, readings));
  }
}

void Ledger::heed(Job& job, std::optional<stage::Outcome>& outcome) {
  for (const stage::Finding& found : std::exchange(job.findings, {})) {
    progress().note(fmt::format("{}: {}: {}", job.stage->name, found.word, found.text));
    if (found.word == "nan") {
      progress().note(fmt::format("{}: which operator? assay capture --summaries --judge -- {}",
                                  job.stage->name, job.stage->command));
    }
    if (std::ranges::find(options_->stop_on, found.word) == options_->stop_on.end()) continue;
    job.run->stop(stage::StageState::failed, found.text);
    if (outcome && outcome->passed()) {
      outcome->state = stage::StageState::failed;
      outcome->detail = found.text;
    }
  }
}

Status Ledger::show(std::deque<Job>& jobs) {
  const stage::Clock::time_point now = stage::Clock::now();
  if (now < next_show_) return {};
  next_show_ = now + kShowEvery;
  for (Job& job : jobs) {
    if (job.run) ASSAY_CHECK(store_readings(job));
  }
  return write_page();
}

Result<RunResult> Ledger::finish(const std::deque<Job>& jobs, bool interrupted, double seconds) {
  RunResult result;
  for (const Job& job : jobs) {
    result.stages.push_back({job.stage->name, job.stage->kind, job.outcome, job.kept});
  }
  result.seconds = seconds;
  result.interrupted = interrupted;
  constexpr int kInterrupted = 130;
  ASSAY_CHECK(store_.finish_run(run_, interrupted ? kInterrupted : result.all_passed() ? 0 : 1));
  ASSAY_CHECK(write_page());
  return result;
}

Status Ledger::store_readings(Job& job) {
  const std::span<const results::StoredReading> fresh =
      std::span(job.readings).subspan(job.stored_readings);
  ASSAY_CHECK(store_.add_readings(job.stored, {fresh.begin(), fresh.end()}));
  job.stored_readings = job.readings.size();
  return {};
}

Status Ledger::write_page() {
  if (options_->page_path.empty()) return {};
  ASSAY_TRY(const std::string page, results::chain_report(store_, options_->budget.count()));
  return write_file(options_->page_path, page);
}

}  // namespace assay::chain::run
