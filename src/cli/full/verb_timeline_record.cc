#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/terminal.h"
#include "base/values.h"
#include "cli/choices.h"
#include "cli/full/verbs.h"
#include "inject/triggers.h"
#include "lane/fork_server.h"
#include "timeline/analysis/stage_watch.h"

namespace assay::cli::full {
namespace {

namespace fs = std::filesystem;

struct RecordOptions {
  fs::path out = "assay-recording";
  fs::path library;
  std::string steps;
  std::string seconds;
  bool paused = false;
  bool paddle_steps = false;
  bool watch = false;
  std::int64_t every = 1;
  std::string ring, hang, slow;
  std::vector<std::string> command;
};

// Looks for the injection library beside the program and where a build or an installation puts it.
Result<fs::path> find_injection_library() {
  ASSAY_TRY(const std::string program, own_executable());
  const auto folder = fs::path(program).parent_path();
  constexpr const char* name = "libassay_injection.so";
  for (const char* place : {".", "../src/inject", "../lib", "../lib/assay", "src/inject"}) {
    const auto path = folder / place / name;
    if (fs::exists(path)) return fs::weakly_canonical(path);
  }
  return usage_error(
      fmt::format("{} not found near {}: give its path with --library", name, program));
}

// Reads "A:B" or "A,B" of whole numbers, either of which may be missing, and returns "A:B".
Result<std::string> window(std::string text, std::string_view option) {
  const std::size_t cut = text.find_first_of(":,");
  if (cut != std::string::npos) {
    std::int64_t first = 0;
    std::int64_t last = std::numeric_limits<std::int64_t>::max();
    const auto read = [](std::string_view part, std::int64_t& number) {
      return part.empty() || read_number(part, number);
    };
    const std::string_view all = text;
    const bool good = read(all.substr(0, cut), first) && read(all.substr(cut + 1), last);
    text[cut] = ':';
    if (good && first >= 0 && first < last) return text;
  }
  return usage_error(fmt::format(
      "--{} {}: expected A:B with whole numbers A < B (records from A up to, not including, B)",
      option, text));
}

// Reads "60s" or "2m" and returns seconds.
Result<std::string> duration(std::string_view text, std::string_view option) {
  constexpr double kMost = 24 * 3600;
  const auto seconds = read_seconds(text);
  if (seconds && *seconds >= 1 && *seconds <= kMost && *seconds == std::floor(*seconds)) {
    return fmt::format("{:.0f}", *seconds);
  }
  return usage_error(
      fmt::format("--{} {}: expected whole seconds or minutes, such as 60s or 2m, up to one day",
                  option, text));
}

// Reads "1.5x" and returns "1.5".
Result<std::string> factor(std::string_view text) {
  std::string_view digits = text;
  if (digits.ends_with('x')) digits.remove_suffix(1);
  double value = 0;
  if (read_number(digits, value) && value > 1 && value <= 1e6) return std::string(digits);
  return usage_error(
      fmt::format("--slow {}: expected a multiple of the median step time, such as 1.5x", text));
}

// Adds the options to the command's environment.
Status add_settings(const RecordOptions& options, std::vector<std::string>& environment) {
  const auto set = [&](const char* name, const std::string& value) {
    environment.push_back(fmt::format("ASSAY_RECORD_{}={}", name, value));
  };
  if (!options.steps.empty()) {
    ASSAY_TRY(const std::string steps, window(options.steps, "steps"));
    set("STEPS", steps);
  }
  if (!options.seconds.empty()) {
    ASSAY_TRY(const std::string seconds, window(options.seconds, "seconds"));
    set("SECONDS", seconds);
  }
  if (options.paused) set("PAUSED", "1");
  if (options.every > 1) set("EVERY", std::to_string(options.every));
  if (options.ring.empty() && !(options.hang.empty() && options.slow.empty())) {
    return usage_error("--hang and --slow need --ring: add --ring 60s");
  }
  if (!options.ring.empty()) {
    ASSAY_TRY(const std::string ring, duration(options.ring, "ring"));
    set("RING", ring);
  }
  if (!options.hang.empty()) {
    ASSAY_TRY(const std::string hang, duration(options.hang, "hang"));
    set("HANG", hang);
  }
  if (!options.slow.empty()) {
    ASSAY_TRY(const std::string slow, factor(options.slow));
    set("SLOW", slow);
  }
  if (options.paddle_steps) environment.emplace_back("FLAGS_auto_parallel_profiler=1");
  return {};
}

// A descriptor that reads these signals. The command already runs, so it does not inherit this
// signal mask.
Result<Fd> read_signals(std::initializer_list<int> numbers) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : numbers) sigaddset(&signals, number);
  Fd fd(::signalfd(-1, &signals, SFD_CLOEXEC));
  if (!fd || ::pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) {
    return errno_error("cannot wait for signals");
  }
  return fd;
}

// Waits for the command. Each SIGUSR2 makes all of its processes write what they keep.
Result<ExitStatus> wait_asking(Process& process, const fs::path& folder) {
  ASSAY_TRY(const Fd signals, read_signals({SIGUSR2}));
  inject::DumpFolders dumps(folder);
  for (;;) {
    std::array<pollfd, 2> wanted{{{process.pidfd(), POLLIN, 0}, {signals.get(), POLLIN, 0}}};
    if (::poll(wanted.data(), wanted.size(), -1) < 0 && errno != EINTR) {
      return errno_error("cannot wait for the command");
    }
    if ((wanted[0].revents & POLLIN) != 0) return process.wait();
    if ((wanted[1].revents & POLLIN) == 0) continue;
    signalfd_siginfo signal{};
    ASSAY_TRY(const bool more,
              read_exactly(signals.get(), std::as_writable_bytes(std::span(&signal, 1))));
    if (!more) continue;
    while (dumps.next()) {  // signals from other processes
    }
    ASSAY_CHECK(dumps.ask("SIGUSR2"));
    if (const auto dump = dumps.next()) {
      show(stderr, "writing the ring to {}\n", dump->folder.string());
    }
  }
}

constexpr int kSignalBase = 128;  // as in shells
int code_of(const ExitStatus& status) {
  return status.signal != 0 ? kSignalBase + status.signal : status.code;
}

constexpr std::chrono::seconds kLookEvery{1};

// Prints what is new until `wait`, which lasts kLookEvery, returns false; then a table of the
// ranks.
Status watch_stages(timeline::StageWatch& watch, std::FILE* out,
                    const std::function<bool()>& wait) {
  for (bool more = true; more;) {
    more = wait();
    ASSAY_TRY(const std::vector<std::string> lines, watch.look());
    for (const std::string& line : lines) show_line(out, line);
  }
  if (watch.any()) show(out, "{}", watch.table());
  return {};
}

// Records stages only, and names slow ranks meanwhile.
Result<int> run_watched(const RecordOptions& options) {
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  ASSAY_CHECK(make_folder(options.out));
  timeline::StageWatch::clean(options.out);
  SpawnOptions spawn;
  spawn.argv = options.command;
  spawn.fds = {{0, 0}};
  spawn.new_group = false;  // so that Ctrl-C reaches the command
  std::string path = (package.python_path / "assay/capture/hook").string();
  if (const char* own = std::getenv("PYTHONPATH"); own != nullptr && *own != '\0') {
    path += fmt::format(":{}", own);
  }
  spawn.environment = {"ASSAY_RECORD_STAGES=" + fs::absolute(options.out).string(),
                       "PYTHONPATH=" + path};
  ASSAY_TRY(Process process, Process::spawn(spawn));
  // The terminal sends SIGINT to the command, too.
  ASSAY_TRY(const Fd signals, read_signals({SIGINT, SIGTERM, SIGHUP}));
  timeline::StageWatch watch(options.out);
  const auto wait = [&](std::chrono::milliseconds limit) {
    std::array<pollfd, 2> wanted{{{process.pidfd(), POLLIN, 0}, {signals.get(), POLLIN, 0}}};
    ::poll(wanted.data(), wanted.size(), static_cast<int>(limit.count()));
    signalfd_siginfo got{};
    if ((wanted[1].revents & POLLIN) != 0 && ::read(signals.get(), &got, sizeof got) > 0 &&
        got.ssi_signo != SIGINT) {
      process.signal(static_cast<int>(got.ssi_signo));
    }
    return (wanted[0].revents & POLLIN) == 0;
  };
  const Status watched = watch_stages(watch, stderr, [&] { return wait(kLookEvery); });
  if (!watched) show(stderr, "slow ranks are no longer named: {}\n", watched.error().message);
  while (wait(std::chrono::hours(1))) {
  }
  ASSAY_TRY(const ExitStatus status, process.wait());
  if (!watch.any()) {
    show(stderr,
         "nothing was recorded: no process ended a step of an optimizer of PyTorch, or called "
         "assay.step(). Python's options -I, -E and -S keep the recording out\n");
  }
  show(stderr, "the command exited with {}\n", status.describe());
  return code_of(status);
}

struct WatchOptions {
  std::filesystem::path folder;
  bool once = false;
};

Result<int> run_watch(const WatchOptions& options) {
  timeline::StageWatch watch(options.folder);
  bool first = true;
  ASSAY_CHECK(watch_stages(watch, stdout, [&] {
    if (std::exchange(first, false)) return !options.once;
    if (!watch.any() || watch.ended()) return false;
    std::this_thread::sleep_for(kLookEvery);
    return true;
  }));
  if (watch.any()) return watch.malformed() == 0 ? kAllGood : kSomeFailed;
  return usage_error(
      fmt::format("{} has no stages of a run: record it with `assay timeline record --watch`",
                  options.folder.string()));
}

Result<int> run_record(const RecordOptions& options) {
  if (options.watch) return run_watched(options);
  fs::path library = options.library;
  if (library.empty()) {
    ASSAY_TRY(library, find_injection_library());
  }
  const std::string path = fs::absolute(library).string();
  SpawnOptions spawn;
  spawn.argv = options.command;
  spawn.fds = {{0, 0}};
  spawn.new_group = false;  // so that Ctrl-C reaches the command
  spawn.environment = {"ASSAY_RECORD_DIR=" + fs::absolute(options.out).string(),
                       "ASSAY_RECORD_LIBRARY=" + path, "NVTX_INJECTION64_PATH=" + path,
                       "CUDA_INJECTION64_PATH=" + path};
  ASSAY_CHECK(add_settings(options, spawn.environment));
  ASSAY_CHECK(make_folder(options.out));
  ASSAY_TRY(Process process, Process::spawn(spawn));
  ASSAY_TRY(const ExitStatus status,
            options.ring.empty() ? process.wait() : wait_asking(process, options.out));
  std::error_code error;
  const bool nothing = fs::is_empty(options.out, error);
  show(stderr, "{}; the command exited with {}\n",
       nothing ? "nothing was recorded: no process of the command used CUDA"
               : "recordings are in " + options.out.string(),
       status.describe());
  return code_of(status);
}

}  // namespace

Verb add_timeline_record(CLI::App& timeline) {
  const auto options = std::make_shared<RecordOptions>();
  CLI::App* app = timeline.add_subcommand("record", "Record the jobs and GPU work of a command");
  app->add_option("--out", options->out, "Output folder, one file for each process");
  app->add_option("--library", options->library, "The recording library")->check(CLI::ExistingFile);
  app->add_option("--steps,--job_schedule_profiler_range", options->steps,
                  "Record only steps A:B (from A up to, not including, B)");
  app->add_option("--seconds", options->seconds, "Record from A to B seconds after the start");
  app->add_flag("--paused", options->paused, "Record only after the program calls assay.start()");
  app->add_option("--every", options->every, "Record only every Nth step")
      ->check(CLI::PositiveNumber);
  app->add_option(
      "--ring", options->ring,
      "Keep the last 60s (or 2m) in memory; SIGUSR2 to this command writes it to a file");
  app->add_option(
      "--hang", options->hang,
      "With --ring: also write it when no kernel, or one collective, ended for this time (30s)");
  app->add_option(
      "--slow", options->slow,
      "With --ring: also write it when a step takes this multiple of the median (1.5x)");
  CLI::Option* watch = app->add_flag(
      "--watch", options->watch,
      "Record only the stages of steps, which costs little, and name slow ranks meanwhile");
  for (const char* name :
       {"--steps", "--seconds", "--paused", "--every", "--ring", "--hang", "--slow", "--library"}) {
    watch->excludes(app->get_option(name));
  }
  app->add_flag("--auto_parallel_profiler", options->paddle_steps,
                "Set FLAGS_auto_parallel_profiler=1: Paddle marks its steps as NVTX ranges");
  app->add_option("COMMAND", options->command, "The command, after --")->required();
  return {app, [options] { return run_record(*options); }};
}

Verb add_timeline_watch(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "watch", "Name the slow ranks of a run under `assay timeline record --watch`");
  const auto options = std::make_shared<WatchOptions>();
  app->add_option("DIR", options->folder, "The folder of the recording (its --out)")
      ->required()
      ->check(CLI::ExistingDirectory);
  app->add_flag("--once", options->once,
                "Print what is known now; otherwise the command ends with the run");
  return {app, [options] { return run_watch(*options); }};
}

}  // namespace assay::cli::full
