#include "chain/stage/stage_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "chain/stage/leftovers.h"
#include "nvml/nvml.h"

namespace assay::chain::stage {
namespace {

constexpr Seconds kFirstSample{0.02};  // doubles each time, so that short stages have a peak too
constexpr Seconds kSampleEvery{0.5};
constexpr std::chrono::seconds kLongestLook{2};  // tick() is called at least once a second
constexpr int kReadsPerTick = 64;                // so that a flood does not starve the limits

Clock::time_point after(Clock::time_point start, Seconds length) {
  return start + std::chrono::duration_cast<Clock::duration>(length);
}

}  // namespace

std::string_view name(StageState state) {
  constexpr std::array<std::string_view, 16> kNames{
      "passed",       "failed",    "timed_out",   "silent",     "disk_full", "not_made",
      "wrong_device", "traceback", "not_finite",  "unfinished", "stale",     "out_of_memory",
      "not_started",  "blocked",   "unavailable", "interrupted"};
  return kNames.at(static_cast<std::size_t>(state));
}

Result<StageRun> StageRun::start(const StageCommand& command, const Limits& limits,
                                 LineHandler on_line) {
  StageRun run;
  ASSAY_TRY(run.log_, BoundedLog::create(command.log));
  SpawnOptions options;
  options.argv = command.argv;
  options.environment = command.environment;
  options.whole_environment = command.whole_environment;
  if (!command.leaves_processes) {
    run.mark_ = mark_of_stage(command.guard != nullptr ? command.guard->mark() : mark_of_run());
    options.environment.push_back(environment_entry(run.mark_));
    run.gpus_before_ = nvml_used_mb();
  }
  options.directory = command.directory;
  std::array<Fd, 2> ends;
  for (std::size_t i = 0; i < (command.errors_apart ? 2 : 1); ++i) {
    ASSAY_TRY(FdPair pipe, make_pipe());
    // A larger pipe needs fewer switches under a flood. Failure is harmless.
    constexpr int kPipeBytes = 1 << 20;
    (void)::fcntl(pipe.first.get(), F_SETPIPE_SZ, kPipeBytes);
    ASSAY_CHECK(set_nonblocking(pipe.first.get()));
    run.outputs_[i].pipe = std::move(pipe.first);
    ends[i] = std::move(pipe.second);
  }
  options.fds = {{ends[0].get(), 1}, {command.errors_apart ? ends[1].get() : ends[0].get(), 2}};
  options.new_session = true;  // a stage neither reads the user's terminal nor types into it
  options.die_with_parent = command.die_with_parent;
  if (command.input >= 0) options.fds.emplace_back(command.input, 0);
  ASSAY_TRY(run.process_, Process::spawn(options));
  run.guard_ = command.guard;
  if (run.guard_ != nullptr) run.guard_->watch(run.process_.pid());
  run.copy_ = command.copy;
  if (!command.follows.empty()) run.followed_.emplace(command.follows);
  run.limits_ = limits;
  run.on_line_ = std::move(on_line);
  run.started_ = run.last_byte_ = run.ticked_ = Clock::now();
  run.sample_every_ = kFirstSample;
  run.next_sample_ = after(run.started_, kFirstSample);
  return run;
}

void StageRun::add_to(std::vector<pollfd>& fds) const {
  for (const Output& output : outputs_) {
    if (output.pipe && (copy_ == nullptr || copy_->ready())) {
      fds.push_back({output.pipe.get(), POLLIN, 0});
    }
  }
  if (!exited_) fds.push_back({process_.pidfd(), POLLIN, 0});
}

bool StageRun::has_output() const {
  return std::ranges::any_of(outputs_, [](const Output& output) { return bool(output.pipe); });
}

Clock::time_point StageRun::deadline() const {
  Clock::time_point next = after(Clock::now(), Seconds(3600));
  if (exited_) return std::min(next, after(*exited_, limits_.drain));
  if (kill_at_) next = std::min(next, *kill_at_);
  if (!stopped_ && limits_.stage.count() > 0) next = std::min(next, after(started_, limits_.stage));
  if (!stopped_ && limits_.idle.count() > 0) next = std::min(next, after(last_byte_, limits_.idle));
  return mark_.empty() ? next : std::min(next, next_sample_);
}

void StageRun::read_output(bool of_errors, Output& output) {
  std::array<char, 1 << 16> chunk;
  for (int reads = 0; output.pipe && reads < kReadsPerTick; ++reads) {
    if (copy_ != nullptr && !copy_->ready()) return;
    const ssize_t got = ::read(output.pipe.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      output.pipe.reset();
      output.lines.end(on_line_);
      return;
    }
    last_byte_ = Clock::now();
    const std::string_view bytes(chunk.data(), static_cast<std::size_t>(got));
    const Status kept = log_.append(bytes);
    if (!kept) stop(StageState::disk_full, kept.error().message);
    if (copy_ != nullptr) copy_->take(of_errors, bytes);
    output.lines.take(bytes, on_line_);
  }
}

void StageRun::read_outputs() {
  read_output(false, outputs_[0]);
  read_output(true, outputs_[1]);
}

void StageRun::read_followed() {
  if (!followed_) return;
  const bool grew = followed_->read([this](std::string_view line) {
    if (on_line_) on_line_(line);
  });
  if (grew) last_byte_ = Clock::now();
}

void StageRun::stop(StageState state, std::string detail) {
  if (stopped_) return;
  stopped_ = state;
  detail_ = std::move(detail);
  if (exited_) return;
  process_.signal_group(SIGTERM);
  kill_at_ = after(Clock::now(), limits_.grace);
}

void StageRun::kill() {
  if (exited_ || !kill_at_ || *kill_at_ <= Clock::now()) return;
  kill_at_ = Clock::now();
  detail_ += " at once";
}

void StageRun::watch_limits(Clock::time_point now) {
  if (kill_at_ && now >= *kill_at_) {
    process_.signal_group(SIGKILL);
    kill_at_.reset();
  }
  if (stopped_) return;
  if (limits_.stage.count() > 0 && now - started_ >= limits_.stage) {
    stop(StageState::timed_out, fmt::format("ran over its limit of {:g} s", limits_.stage.count()));
  } else if (limits_.idle.count() > 0 && now - last_byte_ >= limits_.idle) {
    stop(StageState::silent, fmt::format("wrote nothing for {:g} s", limits_.idle.count()));
  }
}

void StageRun::sample(Clock::time_point now) {
  if (mark_.empty() || now < next_sample_) return;
  last_ = sample_usage(process_.pid(), gpus_before_);
  ++looks_;
  peak_.keep_peak(last_);
  sample_every_ = std::min(kSampleEvery, sample_every_ * 2);
  next_sample_ = after(now, sample_every_);
}

std::optional<Outcome> StageRun::tick() {
  read_outputs();
  read_followed();
  const Clock::time_point now = Clock::now();
  // A long time since the last tick means that the machine was paused, and the stage with it. That
  // time is not silence of the stage.
  if (now - ticked_ > kLongestLook) last_byte_ = std::min(now, last_byte_ + (now - ticked_));
  ticked_ = now;
  if (!exited_) {
    pollfd end{process_.pidfd(), POLLIN, 0};
    if (::poll(&end, 1, 0) == 1) exited_ = now;
  }
  if (!exited_) {
    watch_limits(now);
    sample(now);
    return std::nullopt;
  }
  // Descendants may still hold the pipe after the process has ended.
  if (has_output() && now - *exited_ < limits_.drain) return std::nullopt;
  return finish();
}

Outcome StageRun::finish() {
  Outcome outcome;
  if (!mark_.empty()) {
    // The leader is not reaped yet, so the group id cannot belong to another process.
    process_.signal_group(SIGKILL);
    kill_marked(mark_);
  }
  read_outputs();
  read_followed();
  if (guard_ != nullptr) guard_->forget(process_.pid());
  const auto status = process_.wait();
  if (status) outcome.exit = *status;
  const Status closed = log_.close();
  if (!closed && !stopped_) {
    stopped_ = StageState::disk_full;
    detail_ = closed.error().message;
  }
  outcome.seconds = Seconds(*exited_ - started_).count();
  outcome.log_bytes = log_.bytes();
  outcome.peak = peak_;
  outcome.looks = looks_;
  if (stopped_) {
    outcome.state = *stopped_;
    outcome.detail = detail_;
  } else if (!status || !outcome.exit.ok()) {
    outcome.state = StageState::failed;
    outcome.detail = status ? outcome.exit.describe() : status.error().message;
  }
  return outcome;
}

}  // namespace assay::chain::stage
