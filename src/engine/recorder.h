#pragma once

// Judges records and stores verdicts.

#include <span>

#include "engine/core.h"
#include "engine/run_config.h"
#include "store/store.h"
#include "verdict/judge.h"
#include "wire/frame.h"

namespace assay {

// A verified record. It points into the slot's message.
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

  // The answer of a slot about the case `ran`, with the verdict of its record.
  Answer judge(const wire::JobT& ran, const OpenRecord& record) const;

  // Stores and counts a verdict, unless the lease of the case is no longer valid.
  Status record(const RecordVerdict& verdict);

 private:
  Rules rules_;
  Policies policies_;
  Store& store_;
  Totals& totals_;
  const RunObserver& observer_;
};

}  // namespace assay
