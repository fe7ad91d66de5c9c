#pragma once

// Builds the record of each machine of a training stage. Each machine reports itself on a line of
// its own output; its readings come from its own lines.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chain/plan/plan.h"
#include "chain/results/chain_store.h"
#include "chain/stage/train_log.h"

namespace assay::chain::results {

// Prefix of an output line with a JSON object about the machine: {"v":1, "host":…, "gpu_model":…,
// "framework":…, "state":…}.
inline constexpr std::string_view kNodeWord = "assay-node: ";

// The Python packages beside an interpreter, sorted: "torch-2.13.0".
std::vector<std::string> packages_of(const std::string& interpreter);
// Returns "paddlepaddle 3.3.1" by the packages beside an interpreter, or "". It starts nothing, so
// it also works for a stand-in interpreter.
std::string framework_of(const std::string& interpreter);

// Returns the model of the first GPU in CUDA_VISIBLE_DEVICES of `environment`, or "CPU".
std::string gpu_model_of(const std::vector<std::string>& environment, bool on_cpu);

// Writes a machine's record as an output line, and reads it back; nothing for another line.
std::string node_line(const NodeRecord& record);
std::optional<NodeRecord> read_node_line(std::string_view line);

class NodeRecords {
 public:
  NodeRecords() = default;
  NodeRecords(const plan::Stage& stage, const std::string& model);

  // What an output line means for the stage.
  struct Said {
    std::string_view line;
    std::vector<stage::Reading> readings;
  };
  // Takes an output line. A line of another machine ("[host] …") counts for that machine only, not
  // for the stage.
  Said take(std::string_view line);

  // Returns the records after the stage ended in `state`.
  std::vector<NodeRecord> finish(std::string_view state) const;

 private:
  struct Node {
    stage::TrainLog log;
    NodeRecord record;
    std::size_t readings = 0;
  };
  Node* find(std::string_view host);

  std::vector<Node> nodes_;
  stage::TrainLog log_;  // of a stage without machines  // by rank
};

}  // namespace assay::chain::results
