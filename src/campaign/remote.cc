#include "campaign/remote.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>

#include "base/interrupts.h"
#include "base/terminal.h"
#include "base/values.h"
#include "campaign/results.h"
#include "chain/stage/stage_run.h"

namespace assay::campaign {
namespace {

constexpr std::string_view kAlive = "assay-remote: alive";
constexpr std::string_view kEnded = "assay-remote: ended ";
constexpr double kBeatsPerLimit = 5;

// Reads what the campaign has sent. False once it has closed the pipe.
bool heard(chain::stage::Clock::time_point& last) {
  std::array<char, 256> bytes{};
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, 0) != 1) return true;
  if (::read(STDIN_FILENO, bytes.data(), bytes.size()) <= 0) return false;
  last = chain::stage::Clock::now();
  return true;
}

// Whether this is the first of the machines that train together in a job of Slurm, or the only one.
bool speaks() {
  const char* rank = std::getenv("SLURM_PROCID");
  return rank == nullptr || std::string_view(rank) == "0";
}

// Prints a line, or drops it while nobody reads: on a connection that was cut, a full pipe must not
// keep this process from ending its model.
void tell(std::string_view line) {
  constexpr std::size_t kSafe = 4000;  // below PIPE_BUF: a ready pipe takes it at once
  static_assert(kSafe < PIPE_BUF);
  if (!speaks()) return;
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&output, 1, 0) != 1 || (output.revents & POLLOUT) == 0) return;
  show_line(stdout, line.starts_with(kModelWord) ? line : line.substr(0, kSafe));
}

}  // namespace

std::vector<std::string> remote_words(double lost, const std::vector<std::string>& words) {
  std::vector<std::string> all{"chain", "remote", "--lost-limit", fmt::format("{:g}", lost), "--"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

RemoteWord read_remote_line(std::string_view line) {
  if (line == kAlive) return {true, {}};
  if (!line.starts_with(kEnded)) return {};
  line.remove_prefix(kEnded.size());
  int code = 0;
  if (!read_number(line, code)) return {};
  return {true, code};
}

Result<int> run_remote(const std::string& self, const std::vector<std::string>& words,
                       double lost) {
  ASSAY_TRY(chain::stage::Guard guard, chain::stage::Guard::start());
  const Interrupts interrupts;
  chain::stage::StageCommand command;
  command.argv = {self, "chain"};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  command.log = "/dev/null";
  command.guard = &guard;
  chain::stage::Limits limits;
  limits.grace = chain::stage::Seconds(kRemoteGrace);
  ASSAY_TRY(
      chain::stage::StageRun run,
      chain::stage::StageRun::start(command, limits, [](std::string_view line) { tell(line); }));
  chain::stage::Clock::time_point last_heard = chain::stage::Clock::now();
  chain::stage::Clock::time_point next_beat = last_heard;
  bool connected = true;
  while (true) {
    const chain::stage::Clock::time_point now = chain::stage::Clock::now();
    if (now >= next_beat) {
      tell(kAlive);
      next_beat = now + std::chrono::duration_cast<chain::stage::Clock::duration>(
                            chain::stage::Seconds(lost / kBeatsPerLimit));
    }
    std::vector<pollfd> fds{{interrupts.fd(), POLLIN, 0}};
    if (connected) fds.push_back({STDIN_FILENO, POLLIN, 0});
    run.add_to(fds);
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(std::min(next_beat, run.deadline()) - now);
    ::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(0, left.count())));
    connected = connected && heard(last_heard);
    const bool silent = chain::stage::Clock::now() - last_heard > chain::stage::Seconds(lost);
    if (interrupts.next() != 0 || !connected || silent) {
      run.stop(chain::stage::StageState::interrupted, "the campaign has ended or was cut off");
    }
    if (const auto outcome = run.tick()) {
      constexpr int kSignalBase = 128;
      const int code =
          outcome->exit.signal != 0 ? kSignalBase + outcome->exit.signal : outcome->exit.code;
      tell(fmt::format("{}{}", kEnded, code));
      return code;
    }
  }
}

}  // namespace assay::campaign
