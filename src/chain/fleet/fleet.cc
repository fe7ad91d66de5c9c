#include "chain/fleet/fleet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "base/fd.h"
#include "base/interrupts.h"
#include "base/secret.h"
#include "base/terminal.h"
#include "base/text.h"
#include "chain/params/shell_words.h"

namespace assay::chain::fleet {
namespace {

// The words after `assay chain node`: everything that a node must know.
std::vector<std::string> node_words(const FleetTask& task, std::size_t rank) {
  const RendezvousOptions& rendezvous = task.options.rendezvous;
  std::vector<std::string> words{
      "--hosts",       fmt::format("{}", fmt::join(rendezvous.hosts, ",")),
      "--rank",        std::to_string(rank),
      "--port",        std::to_string(rendezvous.port),
      "--join-limit",  fmt::format("{:g}", rendezvous.join.count()),
      "--lost-limit",  fmt::format("{:g}", rendezvous.lost.count()),
      "--directory",   task.directory,
      "--launch-logs", task.launch_logs};
  if (task.gloo) words.emplace_back("--gloo");
  for (const std::string& entry : task.environment) {
    words.emplace_back("--env");
    words.push_back(entry);
  }
  words.emplace_back("--");
  words.insert(words.end(), task.argv.begin(), task.argv.end());
  return words;
}

std::string alias_of(const FleetOptions& options, const std::string& host) {
  for (const std::string& alias : options.aliases) {
    if (alias.starts_with(host + "=")) return alias.substr(host.size() + 1);
  }
  return host;
}

// The command that starts a node: assay itself on this machine, else the remote command.
Result<std::vector<std::string>> node_command(const FleetTask& task, const std::string& self,
                                              std::size_t rank) {
  const std::string& host = task.options.rendezvous.hosts[rank];
  std::vector<std::string> words{task.options.program.empty() ? self : task.options.program,
                                 "chain", "node"};
  for (std::string& word : node_words(task, rank)) words.push_back(std::move(word));
  if (task.options.aliases.empty() && !interface_of(host).empty()) return words;
  return remote_command(task.options.remote, alias_of(task.options, host), words);
}

// The driver's state of a node.
struct Node {
  std::string host;
  std::unique_ptr<stage::StageRun> run;
  Fd lifeline;  // the node ends when this pipe closes, also if the driver was killed
  std::optional<stage::Outcome> outcome;
};

void print_line(const std::string& prefix, std::string_view line) {
  show_line(stdout, prefix + std::string(line));
}

}  // namespace

Result<std::vector<std::string>> remote_command(const std::string& remote, const std::string& host,
                                                const std::vector<std::string>& words) {
  ASSAY_TRY(std::vector<std::string> command, params::split_words(remote));
  if (command.empty()) return usage_error("the remote command has no words");
  for (std::string& word : command) {
    const std::size_t at = word.find("{host}");
    if (at != std::string::npos) word.replace(at, 6, host);
  }
  const bool quoted = std::filesystem::path(command.front()).filename() == "ssh";
  for (const std::string& word : words) command.push_back(quoted ? shell_word(word) : word);
  return command;
}

std::vector<std::string> node_argv(std::vector<std::string> argv, const std::string& host,
                                   const std::string& logs) {
  const auto launch = std::find(argv.begin(), argv.end(), "paddle.distributed.launch");
  if (launch == argv.end()) return argv;
  const auto at = launch - argv.begin() + 1;
  const bool has_logs = std::any_of(argv.begin(), argv.end(), [](const std::string& word) {
    return word.starts_with("--log_dir");
  });
  if (!has_logs) argv.insert(argv.begin() + at, "--log_dir=" + logs);
  argv.insert(argv.begin() + at, "--host=" + host);
  return argv;
}

Result<std::size_t> own_rank(const std::vector<std::string>& hosts) {
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (!interface_of(hosts[rank]).empty()) return rank;
  }
  return usage_error(
      fmt::format("this machine has none of the addresses {}", fmt::join(hosts, ", ")));
}

stage::StageCommand fleet_command(const plan::Stage& stage, const std::string& self,
                                  const FleetOptions& options) {
  const RendezvousOptions& rendezvous = options.rendezvous;
  stage::StageCommand command;
  command.argv = {self,
                  "chain",
                  options.per_node ? "node" : "fleet",
                  "--hosts",
                  fmt::format("{}", fmt::join(stage.hosts, ",")),
                  "--port",
                  std::to_string(rendezvous.port),
                  "--join-limit",
                  fmt::format("{:g}", rendezvous.join.count()),
                  "--lost-limit",
                  fmt::format("{:g}", rendezvous.lost.count())};
  const auto add = [&](std::string_view option, const std::string& value) {
    command.argv.emplace_back(option);
    command.argv.push_back(value);
  };
  if (!options.per_node) {
    add("--remote", options.remote);
    if (!options.program.empty()) add("--remote-program", options.program);
    for (const std::string& alias : options.aliases) add("--alias", alias);
  }
  constexpr std::string_view kLog = ".log";
  std::string logs = stage.log;
  if (logs.ends_with(kLog)) logs.resize(logs.size() - kLog.size());
  add("--launch-logs", logs + "_launch");
  if (stage.on_cpu) command.argv.emplace_back("--gloo");
  for (const std::string& entry : stage.environment) add("--env", entry);
  command.argv.emplace_back("--");
  command.argv.insert(command.argv.end(), stage.argv.begin(), stage.argv.end());
  command.directory = stage.directory;
  command.log = stage.log;
  return command;
}

Result<int> drive_fleet(const FleetTask& task, const std::string& self) {
  const Interrupts interrupts;
  ASSAY_TRY(std::string token, new_secret());
  token += '\n';
  std::vector<Node> nodes;
  bool word_given = false;
  bool failed = false;
  const auto give_word = [&](const std::string& word) {
    if (!word_given) print_line(std::string(kFleetWord), word);
    word_given = true;
  };
  for (std::size_t rank = 0; rank < task.options.rendezvous.hosts.size(); ++rank) {
    Node node;
    node.host = task.options.rendezvous.hosts[rank];
    ASSAY_TRY(FdPair pipe, make_pipe());
    stage::StageCommand command;
    ASSAY_TRY(command.argv, node_command(task, self, rank));
    command.log = "/dev/null";
    command.input = pipe.first.get();
    command.die_with_parent = false;
    node.lifeline = std::move(pipe.second);
    // By the pipe and not as an argument, which `ps` would show.
    ASSAY_CHECK(write_all(node.lifeline.get(), std::as_bytes(std::span(token))));
    const std::string prefix = rank == 0 ? "" : fmt::format("[{}] ", node.host);
    auto run = stage::StageRun::start(command, stage::Limits{},
                                      [&word_given, prefix](std::string_view line) {
                                        if (prefix.empty() && line.starts_with(kFleetWord))
                                          word_given = true;
                                        print_line(prefix, line);
                                      });
    if (!run) return tl::unexpected<Error>(run.error());
    node.run = std::make_unique<stage::StageRun>(std::move(*run));
    nodes.push_back(std::move(node));
  }
  // The other nodes notice a failure within their own limits. After that they are ended.
  stage::Clock::time_point give_up = stage::Clock::time_point::max();
  while (std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return !node.outcome; })) {
    std::vector<pollfd> fds{{interrupts.fd(), POLLIN, 0}};
    for (const Node& node : nodes) {
      if (!node.outcome) node.run->add_to(fds);
    }
    ::poll(fds.data(), fds.size(), 200);
    const bool ended = interrupts.next() != 0;
    for (Node& node : nodes) {
      if (node.outcome) continue;
      if (ended || stage::Clock::now() >= give_up) {
        node.lifeline.reset();
        node.run->stop(stage::StageState::interrupted, "ended with the fleet");
      }
      node.outcome = node.run->tick();
      if (!node.outcome || node.outcome->passed()) continue;
      failed = true;
      const auto grace = std::chrono::duration_cast<stage::Clock::duration>(
          task.options.rendezvous.lost + stage::Seconds(10));
      give_up = std::min(give_up, stage::Clock::now() + grace);
    }
    if (ended) give_up = stage::Clock::now();
  }
  if (!failed) return 0;
  // Report a node that was ended because of another only if there is no other to report.
  for (const bool ended_by_us : {false, true}) {
    for (const Node& node : nodes) {
      if (node.outcome->passed()) continue;
      if ((node.outcome->state == stage::StageState::interrupted) == ended_by_us)
        give_word(fmt::format("node {}: {}", node.host, node.outcome->detail));
    }
  }
  return 1;
}

}  // namespace assay::chain::fleet
