#pragma once

// Remembers by API and dtypes what the test lane could run, since these mostly decide whether a
// build has a kernel. That only decides which lane starts first and with which inputs: a wrong
// guess costs time, never a verdict. The slot remembers it, because a lane that is replaced
// forgets.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "case/case.h"
#include "slot/batch.h"

namespace assay {

class KernelSupport {
 public:
  // How the lanes start on a case. The other lanes wait for the test lane if it could not run the
  // last case of that kind, or if an expensive kind is new. The test lane tries a large case
  // unfilled if the last one of its kind had no kernel or ran out of time. For a new kind its
  // dtypes decide: a dtype is suspicious if it is new, or if an eighth of its kinds has no kernel.
  wire::Start start(const wire::JobT& job);
  // Notes how a case ended under usual values.
  void learn(const wire::JobT& job, const LaneResult& ending);

 private:
  enum class Known : std::uint8_t { able, unable, overdue };
  struct KindsOf {  // of the kinds with tensors of one dtype
    std::uint64_t all = 0;
    std::uint64_t unable = 0;
  };
  bool may_lack_kernel(const std::string& kind) const;

  Case scratch_;
  std::unordered_map<std::string, Known> kinds_;
  std::unordered_map<std::string, KindsOf> dtypes_;
};

// The kind of a case: its API and the dtypes of its arguments. Empty for text that does not parse.
// `scratch` is memory to reuse.
std::string kind_of(std::string_view text, Case& scratch);

}  // namespace assay
