#include "timeline/kernel_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/text.h"

namespace assay::timeline {
namespace {

// What a kernel's own name contains, in lower case, if it communicates. Libraries first; then the
// names that several projects give their collectives.
constexpr std::array<std::string_view, 38> kCommunication{
    "nccl",                 // NCCL; RCCL has kept its kernels' names
    "rccl",                 // RCCL
    "hccl",                 // Ascend
    "hcom_",                // Ascend's operators
    "oneccl",               // Intel
    "ccl::",                // Intel, AMD
    "nvshmem",              // NVSHMEM
    "rocshmem",             // ROC_SHMEM
    "mscclpp",              // MSCCL++
    "mori::",               // MORI
    "epdispatch",           // MORI
    "epcombine",            // MORI
    "::ep::",               // DeepEP inside DeepSeek's own programs: dispatch, combine, notify
    "deep_ep",              // DeepEP
    "deepep",               // the same, mangled
    "pplx",                 // Perplexity's kernels
    "a2a_dispatch",         // the same
    "a2a_combine",          // the same
    "moea2a",               // TensorRT-LLM's all-to-all of experts
    "fusedmoecomm",         // the same
    "multimem_",            // PyTorch's symmetric memory over NVLink multicast
    "symm_mem",             // the same
    "all_reduce",           // PyTorch's one-shot and two-shot kernels, FlashInfer, QuickReduce
    "allreduce",            // TensorRT-LLM, vLLM
    "all_gather",           // the same for other collectives
    "allgather",            //
    "reduce_scatter",       //
    "reducescatter",        //
    "all_to_all",           //
    "alltoall",             //
    "cross_device_reduce",  // vLLM's and SGLang's custom all-reduce
    "sendrecv",             //
    "lamport",              // TensorRT-LLM's all-reduce without barriers
    "userbuffers",          // Transformer Engine
    "quickreduce",          // AMD
    "quick_reduce",         // the same
    "ncclsymk",             // NCCL's symmetric kernels
    "xccl",                 // Baidu's and other vendors' libraries
};

// Reductions within a block or a warp have similar names but stay on one GPU.
constexpr std::array<std::string_view, 6> kWithinOneGpu{"warpallreduce",    "blockallreduce",
                                                        "warp_all_reduce",  "block_all_reduce",
                                                        "warpallreducesum", "groupallreduce"};

// Compilers name a fused kernel after the operations that it was fused from: none of these words
// says what the kernel does. Inductor and Triton, PyTorch's nvFuser, CINN, XLA, TVM.
bool is_generated(std::string_view name) {
  for (const char* prefix : {"triton_", "nvfuser", "fn_", "fusion", "loop_", "input_", "tvmgen_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return name.find("_fused_") != std::string_view::npos &&
         name.find("kernel") == std::string_view::npos;
}

// The function's own name with its namespaces, in lower case: without return type, template
// arguments and parameters, which can name anything.
std::string own_name(std::string_view kernel) {
  std::string name = lowered(kernel);
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (std::size_t at = name.find(kAnonymous); at != std::string::npos;
       at = name.find(kAnonymous)) {
    name.erase(at, kAnonymous.size());
  }
  name.resize(std::min(name.find_first_of("<("), name.size()));
  const std::size_t type = name.rfind(' ');  // "void f"
  return type == std::string::npos ? name : name.substr(type + 1);
}

bool communicates(std::string_view kernel) {
  std::string name = own_name(kernel);
  if (is_generated(name)) return false;
  for (const std::string_view word : kWithinOneGpu) {
    for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word)) {
      name.erase(at, word.size());
    }
  }
  return std::ranges::any_of(
      kCommunication, [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

}  // namespace

Result<KernelKinds> KernelKinds::with(const std::vector<std::string>& communication,
                                      const std::vector<std::string>& compute) {
  KernelKinds kinds;
  for (const auto& [option, kind, patterns] :
       {std::tuple("--comm", Kind::communication, &communication),
        std::tuple("--compute", Kind::compute, &compute)}) {
    for (const std::string& pattern : *patterns) {
      try {
        kinds.patterns_.emplace_back(
            std::regex(pattern, std::regex::ECMAScript | std::regex::optimize), kind);
      } catch (const std::regex_error& error) {
        return usage_error(fmt::format("{} {}: {}", option, pattern, error.what()));
      }
    }
  }
  return kinds;
}

Kind KernelKinds::kind(std::string_view kernel) const {
  // std::regex recurses, and names of templates can be very long.
  constexpr std::size_t kMaxMatched = 4096;
  const std::string_view head = kernel.substr(0, kMaxMatched);
  for (const auto& [pattern, kind] : patterns_) {
    if (std::regex_search(head.begin(), head.end(), pattern)) return kind;
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
