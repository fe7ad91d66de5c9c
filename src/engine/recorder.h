#pragma once

// From record to verdict, and from verdict to store.

#include <span>
#include <string_view>

#include "engine/core.h"
#include "engine/run_config.h"
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
      : rules_{config.settings, mode_of(config).agreement},
        policies_(std::move(policies)),
        store_(store),
        totals_(totals),
        observer_(observer) {}

  Answer judge(const wire::JobT& ran, const OpenRecord& record) const;

  // Stores a verdict and counts it; not when the case is no longer ours to end.
  Status record(const RecordVerdict& verdict);

 private:
  Rules rules_;
  Policies policies_;
  Store& store_;
  Totals& totals_;
  const RunObserver& observer_;
};

}  // namespace assay
