#pragma once

// An interpreter that has imported a framework and stays for the next run
// (python/assay/warm_interpreter.py). A run asks it for a fork server of its own, which it forks,
// so nothing has to be imported again.
//
// A run finds it by the name of a file (kept_record.h): a hash of everything that a process
// inherits and an import may depend on, which is command, environment, working folder, namespaces,
// control group, limits, cores, umask and priority. A run that differs in one of these gets another
// server. The server itself watches whether the files that it has imported have changed.

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"

namespace assay {

// The name of the file for `command`, the same for every process with the same surroundings.
Result<std::string> kept_name(const SpawnOptions& command);

class KeptServer {
 public:
  // Asks for a fork server that listens on `listener`, reports its import on `ready` and prints to
  // `log`. `of_run`: "NAME=value" entries for its environment alone. Starts a kept server with
  // `command` where none is; that imports in the background, and ends once no run has asked for
  // `keep` and its fork servers have ended. Never waits for longer than 2 s.
  static Result<KeptServer> ask(const SpawnOptions& command, std::chrono::seconds keep,
                                const std::vector<std::string>& of_run, int listener, int ready,
                                int log);

  // The fork server. nullopt: the import failed, its files have changed since, it takes longer than
  // `limit`, or the kept server does not answer within 2 s of its import.
  std::optional<Process> wait(std::chrono::milliseconds limit);

 private:
  Fd connection_;
  std::filesystem::path record_;
};

}  // namespace assay
