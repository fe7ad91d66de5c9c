#pragma once

// The supervisor's side of a fork server: a Python process that has imported one framework and
// forks lanes for slots (python/assay/server.py).
//
// The supervisor owns the listening socket. When a server dies, the next one listens on the same
// address, and slots that are connecting wait.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/private_folder.h"
#include "base/process.h"
#include "base/result.h"
#include "lane/warm_interpreter.h"

namespace assay {

// The end of the message about a framework that cannot be imported.
inline constexpr std::string_view kDoctorHelps = "; `assay doctor` says how to get it";

// Entries of a framework's environment: modules to import after it, separated by colons.
inline constexpr std::string_view kModules = "ASSAY_MODULES=";
inline constexpr std::string_view kModulesInLane = "ASSAY_MODULES_IN_LANE=";

struct FrameworkConfig {
  std::string name;                      // "paddle", "torch": a file of python/assay/frameworks
  std::string python;                    // the interpreter of its environment
  std::vector<std::string> environment;  // further "NAME=value" entries
  std::vector<std::string> command;      // words before the interpreter, such as compute-sanitizer
  std::chrono::seconds keep{0};  // how long the imported framework is kept (warm_interpreter.h)
  std::vector<std::string> of_run{};  // further entries, on which no import depends

  friend bool operator==(const FrameworkConfig&, const FrameworkConfig&) = default;
};

// The folders of the lane package and its native module.
struct LanePackage {
  std::filesystem::path python_path;  // folder that holds the package assay
  std::filesystem::path native_path;  // folder that holds assay_native.abi3.so
  static Result<LanePackage> find();  // looks beside and above the running program
};

// The interpreter of a framework that nobody names: that of the environment of `make setup`, that
// of the environment that assay is installed in, python3.
std::string python_of(const std::string& framework);
// An interpreter for the parts of the lane package that need no framework.
std::string any_python();

// The command and environment that call main() of a module of the lane package in the framework's
// interpreter.
SpawnOptions module_command(const FrameworkConfig& config, const LanePackage& package,
                            std::string_view module);

struct ServerInfo {
  std::string framework;
  std::string version;
  std::string python;
  std::string build;                 // equal for equal builds (python/assay/build_identity.py)
  std::string machine;               // processor, GPUs, driver
  std::int64_t apis = 0;             // APIs in the tables
  std::string known_deviations;      // known deviations by API, as JSON: {API: [text, …]}
  std::vector<std::string> devices;  // device kinds of this build, "cpu" among them
  std::vector<std::string> executions;
  // Notes for the user about an execution in this build, by its name; "": about all of them.
  std::map<std::string, std::string> notes;
  bool gradients = true;         // whether the framework differentiates
  std::vector<std::string> own;  // APIs with a reference of the user's own
  // The framework's folder if each import compiles it, because Python may not write bytecode.
  std::string uncompiled;
};

class ForkServer {
 public:
  // Starts the interpreter, or asks a kept one. The import runs in the background; wait_ready()
  // tells its outcome. The server prints to `log`.
  static Result<ForkServer> start(const FrameworkConfig& config, const LanePackage& package,
                                  std::filesystem::path log);

  // Waits for the import. The error is the interpreter's reason: not found, import failed, no
  // answer within `limit`.
  Result<ServerInfo> wait_ready(std::chrono::milliseconds limit);

  // Replaces a server that has ended. The address stays the same.
  Status restart();

  // Reads from heartbeat_fd(). The server reports once that it is ready, then a sign of life every
  // second. Never waits. An error if the import failed.
  enum class Heard { alive, ready, nothing_yet, nothing_more };
  Result<Heard> read_heartbeat();
  int heartbeat_fd() const { return ready_.get(); }
  // Commands of processes that cases had left running and the server has ended, since the last
  // call.
  std::vector<std::string> take_left() { return std::exchange(left_, {}); }
  // What the server has for the user, since the last call.
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

  // End the server with its lanes and their descendants. ask_to_stop() does not wait, so several
  // servers can end at the same time.
  void ask_to_stop() const;
  void stop();
  void kill() const { process_.signal_group(SIGKILL); }

  const std::string& address() const { return address_; }
  int pidfd() const { return process_.pidfd(); }
  pid_t pid() const { return process_.pid(); }
  // Reaps it; false while it still runs. Never waits.
  Result<bool> try_wait(ExitStatus& status) { return process_.try_wait(status); }
  const FrameworkConfig& config() const { return config_; }

 private:
  ForkServer() = default;
  SpawnOptions command() const;
  Result<std::vector<std::string>> entries_of_run();
  Status ask_kept();
  Status launch();
  Result<ServerInfo> read_hello(const std::string& line) const;
  void read_later(std::string_view text);

  FrameworkConfig config_;
  LanePackage package_;
  std::filesystem::path log_;
  std::string address_;  // in the abstract namespace, so no file is left behind
  Fd listener_;
  Fd ready_;
  std::string hello_;  // the first line, as far as it was read
  std::string heard_;  // a later line, as far as it was read
  std::vector<std::string> left_;
  std::vector<std::string> notes_;
  bool said_hello_ = false;
  PrivateFolder lane_folder_;       // of the process below, which ends first
  std::optional<KeptServer> kept_;  // was asked and has not answered yet
  Process process_;
};

}  // namespace assay
