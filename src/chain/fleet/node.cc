// Runs one machine's part of a fleet's training.

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/interrupts.h"
#include "base/terminal.h"
#include "chain/fleet/fleet.h"
#include "chain/results/node_record.h"

namespace assay::chain::fleet {
namespace {

// Messages of frameworks that lost another machine. A node that prints one is a victim, not the
// cause.
constexpr std::array<std::string_view, 7> kSymptoms{
    "'gloo::",       "gloo::IoException",     "Connection reset by peer",     "Read error [",
    "Write error [", "remote process exited", "NCCL communicator was aborted"};

bool is_symptom(std::string_view line) {
  return std::any_of(kSymptoms.begin(), kSymptoms.end(), [&](std::string_view symptom) {
    return line.find(symptom) != std::string_view::npos;
  });
}

// True if the driver has closed our stdin. A stdin that is not a pipe never counts.
bool lifeline_cut() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, 0) != 1) return false;
  return (input.revents & (POLLHUP | POLLERR)) != 0;
}

// The line that the driver writes into the lifeline. It is there before the node starts, so a
// limit is only for a driver that stands still.
Result<std::string> token_from_driver() {
  constexpr std::size_t kLongest = 256;
  constexpr int kLimitMs = 30'000;
  std::string line;
  while (line.size() < kLongest) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    char byte = 0;
    if (::poll(&input, 1, kLimitMs) != 1 || ::read(STDIN_FILENO, &byte, 1) != 1) break;
    if (byte == '\n') return line;
    line += byte;
  }
  return fail("the fleet's driver has sent no secret");
}

// The secret of the fleet: from the driver that started this node, from the environment, or from a
// file in the folder of the training, where rank 0 leaves it for the others.
Status find_token(FleetTask& task) {
  RendezvousOptions& rendezvous = task.options.rendezvous;
  if (!rendezvous.token.empty()) return {};
  struct stat input {};
  if (::fstat(STDIN_FILENO, &input) == 0 && (S_ISFIFO(input.st_mode) || S_ISSOCK(input.st_mode))) {
    ASSAY_TRY(rendezvous.token, token_from_driver());
    return {};
  }
  const char* named = std::getenv(kTokenVariable);
  if (named != nullptr && *named != '\0') {
    rendezvous.token = named;
  } else {
    // Trainings in one folder at the same time differ in their first machine or its port.
    rendezvous.token_file =
        std::filesystem::path(task.directory) /
        fmt::format(".assay-fleet-{}-{}", rendezvous.hosts.front(), rendezvous.port);
  }
  return {};
}

class NodeRun {
 public:
  NodeRun(const FleetTask& task, Rendezvous rendezvous, stage::Guard guard)
      : task_(task), rendezvous_(std::move(rendezvous)), guard_(std::move(guard)) {}

  Result<int> run(const std::string& interface) {
    while (true) {
      auto all_here = rendezvous_.gather();
      if (!all_here) return tell(all_here.error().message);
      if (*all_here) break;
      pause();
      if (ended()) return 1;
    }
    stage::StageCommand command;
    const RendezvousOptions& rendezvous = task_.options.rendezvous;
    command.argv = node_argv(task_.argv, rendezvous.hosts[rendezvous.rank],
                             fmt::format("{}/rank{}", task_.launch_logs, rendezvous.rank));
    record_.host = rendezvous.hosts[rendezvous.rank];
    record_.framework = results::framework_of(command.argv.front());
    record_.gpu_model = results::gpu_model_of(task_.environment, task_.gloo);
    record_.state = "running";
    show_line(stdout, results::node_line(record_));
    command.environment = task_.environment;
    command.environment.push_back(
        fmt::format("{}={}", task_.gloo ? "GLOO_SOCKET_IFNAME" : "NCCL_SOCKET_IFNAME", interface));
    command.directory = task_.directory;
    command.log = "/dev/null";
    command.guard = &guard_;
    auto started = stage::StageRun::start(command, stage::Limits{}, [this](std::string_view line) {
      symptom_ = symptom_ || is_symptom(line);
      show_line(stdout, line);
    });
    if (!started) return tell(started.error().message);
    training_ = std::make_unique<stage::StageRun>(std::move(*started));
    return train();
  }

 private:
  Result<int> train() {
    std::string complaint;
    std::optional<stage::Outcome> outcome;
    while (!outcome) {
      pause();
      if (ended()) training_->stop(stage::StageState::interrupted, "ended from outside");
      if (complaint.empty()) {
        complaint = rendezvous_.watch();
        // Without the other machine the training can only wait. Give it time to report that itself.
        if (!complaint.empty()) stop_at_ = stage::Clock::now() + std::chrono::seconds(5);
      }
      if (stage::Clock::now() >= stop_at_ && !stopped_) {
        stopped_ = true;
        training_->stop(stage::StageState::interrupted, complaint);
      }
      outcome = training_->tick();
    }
    training_.reset();
    // A training that we ended is not to blame. One that ended by itself may be, even if another
    // had ended before.
    NodeEnd own{outcome->exit, symptom_ || stopped_};
    if (outcome->state == stage::StageState::interrupted && own.status.ok())
      own.status.signal = SIGTERM;
    rendezvous_.announce(own);
    // A node that was ended because of another node has not failed.
    record_.state = own.status.ok() ? "passed" : stopped_ || ended_ ? "interrupted" : "failed";
    show_line(stdout, results::node_line(record_));
    // Wait for the others' ends, so that rank 0 can name the machine to blame.
    const stage::Seconds until = rendezvous_.watched() + task_.options.rendezvous.lost;
    while (!rendezvous_.all_ended() && rendezvous_.watched() < until && !ended()) {
      pause();
      const std::string later = rendezvous_.watch();
      if (complaint.empty()) complaint = later;
    }
    rendezvous_.part();
    if (own.status.ok() && complaint.empty()) return 0;
    // A complaint names the lost machine; the ends of all machines may show which failed first.
    const std::string verdict = rendezvous_.verdict(own);
    return tell(verdict.empty() || complaint.find("cut off") != std::string::npos ? complaint
                                                                                  : verdict);
  }

  void pause() {
    std::vector<pollfd> fds{{interrupts_.fd(), POLLIN, 0}};
    rendezvous_.add_to(fds);
    if (training_) training_->add_to(fds);
    ::poll(fds.data(), fds.size(), 200);
  }

  bool ended() {
    ended_ = ended_ || interrupts_.next() != 0 || lifeline_cut();
    return ended_;
  }

  Result<int> tell(const std::string& word) {
    show_line(stdout, std::string(kFleetWord) + word);
    return 1;
  }

  const FleetTask& task_;
  results::NodeRecord record_;
  Rendezvous rendezvous_;
  stage::Guard guard_;
  Interrupts interrupts_;
  std::unique_ptr<stage::StageRun> training_;
  stage::Clock::time_point stop_at_ = stage::Clock::time_point::max();
  bool symptom_ = false;
  bool stopped_ = false;  // ended by us because of another machine
  bool ended_ = false;
};

}  // namespace

Result<int> run_node(FleetTask task) {
  RendezvousOptions& rendezvous = task.options.rendezvous;
  const std::string interface = interface_of(rendezvous.hosts[rendezvous.rank]);
  if (interface.empty()) {
    return fail(fmt::format("this machine has no address {}", rendezvous.hosts[rendezvous.rank]));
  }
  ASSAY_CHECK(find_token(task));
  ASSAY_TRY(stage::Guard guard, stage::Guard::start());
  ASSAY_TRY(Rendezvous opened, Rendezvous::open(rendezvous));
  return NodeRun(task, std::move(opened), std::move(guard)).run(interface);
}

}  // namespace assay::chain::fleet
