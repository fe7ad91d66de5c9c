#pragma once

// A training stage on many machines. The chain starts one driver process (`assay chain fleet`),
// which starts `assay chain node` on every machine (over ssh, or as it is told to); the nodes start
// the training together, watch each other (muster.h), and rank 0 names the machine that fails.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chain/fleet/muster.h"
#include "chain/plan/plan.h"
#include "chain/stage/stage_run.h"

namespace assay::chain::fleet {

// A line of the driver's output that starts so tells what went wrong, for the chain's own record.
inline constexpr std::string_view kFleetWord = "assay-fleet: ";

// The fleet's secret where no driver passes it on: the same text on all machines.
inline constexpr const char* kTokenVariable = "ASSAY_FLEET_TOKEN";

// How the nodes of a fleet are reached and watched.
struct FleetOptions {
  std::string remote =
      "ssh -o BatchMode=yes -o ConnectTimeout=10 {host}";  // words before the program
  std::string program;               // assay on the other machines; empty: our own path
  std::vector<std::string> aliases;  // "10.0.0.2=name": what {host} stands for
  bool per_node = false;             // started on every machine (Slurm): no ssh, own rank only
  MusterOptions muster;              // hosts and rank are filled in by the stage
};

// The stage as the driver (or, per node, the node itself) is told of it. `self` is our program.
stage::StageCommand fleet_command(const plan::Stage& stage, const std::string& self,
                                  const FleetOptions& options);

// What `fleet` and `node` were told on their command lines.
struct FleetTask {
  FleetOptions options;
  std::vector<std::string> environment;
  std::string directory;
  std::string launch_logs = "log";  // where the launcher keeps its workers' logs, a folder a rank
  bool gloo = false;
  std::vector<std::string> argv;
};

// Runs all nodes and waits; the exit code is 0 only when all ended well.
Result<int> drive_fleet(const FleetTask& task, const std::string& self);

// Runs one node's share: waits for the others, trains, watches. The rank is found by our own
// address where `rank` is not given.
Result<int> run_node(FleetTask task);

// The training's argv on one machine: paddle.distributed.launch is told the machine's own address
// (its host name often means 127.0.0.1, and then two machines both take rank 0), and a folder of
// its own for its workers' logs: in one folder that machines share they would write into each
// other's, and one would be seen to complain in the other's words.
std::vector<std::string> node_argv(std::vector<std::string> argv, const std::string& host,
                                   const std::string& logs);

// The rank of this machine, by its addresses; an error when it is none of them.
Result<std::size_t> own_rank(const std::vector<std::string>& hosts);

}  // namespace assay::chain::fleet
