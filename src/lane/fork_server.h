#pragma once

// The fork server of one framework, as the supervisor sees it: a Python process that has imported
// the framework and forks lanes for slots (python/assay/server.py).
//
// The supervisor owns the listening socket, so a server that dies can be replaced while slots wait
// on the same address.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"
#include "lane/kept_server.h"

namespace assay {

// How the message of a framework that cannot be imported ends.
inline constexpr std::string_view kDoctorHelps = "; `assay doctor` says how to get it";

struct FrameworkConfig {
  std::string name;                      // "paddle", "torch": a file of python/assay/frameworks
  std::string python;                    // the interpreter of its environment
  std::vector<std::string> environment;  // more "NAME=value" for it
  std::vector<std::string> command;      // a program and its arguments that runs it; none: nothing
  std::chrono::seconds keep{0};  // how long what is imported stays for another run (kept_server.h)

  friend bool operator==(const FrameworkConfig&, const FrameworkConfig&) = default;
};

// Where the lane package and its native module lie.
struct LanePackage {
  std::filesystem::path python_path;  // folder that holds the package assay
  std::filesystem::path native_path;  // folder that holds assay_native.abi3.so
  static Result<LanePackage> find();  // beside or above the running program
};

struct ServerInfo {
  std::string framework;
  std::string version;
  std::string python;
  std::int64_t apis = 0;             // APIs in the tables
  std::string accommodates;          // what these accommodate: JSON, {API: [in words, …]}
  std::vector<std::string> devices;  // kinds that this build has, "cpu" among them
  std::vector<std::string> executions;
  // What people should know of an execution in this build, by its name.
  std::map<std::string, std::string> notes;
  bool gradients = true;  // it differentiates
};

class ForkServer {
 public:
  // Starts the interpreter, or asks one that was kept; the import goes on in the background until
  // wait_ready() says how it went. What it prints goes to `log`.
  static Result<ForkServer> start(const FrameworkConfig& config, const LanePackage& package,
                                  std::filesystem::path log);

  // An error carries the interpreter's own reason: not found, import failed, no answer in time.
  Result<ServerInfo> wait_ready(std::chrono::milliseconds limit);

  // Replaces a server that has ended; slots keep their address.
  Status restart();

  // What has come from voice(), which is readable: the server says once that it is ready, and from
  // then on once a second that it lives. Never waits. An error: its import failed.
  enum class Heard { alive, ready, nothing_more };
  Result<Heard> hear();
  int voice() const { return ready_.get(); }

  // Ends it with its lanes and whatever those have started. Several servers end at once where each
  // is asked to before the first is waited for.
  void ask_to_stop() const;
  void stop();
  void kill() const { process_.signal_group(SIGKILL); }

  const std::string& address() const { return address_; }
  int pidfd() const { return process_.pidfd(); }
  pid_t pid() const { return process_.pid(); }
  Result<ExitStatus> wait() { return process_.wait(); }
  const FrameworkConfig& config() const { return config_; }

 private:
  ForkServer() = default;
  SpawnOptions command() const;
  Status ask_kept();
  Status launch();
  Result<ServerInfo> read_hello(const std::string& line) const;

  FrameworkConfig config_;
  LanePackage package_;
  std::filesystem::path log_;
  std::string address_;  // in the abstract namespace: no file to leave behind
  Fd listener_;
  Fd ready_;
  std::string hello_;  // its first line, as far as it has come
  bool said_hello_ = false;
  std::optional<KeptServer> kept_;  // asked, and has not answered
  Process process_;
};

}  // namespace assay
