#pragma once

// A real Slurm of four nodes on this machine.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "../engine/cli.h"
#include "../store/folder.h"
#include "../store/postgres_server.h"
#include "base/fd.h"
#include "base/process.h"

namespace assay::testing {

namespace fs = std::filesystem;

// The material's throw-away Slurm, every node a port of this machine: that needs no root.
class Slurm {
 public:
  static fs::path scripts() {
    const char* named = std::getenv("ASSAY_SHARED");
    const fs::path shared = named != nullptr ? named : fs::path(ASSAY_SOURCE_DIR) / ".." / "shared";
    return fs::weakly_canonical(shared / "cluster");
  }
  // What is missing here; empty: nothing.
  static std::string missing() {
    for (const char* program : {"slurmctld", "slurmd", "sbatch"}) {
      if (!fs::exists(fs::path("/usr/sbin") / program) && !find_program(program)) {
        return std::string("needs ") + program + " (Debian: slurmctld slurmd slurm-client)";
      }
    }
    if (!fs::exists(scripts() / "slurm-up.sh")) return "needs cluster/slurm-up.sh (ASSAY_SHARED)";
    return PostgresServer::programs() ? "" : "needs PostgreSQL (Debian: postgresql)";
  }

  Slurm() { up_ = call({"bash", (scripts() / "slurm-up.sh").string()}).ok(); }
  ~Slurm() { (void)call({"bash", (scripts() / "slurm-down.sh").string()}); }
  Slurm(const Slurm&) = delete;
  Slurm& operator=(const Slurm&) = delete;

  bool is_up() const { return up_; }
  bool tell(std::vector<std::string> argv) const { return call(std::move(argv)).ok(); }
  // What the program prints.
  std::string ask(std::vector<std::string> argv) const {
    std::error_code ignored;
    fs::remove(root_.path() / "output", ignored);
    (void)call(std::move(argv));
    return read_file(root_.path() / "output").value_or("");
  }
  // The power of a node ("h2") fails: its daemon and all that runs there are gone at once.
  void kill_node(const std::string& node) const {
    std::vector<pid_t> gone = processes_of("SLURMD_NODENAME=" + node);
    const std::vector<pid_t> running = gone;
    for (const pid_t pid : running) add_step_daemon(pid, gone);
    const auto daemon = root_.path() / "run" / ("slurmd-" + node + ".pid");
    gone.push_back(static_cast<pid_t>(std::stoi(*read_file(daemon))));
    for (const pid_t pid : gone) ::kill(pid, SIGKILL);
    fs::remove(daemon);
  }
  void start_node(const std::string& node) const {
    (void)call({"bash", (scripts() / "slurm-up.sh").string(), "node", node.substr(1)});
  }
  fs::path configuration() const { return root_.path() / "slurm.conf"; }
  std::string queue() const { return ask({"squeue", "--noheader", "--array", "--format=%T"}); }
  // What is waited for and why, to print when a wait was in vain.
  std::string account() const {
    const std::string log = read_file(root_.path() / "log" / "slurmctld.log").value_or("");
    return ask({"scontrol", "show", "job"}) + ask({"sinfo", "--Node", "--format=%N %T %E"}) +
           log.substr(log.size() - std::min<std::size_t>(log.size(), 4000));
  }
  bool is_done() const {
    for (int tries = 0; tries < 1200; ++tries) {
      if (queue().empty()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
    }
    return false;
  }
  // Of every task that has ended, by Slurm's own account of the jobs.
  std::vector<std::string> states() const {
    std::vector<std::string> found;
    const std::string text = read_file(root_.path() / "log" / "jobcomp.txt").value_or("");
    for (std::size_t at = text.find("JobState="); at != std::string::npos;
         at = text.find("JobState=", at + 1)) {
      found.push_back(text.substr(at + 9, text.find(' ', at) - at - 9));
    }
    return found;
  }

 private:
  // slurmstepd, where it is the parent of this process.
  static void add_step_daemon(pid_t child, std::vector<pid_t>& found) {
    const std::string stat = read_file(fmt::format("/proc/{}/stat", child)).value_or("");
    const std::size_t name_end = stat.rfind(") ");
    if (name_end == std::string::npos) return;
    const pid_t parent = static_cast<pid_t>(std::stoi(stat.substr(name_end + 4)));
    const std::string name = read_file(fmt::format("/proc/{}/comm", parent)).value_or("");
    if (name.starts_with("slurmstepd")) found.push_back(parent);
  }

  ExitStatus call(std::vector<std::string> argv) const {
    SpawnOptions options;
    options.argv = std::move(argv);
    options.environment = {"ROOT=" + root_.path().string(),
                           "NODES=4",
                           "GPUS=1",
                           "CPUS=1",
                           "MODE=plain",
                           fmt::format("PORT={}", port_),
                           "AUTH=none",
                           "SLURM_CONF=" + configuration().string()};
    options.die_with_parent = false;  // the daemons stay until they are told to end
    const auto log = open_for_append(root_.path() / "output");
    options.fds = {{log->get(), 1}, {log->get(), 2}};
    auto process = Process::spawn(options);
    return process ? *process->wait() : ExitStatus{1, 0};
  }

  Folder root_;
  // Of its controller, and of a node each of those behind it: another Slurm may be here as well.
  int port_ = 17'000 + (::getpid() % 9'000) * 5;
  bool up_ = false;
};

}  // namespace assay::testing
