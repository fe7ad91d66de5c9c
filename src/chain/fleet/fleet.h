#pragma once

// Runs a training stage on many machines. The chain starts one driver process (`assay chain
// fleet`), which starts `assay chain node` on every machine, over ssh or with the user's command.
// The nodes start the training together and watch each other (rendezvous.h). Rank 0 names the
// machine that fails.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chain/fleet/rendezvous.h"
#include "chain/plan/plan.h"
#include "chain/stage/stage_run.h"

namespace assay::chain::fleet {

// Prefix of an output line of the driver with an error for the chain's record.
inline constexpr std::string_view kFleetWord = "assay-fleet: ";

// The fleet's secret where no driver passes it on: the same text on all machines.
inline constexpr const char* kTokenVariable = "ASSAY_FLEET_TOKEN";

// How the nodes of a fleet are reached and watched.
struct FleetOptions {
  std::string remote =
      "ssh -o BatchMode=yes -o ConnectTimeout=10 {host}";  // command before the program
  std::string program;               // path of assay on the other machines; "": as here
  std::vector<std::string> aliases;  // "10.0.0.2=name": replaces {host} for this address
  bool per_node = false;             // started on every machine (Slurm): no ssh, own rank only
  RendezvousOptions rendezvous;      // the stage sets hosts and rank
};

// Returns the command that runs `words` on a host: `remote` with {host} filled in before them. ssh
// joins its words with blanks and passes them to a shell, so they are quoted for it.
Result<std::vector<std::string>> remote_command(const std::string& remote, const std::string& host,
                                                const std::vector<std::string>& words);

// Returns the command of the driver for a stage, or of the node itself if per_node. `self` is the
// path of assay.
stage::StageCommand fleet_command(const plan::Stage& stage, const std::string& self,
                                  const FleetOptions& options);

// The command line of `fleet` and `node`.
struct FleetTask {
  FleetOptions options;
  std::vector<std::string> environment;
  std::string directory;
  std::string launch_logs = "log";  // folder of the launcher's logs, with one folder per rank
  bool gloo = false;
  std::vector<std::string> argv;
};

// Runs all nodes and waits. Returns 0 only if all ended well.
Result<int> drive_fleet(const FleetTask& task, const std::string& self);

// Runs one node: waits for the others, trains, watches. Without `rank`, the machine's addresses
// decide.
Result<int> run_node(FleetTask task);

// Returns the training's argv for one machine. paddle.distributed.launch gets the machine's
// address, because the host name often means 127.0.0.1, which gives two ranks 0. It gets a log
// folder per rank, because launchers in a shared folder write into each other's logs.
std::vector<std::string> node_argv(std::vector<std::string> argv, const std::string& host,
                                   const std::string& logs);

// Returns the rank of this machine by its addresses. A machine without any of them is an error.
Result<std::size_t> own_rank(const std::vector<std::string>& hosts);

}  // namespace assay::chain::fleet
