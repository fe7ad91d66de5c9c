#pragma once

// From record to verdict to store; decides what is tried a second time.

#include <map>
#include <span>
#include <string_view>

#include "engine/run_config.h"
#include "schedule/queue.h"
#include "store/store.h"
#include "verdict/judge.h"
#include "wire/frame.h"

namespace assay {

// A record as it came: verified.
struct OpenRecord {
  const wire::Record* root = nullptr;
  std::span<const std::uint8_t> bytes;
};

class Recorder {
 public:
  Recorder(const RunConfig& config, Policies policies, Store& store, Totals& totals,
           const RunObserver& observer)
      : config_(config),
        policies_(std::move(policies)),
        store_(store),
        totals_(totals),
        observer_(observer) {}

  enum class Decision { finished, failed, again };

  // Judges. A first failure is not yet recorded: `again` asks for a second attempt in fresh lanes.
  // `failed` is a failure that stands.
  Result<Decision> take(const QueuedCase& queued, const OpenRecord& record);

  // A case that no record came of, because its slots keep dying.
  Status give_up(const QueuedCase& queued, std::string message);

 private:
  struct First {
    Verdict verdict;
    bool fresh = false;
    int kills = 0;  // from outside, which say nothing of the case
  };
  Status finish(const QueuedCase& queued, const Verdict& verdict,
                std::span<const std::uint8_t> record_bytes);

  const RunConfig& config_;
  Policies policies_;
  Store& store_;
  Totals& totals_;
  const RunObserver& observer_;
  std::map<std::uint64_t, First> firsts_;
};

}  // namespace assay
