#pragma once

// One normalised record a machine of a training stage: what it is, and how its share went. Every
// machine tells it itself, on a line of its own output, and its readings are its own lines'.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chain/plan/plan.h"
#include "chain/results/chain_store.h"
#include "chain/stage/train_log.h"

namespace assay::chain::results {

// A line of a node's output that starts so holds a JSON object about it:
// {"v":1, "host":…, "gpu_model":…, "framework":…, "state":…}.
inline constexpr std::string_view kNodeWord = "assay-node: ";

// "paddlepaddle 3.3.1": by what is installed beside an interpreter; nothing is run, so that a
// stand-in interpreter is not called either. Empty where it is not to be seen.
std::string framework_of(const std::string& interpreter);

// The first GPU that CUDA_VISIBLE_DEVICES of `environment` shows; "CPU" without one.
std::string gpu_model_of(const std::vector<std::string>& environment, bool on_cpu);

std::string node_line(const NodeRecord& record);
std::optional<NodeRecord> read_node_line(std::string_view line);

class NodeRecords {
 public:
  NodeRecords() = default;
  NodeRecords(const plan::Stage& stage, const std::string& model);

  // What one line of the stage's output says of the stage.
  struct Said {
    std::string_view line;
    std::vector<stage::Reading> readings;
  };
  // Takes one line in. What another machine than the first wrote (it comes as "[host] …") counts
  // for that machine alone: then it says nothing of the stage.
  Said take(std::string_view line);

  // The records, once the stage has ended in `state`.
  std::vector<NodeRecord> finish(std::string_view state) const;

 private:
  struct Node {
    NodeRecord record;
    std::size_t readings = 0;
  };
  Node* find(std::string_view host);

  std::vector<Node> nodes_;  // by rank
};

}  // namespace assay::chain::results
