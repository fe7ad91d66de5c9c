#pragma once

// Judges records and stores verdicts.

#include "engine/core.h"
#include "engine/run_config.h"
#include "store/store.h"
#include "verdict/judge.h"
#include "wire/frame.h"

namespace assay {

class Recorder {
 public:
  Recorder(const RunConfig& config, Policies policies, RunClaims& claims, Totals& totals,
           const RunObserver& observer)
      : rules_{config.settings, mode_of(config).agreement},
        policies_(std::move(policies)),
        claims_(claims),
        totals_(totals),
        observer_(observer) {}

  // Judges the record of a case that ran as `job`. The result points into the slot's message.
  Judged judge(const wire::JobT& job, const wire::RecordBytes& record) const;

  // Stores and counts a verdict, unless the lease of the case is no longer valid.
  Status record(const Judged& ended);

 private:
  Rules rules_;
  Policies policies_;
  RunClaims& claims_;
  Totals& totals_;
  const RunObserver& observer_;
};

}  // namespace assay
