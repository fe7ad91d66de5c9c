#pragma once

// An interpreter that has imported a framework and stays for the next run (python/assay/kept.py).
// A run asks it for a fork server of its own, which it forks, so nothing has to be imported again.
//
// Its address is a hash of all that a process inherits and an import may hang on: command,
// environment, working folder, namespaces, control group, limits, cores, umask, priority. So a run
// with anything else gets another one. That files have changed since it looks after itself.

#include <chrono>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"

namespace assay {

// Where the one for `command` is, which every process with the same surroundings finds.
Result<std::string> kept_address(const SpawnOptions& command);

class KeptServer {
 public:
  // Asks it for a fork server with these descriptors: where that listens, tells what was imported
  // and prints. One that is not there is started with `command`, and imports in the background; it
  // ends when nobody has asked for `keep` and the fork servers that it has made have ended.
  static Result<KeptServer> ask(const SpawnOptions& command, std::chrono::seconds keep,
                                int listener, int ready, int log);

  // The fork server. nullopt: it does not make one, because files have changed since its import or
  // that has failed, or says nothing in time.
  std::optional<Process> wait(std::chrono::milliseconds limit);

 private:
  Fd connection_;
};

}  // namespace assay
