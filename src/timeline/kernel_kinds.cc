#include "timeline/kernel_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace assay::timeline {
namespace {

struct Rule {
  std::string_view part;   // in lower case
  std::string_view whose;  // library
};

// A kernel is communication if its name contains one of these parts, ignoring case.
constexpr std::array<Rule, 23> kCommunication{{
    {"nccl", "NCCL; RCCL has kept its kernels' names"},
    {"rccl", "RCCL"},
    {"hccl", "Ascend's library"},
    {"nvshmem", "NVSHMEM"},
    {"rocshmem", "ROC_SHMEM"},
    {"mscclpp", "MSCCL++"},
    {"::ep::", "DeepEP inside DeepSeek's own programs: dispatch, combine, notify"},
    {"deep_ep", "DeepEP"},
    {"multimem_", "PyTorch's symmetric memory over NVLink multicast"},
    {"symm_mem", "the same"},
    {"all_reduce", "PyTorch's one-shot and two-shot kernels, FlashInfer, QuickReduce"},
    {"allreduce", "TensorRT-LLM, vLLM"},
    {"all_gather", "the same for other collectives"},
    {"allgather", ""},
    {"reduce_scatter", ""},
    {"reducescatter", ""},
    {"all_to_all", ""},
    {"alltoall", ""},
    {"cross_device_reduce", "vLLM's and SGLang's custom all-reduce"},
    {"sendrecv", ""},
    {"allreduce_fusion", "FlashInfer"},
    {"lamport", "TensorRT-LLM's all-reduce without barriers"},
    {"userbuffers", "Transformer Engine"},
}};

// Reductions within a block or a warp have similar names but stay on one GPU.
constexpr std::array<std::string_view, 4> kWithinOneGpu{"warpallreduce", "blockallreduce",
                                                        "warp_all_reduce", "block_all_reduce"};

bool communicates(std::string_view kernel) {
  std::string name = lowered(kernel);
  for (const std::string_view word : kWithinOneGpu) {
    for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word)) {
      name.erase(at, word.size());
    }
  }
  return std::ranges::any_of(
      kCommunication, [&](const Rule& rule) { return name.find(rule.part) != std::string::npos; });
}

}  // namespace

Result<KernelKinds> KernelKinds::with(const std::vector<std::string>& patterns) {
  KernelKinds kinds;
  for (const std::string& pattern : patterns) {
    try {
      kinds.patterns_.emplace_back(pattern, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error& error) {
      return usage_error(fmt::format("--comm {}: {}", pattern, error.what()));
    }
  }
  return kinds;
}

Kind KernelKinds::kind(std::string_view kernel) const {
  // std::regex recurses, and names of templates can be very long.
  constexpr std::size_t kMaxMatched = 4096;
  const std::string_view head = kernel.substr(0, kMaxMatched);
  for (const std::regex& pattern : patterns_) {
    if (std::regex_search(head.begin(), head.end(), pattern)) return Kind::communication;
  }
  if (communicates(kernel)) return Kind::communication;
  if (kernel.starts_with("Memcpy") || kernel.starts_with("Memset") ||
      kernel.find("[CUDA mem") != std::string_view::npos) {
    return Kind::memory;
  }
  return Kind::compute;
}

Kind kind_of_kernel(std::string_view kernel) { return KernelKinds().kind(kernel); }

}  // namespace assay::timeline
