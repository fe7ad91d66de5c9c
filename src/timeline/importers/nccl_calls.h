#pragma once

// The calls that NCCL's profiler plug-ins write, as a trace.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "timeline/importers/builder.h"
#include "timeline/model.h"

namespace assay::timeline {

struct NcclCall {
  std::string function;      // "AllReduce"
  std::string communicator;  // its hash
  std::string description;   // of the communicator; may be empty
  std::string dtype = {};
  std::string algorithm = {};     // "RING_SIMPLE"
  std::int32_t rank = kNone;      // within the communicator
  std::int32_t ranks = kNone;     // of the communicator
  std::int32_t peer = kNone;      // of a send or receive
  std::int64_t sequence = kNone;  // among the communicator's calls of this function
  std::int64_t bytes = kNone;     // as nccl-tests counts them
  std::int64_t elements = kNone;  // of the input, if the bytes are unknown
  Nanos begin = kNone;            // kNone: unknown
  Nanos duration = 0;
};

// Collects the calls of one process. The rank of the process is its rank in the largest
// communicator.
class NcclCalls {
 public:
  TraceBuilder& builder() { return builder_; }
  void add(NcclCall call) {
    if (calls_.size() < kMaxImportedSlices) calls_.push_back(std::move(call));
  }
  Trace finish(const std::filesystem::path& path, std::string_view format, const std::string& host,
               std::int64_t pid);

 private:
  std::int32_t rank_of(const NcclCall& call) const;
  void find_ranks();
  void note_missing();
  void add_slice(const NcclCall& call, std::uint32_t track, Nanos begin);
  Collective collective_of(const NcclCall& call);

  TraceBuilder builder_;
  std::vector<NcclCall> calls_;
  std::int32_t largest_ = kNone;  // ranks of the largest communicator
  std::int32_t rank_ = kNone;     // of the process; kNone: the process has several ranks
};

// The bytes that nccl-tests counts for a message of `bytes`: an all-gather's output and a
// reduce-scatter's input have the parts of all ranks.
std::int64_t nccl_bytes(const std::string& function, std::int64_t bytes, std::int32_t ranks);

}  // namespace assay::timeline
