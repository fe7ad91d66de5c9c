#include "campaign/runner.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/interrupts.h"
#include "base/json.h"
#include "base/process.h"
#include "base/text.h"
#include "campaign/pid_file.h"
#include "campaign/rotating_log.h"

namespace assay {
namespace {

constexpr int kProgressVersion = 1;
constexpr int kSomeVerdictsFailed = 1;  // exit codes of `assay api`
constexpr int kTroubleCode = 3;
constexpr int kAnotherBuildCode = 5;
constexpr int kInterruptedCode = 130;

std::filesystem::path progress_file(const Campaign& campaign) {
  return std::filesystem::path(campaign.log_dir) / "campaign.json";
}

// The first of DIR_build2, DIR_build3, … that does not exist.
std::string unused_folder(const std::string& folder) {
  std::filesystem::path plain(folder);
  if (!plain.has_filename()) plain = plain.parent_path();
  std::error_code ignored;
  for (int build = 2;; ++build) {
    std::string unused = fmt::format("{}_build{}", plain.string(), build);
    if (!std::filesystem::exists(unused, ignored)) return unused;
  }
}

class Runner {
 public:
  Runner(const Campaign& campaign, const RunnerOptions& options, std::filesystem::path log)
      : campaign_(campaign),
        base_(campaign),
        options_(options),
        log_(std::move(log)),
        earlier_(read_progress(campaign)) {
    progress_["version"] = kProgressVersion;
    progress_["name"] = campaign.name;
    progress_["rounds"] = nlohmann::json::array();
  }

  Result<int> run() {
    auto ended = run_rounds();
    if (!ended) (void)say(fmt::format("assay: {}\n", ended.error().message));
    return ended;
  }

 private:
  Result<int> run_rounds() {
    ASSAY_CHECK(run_base());
    if (!campaign_.retest.enabled) return worst_;
    for (const std::string& error_config : campaign_.retest.error_configs) {
      std::string previous = base_.log_dir;
      for (std::int64_t round = 2; round <= campaign_.retest.rounds && goes_on(); ++round) {
        const std::filesystem::path input = std::filesystem::path(previous) / error_config;
        ASSAY_TRY(const bool there, has_failures(input));
        if (!there) break;
        ASSAY_TRY(const std::string folder, retest_folder(base_, previous, round, error_config));
        ASSAY_CHECK(run_round(fmt::format("round {}/{}", round, error_name(error_config)),
                              "api_config_file", input.string(), folder));
        previous = folder;
      }
    }
    return worst_;
  }

  // Runs the first round: in the folder of the last time, or in a new one if a framework has been
  // rebuilt since.
  Status run_base() {
    if (earlier_.is_object()) base_.log_dir = earlier_.value("folder", base_.log_dir);
    ASSAY_CHECK(run_round("round 1/base", base_.input, base_.input_value, base_.log_dir));
    if (stopped_ || worst_ != kAnotherBuildCode) return {};
    worst_ = 0;
    base_.log_dir = unused_folder(campaign_.log_dir);
    ASSAY_CHECK(say(fmt::format("this build gets a folder of its own, {}\n", base_.log_dir)));
    return run_round("round 1/base", base_.input, base_.input_value, base_.log_dir);
  }

  bool goes_on() const { return !stopped_ && worst_ <= kSomeVerdictsFailed; }

  Result<bool> has_failures(const std::filesystem::path& file) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    if (!error && size > 0) return true;
    if (campaign_.retest.skip_unavailable) {
      ASSAY_CHECK(say(fmt::format("nothing to retest in {}\n", file.string())));
      return false;
    }
    return usage_error(fmt::format("{} {} (retest.skip_unavailable is false)", file.string(),
                                   error ? "is missing" : "is empty"));
  }

  Status run_round(const std::string& label, const std::string& input, const std::string& value,
                   const std::string& log_dir) {
    SpawnOptions spawn;
    spawn.argv = round_words(campaign_, options_, input, value, log_dir);
    for (const auto& [name, text] : campaign_.environment) {
      spawn.environment.push_back(fmt::format("{}={}", name, text));
    }
    ASSAY_CHECK(say(fmt::format("{}: {}\n", label, shell_line(spawn.argv))));
    nlohmann::json& round = progress_["rounds"].emplace_back();
    round = {{"label", label}, {"log_dir", log_dir}, {"began_ms", wall_ms()}};
    progress_["folder"] = base_.log_dir;
    ASSAY_CHECK(keep_progress());
    ASSAY_TRY(const ExitStatus ended, run_process(std::move(spawn)));
    round["ended_ms"] = wall_ms();
    round["ended"] = ended.describe();
    ASSAY_CHECK(keep_progress());
    ASSAY_CHECK(say(fmt::format("{}: {}\n", label, ended.describe())));
    worst_ = std::max(worst_, ended.signal != 0 ? kTroubleCode : ended.code);
    if (stopped_) worst_ = kInterruptedCode;
    return {};
  }

  // Runs a process to its end, copies its output to the log, and forwards signals to it.
  Result<ExitStatus> run_process(SpawnOptions spawn) {
    ASSAY_TRY(FdPair output, make_pipe());
    ::fcntl(output.first.get(), F_SETFL, O_NONBLOCK);
    spawn.fds = {{output.second.get(), 1}, {output.second.get(), 2}};
    ASSAY_TRY(Process process, Process::spawn(spawn));
    output.second.reset();
    if (const auto started = std::exchange(started_, {})) started();
    ExitStatus status;
    for (bool ended = false; !ended;) {
      std::array<pollfd, 3> waits{{{process.pidfd(), POLLIN, 0},
                                   {interrupts_.fd(), POLLIN, 0},
                                   {output.first.get(), POLLIN, 0}}};
      if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return errno_error("poll");
      ASSAY_TRY(ended, process.try_wait(status));  // before the last output is read
      ASSAY_CHECK(copy_output(output.first));
      while (const int signal = interrupts_.next()) {
        stopped_ = true;
        process.signal(signal);
      }
    }
    return status;
  }

  // Reads what the pipe holds now. Closes the pipe when it has no writer left.
  Status copy_output(Fd& pipe) {
    std::array<char, 1 << 16> buffer{};
    while (pipe) {
      const ssize_t got = ::read(pipe.get(), buffer.data(), buffer.size());
      if (got < 0 && errno != EINTR) return {};
      if (got == 0) pipe.reset();
      if (got > 0) ASSAY_CHECK(say({buffer.data(), static_cast<std::size_t>(got)}));
    }
    return {};
  }

  Status say(std::string_view text) {
    if (options_.show) options_.show(text);
    return append_to_log(log_, text);
  }
  Status keep_progress() { return write_file(progress_file(campaign_), progress_.dump(1) + "\n"); }

  const Campaign& campaign_;
  Campaign base_;  // the same with the folder of the first round
  const RunnerOptions& options_;
  std::filesystem::path log_;
  nlohmann::json earlier_;  // campaign.json of the last time; null: there is none
  const Interrupts interrupts_;
  std::function<void()> started_ = options_.started;
  nlohmann::json progress_;
  int worst_ = 0;
  bool stopped_ = false;
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
[[noreturn]] void run_detached(const DetachedRun& run, Fd pipe) {
  leave_terminal();
  const auto tell = [&](std::string_view text) {
    if (pipe) (void)write_all(pipe.get(), std::as_bytes(std::span(text)));
    pipe.reset();
  };
  const auto ended = run([&] { tell("+"); });
  if (!ended) tell((ended.error().kind == ErrorKind::usage ? "u" : "e") + ended.error().message);
  ::_exit(ended ? *ended : kTroubleCode);
}

}  // namespace

std::vector<std::string> round_words(const Campaign& campaign, const RunnerOptions& options,
                                     const std::string& input, const std::string& input_value,
                                     const std::string& log_dir) {
  std::vector<std::string> words = options.program;
  words.push_back(fmt::format("--{}={}", input, input_value));
  words.push_back("--log_dir=" + log_dir);
  for (const EngineArgument& argument : campaign.engine_args) {
    words.push_back(fmt::format("--{}={}", argument.name, argument.value));
  }
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  return words;
}

std::filesystem::path new_log(const std::filesystem::path& log_dir) {
  return log_dir / fmt::format("log_{:%Y%m%d_%H%M%S}.log", fmt::localtime(std::time(nullptr)));
}

Result<int> run_campaign(const Campaign& campaign, const RunnerOptions& options) {
  ASSAY_TRY(const Fd pid_file, take_pid_file(campaign.pid_file));
  std::error_code ignored;
  std::filesystem::create_directories(campaign.log_dir, ignored);
  auto ended = Runner(campaign, options, new_log(campaign.log_dir)).run();
  std::filesystem::remove(campaign.pid_file, ignored);
  return ended;
}

Result<pid_t> run_in_background(const DetachedRun& run) {
  ASSAY_TRY(FdPair pipe, make_pipe());
  std::fflush(nullptr);  // otherwise both processes would write the buffered output
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("fork");
  if (pid == 0) {
    pipe.first.reset();
    run_detached(run, std::move(pipe.second));
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

nlohmann::json read_progress(const Campaign& campaign) {
  const auto text = read_file(progress_file(campaign));
  if (!text) return nullptr;
  nlohmann::json progress = parse_json(*text);
  const bool known = progress.is_object() && progress.value("version", 0) == kProgressVersion;
  return known ? progress : nlohmann::json();
}

std::filesystem::path latest_log(const std::filesystem::path& log_dir) {
  std::filesystem::path latest;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(log_dir, error)) {
    const std::string name = entry.path().filename().string();
    // Runs write log_inorder.log into the same folder.
    const bool dated = name.starts_with("log_") && digits_at_front(name.substr(4)) > 0;
    if (dated && name.ends_with(".log")) latest = std::max(latest, entry.path());
  }
  return latest;
}

}  // namespace assay
