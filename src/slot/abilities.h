#pragma once

// What the lane under test has shown that it can do, by API and dtypes: whether a build has a
// kernel hangs on little else. It tells who is asked first, and decides nothing, so a case that is
// not like those before it costs time and no verdict.

#include <string>
#include <string_view>
#include <unordered_map>

#include "case/case.h"
#include "slot/batch.h"

namespace assay {

class Abilities {
 public:
  // Whether the reference waits for this lane with a case of that kind: where the last one could
  // not be run, and where nothing is known yet of one that is dear.
  bool in_doubt(const SlotJob& job) const;
  // Says how a case of that kind ended under its usual values.
  void learn(const SlotJob& job, const Ending& ending);

 private:
  std::unordered_map<std::string, bool> can_;
};

// The API of a case and the dtypes of its arguments; empty for text that is no case. `scratch` is
// memory to reuse.
std::string kind_of(std::string_view text, Case& scratch);

}  // namespace assay
