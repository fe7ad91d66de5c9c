#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/atomic_file.h"
#include "base/process.h"
#include "base/text.h"
#include "chain/run/inputs.h"
#include "chain/run/job.h"
#include "chain/run/speed_environment.h"
#include "chain/run/stage_loop.h"
#include "chain/run/verdict.h"
#include "chain/script/call_server.h"
#include "chain/script/recognise.h"
#include "chain/script/shim_folder.h"
#include "chain/shim/call.h"
#include "chain/stage/leftovers.h"
#include "chain/stage/stage_run.h"

namespace assay::chain::run {
namespace {

// A command of the script, and the shim that waits for it.
class Caller : public stage::OutputCopy {
 public:
  explicit Caller(std::unique_ptr<script::CallLine> line) : line_(std::move(line)) {}
  bool ready() const override { return line_->ready() || line_->gone(); }
  void take(bool of_errors, std::string_view bytes) override {
    line_->send(of_errors ? shim::Answer::errors : shim::Answer::output, bytes);
  }
  // Tells the shim the command's end.
  void end(int code) {
    line_->send(shim::Answer::exit, std::to_string(code));
    ended_ = true;
  }
  bool ended() const { return ended_; }
  script::CallLine& line() { return *line_; }

  Job* job = nullptr;  // null until the call is complete

 private:
  std::unique_ptr<script::CallLine> line_;
  bool ended_ = false;
};

namespace fs = std::filesystem;
using stage::StageState;

int code_of(const ExitStatus& status) {
  constexpr int kSignalBase = 128;
  return status.signal != 0 ? kSignalBase + status.signal : status.code;
}

// A status line of a suite's script about a command that failed.
bool tells_failure(std::string_view line) {
  return line.find("Run failed with command") != std::string_view::npos ||
         line.ends_with(", FAIL") || line.ends_with(", FAIL\033[0m");
}

class ScriptRunner {
 public:
  ScriptRunner(const script::Script& script, const plan::Plan& plan, const RunOptions& options,
               script::ShimFolder folder, script::CallServer server, stage::Guard guard,
               Ledger ledger)
      : script_(script),
        plan_(plan),
        options_(options),
        folder_(std::move(folder)),
        server_(std::move(server)),
        loop_(plan, options, std::move(guard), std::move(ledger)),
        jobs_(loop_.jobs()),
        recogniser_(script.params) {
    for (const plan::Stage& stage : plan.stages) wanted_.insert(stage.name);
  }

  Result<RunResult> run() {
    project_ = fs::current_path();
    results_ = script_.results.empty() ? "" : fs::path(script_.results).lexically_normal().string();
    ASSAY_CHECK(write_file(plan_.folder + "/started", ""));
    for (const auto& [path, mark] : stage::mark_files("", plan_.folder + "/started")) {
      started_ns_ = mark.changed_ns;  // by the clock of the disk that the files are on
    }
    ASSAY_CHECK(start_script());
    while (bash_ || std::ranges::any_of(callers_, [](const auto& one) { return !one->ended(); })) {
      wait();
      ASSAY_CHECK(take_calls());
      ASSAY_CHECK(collect());
      watch_script();
    }
    ASSAY_CHECK(judge_mode());
    return loop_.finish();
  }

 private:
  Status start_script() {
    stage::StageCommand command;
    std::string script = script_.path;
    if (script_.standard) {
      ASSAY_TRY(script, folder_.add_standard());
    }
    command.argv = {"bash", script};
    if (!options_.prepare.empty()) {
      constexpr const char* kBoth = R"(bash "$1" "$3" "$4" || exit; shift; exec bash "$@")";
      command.argv = {"bash", "-c", kBoth, "bash", options_.prepare, script};
    }
    std::string file = options_.params_path;
    if (script_.changed) {
      file = (folder_.path() / fs::path(file).filename()).string();
      ASSAY_CHECK(write_file(file, script_.params));
    }
    if (!script_.launches) command.argv.push_back(file);
    command.argv.insert(command.argv.end(), script_.arguments.begin(), script_.arguments.end());
    const char* path = std::getenv("PATH");
    const std::string own_path = path == nullptr ? "" : path;
    command.environment = {
        fmt::format("PATH={}:{}", folder_.programs().string(), own_path),
        fmt::format("{}={}", shim::kPathVariable, own_path),
        fmt::format("{}={}", shim::kSocketVariable, (folder_.path() / "socket").string())};
    if (!script_.python.empty()) {
      command.environment.push_back(fmt::format("{}={}", shim::kPythonVariable, script_.python));
    }
    if (script_.launches) {
      ASSAY_TRY(std::string benchmark, folder_.add_benchmark());
      if (!benchmark.empty()) command.environment.push_back(std::move(benchmark));
    }
    SpawnOptions spawn;
    spawn.environment = command.environment;
    for (std::string& entry : environment_of(spawn)) given_.insert(std::move(entry));
    command.log = plan_.folder + "/script.log";
    command.guard = &loop_.guard();
    ASSAY_TRY(stage::StageRun started,
              stage::StageRun::start(command, {}, [this](std::string_view line) {
                if (tells_failure(line) && told_failure_.empty()) told_failure_ = line;
              }));
    bash_ = std::make_unique<stage::StageRun>(std::move(started));
    last_event_ = stage::Clock::now();
    return {};
  }

  void wait() {
    std::vector<pollfd> fds{{server_.fd(), POLLIN, 0}};
    for (const auto& caller : callers_) caller->line().add_to(fds);
    loop_.wait(std::move(fds), bash_.get());
  }

  Status take_calls() {
    while (auto line = server_.accept()) {
      callers_.push_back(std::make_unique<Caller>(std::move(line)));
    }
    for (const auto& caller : callers_) {
      if (auto call = caller->line().receive()) {
        ASSAY_CHECK(begin(*caller, *call));
        last_event_ = stage::Clock::now();
      }
      caller->line().flush();
      if (!caller->line().gone() || caller->ended()) continue;
      // The script has ended its command, or `timeout` has.
      if (caller->job == nullptr || !caller->job->run) {
        caller->end(0);
      } else if (!caller->job->by_script) {
        caller->job->by_script = true;
        const bool serves = caller->job->stage->kind == plan::StageKind::server;
        caller->job->run->stop(serves ? StageState::passed : StageState::failed,
                               serves ? "" : "the script ended it");
      }
    }
    std::erase_if(callers_, [](const auto& one) {
      return one->ended() && (one->line().empty() || one->line().gone());
    });
    return {};
  }

  std::string relative(const std::string& path) const {
    const fs::path below = fs::path(path).lexically_relative(project_);
    return below == "." ? "" : below.string();
  }

  plan::Stage stage_of(const shim::Call& call) {
    script::Command command;
    command.argv = call.argv;
    command.environment = script::set_by_script(call.environment, given_);
    std::erase_if(command.environment, stage::is_mark);
    command.folder = relative(call.folder);
    command.outputs = shim::outputs_of(call.argv);
    plan::Stage stage = recogniser_.take(command);
    if (shim::is_python(stage.argv.front()) && !script_.python.empty()) {
      stage.argv.front() = script_.python;
    }
    stage.log = fmt::format("{}/{}.log", plan_.folder, stage.name);
    stage.needs_device = options_.device;
    return stage;
  }

  stage::StageCommand command_of(const plan::Stage& stage, const shim::Call& call) {
    stage::StageCommand command;
    command.argv = stage.argv;
    for (const std::string& entry : call.environment) {
      if (!entry.starts_with("PATH=") && !entry.starts_with("ASSAY_SHIM_")) {
        command.environment.push_back(entry);
      } else if (entry.starts_with("PATH=")) {
        command.environment.push_back("PATH=" + without_shims(entry.substr(5)));
      }
    }
    command.whole_environment = true;
    command.directory = call.folder;
    command.log = stage.log;
    command.errors_apart = call.output != call.errors;
    use_own_record(stage, command);
    if (!stage.hosts.empty()) {
      command = fleet::fleet_command(stage, options_.self, options_.fleet);
    }
    return command;
  }

  std::string without_shims(const std::string& path) const {
    std::string kept;
    for (const std::string& folder : split_at(path, ':')) {
      if (folder != folder_.programs()) kept += (kept.empty() ? "" : ":") + folder;
    }
    return kept;
  }

  // Where the benchmark repository is missing, assay makes the record of its analysis.py itself.
  void use_own_record(const plan::Stage& stage, stage::StageCommand& command) const {
    std::error_code error;
    if (command.argv.size() < 2 || !command.argv[1].ends_with("/scripts/analysis.py") ||
        fs::exists(command.argv[1], error)) {
      return;
    }
    double seconds = 0;
    for (const Job& job : jobs_) {
      if (job.stage->kind == plan::StageKind::train) seconds = job.outcome.seconds;
    }
    for (std::string& entry :
         speed_environment(stage.directory, command.argv.front(), "", seconds)) {
      command.environment.push_back(std::move(entry));
    }
    std::vector<std::string> argv{options_.self, "chain", "speed"};
    argv.insert(argv.end(), command.argv.begin() + 2, command.argv.end());
    command.argv = std::move(argv);
  }

  // Answers a call: starts its stage, or tells the script at once why not.
  Status begin(Caller& caller, const shim::Call& call) {
    stages_.push_back(stage_of(call));
    const plan::Stage& stage = stages_.back();
    jobs_.emplace_back();
    Job& job = jobs_.back();
    job.stage = &stage;
    caller.job = &job;
    stage::StageCommand command = command_of(stage, call);
    command.copy = &caller;
    constexpr int kRefused = 1;
    const auto refuse = [&](StageState state, std::string why) -> Status {
      caller.take(true, fmt::format("assay: {}\n", why));
      caller.end(kRefused);
      return loop_.ledger().end_unstarted(job, state, std::move(why));
    };
    if (loop_.interrupted()) return refuse(StageState::interrupted, "the run was ended");
    if (!wanted_.contains(stage.name) && options_.filtered) {
      stages_.pop_back();
      jobs_.pop_back();
      caller.job = nullptr;
      caller.end(0);
      return {};
    }
    if (std::string why = unmade_input(jobs_, job); !why.empty()) {
      return refuse(StageState::blocked, std::move(why));
    }
    if (std::string why = stale_input(jobs_, job, results_, started_ns_); !why.empty()) {
      return refuse(StageState::stale, std::move(why));
    }
    command.input = caller.line().input().get();
    const bool same_inputs = std::ranges::all_of(jobs_, [&](const Job& other) {
      return &other == &job || other.kept || !reads(job, *other.stage);
    });
    ASSAY_CHECK(loop_.begin(job, std::move(command), same_inputs));
    if (job.run) return {};
    constexpr int kNotFound = 127;
    const bool missing = job.outcome.state == StageState::unavailable;
    if (job.kept) {
      caller.take(false, read_file(stage.log).value_or(""));
    } else {
      caller.take(true, fmt::format("assay: {}\n", job.outcome.detail));
    }
    caller.end(job.kept ? 0 : missing ? kRefused : kNotFound);
    return {};
  }

  Status collect() {
    return loop_.collect(
        // Judges the files before the script goes on, since its next command may change them.
        [this](Job& job, stage::Outcome outcome) { return settled(job, std::move(outcome)); },
        [this](const Job& job, const ExitStatus& exit) {
          for (const auto& caller : callers_) {
            if (caller->job == &job) caller->end(code_of(exit));
          }
          last_event_ = stage::Clock::now();
        });
  }

  stage::Outcome settled(Job& job, stage::Outcome outcome) {
    if (job.stage->kind != plan::StageKind::server) {
      return judged(job, std::move(outcome), options_.lenient);
    }
    const bool was_asked = std::ranges::any_of(jobs_, [&](const Job& other) {
      return other.stage->kind == plan::StageKind::infer &&
             (other.run || (other.done && other.ended > job.started));
    });
    if (!job.by_script && !was_asked && outcome.state != StageState::interrupted) {
      const std::string& error = job.evidence.last_error();
      outcome.state = StageState::failed;
      outcome.detail = "the server ended before anything asked it: " + outcome.exit.describe() +
                       (error.empty() ? "" : ": " + error);
      return outcome;
    }
    outcome.state = outcome.state == StageState::interrupted ? outcome.state : StageState::passed;
    outcome.detail.clear();
    return outcome;
  }

  // Ends what the script leaves behind, and a script that hangs without a command.
  void watch_script() {
    const bool works = std::ranges::any_of(jobs_, [](const Job& job) { return bool(job.run); });
    if (bash_) {
      const double idle = options_.limits.idle.count();
      const double waited = stage::Seconds(stage::Clock::now() - last_event_).count();
      if (!works && idle > 0 && waited > idle) {
        bash_->stop(StageState::silent, fmt::format("started nothing for {:g} s", idle));
      }
      if (auto outcome = bash_->tick()) {
        script_outcome_ = *outcome;
        bash_.reset();
      }
      return;
    }
    for (const auto& caller : callers_) {
      if (caller->job == nullptr && !caller->ended()) caller->end(0);
    }
    for (Job& job : jobs_) {
      if (job.run && job.stage->kind == plan::StageKind::server && !job.by_script) {
        job.by_script = true;
        job.run->stop(StageState::passed, "");
      }
    }
  }

  // The script itself as the last stage, if it hung, told of a failure that no stage had, or ran
  // less than its mode promises.
  Status judge_mode() {
    const auto ran = [&](plan::StageKind kind) {
      return std::ranges::any_of(jobs_, [&](const Job& job) { return job.stage->kind == kind; });
    };
    std::string why;
    StageState state = StageState::failed;
    const bool all_passed =
        std::ranges::all_of(jobs_, [](const Job& job) { return job.outcome.passed(); });
    if (script_outcome_.state == StageState::silent) {
      state = StageState::silent;
      why = script_outcome_.detail;
    } else if (loop_.interrupted() || options_.filtered) {
      return {};
    } else if (jobs_.empty()) {
      why = fmt::format("the script started no command in mode {}", script_.mode);
    } else if (script_.mode.find("train") != std::string::npos && !ran(plan::StageKind::train)) {
      why = fmt::format("mode {} promises a training, and the script started none", script_.mode);
    } else if (script_.mode.find("infer") != std::string::npos && !ran(plan::StageKind::infer)) {
      why = fmt::format("mode {} promises an inference, and the script started none", script_.mode);
    } else if (all_passed && !told_failure_.empty() && !options_.lenient) {
      why = "the script says: " + one_line(told_failure_);
    }
    if (why.empty()) return {};
    plan::Stage own;
    own.index = jobs_.size();
    own.name = "script";
    own.kind = plan::StageKind::prepare;
    own.argv = {"bash", script_.path};
    own.command = shell_line(own.argv);
    own.log = plan_.folder + "/script.log";
    stages_.push_back(std::move(own));
    jobs_.emplace_back();
    jobs_.back().stage = &stages_.back();
    return loop_.ledger().end_unstarted(jobs_.back(), state,
                                        why + " (log: " + stages_.back().log + ")");
  }

  const script::Script& script_;
  const plan::Plan& plan_;
  const RunOptions& options_;
  script::ShimFolder folder_;
  script::CallServer server_;
  StageLoop loop_;
  std::deque<Job>& jobs_;
  script::Recogniser recogniser_;
  fs::path project_;
  std::string results_;  // folder of the script's results
  std::int64_t started_ns_ = 0;
  std::set<std::string> given_;   // the environment that the script was started with
  std::set<std::string> wanted_;  // names of the stages that -k keeps
  std::unique_ptr<stage::StageRun> bash_;
  stage::Outcome script_outcome_;
  std::string told_failure_;
  std::deque<plan::Stage> stages_;
  std::vector<std::unique_ptr<Caller>> callers_;
  stage::Clock::time_point last_event_;
};

}  // namespace

Result<RunResult> run_script(const script::Script& script, const plan::Plan& plan,
                             const RunOptions& options) {
  // Before a second thread exists.
  ASSAY_TRY(stage::Guard guard, stage::Guard::start());
  ASSAY_TRY(script::ShimFolder folder, script::ShimFolder::create(options.shim));
  for (const std::string& program : script.programs) {
    if (program.find('/') == std::string::npos) folder.add(program);
  }
  ASSAY_TRY(script::CallServer server, script::CallServer::open(folder.path() / "socket"));
  ASSAY_TRY(Ledger ledger, Ledger::open(plan, options));
  return ScriptRunner(script, plan, options, std::move(folder), std::move(server), std::move(guard),
                      std::move(ledger))
      .run();
}

}  // namespace assay::chain::run
