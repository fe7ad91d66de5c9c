#pragma once

// What a lane has shown that it can do, by API and dtypes: whether a build has a kernel hangs on
// little else. It tells who is asked first, and with what, and decides nothing, so a case that is
// not like those before it costs time and no verdict. The slot knows it, because a lane that is
// replaced forgets all.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "case/case.h"
#include "slot/batch.h"

namespace assay {

class Abilities {
 public:
  // How the lanes start on a case. The others wait for the test lane where the last case of that
  // kind could not be run, and where nothing is known yet of one that is expensive. The test lane
  // tries a large case unfilled where the last one of its kind could not be run or ran out of time.
  // For a new kind its dtypes decide: a kernel is likely missing where an eighth of a dtype's kinds
  // has none, and a new dtype is to be learnt of.
  wire::Start start(const wire::JobT& job);
  // Says how a case of that kind ended under its usual values.
  void learn(const wire::JobT& job, const Ending& ending);

 private:
  enum class Known : std::uint8_t { able, unable, overdue };
  struct KindsOf {  // with tensors of one dtype
    std::uint64_t all = 0;
    std::uint64_t unable = 0;
  };
  bool may_lack_kernel(const std::string& kind) const;

  Case scratch_;
  std::unordered_map<std::string, Known> kinds_;
  std::unordered_map<std::string, KindsOf> dtypes_;
};

// The API of a case and the dtypes of its arguments; empty for text that is no case. `scratch` is
// memory to reuse.
std::string kind_of(std::string_view text, Case& scratch);

}  // namespace assay
