#pragma once

// From corpus text to planned cases: parse, drop duplicates, resume.

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/run_config.h"
#include "schedule/queue.h"
#include "store/store.h"

namespace assay {

// Canonical texts, many in a block; what it hands out stays where it is.
class TextPool {
 public:
  std::string_view keep(std::string_view text);

 private:
  static constexpr std::size_t kBlock = 1 << 20;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;  // free room in the last block
  std::size_t left_ = 0;
};

struct Plan {
  TextPool texts;
  Totals totals;
  std::vector<InvalidLine> first_invalid;  // a few, to be shown at once; the store has all
};

// Writes every case to the store, where nothing is committed yet. Lines that do not parse are
// stored as invalid and counted.
Result<Plan> make_plan(const RunConfig& config, Store& store);

// Claims cases of the plan that have not finished, and hands over each; their texts are kept in
// `texts`.
Result<Supply> claim_cases(const RunConfig& config, std::size_t bundles, Store& store,
                           TextPool& texts, const std::function<void(const QueuedCase&)>& take);

}  // namespace assay
