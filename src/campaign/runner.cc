#include "campaign/runner.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/interrupts.h"
#include "base/text.h"
#include "campaign/pid_file.h"
#include "campaign/queue.h"
#include "campaign/remote.h"
#include "campaign/units.h"
#include "chain/stage/stage_run.h"

namespace assay::campaign {
namespace {

namespace fs = std::filesystem;
namespace stage = chain::stage;
using stage::Clock;
using stage::Seconds;

constexpr double kGrace = 5;  // seconds that a model has to end its stages; chain run gives them 3
constexpr double kToStart = 60;  // seconds until a host must have said something

// The log of a campaign, which is shown, too. A round writes to it as it is: `assay api` prints
// printable() text.
class Log : public stage::OutputCopy {
 public:
  explicit Log(fs::path file) : file_(std::move(file)) {}
  bool ready() const override { return true; }
  void take(bool /*of_errors*/, std::string_view bytes) override {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    std::fflush(stdout);
    (void)append_to_log(file_, bytes);
  }
  void say(std::string_view text) { take(false, printable(text)); }

 private:
  fs::path file_;
};

// A unit that runs on a seat.
struct Active {
  std::size_t unit = 0;
  std::unique_ptr<stage::StageRun> run;
  Fd lifeline;               // its stdin
  Clock::time_point heard;   // of its host
  bool began = false;        // the host has said something
  std::optional<int> ended;  // exit code of the model
  std::vector<StageEnd> stages;
  std::string last_line;
};

class Runner {
 public:
  Runner(const Campaign& campaign, Units& units, Log& log)
      : campaign_(campaign), units_(units), log_(log), active_(campaign.seats.size()) {}

  Result<int> run(const std::function<void()>& started) {
    ASSAY_CHECK(prepare());
    for (bool first = true; !queue_->done(); first = false) {
      for (std::size_t seat = 0; seat < active_.size(); ++seat) ASSAY_CHECK(fill(seat));
      if (first && started) started();
      wait();
      for (std::size_t seat = 0; seat < active_.size(); ++seat) {
        if (active_[seat].run) ASSAY_CHECK(watch(seat));
      }
    }
    return units_.finish(std::move(ends_), interrupted_.has_value());
  }

 private:
  double now() const { return Seconds(Clock::now() - start_).count(); }

  Status prepare() {
    for (const Seat& seat : campaign_.seats) {
      const auto found = std::ranges::find(hosts_, seat.host);
      host_of_.push_back(static_cast<std::size_t>(found - hosts_.begin()));
      if (found == hosts_.end()) hosts_.push_back(seat.host);
    }
    QueuePolicy policy;
    policy.retries = campaign_.retries;
    policy.hold = campaign_.limits.lost + kRemoteGrace;
    queue_.emplace(std::vector<QueuedUnit>(), host_of_, policy);
    if (units_.has_lifeline()) {
      ASSAY_TRY(stage::Guard guard, stage::Guard::start());
      guard_.emplace(std::move(guard));
    }
    interrupts_.emplace();
    ASSAY_TRY(std::vector<Unit> units, units_.first());
    add(std::move(units));
    return {};
  }

  void add(std::vector<Unit> units) {
    for (Unit& unit : units) {
      UnitEnd& end = ends_.emplace_back();
      end.key = std::move(unit.key);
      end.log = unit.log.string();
      queue_->add(std::move(unit.queued));
    }
  }

  // Starts a unit on an idle seat.
  Status fill(std::size_t seat_number) {
    const auto unit = queue_->lease(seat_number, now());
    if (!unit) return {};
    Active& active = active_[seat_number];
    active = {};
    active.unit = *unit;
    active.heard = Clock::now();
    stage::StageCommand command;
    ASSAY_TRY(command.argv, units_.start(*unit, campaign_.seats[seat_number]));
    stage::Limits limits;
    Fd input;
    ASSAY_CHECK(units_.has_lifeline() ? supervise(active, command, limits, input)
                                      : leave_alone(command, limits));
    auto run = stage::StageRun::start(
        command, limits, [&active](std::string_view line) { take_line(active, line); });
    if (!run) return tl::unexpected<Error>(run.error());
    active.run = std::make_unique<stage::StageRun>(std::move(*run));
    return {};
  }

  Status supervise(Active& active, stage::StageCommand& command, stage::Limits& limits, Fd& input) {
    const fs::path log = campaign_.log_dir / ends_[active.unit].log;
    ASSAY_CHECK(make_folder(log.parent_path()));
    ASSAY_TRY(FdPair pipe, make_pipe());
    ASSAY_CHECK(set_nonblocking(pipe.second.get()));
    input = std::move(pipe.first);
    active.lifeline = std::move(pipe.second);
    command.log = log.string();
    command.guard = &*guard_;
    command.input = input.get();
    limits.stage = Seconds(campaign_.limits.model);
    limits.grace = Seconds(kGrace);
    return {};
  }

  // A round ends by itself what it has started, but for interpreters that it keeps.
  Status leave_alone(stage::StageCommand& command, stage::Limits& limits) {
    for (const auto& [name, value] : campaign_.environment) {
      command.environment.push_back(fmt::format("{}={}", name, value));
    }
    command.log = "/dev/null";
    command.copy = &log_;
    command.leaves_processes = true;
    limits.drain = Seconds(0);
    return {};
  }

  static void take_line(Active& active, std::string_view line) {
    active.heard = Clock::now();
    const RemoteWord word = read_remote_line(line);
    active.began = active.began || word.is_word;
    if (word.ended) active.ended = word.ended;
    if (word.is_word) return;
    if (auto stages = read_model_line(line)) {
      active.stages = std::move(*stages);
    } else {
      active.last_line = line;
    }
  }

  void wait() {
    std::vector<pollfd> fds{{interrupts_->fd(), POLLIN, 0}};
    Clock::time_point next = Clock::now() + std::chrono::seconds(1);
    for (const Active& active : active_) {
      if (!active.run) continue;
      active.run->add_to(fds);
      next = std::min(next, active.run->deadline());
    }
    double seconds = Seconds(next - Clock::now()).count();
    seconds = std::max(0.0, std::min(seconds, queue_->next_time(now()) - now()));
    ::poll(fds.data(), fds.size(), static_cast<int>(std::ceil(seconds * 1000)));
    while (const int signal = interrupts_->next()) interrupt(signal);
  }

  void interrupt(int signal) {
    queue_->stop();
    for (Active& active : active_) {
      if (!active.run) continue;
      if (!units_.has_lifeline()) active.run->signal(signal);
      if (units_.has_lifeline() && interrupted_) active.run->kill();  // a second Ctrl-C
      active.lifeline.reset();  // a run cleans up by itself when its stdin closes
    }
    interrupted_ = interrupted_ ? interrupted_ : Clock::now();
  }

  // Ends a host's run that says nothing, and takes the end of a run.
  Status watch(std::size_t seat_number) {
    Active& active = active_[seat_number];
    if (units_.has_lifeline()) watch_host(active, campaign_.seats[seat_number]);
    const auto outcome = active.run->tick();
    if (!outcome) return {};
    active.run.reset();
    return settle(seat_number, *outcome);
  }

  void watch_host(Active& active, const Seat& seat) const {
    if (active.lifeline) (void)!::write(active.lifeline.get(), "\n", 1);
    const double silence = Seconds(Clock::now() - active.heard).count();
    // A job of Slurm may wait for its machine for hours.
    const bool queued = !active.began && seat.host.starts_with("slurm ");
    const double most = active.began ? campaign_.limits.lost : kToStart + campaign_.limits.lost;
    if (!queued && silence > most) {
      active.run->stop(stage::StageState::silent, fmt::format("heard nothing for {:.0f} s", most));
    }
    if (interrupted_ && Clock::now() - *interrupted_ > Seconds(kRemoteGrace + 1)) {
      active.run->stop(stage::StageState::interrupted, "");
    }
  }

  Status settle(std::size_t seat_number, const stage::Outcome& outcome) {
    Active& active = active_[seat_number];
    UnitEnd& end = ends_[active.unit];
    end.host = campaign_.seats[seat_number].host;
    end.seconds = outcome.seconds;
    end.exit = outcome.exit;
    end.stages = std::move(active.stages);
    end.detail = why_of(end.stages, active.last_line);
    const Queue::End how = how_of(active, outcome, end);
    queue_->end(seat_number, how, now());
    end.tries = queue_->tries(active.unit);
    const Queue::State state = queue_->state(active.unit);
    if (state == Queue::State::lost) end.state = "lost";
    if (state == Queue::State::waiting) {
      if (how == Queue::End::failed) say(fmt::format("again  {}: {}", end.key, end.detail));
      end.state = "not_run";
      tell_given_up(seat_number);
    }
    if (end.passed()) end.detail.clear();
    ASSAY_TRY(std::vector<Unit> more, units_.end(end));
    add(std::move(more));
    return {};
  }

  // How the run ended for the queue; sets the state of `end`, and the detail.
  Queue::End how_of(const Active& active, const stage::Outcome& outcome, UnitEnd& end) const {
    if (interrupted_) return Queue::End::stopped;
    if (!units_.has_lifeline()) {
      end.state = "ended";
      return Queue::End::passed;
    }
    if (outcome.state == stage::StageState::timed_out) {
      end.state = "timed_out";
      end.detail = outcome.detail;
      return Queue::End::failed;
    }
    if (active.ended) {
      end.state = state_of(*active.ended);
      return end.passed() ? Queue::End::passed : Queue::End::failed;
    }
    const std::string why =
        outcome.state == stage::StageState::silent ? outcome.detail : outcome.exit.describe();
    end.detail = fmt::format("{}: {}{}{}", end.host, why, active.last_line.empty() ? "" : ": ",
                             active.last_line);
    say(fmt::format("{} {}: {}", active.began ? "lost" : "not reached", end.key, end.detail));
    return active.began ? Queue::End::lost : Queue::End::missed;
  }

  // The first stage that did not pass, or else the last line.
  static std::string why_of(const std::vector<StageEnd>& stages, const std::string& last_line) {
    const auto bad =
        std::ranges::find_if(stages, [](const StageEnd& stage) { return stage.state != "passed"; });
    if (bad == stages.end()) return last_line;
    return fmt::format("{} {}: {}", bad->name, bad->state, bad->detail);
  }

  static std::string state_of(int code) {
    // Exit codes of `assay chain run`.
    return code == 0 ? "passed" : code == 1 ? "failed" : code == 2 ? "refused" : "trouble";
  }

  void tell_given_up(std::size_t seat_number) {
    const std::size_t host = host_of_[seat_number];
    if (queue_->given_up(host) && !hosts_[host].empty()) {
      say(fmt::format("host {} is given up", std::exchange(hosts_[host], "")));
    }
  }

  void say(const std::string& line) const { log_.say(one_line(line) + "\n"); }

  const Campaign& campaign_;
  Units& units_;
  Log& log_;
  std::optional<stage::Guard> guard_;
  std::optional<Interrupts> interrupts_;
  std::optional<Queue> queue_;
  std::vector<UnitEnd> ends_;         // by unit
  std::vector<Active> active_;        // by seat; never resized: output handlers refer to it
  std::vector<std::string> hosts_;    // "" once its end was told
  std::vector<std::size_t> host_of_;  // by seat
  std::optional<Clock::time_point> interrupted_;
  const Clock::time_point start_ = Clock::now();
};

// Gives a forked child a session of its own and closes the terminal.
void leave_terminal() {
  ::setsid();
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, fd);
  if (nothing > STDERR_FILENO) ::close(nothing);
}

// The child's part of run_in_background. It writes one message to the pipe: "+" when the campaign
// runs, or an error of kind "u" (usage) or "e" (engine).
[[noreturn]] void run_detached(const Campaign& campaign, RunnerOptions& options, Fd pipe) {
  leave_terminal();
  const auto tell = [&](std::string_view text) {
    if (pipe) (void)write_all(pipe.get(), std::as_bytes(std::span(text)));
    pipe.reset();
  };
  options.started = [&] { tell("+"); };
  const auto ended = run_campaign(campaign, options);
  if (!ended) tell((ended.error().kind == ErrorKind::usage ? "u" : "e") + ended.error().message);
  ::_exit(ended ? *ended : kTroubleCode);
}

}  // namespace

Result<int> run_campaign(const Campaign& campaign, const RunnerOptions& options) {
  ASSAY_TRY(const Fd pid_file, take_pid_file(campaign.pid_file));
  ASSAY_CHECK(make_folder(campaign.log_dir));
  Log log(campaign.log_dir /
          fmt::format("log_{:%Y%m%d_%H%M%S}.log", fmt::localtime(std::time(nullptr))));
  const auto units = units_of(
      campaign, {options.self, options.arguments, [&](std::string_view text) { log.say(text); }});
  auto ended = Runner(campaign, *units, log).run(options.started);
  if (!ended) log.say(fmt::format("assay: {}\n", ended.error().message));
  std::error_code ignored;
  fs::remove(campaign.pid_file, ignored);
  return ended;
}

Result<pid_t> run_in_background(const Campaign& campaign, RunnerOptions options) {
  ASSAY_TRY(FdPair pipe, make_pipe());
  std::fflush(nullptr);  // otherwise both processes would write the buffered output
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("fork");
  if (pid == 0) {
    pipe.first.reset();
    run_detached(campaign, options, std::move(pipe.second));
  }
  pipe.second.reset();
  std::string message;
  char c = 0;
  while (::read(pipe.first.get(), &c, 1) == 1) message += c;
  if (message == "+") return pid;
  ::waitpid(pid, nullptr, 0);
  if (message.empty()) return fail("the campaign ended before it ran");
  return fail(message.substr(1), message[0] == 'u' ? ErrorKind::usage : ErrorKind::engine);
}

fs::path latest_log(const fs::path& log_dir) {
  fs::path latest;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(log_dir, error)) {
    const std::string name = entry.path().filename().string();
    // Runs write log_inorder.log into the same folder.
    const bool dated = name.starts_with("log_") && digits_at_front(name.substr(4)) > 0;
    if (dated && name.ends_with(".log")) latest = std::max(latest, entry.path());
  }
  return latest;
}

Status append_to_log(const std::filesystem::path& path, std::string_view text,
                     std::uint64_t file_bytes, int files) {
  const auto numbered = [&](int number) { return path.string() + "." + std::to_string(number); };
  std::error_code error;
  ASSAY_TRY(Fd file, open_for_append(path));
  std::uint64_t written = std::filesystem::file_size(path, error);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    if (written > 0 && written + line.size() > file_bytes) {
      for (int number = files - 1; number > 1; --number) {
        std::filesystem::rename(numbered(number - 1), numbered(number), error);
      }
      std::filesystem::rename(path, numbered(1), error);
      ASSAY_TRY(file, open_for_append(path));
      written = 0;
    }
    ASSAY_CHECK(write_all(file.get(), std::as_bytes(std::span(line))));
    written += line.size();
    text.remove_prefix(line.size());
  }
  return {};
}

}  // namespace assay::campaign
